"""A logarithmic y axis, for errors and losses over several decades."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from rubato_analysis.errors import AnalysisError
from rubato_analysis.figure import Data
from rubato_analysis.metrics import is_fraction, metric_text


def logarithmic_y(ax: Axes, name: str, data: Data, panel: str) -> str:
    """Makes the axis of the figure `name` logarithmic, once everything is drawn; a sentence about values that it cannot
    show, empty where there are none. `panel`: that of the data drawn in `ax`."""
    frame = data.frame()
    values = frame.y[frame.panel == panel].to_numpy("float64")
    values = values[np.isfinite(values)]
    if not (values > 0.0).any():
        raise AnalysisError(f"{metric_text(name)}: no value is above 0, so a logarithmic axis (--log-y) shows nothing")
    ax.set_yscale("log")
    low, high = ax.get_ylim()
    decades = float(np.log10(high / low))
    # Powers of ten alone would leave a short axis without ticks.
    ax.yaxis.set_major_locator(LogLocator(numticks=12) if decades > 2.5 else
                               LogLocator(subs=(1.0, 2.0, 5.0), numticks=12) if decades > 1.0 else MaxNLocator(6))
    ax.yaxis.set_minor_formatter(NullFormatter())
    unit, factor = (" %", 100.0) if is_fraction(name) else ("", 1.0)
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{factor * value:.6g}{unit}"))
    fallen = int((values <= 0.0).sum())
    return f"{fallen} values of 0 or less are not on the logarithmic axis." if fallen else ""
