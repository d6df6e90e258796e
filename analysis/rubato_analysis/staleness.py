"""How stale gradients were: the distribution over gradients, and its mean from update to update."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from rubato_analysis.errors import AnalysisError
from rubato_analysis.figure import Data, new_figure, set_title, shared_legend
from rubato_analysis.run import Run
from rubato_analysis.series import Series, ending, series_of, subtitle_of, title_of

# Up to this largest staleness bars of several runs beside each other can be read; beyond it, points and lines.
BARS_MAX = 12
# More updates than this are shown as a running mean over a band of all values.
POINTS_MAX = 400


def distribution(run: Run) -> pd.Series:
    """Probability of each staleness 0, 1, ... among the applied gradients.

    From the exact histogram of the summary; from gradients.csv where a run has no summary.
    """
    counts = run.summary.get("staleness", {}).get("histogram")
    if not counts:
        rows = run.gradients
        applied = rows.loc[rows.outcome == "applied", "staleness"].dropna().astype("int64")
        counts = np.bincount(applied) if len(applied) else []
    total = float(np.sum(counts))
    if total == 0:
        raise AnalysisError(f"{run.path}: no gradient was applied, so there is no staleness to show")
    return pd.Series(np.asarray(counts, dtype="float64") / total).rename_axis("staleness")


def mean_staleness(probability: pd.Series) -> float:
    """Mean of a distribution."""
    return float((probability * probability.index).sum())


def draw_distribution(ax: Axes, shown: list[Series], data: Data, panel: str) -> None:
    """One distribution a series: bars while they can be told apart, lines with markers beyond; mean as a rule."""
    tables = [distribution(series.run) for series in shown]
    largest = max(int(table[table > 0].index.max()) for table in tables)
    bars = largest <= BARS_MAX
    width = 0.8 / len(shown)
    for i, (series, table) in enumerate(zip(shown, tables)):
        label = f"{series.label} (mean {mean_staleness(table):.2f})"
        if bars:
            x = table.index + (i - (len(shown) - 1) / 2) * width
            ax.bar(x, table, width * 0.92, color=series.style.color, label=label, edgecolor="white", linewidth=0.3,
                   hatch=("", "///", "...", "xxx", "\\\\\\")[i % 5])
            ax.plot(x[table > 0], table[table > 0], linestyle="none", **series.style.points(), clip_on=False, zorder=3)
        else:
            every = max(1, largest // 25)
            ax.plot(table.index, table, **series.style.line(), markevery=every, label=label)
            ax.fill_between(table.index, table, color=series.style.color, alpha=0.08, linewidth=0)
        ax.axvline(mean_staleness(table), color=series.style.color, linestyle=series.style.dash, linewidth=0.9, zorder=0.9)
        data.add(panel, series.label, series.run.path, table.index, table)
    ax.set(xlabel="staleness of a gradient (versions)", ylabel="probability", ylim=(0, None))
    ax.set_xlim(-0.6, largest + 0.6)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.grid(axis="x", visible=False)


def draw_means(ax: Axes, series: Series, data: Data, panel: str, label: str | None = None) -> None:
    """Mean staleness of each update against its number: eq. (2) of Gupta et al. 2015."""
    updates = series.run.updates
    if updates.empty:
        raise AnalysisError(f"{series.run.path}: updates.csv has no row")
    x, y = updates.version.to_numpy(), updates.mean_staleness.to_numpy()
    style = series.style.line()
    if len(x) <= POINTS_MAX:
        ax.plot(x, y, **style, markevery=max(1, len(x) // 25), label=label or series.label)
    else:
        window = len(x) // 200 * 2 + 1
        smooth = pd.Series(y).rolling(window, center=True, min_periods=1)
        ax.fill_between(x, smooth.min(), smooth.max(), color=series.style.color, alpha=0.15, linewidth=0)
        ax.plot(x, smooth.mean(), **style, markevery=len(x) // 20,
                label=f"{label or series.label}: mean of {window} updates, and their range")
    data.add(panel, series.label, series.run.path, x, y)


def plot(runs: list[Run]) -> tuple[Figure, Data]:
    """Distribution above, mean from update to update below (as Figure 4 of Gupta et al. 2015)."""
    shown, data = series_of(runs), Data()
    figure, (above, below) = new_figure(2, 1, 6.4, 5.6)
    draw_distribution(above, shown, data, "distribution")
    for series in shown:
        draw_means(below, series, data, "mean")
        note_ending(above, series)
    below.set(xlabel="update", ylabel="mean staleness\nof an update (versions)", ylim=(0, None))
    below.set_xlim(0, None)
    set_title(figure, f"Staleness: {title_of(runs)}", subtitle_of(runs))
    above.legend(loc="best")
    below_labels = [text for text in below.get_legend_handles_labels()[1] if ": mean of" in text]
    if below_labels:
        shared_legend(figure, [below], columns=2)
    return figure, data


def note_ending(ax: Axes, series: Series) -> None:
    """Says in the legend that a run did not end well."""
    if text := ending(series.run):
        ax.plot([], [], linestyle="none", marker="x", color=series.style.color, label=f"{series.label}: {text}")
