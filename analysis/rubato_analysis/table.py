"""Reads one CSV table of a run, which a kill may have cut in the middle of its last line."""

import io
import re
import warnings

import numpy as np
import pandas as pd

from rubato_analysis.errors import AnalysisError, TraceWarning
from rubato_analysis.schema import OPTIONAL, TABLES

_INTEGER = re.compile(r"[+-]?\d+")


def read_table(path: str, table: str) -> pd.DataFrame:
    """The rows of `path` with the types of schema.TABLES[table].

    A last line that is cut or cannot be read is skipped with a TraceWarning: a kill leaves at most one. Any other bad
    line, a missing column or a missing file is an AnalysisError that names file and line.
    """
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise AnalysisError(f"{path}: {error.strerror.lower()}") from None
    columns, body = _split(path, table, data)
    types = {name: TABLES[table].get(name) or OPTIONAL.get(name) for name in columns}
    body = _rows_of_equal_width(path, len(columns), body)
    try:
        return _parse(columns, types, body)
    except (ValueError, TypeError, OverflowError, pd.errors.ParserError):
        return _parse(columns, types, _without_broken_last_line(path, columns, types, body))


def _split(path: str, table: str, data: bytes) -> tuple[list[str], bytes]:
    """(columns, complete lines after the header)."""
    end = data.rfind(b"\n") + 1
    if end < len(data):
        _warn(path, data.count(b"\n") + 1, "the last line is cut; skipped")
    if end == 0:
        if not data:
            _warn(path, 1, "the file is empty")
        return list(TABLES[table]), b""
    header, _, body = data[:end].partition(b"\n")
    columns = header.decode("utf-8", "replace").rstrip("\r").split(",")
    if missing := [name for name in TABLES[table] if name not in columns]:
        raise AnalysisError(f"{path}:1: column{'s' if len(missing) > 1 else ''} {', '.join(missing)} missing")
    return columns, body


def _rows_of_equal_width(path: str, width: int, body: bytes) -> bytes:
    """`body`, less a last line of the wrong number of cells; any other such line is an error.

    pandas would fill short rows up in silence. Quoted cells (names of hosts with commas) are left to it.
    """
    if not body or b'"' in body:
        return body
    text = np.frombuffer(body, dtype=np.uint8)
    ends = np.flatnonzero(text == ord("\n"))
    commas_before = np.searchsorted(np.flatnonzero(text == ord(",")), ends)
    cells = np.diff(commas_before, prepend=0) + 1
    bad = np.flatnonzero(cells != width)
    if bad.size == 0:
        return body
    line = int(bad[0]) + 2
    what = f"{cells[bad[0]]} cells where the header has {width}"
    if bad[0] != ends.size - 1:
        raise AnalysisError(f"{path}:{line}: {what}")
    _warn(path, line, f"{what}; the last line is skipped")
    return body[: ends[-2] + 1 if ends.size > 1 else 0]


def _parse(columns: list[str], types: dict[str, str | None], body: bytes) -> pd.DataFrame:
    """Rows as a frame; raises what pandas raises."""
    if not body:
        return pd.DataFrame({name: pd.Series(dtype=types[name] or "float64") for name in columns})
    # Nullable integers are read as floats first: pandas' own way is many times slower.
    fast = {name: {"Int64": "float64"}.get(kind, kind) for name, kind in types.items() if kind}
    frame = pd.read_csv(io.BytesIO(body), names=columns, header=None, dtype=fast, keep_default_na=False,
                        na_values={name: ["", "nan", "-nan"] for name, kind in fast.items() if kind == "float64"} |
                        {name: [""] for name, kind in types.items() if kind is None})
    return frame.astype({name: kind for name, kind in types.items() if kind == "Int64"})


def _without_broken_last_line(path: str, columns: list[str], types: dict[str, str | None], body: bytes) -> bytes:
    """Finds the first cell that cannot be read. On the last line: the lines before; elsewhere: an error."""
    lines = body.decode("utf-8", "replace").split("\n")[:-1]
    for number, line in enumerate(lines):
        for name, cell in zip(columns, line.split(",")):
            if _readable(cell, types[name]):
                continue
            what = f"{name} is '{cell[:40]}', expected {'an integer' if 'int' in types[name].lower() else 'a number'}"
            if number < len(lines) - 1:
                raise AnalysisError(f"{path}:{number + 2}: {what}") from None
            _warn(path, number + 2, f"{what}; the last line is skipped")
            return body[: body[:-1].rfind(b"\n") + 1]
    raise AnalysisError(f"{path}: not a table that can be read") from None


def _readable(cell: str, kind: str | None) -> bool:
    """Whether a cell fits its type."""
    match kind:
        case "int64":
            return _INTEGER.fullmatch(cell) is not None
        case "Int64":
            return cell == "" or _INTEGER.fullmatch(cell) is not None
        case "float64":
            try:
                return cell == "" or bool(str(float(cell)))
            except ValueError:
                return False
        case _:
            return True


def _warn(path: str, line: int, text: str) -> None:
    warnings.warn(f"{path}:{line}: {text}", TraceWarning, stacklevel=4)
