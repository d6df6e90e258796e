"""What the synchronization controller of dssp granted, and how far apart it expected the two pushes to be."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from rubato_analysis.errors import AnalysisError
from rubato_analysis.figure import Data, new_figure, set_title, shared_legend
from rubato_analysis.run_directory import Run
from rubato_analysis.series import series_of, subtitle_of, title_of
from rubato_analysis.styles import Style
from rubato_analysis.timeline import unit_of

# More questions than this are shown as equally many means of consecutive ones.
POINTS_MAX = 600


def questions_of(run: Run) -> pd.DataFrame:
    """controller.csv, refused where the controller was never asked."""
    if run.controller.empty:
        raise AnalysisError(f"{run.path}: the controller was never asked: no worker led by more than the lower bound")
    return run.controller


def thinned(table: pd.DataFrame) -> pd.DataFrame:
    """Means of consecutive rows, POINTS_MAX at most, as floats; NaN where nothing was predicted."""
    apart = (table.predicted_ns - table.slowest_predicted_ns).abs().astype("float64")
    columns = pd.DataFrame({"time_s": table.time_ns / 1e9, "granted": table.granted.astype("float64"),
                            "gap": table.gap.astype("float64"), "apart_ns": apart})
    step = -(-len(columns) // POINTS_MAX)
    return columns.groupby(columns.index // step).mean()


def _points(ax: Axes, style: Style, label: str, x: pd.Series, y: pd.Series) -> None:
    ax.plot(x, y, **style.points(), linestyle="none", markersize=4, label=label)


def plot(runs: list[Run]) -> tuple[Figure, Data]:
    """Three panels over time: grants r*, the lead at each question, and the predicted distance of the two pushes."""
    tables = [thinned(questions_of(run)) for run in runs]
    figure, axes = new_figure(3, 1, 7.2, 6.4, sharex=True)
    data = Data()
    furthest = max((float(table.apart_ns.max()) for table in tables if table.apart_ns.notna().any()), default=0.0)
    size, unit = unit_of(int(furthest))
    panels = (("granted", 1.0, "granted iterations r*"), ("gap", 1.0, "lead when asked (pushes)"),
              ("apart_ns", size, f"predicted distance ({unit})"))
    for series, table in zip(series_of(runs), tables):
        for ax, (column, scale, name) in zip(axes, panels):
            _points(ax, series.style, series.label, table.time_s, table[column] / scale)
            data.add(name, series.label, series.run.path, table.time_s, table[column] / scale)
    for ax, (column, _, name) in zip(axes, panels):
        ax.set_ylabel(name)
        ax.set_ylim(bottom=0 if column == "gap" else None)
    for ax in axes[:2]:
        ax.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes[-1].set_xlabel(f"{runs[0].clock or 'run'} time (s)")
    shared_legend(figure, axes[:1])
    set_title(figure, f"Controller: {title_of(runs)}", subtitle_of(runs))
    return figure, data
