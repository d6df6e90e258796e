"""Points of sweeps and runs as one table, and the series and settings that figures make of them."""

import json
import os
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Callable

import pandas as pd

from rubato_analysis.errors import AnalysisError
from rubato_analysis.label_styles import natural, protocol_of_label, series_styles
from rubato_analysis.run_directory import Run, load
from rubato_analysis.schema import SUMMARY_TYPES
from rubato_analysis.series import protocol_label
from rubato_analysis.styles import Style
from rubato_analysis.sweep import Sweep, is_sweep, load_sweep, typed_values

Input = str | os.PathLike[str] | Run | Sweep

# How a key is told in a legend; others by the last part of their path.
KEY_TEXTS = {
    "workers.count": "{} workers", "setting.workers": "{} workers", "workers.batch_size": "batch {}",
    "setting.batch_size": "batch {}", "optimizer.learning_rate": "rate {}", "protocol.n": "n = {}",
}
# Keys that tell runs of one setting apart, or nothing.
_NO_SETTING = ("name", "comment", "seed", "$schema", "trace", "protocol")


@dataclass
class Points:
    """Points of everything that a figure is asked to show.

    rows   a row a point, with the columns of Sweep.results; of a run those that it has
    swept  keys that tell settings apart
    runs   {point: opens its run directory}, where there is one
    names  of the sweeps and scenarios
    sweeps number of sweeps among the inputs
    by     the figure that the sweeps tune by; None where none does, or they differ
    """

    rows: pd.DataFrame
    swept: list[str]
    runs: dict[str, Callable[[], Run]] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    sweeps: int = 0
    by: str | None = None

    @property
    def report(self) -> pd.DataFrame:
        """Rows of the report; refused where there are none."""
        rows = self.rows[self.rows.phase == "report"]
        if rows.empty:
            raise AnalysisError(f"{self.title}: no point of the report has ended yet")
        return rows

    @property
    def title(self) -> str:
        """Names of what is shown."""
        return ", ".join(self.names) if len(self.names) <= 3 else f"{self.names[0]} and {len(self.names) - 1} others"

    def where(self, conditions: dict[str, list[str]]) -> "Points":
        """Only the points whose columns have one of the values (as texts)."""
        rows = self.rows
        for key, values in conditions.items():
            if key not in rows:
                raise AnalysisError(f"{self.title}: --where {key}: no such column; swept are {self.swept_text()}")
            wanted = set(values) | {f"{float(value):g}" for value in values if _is_number(value)}
            rows = rows[[value_text(value) in wanted for value in rows[key]]]
        if rows.empty:
            told = " and ".join(f"{key}={values[0]}" for key, values in conditions.items())
            raise AnalysisError(f"{self.title}: no point has {told or 'ended yet'}")
        return replace(self, rows=rows)

    def swept_text(self) -> str:
        """The keys, for messages."""
        return ", ".join(["label", *self.swept])


def open_inputs(inputs: list[Input]) -> list[Run | Sweep]:
    """Each input opened, once."""
    if not inputs:
        raise AnalysisError("no run and no sweep given")
    opened: list[Run | Sweep] = []
    for one in inputs:
        if isinstance(one, (str, os.PathLike)):
            one = (load_sweep if is_sweep(one) else load)(one)
        if one.path not in [other.path for other in opened]:
            opened.append(one)
    return opened


def collect(opened: list[Run | Sweep]) -> Points:
    """All of them as one table."""
    sweeps = [one for one in opened if isinstance(one, Sweep)]
    runs = [one for one in opened if isinstance(one, Run)]
    frames = [sweep.results for sweep in sweeps]
    swept = list(dict.fromkeys(key for sweep in sweeps for key in sweep.swept))
    if runs:
        frame, keys = _frame_of_runs(runs)
        frames.append(frame)
        swept += [key for key in keys if key not in swept]
    rows = pd.concat(frames, ignore_index=True) if len(frames) > 1 else frames[0].copy()
    _fill_settings(rows, swept)
    openers: dict[str, Callable[[], Run]] = {run.path: partial(_itself, run) for run in runs}
    for sweep in sweeps:
        kept = {point: sweep.run_path(point) for point in sweep.results.point}
        openers |= {point: partial(load, path) for point, path in kept.items() if path}
    rows["label"] = [_label(*cells) for cells in zip(rows.label, _column(rows, "setting.protocol"),
                                                     _column(rows, "protocol.n"))]
    names = list(dict.fromkeys([sweep.name for sweep in sweeps] + [run.name for run in runs]))
    tuned = {str(sweep.definition["tune"].get("by")) for sweep in sweeps if "tune" in sweep.definition}
    return Points(rows, swept, openers, names, len(sweeps), tuned.pop() if len(tuned) == 1 else None)


@dataclass(frozen=True)
class Series:
    """Points of one label and of equal values of the swept keys that the figure does not show otherwise."""

    name: str
    label: str
    style: Style
    base: Style  # the look of its label, where names tell the series apart
    rows: pd.DataFrame


