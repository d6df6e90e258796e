"""Speed-up over a named reference, as Figure 8 of Gupta, Zhang and Milthorpe (2015)."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rubato_analysis.dots import cross_at_top, value_ticks, with_lanes
from rubato_analysis.errors import AnalysisError
from rubato_analysis.figure import Data, new_figure, set_caption, shared_legend
from rubato_analysis.metrics import band_text, check_metric, losses_text, metric_text, title_text
from rubato_analysis.points import Points, Series, series_of_points, value_text
from rubato_analysis.statistics import spread

WORKERS, BATCH = "setting.workers", "setting.batch_size"
PANELS_MAX = 12


def plot(points: Points, metric: str = "time_s", reference: str | None = None, base: int | None = None,
         band: str = "ci95") -> tuple[Figure, Data]:
    """A panel a batch size, a line a series over the number of workers.

    metric     what is compared: of times the reference's value over a setting's, of rates (`*_per_s`) the other way
    reference  label of the reference; None: each series its own
    base       workers of the reference; None: the fewest that there are
    """
    rows = points.report
    check_metric(rows, metric, points.title)
    base = int(rows[WORKERS].min()) if base is None else base
    held = follows_batch(rows)
    batches = sorted(rows[BATCH].dropna().unique()) if held else [None]
    if len(batches) > PANELS_MAX:
        raise AnalysisError(f"{len(batches)} batch sizes are more than {PANELS_MAX} panels; narrow them down with "
                            f"--where {BATCH}=VALUE")
    series = series_of_points(rows, points.swept, [WORKERS, BATCH])
    across = min(3, len(batches))
    down = -(-len(batches) // across)
    figure, axes = new_figure(down, across, 1.4 + 3.3 * max(across, 1.4), 1.2 + 3.0 * down)
    for ax in axes[len(batches) :]:
        ax.set_visible(False)
    data, counts, paired = Data(), [], []
    workers = sorted(float(value) for value in rows[WORKERS].dropna().unique())
    for ax, batch in zip(axes, batches):
        ax.plot(workers, [value / base for value in workers], color="#AAAAAA", linewidth=1.2, zorder=1,
                linestyle=(0, (1, 1.5)), label="linear")
        for lane, one in with_lanes(series):
            mine = one.rows if batch is None else one.rows[one.rows[BATCH] == batch]
            if mine.empty:
                continue
            basis = reference_rows(points, series, one, batch, reference, base)
            panel = "all" if batch is None else f"batch {batch:g}"
            n, both = draw(ax, one, mine, basis, metric, band, (data, panel, lane))
            counts += n
            paired.append(both)
        value_ticks(ax, workers)
        ax.set(xlabel=metric_text(WORKERS), ylabel="speed-up", xlim=(0, None), ylim=(0, None))
        if batch is not None:
            ax.set_title(f"batch size of a worker μ = {batch:g}", loc="left", fontsize=9)
    who = f"“{reference}”" if reference else "the same series"
    where = "at the same batch size" if held else ""
    set_caption(figure, f"Speed-up in {title_text(metric)}: {points.title}", [
        f"Reference: {who} with λ = {base} {where}".rstrip() + f". Held: {held_text(rows)}.",
        "Ratios paired by seed." if all(paired) else "Ratios to the mean of the reference.",
        band_text(counts, band, "bars"), losses_text(rows, "× at the upper edge")])
    shared_legend(figure, axes)
    return figure, data


def follows_batch(rows: pd.DataFrame) -> bool:
    """Whether the rows have batch sizes."""
    return BATCH in rows and bool(rows[BATCH].notna().any())


def reference_rows(points: Points, series: list[Series], mine: Series, batch: float | None, reference: str | None,
                   base: int) -> pd.DataFrame:
    """Finished rows of the reference for one series at a batch size."""
    rows = mine.rows
    if reference is not None:
        named = [one for one in series if reference in (one.name, one.label)]
        if not named:
            raise AnalysisError(f"{points.title}: no series {reference}; there is "
                                f"{', '.join(one.name for one in series)}")
        rows = pd.concat([one.rows for one in named])
    rows = rows[(rows[WORKERS] == base) & (rows.status == "finished")]
    if batch is not None:
        rows = rows[rows[BATCH] == batch]
    if rows.empty:
        at = "" if batch is None else f" at batch size {batch:g}"
        raise AnalysisError(f"{points.title}: {reference or mine.name} has no finished run with {base} workers{at}, so "
                            "there is no reference; --reference LABEL and --base WORKERS name another")
    return rows


def ratios(rows: pd.DataFrame, basis: pd.DataFrame, metric: str) -> tuple[np.ndarray, bool]:
    """Speed-ups of finished rows, and whether each was compared with the reference of its own seed."""
    by_seed = basis.groupby("seed")[metric].mean().astype("float64")
    values = rows[metric].astype("float64")
    paired = bool(rows.seed.notna().all() and rows.seed.isin(by_seed.index).all() and basis.seed.notna().all())
    reference = rows.seed.map(by_seed).astype("float64") if paired else float(basis[metric].astype("float64").mean())
    result = values / reference if metric.endswith("_per_s") else reference / values
    return result.to_numpy(), paired


def draw(ax: Axes, series: Series, rows: pd.DataFrame, basis: pd.DataFrame, metric: str, band: str,
         place: tuple[Data, str, int]) -> tuple[list[int], bool]:
    """One line, whose data go to place = (data, panel, lane of its crosses); (seeds of each point, whether all ratios
    were paired)."""
    xs, spreads, paired, (data, panel, lane) = [], [], True, place
    for workers, some in rows.groupby(rows[WORKERS].astype("float64")):
        finished = some[some.status == "finished"]
        values, both = ratios(finished, basis, metric)
        paired &= both or finished.empty
        xs.append(workers)
        spreads.append((spread(values, band), int((some.status == "diverged").sum())))
        if spreads[-1][1]:
            cross_at_top(ax, workers, series, lane, f"{spreads[-1][1]} of {len(some)}")
    drawn = [(x, one) for x, (one, _) in zip(xs, spreads) if one.n]
    sides = np.array([[one.mean - one.low, one.high - one.mean] for _, one in drawn]).reshape(-1, 2).T
    ax.errorbar([x for x, _ in drawn], [one.mean for _, one in drawn], yerr=np.nan_to_num(sides), capsize=2.5,
                elinewidth=1.0, **series.style.line(), label=series.name)
    data.add(panel, series.name, "", xs, [one.mean for one, _ in spreads],
             low=[one.low for one, _ in spreads], high=[one.high for one, _ in spreads],
             n=[one.n for one, _ in spreads], diverged=[count for _, count in spreads])
    return [one.n for _, one in drawn], paired


def held_text(rows: pd.DataFrame) -> str:
    """What is the same in all finished runs, and the work where it is not."""
    finished = rows[rows.status == "finished"]
    parts = ["batch size of a worker"] if follows_batch(rows) else []
    for key, word in (("setting.model", "model"), ("setting.cost", "cost"), ("setting.topology", "topology")):
        if key in finished and finished[key].nunique() == 1 and value_text(finished[key].iloc[0]):
            parts.append(f"{word} {finished[key].iloc[0]}")
    if "epochs" in finished and finished.epochs.notna().any():
        low, high = finished.epochs.min(), finished.epochs.max()
        same = high - low <= 0.01 * max(high, 1e-12)
        parts.append(f"{high:.4g} epochs" if same else f"but not the work ({low:.4g} to {high:.4g} epochs)")
    return ", ".join(parts) or "nothing"
