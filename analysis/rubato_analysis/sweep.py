"""A sweep directory as an object: what `rubato sweep` leaves, as typed frames."""

import os
import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from rubato_analysis.errors import AnalysisError, TraceWarning
from rubato_analysis.run_directory import Run, load, read_json
from rubato_analysis.aggregate import aggregate
from rubato_analysis.schema import AGGREGATE_COLUMNS, RESULTS_HEAD, RESULTS_TAIL, SUMMARY_TYPES
from rubato_analysis.table import read_typed


@dataclass(frozen=True)
class Sweep:
    """A sweep. Frames have one type a column, whatever the sweep: docs/plots.md defines the columns.

    path        its directory
    definition  sweep.json, {} where there is none
    swept       dotted paths of the keys that were swept, in the order of the sweep file
    results     a row a point that ended: point phase label seed, swept keys, status status_detail, and the figures of
                the summary under dotted names. Of a point that was run again the last row stands; rows of points that
                no longer belong to the sweep are left out
    """

    path: str
    definition: dict[str, Any]
    swept: list[str]
    results: pd.DataFrame

    @property
    def name(self) -> str:
        """Name of the sweep: that of its directory."""
        return os.path.basename(os.path.abspath(self.path))

    @property
    def figures(self) -> list[str]:
        """Columns of `results` that hold figures: numbers after the status that a run gave, not those that say what
        it was (setting.*), nor keys of an earlier version of the sweep, which stand behind."""
        columns = list(self.results.columns)
        known = [i for i, name in enumerate(columns) if name in SUMMARY_TYPES]
        after = columns[columns.index("status_detail") + 1 : max(known, default=len(columns)) + 1]
        return [name for name in after if pd.api.types.is_numeric_dtype(self.results[name])
                and not name.startswith("setting.") and name not in self.swept]

    @property
    def report(self) -> pd.DataFrame:
        """Rows of the phase `report`: what figures are made of."""
        return self.results[self.results.phase == "report"]

    @property
    def tune(self) -> pd.DataFrame:
        """Rows of the phase `tune`: runs on the tuning seeds that chose the values of the report."""
        return self.results[self.results.phase == "tune"]

    @cached_property
    def points(self) -> pd.DataFrame:
        """A row a point of the sweep: point phase label seed, swept keys, status (`pending` where it has not ended)
        and run (its directory, "" where it was not kept)."""
        frame = self.results[["point", "phase", "label", "seed", *self.swept, "status"]].reset_index(drop=True)
        there = set(frame.point)
        pending = [point for point in identities(self.path) or [] if point not in there]
        if pending:
            rest = pd.DataFrame({"point": pending, "phase": "", "label": "", "status": "pending"})
            frame = pd.concat([frame, rest], ignore_index=True)
        return frame.assign(run=[self.run_path(point) for point in frame.point])

    @cached_property
    def aggregate(self) -> pd.DataFrame:
        """A row a setting of the report, in the order of the sweep, computed from `results` (see aggregate())."""
        place = {point: i for i, point in enumerate(identities(self.path) or [])}
        order = np.argsort([place.get(point, len(place)) for point in self.report.point], kind="stable")
        return aggregate(self.report.iloc[order], self.swept, self.figures)

    @cached_property
    def written_aggregate(self) -> pd.DataFrame | None:
        """aggregate.csv as it was written; None where it was not. It should say what `aggregate` does."""
        path = os.path.join(self.path, "aggregate.csv")
        if not os.path.exists(path):
            return None
        integers = set(AGGREGATE_COLUMNS) - {"label"}

        def types_of(columns: list[str]) -> dict[str, str | None]:
            swept = columns[1 : columns.index("n")]
            types: dict[str, str | None] = {name: "float64" for name in columns}
            return types | {name: "int64" for name in integers} | {name: "str" for name in ("label", *swept)}

        frame = read_typed(path, AGGREGATE_COLUMNS, types_of, exact=True)
        columns = list(frame.columns)
        return _with_values(frame, columns[1 : columns.index("n")] if columns else [])

    def run_path(self, point: str) -> str:
        """Run directory of a point; "" where it was not kept."""
        path = os.path.join(self.path, "runs", point)
        return path if os.path.exists(os.path.join(path, "scenario.json")) else ""

    def run(self, point: str) -> Run:
        """The run of a point."""
        path = self.run_path(point)
        if not path:
            raise AnalysisError(f"{self.path}: point {point} has no run directory; `rubato sweep --keep` keeps them")
        return load(path)


