"""Error against time, with contours of equal batch size and of equal number of workers: Figures 6 and 7 of Gupta, Zhang
and Milthorpe (2015), and the Pareto front."""

from dataclasses import dataclass

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from rubato_analysis.dots import cross_at_top
from rubato_analysis.errors import AnalysisError
from rubato_analysis.figure import Data, new_figure, set_caption, shared_legend
from rubato_analysis.log_axis import logarithmic_y
from rubato_analysis.metrics import (Measured, band_text, check_metric, errors_of, format_axis, is_fraction,
                                     losses_text, measure, metric_text, title_text, within_fractions)
from rubato_analysis.points import Points, Series, series_of_points

WORKERS, BATCH = "setting.workers", "setting.batch_size"
PANELS_MAX = 12


@dataclass(frozen=True)
class Place:
    """A setting in the plane of the figure."""

    series: Series
    workers: float
    batch: float
    x: Measured
    y: Measured
    lost: list[float]  # x of the runs that diverged


def places_of(series: Series, x: str, y: str, band: str) -> list[Place]:
    """A place for each number of workers and batch size of a series."""
    keys = [series.rows[key].astype("float64") for key in (WORKERS, BATCH)]
    return [Place(series, workers, batch, measure(rows, x, band), measure(rows, y, band),
                  list(rows.loc[rows.status == "diverged", x].dropna().astype("float64")))
            for (workers, batch), rows in series.rows.groupby(keys)]


def pareto_front(points: list[tuple[float, float]]) -> list[int]:
    """Indices of the points that no other is at least as good as in both, and better in one (less is better); from the
    left. Of equal points all are on the front."""
    order = sorted(range(len(points)), key=lambda i: points[i])
    front: list[int] = []
    for i in order:
        if not front or points[i][1] < points[front[-1]][1] or points[i] == points[front[-1]]:
            front.append(i)
    return front


