"""Error and loss against time, epochs, updates or samples."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from rubato_analysis.errors import AnalysisError
from rubato_analysis.figure import Data, new_figure, set_title, shared_legend
from rubato_analysis.run import Run
from rubato_analysis.series import Series, ending, series_of, subtitle_of, title_of

AXES = ("time", "epochs", "updates", "samples")
PANELS = {"test_error": "test error", "valid_error": "validation error", "train_loss": "training loss"}


def abscissa(run: Run, axis: str) -> pd.Series:
    """Values of evals.csv along `axis`: seconds, epochs, updates or samples."""
    evals = run.evals
    return {
        "time": evals.time_ns / 1e9,
        "epochs": evals.epoch,
        "updates": evals.version,
        "samples": evals.samples,
    }[axis]


def axis_label(axis: str, runs: list[Run]) -> str:
    """What the x axis measures, with its unit."""
    if axis != "time":
        return {"epochs": "epochs", "updates": "updates", "samples": "samples"}[axis]
    clocks = {run.clock for run in runs}
    clock = clocks.pop() if len(clocks) == 1 else ""
    return f"{clock} time (s)" if clock else "time (s)"


def draw_curve(ax: Axes, series: Series, column: str, axis: str, data: Data, label: str | None = None) -> bool:
    """One series of one panel; a run that ended badly keeps its curve and ends in a cross. False where it is empty."""
    x, y = abscissa(series.run, axis), series.run.evals[column]
    known = y.notna() & np.isfinite(y)
    if ax.get_xscale() == "log":
        known &= x > 0
    if not known.any():
        return False
    label = label or series.label
    if text := ending(series.run):
        label = f"{label} ({text})"
        ax.plot(x[known].iloc[-1], y[known].iloc[-1], marker="x", markersize=11, markeredgewidth=2.2,
                color=series.style.color, clip_on=False, zorder=5)
    count = int(known.sum())
    ax.plot(x[known], y[known], **series.style.line(), markevery=max(1, count // 15), label=label)
    data.add(column, series.label, series.run.path, x[known], y[known])
    return True


def format_errors(ax: Axes) -> None:
    """Errors are fractions in the files and per cent for the eye."""
    ax.yaxis.set_major_formatter(PercentFormatter(1.0, symbol=" %"))


def plot(runs: list[Run], axis: str = "time", log: bool = False) -> tuple[Figure, Data]:
    """A panel for each of test error, validation error and training loss that any run has. On a logarithmic x axis
    the evaluation of the initial weights, at 0, falls off."""
    present = [c for c in PANELS if any(np.isfinite(run.evals[c].astype("float64")).any() for run in runs)]
    if not present:
        raise AnalysisError(f"{runs[0].path}: evals.csv has neither errors nor losses (a timing-only run?)")
    shown, data = series_of(runs), Data()
    figure, axes = new_figure(1, len(present), 1.0 + 3.6 * len(present), 3.5)
    for ax, column in zip(axes, present):
        ax.set_xscale("log" if log else "linear")
        for series in shown:
            draw_curve(ax, series, column, axis, data)
        ax.set(xlabel=axis_label(axis, runs), ylabel=PANELS[column])
        if not log:
            ax.set_xlim(0, None)
        if column.endswith("error"):
            format_errors(ax)
    set_title(figure, f"Convergence: {title_of(runs)}", subtitle_of(runs))
    shared_legend(figure, axes)
    return figure, data
