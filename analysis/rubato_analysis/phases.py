"""Which part of the joint model is in which stage when (Figure 9 of Langer et al. 2018), and who steps how often."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from rubato_analysis.errors import AnalysisError
from rubato_analysis.figure import Data, new_figure, set_title
from rubato_analysis.run_directory import Run
from rubato_analysis.series import series_of, subtitle_of, title_of
from rubato_analysis.styles import KindStyle
from rubato_analysis.timeline import unit_of

STAGES: dict[str, KindStyle] = {
    "broadcast": KindStyle("#009E73"),
    "compute": KindStyle("#0072B2"),
    "reduce": KindStyle("#E69F00"),
    "prepare": KindStyle("#D55E00"),
}
ROUNDS_SHOWN = 12  # in the window, where nobody asks for another one
ROWS_MAX = 40


def row_of(rounds: pd.DataFrame, part: str = "shard") -> pd.Series:
    """What a row of the picture is: a shard, the worker of an exchange, or the whole model."""
    shard, worker = rounds["shard"].astype("Int64"), rounds["worker"].astype("Int64")
    names = part + " " + shard.astype(str)
    names = names.where(shard.notna(), "worker " + worker.astype(str))
    return names.where(shard.notna() | worker.notna(), "model")


def spans_of(run: Run) -> pd.DataFrame:
    """The stages of rounds.csv, one a row: row, stage, begin_ns, end_ns, round. Refused where there are none."""
    rounds = run.rounds
    streams = run.protocol == "streaming-diloco"
    if "shard" not in rounds:
        rounds = rounds.assign(shard=pd.array([pd.NA] * len(rounds), dtype="Int64"))
    parts = []
    for stage in STAGES:
        # Workers of shards compute all the time: no stage of one.
        known = rounds[rounds[f"{stage}_end_ns"].notna() & rounds[f"{stage}_begin_ns"].notna()]
        if stage == "compute":
            known = known[known["shard"].isna()]
        # An exchange of a fragment begins with the broadcast of the one before it.
        if streams and stage == "broadcast":
            known = known.assign(shard=(known["shard"] - 1) % (rounds["shard"].max() + 1))
        parts.append(pd.DataFrame({"row": row_of(known, "fragment" if streams else "shard"), "stage": stage,
                                   "round": known["round"],
                                   "begin_ns": known[f"{stage}_begin_ns"].astype("int64"),
                                   "end_ns": known[f"{stage}_end_ns"].astype("int64")}))
    spans = pd.concat(parts, ignore_index=True)
    if spans.empty:
        raise AnalysisError(f"{run.path}: rounds.csv has no stage")
    return spans


def default_window(spans: pd.DataFrame) -> tuple[int, int]:
    """The stretch of time of ROUNDS_SHOWN rounds in the middle of the run."""
    rounds = sorted(spans["round"].unique())
    first = max(0, (len(rounds) - ROUNDS_SHOWN) // 2)
    some = spans[spans["round"].isin(rounds[first:first + ROUNDS_SHOWN])]
    return int(some.begin_ns.min()), int(some.end_ns.max())


def draw(ax: Axes, spans: pd.DataFrame, begin: int, end: int) -> str:
    """Bars of one run between two times; a stage of no length is a line. The unit of the x axis."""
    size, unit = unit_of(end - begin)
    rows = sorted(spans["row"].unique(), key=lambda name: (name.split()[0], int((name.split() + ["0"])[1])))[:ROWS_MAX]
    for place, row in enumerate(rows):
        for stage, style in STAGES.items():
            some = spans[(spans["row"] == row) & (spans["stage"] == stage)]
            bars = list(zip((some.begin_ns - begin) / size, (some.end_ns - some.begin_ns) / size))
            ax.broken_barh(bars, (place - 0.36, 0.72), facecolors=style.color, edgecolor=style.color, linewidth=0.8)
    ax.set_yticks(range(len(rows)), rows)
    ax.set_ylim(len(rows) - 0.45, -0.55)
    ax.set_xlim(0, (end - begin) / size)
    ax.grid(axis="y", visible=False)
    return unit


def _steps(ax: Axes, run: Run, label: str, data: Data) -> None:
    """Steps of each worker between two exchanges of a shard: mean over the run, and the range of its inner 90 %."""
    table = run.exchanges
    table = table[table.cycle >= table.cycle.max() // 10]  # the first ones come before there are steps
    grouped = table.groupby("worker")["steps"]
    mean, low, high = grouped.mean(), grouped.quantile(0.05), grouped.quantile(0.95)
    ax.errorbar(mean.index, mean, [(mean - low).clip(lower=0), (high - mean).clip(lower=0)], fmt="o", capsize=3,
                color="#0072B2")
    ax.set(xlabel="worker", ylabel="steps between exchanges", title="")
    ax.set_ylim(0, 1.1 * max(1.0, float(high.max())))
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    data.add("steps between exchanges", label, run.path, mean.index, mean)


def plot(runs: list[Run], window_s: tuple[float | None, float | None] = (None, None)) -> tuple[Figure, Data]:
    """A panel of stages a run, window_s = (begin, end) in seconds; below it, under mpca, the steps of its workers."""
    tables = [spans_of(run) for run in runs]
    begin, end = default_window(tables[0])
    begin = begin if window_s[0] is None else round(window_s[0] * 1e9)
    end = end if window_s[1] is None else round(window_s[1] * 1e9)
    shown = [t[(t.end_ns > begin) & (t.begin_ns < end)] for t in tables]
    if end <= begin or all(t.empty for t in shown):
        raise AnalysisError(f"{runs[0].path}: nothing happens between {begin / 1e9:g} s and {end / 1e9:g} s")
    # The kind of a panel and how high it is.
    panels = [(run, kind) for run in runs for kind in (["stages", "steps"] if run.protocol == "mpca" else ["stages"])]
    rows = {run.path: max(1, min(ROWS_MAX, t["row"].nunique())) for run, t in zip(runs, shown)}
    heights = [rows[run.path] + 1 if kind == "stages" else 5 for run, kind in panels]
    figure, axes = new_figure(len(panels), 1, 8.4, 1.3 + 0.36 * sum(heights) + 0.3 * len(panels),
                              gridspec_kw={"height_ratios": heights})
    data, at = Data(), iter(axes)
    for series, spans in zip(series_of(runs), shown):
        run, ax = series.run, next(at)
        unit = draw(ax, spans, begin, end)
        since = f" since {begin / 1e9:g} s" if begin else ""
        ax.set(xlabel=f"{run.clock or 'run'} time{since} ({unit})")
        ax.set_title(series.label, loc="left", fontsize=9)
        for stage, some in spans.groupby("stage"):
            data.add(str(stage), "begin of a stage, its length (ns)", run.path, some.begin_ns,
                     some.end_ns - some.begin_ns, row=some["row"])
        if run.protocol == "mpca":
            _steps(next(at), run, series.label, data)
    used = [stage for stage in STAGES if any((t["stage"] == stage).any() for t in shown)]
    patches = [Patch(facecolor=STAGES[stage].color, label=stage) for stage in used]
    figure.legend(handles=patches, loc="upper center", bbox_to_anchor=(0.5, 0.0), ncol=len(patches))
    set_title(figure, f"Stages: {title_of(runs)}", subtitle_of(runs))
    return figure, data
