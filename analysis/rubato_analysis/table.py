"""Reads one CSV table of a run, which a kill may have cut in the middle of its last line."""

import csv
import io
import re
import warnings
from typing import Callable

import numpy as np
import pandas as pd

from rubato_analysis.errors import AnalysisError, TraceWarning
from rubato_analysis.schema import CATEGORIES, TABLES, required_columns, type_of

_INTEGER = re.compile(r"[+-]?\d+")
_FLOAT_EXACT = 2**53  # integers up to here are exact as floats


def read_table(path: str, table: str) -> pd.DataFrame:
    """The rows of `path` with the types of schema.TABLES[table]; read_typed tells the rest."""
    frame = read_typed(path, required_columns(table), lambda names: {name: type_of(table, name) for name in names})
    return frame if len(frame.columns) else _parse(list(TABLES[table]), dict(TABLES[table]), b"")


def read_typed(path: str, required: list[str], types_of: Callable[[list[str]], dict[str, str | None]],
               exact: bool = False) -> pd.DataFrame:
    """The rows of `path`; types_of(columns) names their types as schema.py does, None for what pandas infers. A file
    without so much as a header gives a frame without columns. exact: numbers to their last bit, which takes longer.

    A last line that is cut or cannot be read is skipped with a TraceWarning: a kill leaves at most one. Any other bad
    line, a missing column or a missing file is an AnalysisError that names file and line.
    """
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise AnalysisError(f"{path}: {error.strerror.lower()}") from None
    # A spreadsheet may have saved it.
    data = data.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n")
    columns, body = _split(path, required, data)
    types = types_of(columns)
    body = _rows_of_equal_width(path, len(columns), body)
    try:
        return _parse(columns, types, body, exact)
    except (ValueError, TypeError, OverflowError, pd.errors.ParserError):
        return _parse(columns, types, _without_broken_last_line(path, columns, types, body), exact)


def _split(path: str, required: list[str], data: bytes) -> tuple[list[str], bytes]:
    """(columns, complete lines after the header)."""
    end = data.rfind(b"\n") + 1
    if end < len(data):
        _warn(path, data.count(b"\n") + 1, "the last line is cut; skipped")
    if end == 0:
        if not data:
            _warn(path, 1, "the file is empty")
        return [], b""
    header, _, body = data[:end].partition(b"\n")
    columns = header.decode("utf-8", "replace").split(",")
    if missing := [name for name in required if name not in columns]:
        raise AnalysisError(f"{path}:1: column{'s' if len(missing) > 1 else ''} {', '.join(missing)} missing")
    if twice := [name for name in columns if columns.count(name) > 1]:
        raise AnalysisError(f"{path}:1: column {twice[0]} stands there twice")
    return columns, body


def _rows_of_equal_width(path: str, width: int, body: bytes) -> bytes:
    """`body`, less a last line of the wrong number of cells; any other such line is an error.

    pandas would fill short rows up in silence.
    """
    if not body:
        return body
    if b'"' in body:  # names of hosts with commas; such tables are short
        lines = body.decode("utf-8", "replace").split("\n")[:-1]
        cells = np.array([len(_cells(line)) for line in lines])
    else:
        text = np.frombuffer(body, dtype=np.uint8)
        ends = np.flatnonzero(text == ord("\n"))
        commas_before = np.searchsorted(np.flatnonzero(text == ord(",")), ends)
        cells = np.diff(commas_before, prepend=0) + 1
    bad = np.flatnonzero(cells != width)
    if bad.size == 0:
        return body
    line = int(bad[0]) + 2
    what = f"{cells[bad[0]]} cells where the header has {width}"
    if bad[0] != cells.size - 1:
        raise AnalysisError(f"{path}:{line}: {what}")
    _warn(path, line, f"{what}; the last line is skipped")
    return _without_last_line(body)


def _parse(columns: list[str], types: dict[str, str | None], body: bytes, exact: bool = False) -> pd.DataFrame:
    """Rows as a frame; raises what pandas raises."""
    if not body:
        frame = pd.DataFrame({name: pd.Series(dtype=types[name] or "float64") for name in columns})
        return _with_categories(frame, types)
    # Nullable integers are read as floats first: pandas' own way is many times slower.
    fast = {name: {"Int64": "float64"}.get(kind, kind) for name, kind in types.items() if kind}
    frame = _read(columns, types, fast, body, exact)
    # pandas gives uint64 for what no int64 holds, whatever it was asked for.
    if any(str(frame[name].dtype) != "int64" for name, kind in types.items() if kind == "int64"):
        raise OverflowError
    nullable = [name for name, kind in types.items() if kind == "Int64"]
    large = [name for name in nullable if not frame[name].abs().max() < _FLOAT_EXACT and frame[name].notna().any()]
    if large:
        whole = _read(columns, types, fast | {name: "Int64" for name in large}, body)
        frame[large] = whole[large]
    return _with_categories(frame.astype({name: "Int64" for name in nullable}), types)


def _read(columns: list[str], types: dict[str, str | None], dtypes: dict[str, str], body: bytes,
          exact: bool = False) -> pd.DataFrame:
    """pandas' reader; empty cells of numbers are missing values, those of texts are empty texts."""
    missing = {name: ["", "nan", "-nan"] for name, kind in dtypes.items() if kind == "float64"}
    missing |= {name: [""] for name in columns if types[name] is None or dtypes[name] == "Int64"}
    return pd.read_csv(io.BytesIO(body), names=columns, header=None, dtype=dtypes, keep_default_na=False,
                       na_values=missing, float_precision="round_trip" if exact else None)


def _with_categories(frame: pd.DataFrame, types: dict[str, str | None]) -> pd.DataFrame:
    """Categories are the same in every run, so that frames of several runs can be put together."""
    for name, kind in types.items():
        if kind == "category":
            known = CATEGORIES[name]
            more = sorted(set(frame[name].cat.categories) - set(known))
            frame[name] = frame[name].cat.set_categories(known + more)
    return frame


def _without_broken_last_line(path: str, columns: list[str], types: dict[str, str | None], body: bytes) -> bytes:
    """Finds the first cell that cannot be read. On the last line: the lines before; elsewhere: an error."""
    lines = body.decode("utf-8", "replace").split("\n")[:-1]
    for number, line in enumerate(lines):
        for name, cell in zip(columns, _cells(line)):
            if _readable(cell, types[name]):
                continue
            what = f"{name} is '{cell[:40]}', expected {'an integer' if 'int' in types[name].lower() else 'a number'}"
            if number < len(lines) - 1:
                raise AnalysisError(f"{path}:{number + 2}: {what}") from None
            _warn(path, number + 2, f"{what}; the last line is skipped")
            return _without_last_line(body)
    raise AnalysisError(f"{path}: not a table that can be read") from None


def _without_last_line(body: bytes) -> bytes:
    return body[: body[:-1].rfind(b"\n") + 1]


def _cells(line: str) -> list[str]:
    """A line taken apart, with its quotes (RFC 4180)."""
    return next(csv.reader([line]), [""]) if '"' in line else line.split(",")


def _readable(cell: str, kind: str | None) -> bool:
    """Whether a cell fits its type."""
    match kind:
        case "int64" | "Int64":
            if cell == "":
                return kind == "Int64"
            return _INTEGER.fullmatch(cell) is not None and -(2**63) <= int(cell) < 2**63
        case "float64":
            try:
                return cell == "" or bool(str(float(cell)))
            except ValueError:
                return False
        case _:
            return True


def _warn(path: str, line: int, text: str) -> None:
    warnings.warn(f"{path}:{line}: {text}", TraceWarning, stacklevel=4)
