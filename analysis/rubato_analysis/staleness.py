"""How stale gradients were: the distribution over gradients, and its mean from update to update."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from rubato_analysis.errors import AnalysisError
from rubato_analysis.figure import Data, new_figure, set_title, shared_legend
from rubato_analysis.run_directory import Run
from rubato_analysis.series import Series, ending, series_of, subtitle_of, title_of
from rubato_analysis.styles import Style

# More updates than this are shown as means of equally many consecutive ones, with a band around them.
POINTS_MAX = 400
BINS = 120


def distribution(run: Run) -> pd.Series:
    """Probability of each staleness 0, 1, ... among the applied gradients.

    From the exact histogram of the summary; from gradients.csv where a run has no summary.
    """
    counts = run.summary.get("staleness", {}).get("histogram")
    if not counts:
        rows = run.gradients
        applied = rows.loc[rows.outcome == "applied"].dropna(subset=["staleness"])
        times = applied["count"] if "count" in applied else None  # a row may stand for a sum of gradients
        counts = np.bincount(applied.staleness.astype("int64"), weights=times) if len(applied) else []
    total = float(np.sum(counts))
    if total == 0:
        raise AnalysisError(f"{run.path}: no gradient was applied, so there is no staleness to show")
    return pd.Series(np.asarray(counts, dtype="float64") / total).rename_axis("staleness")


def mean_staleness(probability: pd.Series) -> float:
    """Mean of a distribution."""
    return float((probability * probability.index).sum())


def largest_staleness(probability: pd.Series) -> int:
    """Largest staleness that occurs."""
    return int(probability[probability > 0].index.max())


def draw_distribution(ax: Axes, series: Series, data: Data, panel: str) -> None:
    """Bars of a run's distribution, and a dashed line at its mean."""
    table = distribution(series.run)
    draw_bars(ax, table, series.style)
    data.add(panel, series.label, series.run.path, table.index, table)


def draw_bars(ax: Axes, table: pd.Series, style: Style) -> None:
    """Bars of a distribution, and a dashed line at its mean."""
    mean, seen = mean_staleness(table), table[table > 0]
    ax.bar(seen.index, seen, 0.8, color=style.color)
    ax.axvline(mean, color="#555555", linestyle=(0, (4, 2)), linewidth=1.1)
    right = mean > 0.7 * ax.get_xlim()[1]
    ax.annotate(f"mean {mean:.2f}", (mean, 1.0), (-4 if right else 4, -2), xycoords=("data", "axes fraction"),
                textcoords="offset points", ha="right" if right else "left", va="top", fontsize=8, color="#333333")
    ax.set(ylabel="probability", ylim=(0, 1.25 * float(table.max())))
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.yaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 2.5, 5, 10]))
    ax.grid(axis="x", visible=False)


def first_updates(run: Run) -> pd.DataFrame:
    """Those of the server or, of several, of the first one, whose staleness the summary has."""
    return run.updates[run.updates.shard == 0]


def draw_means(ax: Axes, series: Series, data: Data, panel: str, axis: str = "version") -> None:
    """Mean staleness of each update, eq. (2) of Gupta et al. 2015, against a column of updates.csv."""
    updates = first_updates(series.run)
    if updates.empty:
        raise AnalysisError(f"{series.run.path}: updates.csv has no row")
    x, y = updates[axis], updates.mean_staleness
    label = series.label
    if len(x) > POINTS_MAX:
        size = -(-len(x) // BINS)
        bins = np.arange(len(x)) // size
        groups = y.groupby(bins)
        x = x.groupby(bins).mean()
        ax.fill_between(x, groups.quantile(0.05), groups.quantile(0.95), color=series.style.color, alpha=0.18,
                        linewidth=0)
        y, label = groups.mean(), f"{label}: mean of {size} updates, band from 5 to 95 %"
    data.add(panel, series.label, series.run.path, x, y)
    every = max(1, len(x) // 12)
    ax.plot(x, y, **series.style.line(), markevery=(every // 2, every), label=label, clip_on=False)


def plot(runs: list[Run]) -> tuple[Figure, Data]:
    """A distribution a run, and below them the means from update to update (as Figure 4 of Gupta et al. 2015).

    The lower axis counts updates; epochs where the runs differ much in their number of updates.
    """
    shown, data = series_of(runs), Data()
    rows = [1.0] * len(shown) + [1.7]
    figure, axes = new_figure(len(rows), 1, 6.4, 0.9 + 1.45 * sum(rows), gridspec_kw={"height_ratios": rows})
    below = axes[-1]
    largest = max(largest_staleness(distribution(run)) for run in runs)
    for ax, series in zip(axes, shown):
        ax.set_xlim(-0.6, max(largest, 1) + 0.6)
        draw_distribution(ax, series, data, "distribution")
        ax.set_title(series.label + (f" ({ending(series.run)})" if ending(series.run) else ""), loc="left", fontsize=9)
    axes[-2].set_xlabel("staleness of a gradient (versions)")
    counts = [len(first_updates(run)) for run in runs]
    axis = "version" if max(counts) < 2 * min(counts) else "epoch"
    for series in shown:
        draw_means(below, series, data, "mean of an update", axis)
    top = below.get_ylim()[1]
    below.set(xlabel="update" if axis == "version" else "epochs", ylabel="mean staleness\nof an update (versions)")
    below.set_ylim(0, top)
    below.set_xlim(0, None)
    set_title(figure, f"Staleness: {title_of(runs)}", subtitle_of(runs))
    shared_legend(figure, [below], columns=3)
    return figure, data
