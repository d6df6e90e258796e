"""Who did what when: a Gantt chart of timeline.csv, and its export for trace viewers."""

import json
from collections.abc import Callable
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from rubato_analysis.errors import AnalysisError
from rubato_analysis.figure import Data, new_figure, set_title
from rubato_analysis.run_directory import Run
from rubato_analysis.series import series_of, subtitle_of, title_of
from rubato_analysis.styles import KINDS, kind_style

# Without a window a chart shows the begin of a run, up to so many gradients of the busiest worker: more is a blur.
COMPUTATIONS_SHOWN = 12
ROLES_MAX = 64


def worker_count(run: Run) -> int | None:
    """Workers of a run; None where it was killed before it could say."""
    count = run.summary.get("setting", {}).get("workers")
    return None if count is None else int(count)


def role_name(role: int, workers: int | None = None, sharded: bool = False) -> str:
    """Role 0 is the server, role 1 + w is worker w; then come relays of a tree, or further servers."""
    if workers is not None and role > workers:
        return f"server {role - workers}" if sharded else f"relay {role - workers - 1}"
    return "server" if role == 0 else f"worker {role - 1}"


def names_of(run: Run) -> Callable[[int], str]:
    """What the roles of a run are called."""
    workers, topology = worker_count(run), run.scenario.get("topology", {})
    sharded = isinstance(topology, dict) and topology.get("name") == "sharded"
    return lambda role: role_name(role, workers, sharded)


def waits_of(spans: pd.DataFrame, workers: int | None = None) -> pd.DataFrame:
    """Spans of kind wait: those of the workers between two computations, which nothing in the file says."""
    rows = []
    for role, mine in spans[spans.kind.isin(["compute", "down"])].sort_values("begin_ns").groupby("role"):
        if role == 0 or (workers is not None and role > workers):
            continue
        ends = mine.end_ns.cummax().shift(fill_value=0)
        rows += [(role, "wait", end, begin) for end, begin in zip(ends, mine.begin_ns) if begin > end]
    return pd.DataFrame(rows, columns=["role", "kind", "begin_ns", "end_ns"]).assign(bytes=0)


def default_window(spans: pd.DataFrame) -> tuple[int, int]:
    """(begin, end) in nanoseconds of what a chart shows unless told otherwise."""
    compute = spans[spans.kind == "compute"].sort_values(["role", "begin_ns"])
    nth = compute.groupby("role").end_ns.apply(lambda ends: ends.iloc[: COMPUTATIONS_SHOWN].iloc[-1])
    end = int(nth.min()) if len(nth) else int(spans.end_ns.max())
    return 0, max(end, 1)


def unit_of(span_ns: int) -> tuple[float, str]:
    """(nanoseconds, name) of the unit that suits a stretch of time."""
    for size, name in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
        if span_ns >= 2 * size:
            return size, name
    return 1.0, "ns"


def spans_of(run: Run) -> pd.DataFrame:
    """timeline.csv and the waits of its workers, refused where it is empty."""
    if run.timeline.empty:
        raise AnalysisError(f"{run.path}: timeline.csv has no row")
    waits = waits_of(run.timeline, worker_count(run))
    if waits.empty:
        return run.timeline
    spans = pd.concat([run.timeline.astype({"kind": str}), waits], ignore_index=True)
    return spans.astype({"role": "int64", "begin_ns": "int64", "end_ns": "int64", "kind": "category"})


def draw(ax: Axes, spans: pd.DataFrame, begin: int, end: int, name_of: Callable[[int], str]) -> tuple[float, str]:
    """Bars of one run between two times. Work in the upper part of a role's row, traffic in the lower. The unit."""
    size, name = unit_of(end - begin)
    roles = sorted(spans.role.unique())
    for row, role in enumerate(roles):
        mine = spans[spans.role == role]
        for kind in [k for k in KINDS if k in set(mine.kind)] + sorted(set(mine.kind) - set(KINDS)):
            style, some = kind_style(kind), mine[mine.kind == kind]
            bars = list(zip((some.begin_ns - begin) / size, (some.end_ns - some.begin_ns) / size))
            low, height = (row + 0.14, 0.24) if style.traffic else (row - 0.38, 0.48)
            # An edge of its own colour keeps a span of less than a pixel visible; hatches need one to be seen.
            edge = "white" if style.hatch or kind == "compute" else style.color
            ax.broken_barh(bars, (low, height), facecolors=style.color, edgecolor=edge, linewidth=0.5,
                           hatch=style.hatch, zorder=1 if kind == "wait" else 2)
    ax.set_yticks(range(len(roles)), [name_of(role) for role in roles])
    ax.set_ylim(len(roles) - 0.45, -0.55)
    ax.set_xlim(0, (end - begin) / size)
    ax.grid(axis="y", visible=False)
    return size, name