def is_sweep(path: str | os.PathLike[str]) -> bool:
    """Whether a directory is one of a sweep."""
    return os.path.exists(os.path.join(path, "results.csv"))


def load_sweep(path: str | os.PathLike[str]) -> Sweep:
    """Opens the sweep directory `path`. Raises AnalysisError where it is none. A last line of results.csv that a kill
    broke is skipped with a TraceWarning."""
    path = os.fspath(path)
    if not os.path.isdir(path):
        raise AnalysisError(f"{path}: no such directory" if not os.path.exists(path) else f"{path}: not a directory")
    table = os.path.join(path, "results.csv")
    if not os.path.exists(table):
        raise AnalysisError(f"{path}: not a sweep directory (it has no results.csv)")
    definition = {}
    if os.path.exists(os.path.join(path, "sweep.json")):
        definition = read_json(os.path.join(path, "sweep.json"))
    named = _swept_by(definition)
    frame = read_typed(table, RESULTS_HEAD + RESULTS_TAIL, lambda columns: _result_types(columns, named or []), True)
    if frame.columns.empty:
        frame = pd.DataFrame({name: pd.Series(dtype="object") for name in RESULTS_HEAD + RESULTS_TAIL})
    swept = _swept_of(list(frame.columns), table)
    if named is not None and set(named) <= set(frame.columns):
        swept = named  # columns of an earlier version of the sweep stand in the table as well
    frame = _with_values(frame, swept).drop_duplicates(["point", "phase", "label"], keep="last")
    current = identities(path)
    if current is not None:
        gone = ~frame.point.isin(current)
        if gone.any():
            warnings.warn(f"{table}: {int(gone.sum())} rows of points that no longer belong to the sweep are left out",
                          TraceWarning, stacklevel=2)
        frame = frame[~gone]
    return Sweep(path, definition, swept, frame.reset_index(drop=True))


def identities(path: str) -> list[str] | None:
    """Points that belong to the sweep in the directory `path`, by points.txt; None where there is none."""
    try:
        with open(os.path.join(path, "points.txt"), encoding="utf-8") as file:
            return file.read().split()
    except FileNotFoundError:
        return None


def _swept_of(columns: list[str], path: str) -> list[str]:
    """The columns between seed and status."""
    if columns[:4] != RESULTS_HEAD:
        raise AnalysisError(f"{path}:1: expected the columns {', '.join(RESULTS_HEAD)} first")
    return columns[4 : columns.index("status")]


def _swept_by(definition: dict[str, Any]) -> list[str] | None:
    """The swept keys in the order of sweep.json; None where rubato has not written it."""
    if "version" not in definition:
        return None
    keys: list[str] = []
    for part, value in definition.items():
        if part == "variants":
            keys += [key for variant in value for key in variant.get("set", {})]
        elif part in ("axes", "tune"):
            keys += value if part == "axes" else value["axes"]
    return [key for key in dict.fromkeys(keys) if key != "comment"]


def _result_types(columns: list[str], swept: list[str]) -> dict[str, str | None]:
    """Of the columns of results.csv; swept keys are read as text, and typed by their values afterwards."""
    end = columns.index("status") if "status" in columns else len(columns)
    types = {name: SUMMARY_TYPES.get(name) for name in columns}
    texts = columns[:end] + RESULTS_TAIL + [name for name in swept if name in columns]
    return types | {name: "str" for name in texts if name != "seed"} | {"seed": "Int64"}


def _with_values(frame: pd.DataFrame, swept: list[str]) -> pd.DataFrame:
    """Swept keys as what all their cells are: integers, numbers, or text."""
    return frame.assign(**{name: typed_values(frame[name]) for name in swept})


def typed_values(cells: pd.Series) -> pd.Series:
    """Text cells as Int64, float64 or text, whichever holds all that are not empty."""
    empty = cells == ""
    if empty.all():
        return cells
    numbers = pd.to_numeric(cells.mask(empty), errors="coerce")
    if numbers[~empty].isna().any():
        return cells
    whole = cells[~empty].str.fullmatch(r"[+-]?\d{1,15}").all()
    return numbers.astype("Int64") if whole else numbers.astype("float64")
