"""How much a figure depends on one number, the learning rate as a rule."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rubato_analysis.dots import draw_line, numeric_key, value_ticks, with_lanes
from rubato_analysis.errors import AnalysisError
from rubato_analysis.figure import Data, new_figure, set_caption, shared_legend
from rubato_analysis.log_axis import logarithmic_y
from rubato_analysis.metrics import (Measured, band_text, check_metric, format_axis, is_fraction, losses_text,
                                     metric_text, title_text, within_fractions)
from rubato_analysis.points import Points, Series, series_of_points

LEARNING_RATE = "optimizer.learning_rate"


def plot(points: Points, metric: str | None = None, key: str = LEARNING_RATE, phase: str | None = None,
         band: str = "ci95", log_y: bool = False) -> tuple[Figure, Data]:
    """A line a series over the values of `key`, on a logarithmic axis where all are positive; rings at the lowest mean
    of each. metric: what the sweep tunes by is the default. phase: tune (the default where there is one), report, or
    all."""
    phase = phase or ("tune" if (points.rows.phase == "tune").any() else "report")
    rows = points.rows if phase == "all" else points.rows[points.rows.phase == phase]
    if rows.empty:
        raise AnalysisError(f"{points.title}: no point of the phase {phase} has ended")
    numeric_key(points, key)
    if rows[key].nunique() < 2:
        raise AnalysisError(f"{points.title}: {key} has one value, {rows[key].iloc[0]}; swept are "
                            f"{points.swept_text()}")
    if metric is None:
        told = [name for name in (points.by, "valid_error", "test_error") if name]
        metric = next((name for name in told if name in rows and rows[name].notna().any()), told[0])
    check_metric(rows, metric, points.title)
    data, counts = Data(), []
    figure, axes = new_figure(1, 1, 5.8, 4.0)
    ax = axes[0]
    values = sorted(np.asarray(rows[key].dropna().unique(), dtype="float64"))
    if values[0] > 0:
        ax.set_xscale("log")
    for lane, series in with_lanes(series_of_points(rows, points.swept, [key])):
        cells = draw_line(ax, series, key, metric, band, data, lane)
        counts += [one.spread.n for one in cells]
        _ring(ax, series, key, cells)
    value_ticks(ax, values)
    ax.set(xlabel=metric_text(key), ylabel=metric_text(metric))
    fallen = ""
    if log_y:
        fallen = logarithmic_y(ax, metric, data, metric)
    else:
        if is_fraction(metric):
            ax.set_ylim(0, None)
        format_axis(ax.yaxis, metric)
    within_fractions(ax, metric)
    kind = {"tune": "Runs of the tuning (its own seeds).", "report": "", "all": "Runs of tuning and report."}[phase]
    set_caption(figure, f"Sensitivity of {title_text(metric)} to {title_text(key)}: {points.title}",
                [kind, band_text(counts, band, "bars"), "Ring: the lowest mean of a series.", fallen,
                 losses_text(rows, "× at the upper edge")])
    shared_legend(figure, axes)
    return figure, data


def _ring(ax: Axes, series: Series, key: str, cells: list[Measured]) -> None:
    """Around the lowest mean, among values at which nothing diverged."""
    values = sorted(np.asarray(series.rows[key].dropna().unique(), dtype="float64"))
    sound = [(one.spread.mean, value) for value, one in zip(values, cells) if one.spread.n and not one.diverged]
    if len(sound) > 1 and pd.notna(sound[0][0]):
        best, value = min(sound)
        ax.plot([value], [best], "o", markersize=12, markerfacecolor="none", markeredgecolor="#333333",
                markeredgewidth=1.0, zorder=4)