def plot(points: Points, metric: str = "test_error", x: str = "time_s", band: str = "ci95",
         linear: bool = False, log_y: bool = False) -> tuple[Figure, Data]:
    """A panel a series where batch size or workers vary, else one panel; the x axis is logarithmic unless `linear`."""
    rows = points.report
    for name in (metric, x):
        check_metric(rows, name, points.title)
    for key in (WORKERS, BATCH):
        if key not in rows or rows[key].isna().all():
            raise AnalysisError(f"{points.title}: the results tell no {key}")
    series = series_of_points(rows, points.swept, [WORKERS, BATCH])
    contours = any(one.rows[key].nunique() > 1 for one in series for key in (WORKERS, BATCH))
    if contours and len(series) > PANELS_MAX:
        raise AnalysisError(f"{len(series)} series are more than {PANELS_MAX} panels; narrow them down with "
                            "--where KEY=VALUE")
    places = {one.name: places_of(one, x, metric, band) for one in series}
    shown = [place for some in places.values() for place in some if place.x.spread.n and place.y.spread.n]
    front = [shown[i] for i in pareto_front([(p.x.spread.mean, p.y.spread.mean) for p in shown])]
    across = min(3, len(series)) if contours else 1
    down = -(-len(series) // across) if contours else 1
    figure, axes = new_figure(down, across, 1.2 + (3.4 if contours else 4.8) * across, 1.1 + 3.1 * down, sharex=True,
                              sharey=True)
    for ax in axes[len(series) :] if contours else []:
        ax.set_visible(False)
    data = Data()
    for i, one in enumerate(series):
        ax = axes[i if contours else 0]
        ax.set_xscale("linear" if linear else "log")
        draw_places(ax, one, places[one.name], front, data, contours)
        if contours:
            draw_contours(ax, places[one.name])
            ax.margins(0.11)
            ax.set_title(one.name, loc="left", fontsize=9)
    for i, ax in enumerate(axes[: len(series)] if contours else axes):
        mine = [series[i]] if contours else series
        draw_front(ax, front, mine)
        draw_lost(ax, [place for one in mine for place in places[one.name]])
        if not linear:
            log_ticks(ax)
        ax.tick_params(labelbottom=True)
        ax.set_xlabel(metric_text(x))
    for ax in axes[::across]:
        ax.set_ylabel(metric_text(metric))
    fallen = ""
    if log_y:
        fallen = logarithmic_y(axes[0], metric, data, "points")
    else:
        format_axis(axes[0].yaxis, metric)
    within_fractions(axes[0], metric)
    if is_fraction(metric) and is_fraction(x):
        format_axis(axes[0].xaxis, x)
    counts = [place.y.spread.n for place in shown]
    lines = "Solid: equal batch size μ; dotted: equal number of workers λ." if contours else ""
    set_caption(figure, f"{title_text(metric).capitalize()} against {title_text(x)}: {points.title}",
                [lines, "Rings and grey steps: Pareto front of all.", band_text(counts, band, "bars"), fallen,
                 losses_text(rows, "× at the upper edge, at their time or the next that is shown")])
    shared_legend(figure, axes)
    return figure, data


def draw_places(ax: Axes, series: Series, places: list[Place], front: list[Place], data: Data, contours: bool) -> None:
    """Points with their bars; a cross where runs diverged."""
    named = False
    for place in places:
        x, y = place.x.spread, place.y.spread
        if x.n and y.n:
            ax.errorbar([x.mean], [y.mean], xerr=errors_of(x), yerr=errors_of(y), linestyle="none", elinewidth=0.9,
                        zorder=3, markersize=5.5, label=None if named or contours else series.name,
                        **series.style.points())
            named = True
    data.add("points", series.name, "", [p.x.spread.mean for p in places], [p.y.spread.mean for p in places],
             workers=[p.workers for p in places], batch_size=[p.batch for p in places],
             x_low=[p.x.spread.low for p in places], x_high=[p.x.spread.high for p in places],
             low=[p.y.spread.low for p in places], high=[p.y.spread.high for p in places],
             n=[p.y.spread.n for p in places], diverged=[p.y.diverged for p in places],
             failed=[p.y.failed for p in places], pareto=[any(p is q for q in front) for p in places])


def draw_lost(ax: Axes, places: list[Place]) -> None:
    """A cross for each setting of which runs diverged, at their mean time but within the panel, and how many."""
    low, high = ax.get_xlim()
    lost = [place for place in places if place.x.diverged]
    for lane, place in enumerate(sorted(lost, key=lambda p: (p.batch, p.workers))):
        time = min(max(float(np.mean(place.lost)), low), high) if place.lost else low
        text = f"λ={place.workers:g} μ={place.batch:g}: {place.x.diverged} of {place.x.points} diverged"
        cross_at_top(ax, time, place.series, lane, text)
    ax.set_xlim(low, high)


def draw_contours(ax: Axes, places: list[Place]) -> None:
    """Lines through equal batch sizes and through equal numbers of workers, each named at an end. Shades run from dark
    to light with the batch size, so that they keep their order in grey."""
    drawn = [p for p in places if p.x.spread.n and p.y.spread.n]
    batches, counts = sorted({p.batch for p in drawn}), sorted({p.workers for p in drawn})
    shades = matplotlib.colormaps["cividis"](np.linspace(0.0, 0.75, max(len(batches), 2)))
    for batch, shade in zip(batches, shades):
        line = sorted((p for p in drawn if p.batch == batch), key=lambda p: p.workers)
        if len(line) > 1:
            ax.plot([p.x.spread.mean for p in line], [p.y.spread.mean for p in line], color=shade, zorder=2,
                    linewidth=1.3)
            left = line[-1].x.spread.mean < line[-2].x.spread.mean
            ax.annotate(f"μ={batch:g}", _at(line[-1]), (-6 if left else 6, 0), textcoords="offset points",
                        ha="right" if left else "left", va="center", fontsize=7, color=shade, annotation_clip=False)
    for workers in counts:
        line = sorted((p for p in drawn if p.workers == workers), key=lambda p: p.batch)
        if len(line) > 1:
            ax.plot([p.x.spread.mean for p in line], [p.y.spread.mean for p in line], color="#777777", zorder=1,
                    linewidth=0.9, linestyle=(0, (1, 1.6)))
            up = line[-1].y.spread.mean > line[-2].y.spread.mean
            ax.annotate(f"λ={workers:g}", _at(line[-1]), (0, 6 if up else -6), textcoords="offset points", ha="center",
                        va="bottom" if up else "top", fontsize=7, color="#555555", annotation_clip=False)


def _at(place: Place) -> tuple[float, float]:
    return place.x.spread.mean, place.y.spread.mean


def draw_front(ax: Axes, front: list[Place], mine: list[Series]) -> None:
    """The best of all series, as steps (what lies right of and above them is beaten in both), and rings around those
    of the panel."""
    x, y = [p.x.spread.mean for p in front], [p.y.spread.mean for p in front]
    ax.plot(x, y, drawstyle="steps-post", color="#BBBBBB", linewidth=2.4, zorder=0)
    own = [p for p in front if p.series in mine]
    ax.plot([p.x.spread.mean for p in own], [p.y.spread.mean for p in own], "o", markersize=10, markerfacecolor="none",
            markeredgecolor="#333333", markeredgewidth=0.9, linestyle="none", zorder=4)


def log_ticks(ax: Axes) -> None:
    """Ticks of a logarithmic axis in plain numbers up to a million, as many as have room."""
    low, high = ax.get_xlim()
    decades = np.log10(high / low)
    ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if decades < 1.6 else (1.0, 3.0) if decades < 2.4 else
                                          (1.0,), numticks=12))
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6g}" if value < 1e6 else f"{value:.0e}"))
