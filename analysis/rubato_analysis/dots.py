"""Figures with a row a setting, or a line a series over a numeric key: shared by target, sensitivity and staleness."""

from dataclasses import dataclass
from typing import Iterator

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.transforms import ScaledTranslation

from rubato_analysis.errors import AnalysisError
from rubato_analysis.figure import Data
from rubato_analysis.metrics import Measured, errors_of, measure
from rubato_analysis.points import Points, Series, value_text

ROWS_MAX = 60


@dataclass(frozen=True)
class Dot:
    """A row of a dot plot: a setting, its mean, and a word at the right."""

    series: Series
    measured: Measured
    text: str
    hollow: bool = False


def draw_dots(ax: Axes, dots: list[Dot], column: str, data: Data) -> None:
    """A row a setting, from the top: each seed a small point, their mean with its band, and the word."""
    if len(dots) > ROWS_MAX:
        raise AnalysisError(f"{len(dots)} settings are more than a figure can show ({ROWS_MAX}); narrow them down with "
                            "--where KEY=VALUE")
    for row, dot in enumerate(dots):
        one, style = dot.measured.spread, dot.series.base
        if one.n:
            ax.plot(dot.measured.values, [row] * one.n, ".", color=style.color, alpha=0.45, markersize=5, zorder=2,
                    clip_on=False)
            look = style.points() | ({"fillstyle": "none"} if dot.hollow else {})
            ax.errorbar([one.mean], [row], xerr=errors_of(one), capsize=3, linestyle="none", markersize=7, zorder=3,
                        elinewidth=1.3, clip_on=False, **look)
        ax.annotate(dot.text, (1.0, row), (4, 0), xycoords=("axes fraction", "data"), textcoords="offset points",
                    va="center", fontsize=8, annotation_clip=False)
        data.add(column, dot.series.name, "", [one.mean], [row], low=one.low, high=one.high, n=one.n,
                 points=dot.measured.points, diverged=dot.measured.diverged, failed=dot.measured.failed)
    ax.set_yticks(range(len(dots)), [dot.series.name for dot in dots])
    ax.set_ylim(len(dots) - 0.5, -0.5)
    ax.grid(axis="y", visible=False)


def numeric_key(points: Points, key: str) -> None:
    """Refuses a key that cannot be an axis."""
    if key not in points.rows:
        raise AnalysisError(f"{points.title}: {key} is not among the columns; swept are {points.swept_text()}; "
                            "--x KEY names another")
    if not pd.api.types.is_numeric_dtype(points.rows[key]) or points.rows[key].isna().all():
        raise AnalysisError(f"{points.title}: {key} is not a number, so it cannot be an axis")


def draw_line(ax: Axes, series: Series, key: str, column: str, band: str, data: Data, lane: int = 0) -> list[Measured]:
    """Means over seeds against `key`, with error bars; values of the key where runs diverged get a cross at the top of
    the panel, in the `lane` of the series. What was measured at each value."""
    known = series.rows[series.rows[key].notna()]
    cells = [(float(value), measure(rows, column, band)) for value, rows in known.groupby(key)]
    drawn = [(x, one.spread) for x, one in cells if one.spread.n]
    if drawn:
        values, means = [x for x, _ in drawn], [one.mean for _, one in drawn]
        sides = np.array([[one.mean - one.low, one.high - one.mean] for _, one in drawn]).T
        ax.errorbar(values, means, yerr=np.nan_to_num(sides), capsize=2.5, elinewidth=1.0, **series.style.line(),
                    label=series.name)
    else:
        ax.plot([], [], **series.style.line(), label=series.name)
    ax.update_datalim([(x, 0.0) for x, _ in cells], updatey=False)
    for x, one in cells:
        if one.diverged:
            cross_at_top(ax, x, series, lane, f"{one.diverged} of {one.points}")
    data.add(column, series.name, "", [x for x, _ in cells], [one.spread.mean for _, one in cells],
             low=[one.spread.low for _, one in cells], high=[one.spread.high for _, one in cells],
             n=[one.spread.n for _, one in cells], diverged=[one.diverged for _, one in cells],
             failed=[one.failed for _, one in cells])
    return [one for _, one in cells]


def with_lanes(series: list[Series]) -> Iterator[tuple[int, Series]]:
    """Each series with the lane of its crosses: one further down for each before it of which runs diverged."""
    lane = 0
    for one in series:
        yield lane, one
        lane += bool((one.rows.status == "diverged").any())


def cross_at_top(ax: Axes, x: float, series: Series, lane: int = 0, text: str = "") -> None:
    """Where runs diverged: no value would be an honest one, so the cross stands at the upper edge; a lane lower where
    others would cover it."""
    place = ax.get_xaxis_transform() + ScaledTranslation(0.0, -10.0 * lane / 72, ax.figure.dpi_scale_trans)
    ax.plot([x], [1.0], "x", transform=place, color=series.style.color, markersize=8, markeredgewidth=1.8,
            clip_on=False, zorder=5)
    if text:
        ax.annotate(text, (x, 1.0), (7, -10.0 * lane), xycoords=("data", "axes fraction"), textcoords="offset points",
                    va="center", fontsize=7, color="#333333")


def value_ticks(ax: Axes, values: list[float]) -> None:
    """Ticks at the values themselves, where they are few; on a logarithmic axis no others."""
    if len(values) <= 12:
        ax.set_xticks(values, [value_text(float(value)) for value in values])
        ax.set_xticks([], minor=True)
