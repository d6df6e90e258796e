"""Staleness of the settings of a sweep: means, or distributions where run directories were kept."""

import pandas as pd
from matplotlib.figure import Figure

from rubato_analysis.dots import Dot, draw_dots, draw_line, numeric_key, with_lanes
from rubato_analysis.errors import AnalysisError
from rubato_analysis.figure import Data, new_figure, set_caption, shared_legend
from rubato_analysis.metrics import band_text, check_metric, losses_text, measure, metric_text
from rubato_analysis.points import Points, Series, series_of_points
from rubato_analysis.staleness import distribution, draw_bars, largest_staleness, mean_staleness

MEAN = "staleness.mean"
PANELS_MAX = 16


def plot(points: Points, by: str | None = None, key: str | None = None, band: str = "ci95") -> tuple[Figure, Data]:
    """by: `histograms` (the default where every setting has a run directory and they are few), or `means`, a row a
    setting; with `key` the means are lines over the values of that key."""
    rows = points.report
    series = series_of_points(rows, points.swept, [], limit=1000)
    kept = all(one.rows.point.isin(points.runs.keys()).any() for one in series)
    if by == "histograms" and not kept:
        raise AnalysisError(f"{points.title}: histograms are made from run directories, and not every setting has one; "
                            "run the sweep with: rubato sweep SWEEP --keep")
    if by == "histograms" or (by is None and key is None and kept and len(series) <= PANELS_MAX):
        return _histograms(points, series)
    return _means(points, series, key, band)


def pooled(points: Points, series: Series) -> tuple[pd.Series, int]:
    """Mean of the distributions of the finished runs of a setting (of the others, where none finished), and how many
    they are."""
    rows = series.rows[series.rows.point.isin(points.runs.keys())]
    finished = rows[rows.status == "finished"]
    tables = [distribution(points.runs[point]()) for point in (finished if len(finished) else rows).point]
    return pd.concat(tables, axis=1).fillna(0.0).mean(axis=1).rename_axis("staleness"), len(tables)


def _histograms(points: Points, series: list[Series]) -> tuple[Figure, Data]:
    """A panel a setting."""
    if len(series) > PANELS_MAX:
        raise AnalysisError(f"{len(series)} settings are more than {PANELS_MAX} panels; narrow them down with "
                            "--where KEY=VALUE, or draw --by means")
    tables, data = [pooled(points, one) for one in series], Data()
    figure, axes = new_figure(len(series), 1, 6.4, 1.0 + 1.45 * len(series))
    largest = max(largest_staleness(table) for table, _ in tables)
    for ax, one, (table, n) in zip(axes, series, tables):
        ax.set_xlim(-0.6, max(largest, 1) + 0.6)
        draw_bars(ax, table, one.style)
        lost = "" if (one.rows.status == "finished").any() else f", {one.rows.status.iloc[0]}"
        ax.set_title(f"{one.name} (n = {n}{lost})", loc="left", fontsize=9)
        data.add("distribution", one.name, "", table.index, table, n=n, mean=mean_staleness(table))
    axes[-1].set_xlabel("staleness of a gradient (versions)")
    set_caption(figure, f"Staleness: {points.title}", [
        "Each seed has the same weight." if max(n for _, n in tables) > 1 else "",
        losses_text(points.report, "left out where others of the setting finished",
                    "left out where others of the setting finished")])
    return figure, data


def _means(points: Points, series: list[Series], key: str | None, band: str) -> tuple[Figure, Data]:
    """A row a setting, or lines over a key."""
    rows, data = points.report, Data()
    check_metric(rows, MEAN, points.title)
    if key:
        numeric_key(points, key)
        figure, axes = new_figure(1, 1, 5.6, 3.9)
        measured = []
        for lane, one in with_lanes(series_of_points(rows, points.swept, [key])):
            measured += draw_line(axes[0], one, key, MEAN, band, data, lane)
        axes[0].set(xlabel=metric_text(key), ylabel=metric_text(MEAN), ylim=(0, None))
        shared_legend(figure, axes)
    else:
        dots = []
        for one in series:
            found = measure(one.rows, MEAN, band)
            lost = f", {found.diverged} diverged" if found.diverged else ""
            dots.append(Dot(one, found, f"{found.spread.mean:.3g}{lost}" if found.spread.n else lost.lstrip(", ")))
        figure, axes = new_figure(1, 1, 7.2, 1.3 + 0.3 * len(dots))
        draw_dots(axes[0], dots, MEAN, data)
        axes[0].set(xlabel=metric_text(MEAN))
        axes[0].set_xlim(0, None)
        measured = [dot.measured for dot in dots]
    mark = "× at the upper edge" if key else "counted at the right"
    set_caption(figure, f"Mean staleness: {points.title}",
                [band_text([one.spread.n for one in measured], band, "bars"), losses_text(rows, mark)])
    return figure, data
