"""Time to target: how long each setting took to reach what `stop.target` asks for, and how many of its runs did."""

import numpy as np
from matplotlib.figure import Figure

from rubato_analysis.dots import Dot, draw_dots, draw_line, numeric_key, value_ticks, with_lanes
from rubato_analysis.errors import AnalysisError
from rubato_analysis.figure import Data, new_figure, set_caption, shared_legend
from rubato_analysis.metrics import Measured, band_text, losses_text, measure, metric_text, title_text
from rubato_analysis.points import Points, series_of_points

COLUMNS = {"time": "time_to_target_s", "updates": "updates_to_target", "samples": "samples_to_target"}


def plot(points: Points, by: str = "time", key: str | None = None, log: bool = False,
         band: str = "ci95") -> tuple[Figure, Data]:
    """A row a setting with "reached n of m"; with `key` a line a series over the values of that key."""
    rows, column = points.report, COLUMNS[by]
    if column not in rows or rows[column].isna().all():
        raise AnalysisError(f"{points.title}: no run reached a target; scenarios name one as stop.target")
    data = Data()
    target = target_text(points)
    mark = "n of m beside a point" if key else "hollow"
    told = f"Means over the seeds that reached the target{target}; {mark}: not all did, so that the mean flatters."
    if key:
        numeric_key(points, key)
        figure, measured = _lines(points, column, key, log, band, data)
    else:
        series = series_of_points(rows, points.swept, [], limit=1000)
        dots = []
        for one in series:
            found = measure(one.rows, column, band)
            dots.append(Dot(one, found, reached_text(found), found.spread.n < found.points))
        figure, axes = new_figure(1, 1, 7.2, 1.3 + 0.3 * len(dots))
        axes[0].set_xscale("log" if log else "linear")
        draw_dots(axes[0], dots, column, data)
        axes[0].set_xlabel(metric_text(column))
        if not log:
            axes[0].set_xlim(0, None)
        measured = [dot.measured for dot in dots]
    counts = [one.spread.n for one in measured]
    seeds = band_text(counts, band, "bar").replace("Means over seeds, ", "Seeds that reached it: ")
    set_caption(figure, f"{title_text(column).capitalize()}: {points.title}",
                [told, seeds, losses_text(rows, "they never reached it", "they count as not reached")])
    return figure, data


def reached_text(one: Measured) -> str:
    """`2 of 3 reached`."""
    lost = f", {one.diverged} diverged" if one.diverged else ""
    return f"{one.spread.n} of {one.points} reached{lost}"


def target_text(points: Points) -> str:
    """What the target is, where a run directory tells."""
    for open_run in list(points.runs.values())[:1]:
        target = open_run().scenario.get("stop", {}).get("target")
        if isinstance(target, dict) and "metric" in target and "at_most" in target:
            return f" ({target['metric']} ≤ {target['at_most']:g})"
    return ""


def _lines(points: Points, column: str, key: str, log: bool, band: str, data: Data) -> tuple[Figure, list[Measured]]:
    """A line a series; where not all seeds reached the target the number that did stands beside the point."""
    rows, measured = points.report, []
    figure, axes = new_figure(1, 1, 5.6, 3.9)
    ax = axes[0]
    ax.set_xscale("log" if log else "linear")
    for lane, series in with_lanes(series_of_points(rows, points.swept, [key])):
        cells = draw_line(ax, series, key, column, band, data, lane)
        measured += cells
        for value, one in zip(sorted(series.rows[key].dropna().unique()), cells):
            if 0 < one.spread.n < one.points:
                ax.annotate(f"{one.spread.n} of {one.points}", (value, one.spread.mean), (5, 4),
                            textcoords="offset points", fontsize=7.5)
    ax.set(xlabel=metric_text(key), ylabel=metric_text(column), ylim=(0, None))
    if log:
        value_ticks(ax, sorted(np.asarray(rows[key].dropna().unique(), dtype="float64")))
    shared_legend(figure, axes)
    return figure, measured