def series_of_points(rows: pd.DataFrame, swept: list[str], shown: list[str], limit: int = 40) -> list[Series]:
    """Series in the order of first appearance. `shown` are columns that the figure shows in another way, such as its
    x axis; keys that follow from label and these name no series."""
    present = [column for column in shown if column in rows]
    keys = [key for key in swept if key not in shown and not follows(rows, key, ["label", *present])]
    rests = [", ".join(filter(None, (key_text(key, value) for key, value in zip(keys, values))))
             for values in _tuples(rows, keys)]
    names = list(zip(rows.label, rests))
    several = list(dict.fromkeys(names))
    if len(several) > limit:
        raise AnalysisError(f"{len(several)} series are more than a figure can show ({limit}); they differ in "
                            f"{', '.join(['label', *keys])}: narrow them down with --where KEY=VALUE")
    styles = series_styles(several)
    several.sort(key=lambda name: [natural(part) for part in name[1:]])
    order = list(dict.fromkeys(label for label, _ in names))
    several.sort(key=lambda name: order.index(name[0]))
    index = pd.Series(names, index=rows.index, dtype="object")
    return [Series(", ".join(filter(None, name)) or "all", name[0], styles[name], styles[name[0], None],
                   rows[[n == name for n in index]])
            for name in several]


def follows(rows: pd.DataFrame, key: str, given: list[str]) -> bool:
    """Whether the values of `given` decide that of `key`."""
    if rows[key].nunique(dropna=False) <= 1:
        return True
    texts = pd.DataFrame({name: rows[name].astype(str) for name in [*given, key]})
    return bool((texts.groupby(given)[key].nunique() <= 1).all())


def key_text(key: str, value: object) -> str:
    """A value of a key as a legend tells it; nothing where the key was not swept."""
    text = value_text(value)
    if not text:
        return ""
    if key in KEY_TEXTS:
        told = KEY_TEXTS[key].format(text)
        return "1 worker" if told == "1 workers" else told
    return f"{key.rpartition('.')[2].replace('_', ' ')} {text}"


def value_text(value: object) -> str:
    """A cell as text: 4 for 4.0, nothing for what is missing."""
    if value is None or value is pd.NA or (isinstance(value, float) and value != value):
        return ""
    return f"{value:g}" if isinstance(value, float) else str(value)


def _label(label: str, protocol: object, n: object) -> str:
    """A label says which n-softsync it is, and is never empty where the protocol is known."""
    label = label or (str(protocol) if value_text(protocol) else "")
    if n is not None and value_text(n) and protocol_of_label(label) == ("n-softsync", None):
        return f"{value_text(n)}-softsync"
    return label


def _itself(run: Run) -> Run:
    return run


def _fill_settings(rows: pd.DataFrame, swept: list[str]) -> None:
    """Points that failed have no summary, and so no setting.*: they have that of the other seeds of their setting, or
    what the swept keys say."""
    for name, key in (("setting.protocol", "protocol.name"), ("setting.workers", "workers.count"),
                      ("setting.batch_size", "workers.batch_size")):
        if name not in rows:
            continue
        known = rows[name].replace("", pd.NA) if name == "setting.protocol" else rows[name]
        for keys in (["label", *swept], ["label"]):
            same = known.groupby([rows[k] for k in keys], dropna=False)
            if keys == ["label"]:  # only where the label decides it
                known = known.fillna(same.transform("first").where(same.transform("nunique") == 1))
            else:
                known = known.fillna(same.transform("first"))
            if key in rows:
                known = known.fillna(rows[key].replace("", pd.NA))
        rows[name] = known.fillna("") if name == "setting.protocol" else known.astype("Int64")


def _column(rows: pd.DataFrame, name: str) -> list[object]:
    return list(rows[name]) if name in rows else [None] * len(rows)


def _tuples(rows: pd.DataFrame, keys: list[str]) -> list[tuple[object, ...]]:
    return list(zip(*(rows[key] for key in keys))) if keys else [()] * len(rows)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def flat(value: Any, prefix: str = "") -> dict[str, Any]:
    """{dotted path: leaf}; lists are leaves, as JSON."""
    if isinstance(value, dict):
        return {path: leaf for key, child in value.items()
                for path, leaf in flat(child, f"{prefix}.{key}" if prefix else key).items()}
    return {prefix: json.dumps(value) if isinstance(value, list) else value}


def _frame_of_runs(runs: list[Run]) -> tuple[pd.DataFrame, list[str]]:
    """Rows as a sweep has them, and the keys in which the scenarios differ."""
    scenarios = [flat(run.scenario) for run in runs]
    keys = [key for key in dict.fromkeys(key for scenario in scenarios for key in scenario)
            if key.split(".")[0] not in _NO_SETTING and len({json.dumps(s.get(key)) for s in scenarios}) > 1]
    rows = []
    for run, scenario in zip(runs, scenarios):
        summary = {key: value for key, value in flat(run.summary).items() if key != "staleness.histogram"}
        setting = {"setting.protocol": run.protocol, "setting.workers": run.workers_count,
                   "setting.batch_size": run.batch_size}
        rows.append({"point": run.path, "phase": "report", "label": protocol_label(run), "status": run.status,
                     "optimizer.learning_rate": scenario.get("optimizer.learning_rate"),
                     "seed": scenario.get("seed"), **{key: scenario.get(key) for key in keys}, **setting}
                    | {key: value for key, value in summary.items() if key not in ("seed", "status")})
    frame = pd.DataFrame(rows)
    for name in frame:
        kind = SUMMARY_TYPES.get(name)
        if kind == "str":
            frame[name] = frame[name].map(value_text)
        elif kind:
            frame[name] = pd.to_numeric(frame[name], errors="coerce").astype(kind)
    for key in keys:
        if frame[key].dtype == object:
            frame[key] = typed_values(frame[key].map(value_text))
    return frame, keys
