"""Error and loss against time, epochs, updates or samples: one run a curve, or the mean of seeds with a band."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rubato_analysis.errors import AnalysisError
from rubato_analysis.figure import Data, new_figure, set_caption, set_title, shared_legend
from rubato_analysis.log_axis import logarithmic_y
from rubato_analysis.metrics import band_text, format_axis, losses_text, metric_text, within_fractions
from rubato_analysis.points import Points, series_of_points
from rubato_analysis.resample import band_of
from rubato_analysis.run_directory import Run
from rubato_analysis.series import Series, ending, series_of, subtitle_of, title_of
from rubato_analysis.styles import Style

AXES = ("time", "epochs", "updates", "samples")
PANELS = ("test_error", "valid_error", "train_loss")


@dataclass(frozen=True)
class Group:
    """Runs that differ in nothing but their seed."""

    label: str
    style: Style
    runs: list[Run]


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


def measured(run: Run, column: str, axis: str, log: bool) -> tuple[pd.Series, pd.Series]:
    """(x, y) of what a run measured; on a logarithmic axis without the evaluation at 0."""
    x, y = abscissa(run, axis), run.evals[column].astype("float64")
    known = y.notna() & np.isfinite(y)
    if log:
        known &= x > 0
    return x[known], y[known]


def draw_curve(ax: Axes, series: Series, column: str, axis: str, data: Data, label: str | None = None) -> bool:
    """One run in one panel; one that ended badly keeps its curve and ends in a cross. False where it is empty."""
    x, y = measured(series.run, column, axis, ax.get_xscale() == "log")
    if x.empty:
        return False
    label = label or series.label
    if text := ending(series.run):
        label = f"{label} ({text})"
        mark_end(ax, series.style, x, y)
    ax.plot(x, y, **series.style.line(), markevery=max(1, len(x) // 15), label=label)
    data.add(column, series.label, series.run.path, x, y)
    return True


def mark_end(ax: Axes, style: Style, x: pd.Series, y: pd.Series) -> None:
    """A cross where a curve ends badly."""
    ax.plot(x.iloc[-1], y.iloc[-1], marker="x", markersize=11, markeredgewidth=2.2, color=style.color, clip_on=False,
            zorder=5)


def draw_group(ax: Axes, group: Group, column: str, axis: str, band: str, data: Data) -> int:
    """Mean and band of the runs that finished; the others as thin curves of their own that end in a cross. The number
    of runs in the mean."""
    if len(group.runs) == 1:
        drawn = draw_curve(ax, Series(group.runs[0], group.label, group.style), column, axis, data)
        return int(drawn and not ending(group.runs[0]))
    log, curves, ended, others = ax.get_xscale() == "log", [], [], []
    for run in group.runs:
        x, y = measured(run, column, axis, log)
        if x.empty:
            continue
        if ending(run):
            others.append(run)
            ax.plot(x, y, color=group.style.color, linestyle=group.style.dash, linewidth=0.8, alpha=0.8)
            mark_end(ax, group.style, x, y)
            data.add(column, group.label, run.path, x, y, n=1, status=run.status)
        else:
            curves.append((x.to_numpy("float64"), y.to_numpy("float64")))
            ended.append(run)
    words = [f"{sum(ending(run) == kind for run in others)} {kind}" for kind in sorted(set(map(ending, others)))]
    label = group.label + (f" ({', '.join(words)})" if words else "")
    if not curves:
        if others:
            ax.plot([], [], **group.style.line(), label=label)
        return 0
    one = band_of(curves, band)
    ax.plot(one.x, one.mean, **group.style.line(), markevery=max(1, len(one.x) // 15), label=label)
    if one.n > 1:
        ax.fill_between(one.x, one.low, one.high, color=group.style.color, alpha=0.18, linewidth=0)
    path = ended[0].path if one.n == 1 else ""
    data.add(column, group.label, path, one.x, one.mean, low=one.low, high=one.high, n=one.n, status="finished")
    return one.n


def groups_of_runs(runs: list[Run]) -> list[Group]:
    """Runs by what they are called without their seed; such that have seed and name in common stand alone."""
    groups: dict[str, list[Series]] = {}
    for series in series_of(runs, seeds=False):
        groups.setdefault(series.label, []).append(series)
    return [Group(label, some[0].style, [one.run for one in some]) for label, some in groups.items()]


def groups_of_points(points: Points) -> tuple[list[Group], int]:
    """Groups of the points of the report, and how many points have no run directory."""
    rows = points.report
    kept = rows.point.isin(points.runs.keys())
    if not kept.any():
        raise AnalysisError(f"{points.title}: curves are drawn from run directories, and the sweep has kept none; "
                            "run it with: rubato sweep SWEEP --keep")
    groups = []
    for series in series_of_points(rows[kept], points.swept, []):
        groups.append(Group(series.name, series.style, [points.runs[point]() for point in series.rows.point]))
    return groups, int((~kept).sum())


def plot_groups(groups: list[Group], axis: str, log: bool, band: str, metrics: list[str], title: str,
                notes: list[str] | None, log_y: bool = False) -> tuple[Figure, Data]:
    """A panel for each metric that any run has. Without notes, curves of single runs speak for themselves."""
    runs, data, counts, fallen = [run for group in groups for run in group.runs], Data(), [], []
    known = [c for c in metrics or PANELS if any(c in r.evals and np.isfinite(r.evals[c].astype("float64")).any()
                                                 for r in runs)]
    if not known or (metrics and known != metrics):
        missing = next((c for c in metrics if c not in known), "")
        raise AnalysisError(f"{runs[0].path}: evals.csv has " + (f"no {missing}" if missing else
                            "neither errors nor losses (a timing-only run?)"))
    figure, axes = new_figure(1, len(known), 1.0 + 3.6 * max(len(known), 1.4), 3.7)
    for ax, column in zip(axes, known):
        ax.set_xscale("log" if log else "linear")
        counts += [draw_group(ax, group, column, axis, band, data) for group in groups]
        ax.set(xlabel=axis_label(axis, runs), ylabel=metric_text(column))
        if not log:
            ax.set_xlim(0, None)
        if log_y:
            fallen.append(logarithmic_y(ax, column, data, column))
        else:
            format_axis(ax.yaxis, column)
        within_fractions(ax, column)
    if notes is None and all(len(group.runs) == 1 for group in groups):
        set_title(figure, f"Convergence: {title}", ". ".join(filter(None, [subtitle_of(runs), *fallen])))
    else:
        status = pd.DataFrame({"status": [run.status for run in runs]})
        set_caption(figure, f"Convergence: {title}", [
            subtitle_of(runs) + ".", band_text(counts, band),
            losses_text(status, "drawn up to a cross", "drawn likewise, in no mean"), *fallen, *(notes or [])])
    shared_legend(figure, axes)
    return figure, data


def plot(runs: list[Run], axis: str = "time", log: bool = False, band: str = "ci95",
         metrics: list[str] | None = None, each: bool = False, log_y: bool = False) -> tuple[Figure, Data]:
    """A panel for each of test error, validation error and training loss that any run has. Runs that differ in their
    seed alone are one curve with a band, unless `each`. On a logarithmic x axis the evaluation of the initial weights,
    at 0, falls off."""
    groups = [Group(one.label, one.style, [one.run]) for one in series_of(runs)] if each else groups_of_runs(runs)
    return plot_groups(groups, axis, log, band, metrics or [], title_of(runs), None, log_y)


def plot_points(points: Points, axis: str, log: bool, band: str, metrics: list[str],
                log_y: bool = False) -> tuple[Figure, Data]:
    """Curves of sweeps, and of runs beside them: a series for each label and setting, over its seeds."""
    groups, without = groups_of_points(points)
    notes = [f"{without} points have no run directory and are not shown."] if without else []
    return plot_groups(groups, axis, log, band, metrics, points.title, notes, log_y)