def plot(runs: list[Run], window_s: tuple[float | None, float | None] = (None, None)) -> tuple[Figure, Data]:
    """A panel a run; all panels show the same stretch of time, window_s = (begin, end) in seconds."""
    tables = [spans_of(run) for run in runs]
    begin, end = default_window(tables[0]) if len(runs) == 1 else (0, max(default_window(t)[1] for t in tables))
    begin = begin if window_s[0] is None else round(window_s[0] * 1e9)
    end = end if window_s[1] is None else round(window_s[1] * 1e9)
    shown = [t[(t.end_ns > begin) & (t.begin_ns < end) & (t.role < ROLES_MAX)] for t in tables]
    if end <= begin or all(t.empty for t in shown):
        raise AnalysisError(f"{runs[0].path}: nothing happens between {begin / 1e9:g} s and {end / 1e9:g} s")
    rows = [max(1, t.role.nunique()) for t in shown]
    figure, axes = new_figure(len(runs), 1, 8.4, 1.3 + sum(0.34 * r + 0.75 for r in rows),
                              gridspec_kw={"height_ratios": [r + 1 for r in rows]})
    data = Data()
    for ax, series, table in zip(axes, series_of(runs), shown):
        run = series.run
        _, unit = draw(ax, table, begin, end, names_of(run))
        since = f" since {begin / 1e9:g} s" if begin else ""
        ax.set(xlabel=f"{run.clock or 'run'} time{since} ({unit})")
        ax.set_title(series.label, loc="left", fontsize=9)
        for kind, some in table.groupby("kind", observed=True):
            lengths = some.end_ns - some.begin_ns
            data.add(str(kind), "begin of a span, its length (ns)", run.path, some.begin_ns, lengths)
    kinds = [k for k in KINDS if any((t.kind == k).any() for t in shown)]
    kinds += sorted({k for t in shown for k in t.kind.unique()} - set(KINDS))
    looks = [(kind, kind_style(kind)) for kind in kinds]
    patches = [Patch(facecolor=look.color, hatch=look.hatch, edgecolor="white", label=kind) for kind, look in looks]
    figure.legend(handles=patches, loc="upper center", bbox_to_anchor=(0.5, 0.0), ncol=len(patches))
    set_title(figure, f"Timeline: {title_of(runs)}", subtitle_of(runs))
    return figure, data


def chrome_trace(run: Run) -> dict[str, Any]:
    """The run in the Trace Event Format (JSON) that Perfetto and chrome://tracing read; times in microseconds.

    A process a role, a thread for its work and one for its traffic, since the two overlap.
    """
    spans, events, name_of = spans_of(run), [], names_of(run)
    for role in sorted(spans.role.unique()):
        about = {"ph": "M", "pid": int(role)}
        events.append(about | {"name": "process_name", "args": {"name": name_of(role)}})
        events.append(about | {"name": "process_sort_index", "args": {"sort_index": int(role)}})
        for thread, name in enumerate(("work", "traffic")):
            events.append(about | {"name": "thread_name", "tid": thread, "args": {"name": name}})
    for span in spans.itertuples(index=False):
        arguments: dict[str, Any] = {}
        if not pd.isna(span.peer):
            arguments = {"peer": name_of(int(span.peer)), "bytes": int(span.bytes)}
        events.append({
            "name": span.kind, "cat": span.kind, "ph": "X", "pid": int(span.role),
            "tid": int(kind_style(span.kind).traffic), "ts": span.begin_ns / 1e3,
            "dur": (span.end_ns - span.begin_ns) / 1e3, "args": arguments,
        })
    return {"displayTimeUnit": "ms", "otherData": {"scenario": run.name, "backend": run.backend}, "traceEvents": events}


def write_chrome_trace(run: Run, path: str) -> None:
    """Writes chrome_trace(run) to `path`."""
    try:
        with open(path, "w", encoding="utf-8") as file:
            json.dump(chrome_trace(run), file, separators=(",", ":"))
            file.write("\n")
    except OSError as error:
        raise AnalysisError(f"{path}: {(error.strerror or str(error)).lower()}") from None
