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
from rubato_analysis.schema import AGGREGATE_COLUMNS, RESULTS_HEAD, RESULTS_TAIL, SUMMARY_TYPES
from rubato_analysis.statistics import half_width
from rubato_analysis.table import read_typed

STATISTICS = ("mean", "std", "median", "ci95")


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
        """Columns of `results` that hold figures: numbers after the status."""
        columns = list(self.results.columns)
        after = columns[columns.index("status_detail") + 1 :]
        return [name for name in after if pd.api.types.is_numeric_dtype(self.results[name])]

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
        """A row a setting of the report, computed from `results` (see aggregate())."""
        return aggregate(self.report, self.swept, self.figures)

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

        frame = read_typed(path, AGGREGATE_COLUMNS, types_of)
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
    frame = read_typed(table, RESULTS_HEAD + RESULTS_TAIL, _result_types)
    if frame.columns.empty:
        frame = pd.DataFrame({name: pd.Series(dtype="object") for name in RESULTS_HEAD + RESULTS_TAIL})
    swept = _swept_of(list(frame.columns), table)
    frame = _with_values(frame, swept).drop_duplicates(["point", "phase", "label"], keep="last")
    current = identities(path)
    if current is not None:
        gone = ~frame.point.isin(current)
        if gone.any():
            warnings.warn(f"{table}: {int(gone.sum())} rows of points that no longer belong to the sweep are left out",
                          TraceWarning, stacklevel=2)
        frame = frame[~gone]
    return Sweep(path, definition, swept, frame.reset_index(drop=True))


def aggregate(rows: pd.DataFrame, swept: list[str], figures: list[str]) -> pd.DataFrame:
    """A row a setting, which is a label and values of the swept keys, in the order of first appearance.

    n         points that finished: what mean, std (of the sample), median and ci95 (half width of the 95 % confidence
              interval, Student's t) are taken over, less those where the figure is missing
    diverged  points that diverged: counted, in no mean
    failed    points that ended otherwise
    reached   finished points that reached the target
    """
    keys = ["label", *swept]
    status = rows.status
    counts = {
        "n": status == "finished",
        "diverged": status == "diverged",
        "failed": ~status.isin(["finished", "diverged"]),
        "reached": (status == "finished") & _target(rows).notna(),
    }
    frame = rows[keys].assign(**counts).groupby(keys, sort=False, dropna=False)[list(counts)].sum().astype("int64")
    # Rows that did not finish keep their group and lose their figures.
    numbers = rows[figures].astype("float64").where(status == "finished", np.nan).replace([np.inf, -np.inf], np.nan)
    values = numbers.groupby([rows[key] for key in keys], sort=False, dropna=False)
    parts = {"mean": values.mean(), "std": values.std(ddof=1), "median": values.median()}
    known = values.count()
    widths = {k: half_width(1.0, k) for k in np.unique(known.to_numpy())} if len(figures) else {}
    parts["ci95"] = parts["std"] * known.replace(widths) if len(figures) else known
    columns = {f"{name}.{kind}": parts[kind][name] for name in figures for kind in STATISTICS}
    return pd.concat([frame, pd.DataFrame(columns, index=frame.index)], axis=1).reset_index()


def identities(path: str) -> list[str] | None:
    """Points that belong to the sweep in the directory `path`, by points.txt; None where there is none."""
    try:
        with open(os.path.join(path, "points.txt"), encoding="utf-8") as file:
            return file.read().split()
    except FileNotFoundError:
        return None


def _target(rows: pd.DataFrame) -> pd.Series:
    """Time to target, missing where there is none."""
    if "time_to_target_s" in rows:
        return rows.time_to_target_s
    return pd.Series(np.nan, index=rows.index)


def _swept_of(columns: list[str], path: str) -> list[str]:
    """The columns between seed and status."""
    if columns[:4] != RESULTS_HEAD:
        raise AnalysisError(f"{path}:1: expected the columns {', '.join(RESULTS_HEAD)} first")
    return columns[4 : columns.index("status")]


def _result_types(columns: list[str]) -> dict[str, str | None]:
    """Of the columns of results.csv; swept keys are read as text, and typed by their values afterwards."""
    end = columns.index("status") if "status" in columns else len(columns)
    types = {name: SUMMARY_TYPES.get(name) for name in columns}
    return types | {name: "str" for name in columns[:end] + RESULTS_TAIL if name != "seed"} | {"seed": "Int64"}


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
