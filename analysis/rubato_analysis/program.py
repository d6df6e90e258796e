"""Runs the program from Python."""

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Mapping, Sequence

from rubato_analysis.errors import AnalysisError

BUILD = Path(__file__).resolve().parents[2] / "build"


# `set` is called as the program's option is.
# pylint: disable-next=redefined-builtin
def run(scenario: str | os.PathLike[str] | Mapping[str, Any], set: Mapping[str, Any] | None = None,
        rubato: str | os.PathLike[str] | None = None, out: str | os.PathLike[str] | None = None) -> dict[str, Any]:
    """Runs a scenario with `rubato run --json`; its summary.

    scenario  file, or the scenario itself as a dictionary (relative paths in it count from the working directory)
    set       {dotted path of a key: value}, as --set
    rubato    the program, or the path of it; None: what find_program() finds
    out       run directory; None: runs/NAME-HASH8 in the working directory, where a finished identical run is found
              again instead of being run anew

    A run that ended otherwise than finished (diverged, say) has a summary too: its `status` tells. Wrong input, or a
    run without a summary, is an AnalysisError with the line that rubato says.
    """
    words = [os.fspath(rubato) if rubato is not None else find_program(), "run", "--json", "--quiet"]
    for key, value in (set or {}).items():
        words += ["--set", f"{key}={json.dumps(value)}"]
    if out is not None:
        words += ["--out", os.fspath(out)]
    if not isinstance(scenario, Mapping):
        return _summary(words + [os.fspath(scenario)])
    with tempfile.NamedTemporaryFile("w", suffix=".json", dir=".", encoding="utf-8") as file:
        json.dump(scenario, file)
        file.flush()
        return _summary(words + [file.name])


def compare(predicted: Sequence[str | os.PathLike[str]], measured: Sequence[str | os.PathLike[str]],
            rubato: str | os.PathLike[str] | None = None) -> dict[str, Any]:
    """What `rubato compare --explain --json` tells of run directories (docs/compare.md)."""
    words = [os.fspath(rubato) if rubato is not None else find_program(), "compare", "--explain", "--json",
             *map(os.fspath, predicted), "--", *map(os.fspath, measured)]
    return _answer(words, (0,))


def find_program() -> str:
    """The program: what the environment variable RUBATO names, else `rubato` on PATH, else that in `build` of the
    source tree that this package lies in. Raises AnalysisError where there is none."""
    named = os.environ.get("RUBATO", "")
    if named:
        if shutil.which(named):
            return named
        raise AnalysisError(f"RUBATO={named}: is no program that can be started; expected the path of rubato")
    built = BUILD / "rubato"
    for place in ("rubato", str(built)):
        if shutil.which(place):
            return place
    raise AnalysisError(f"rubato is neither on PATH nor at {built}; the environment variable RUBATO, or rubato=PATH, "
                        "names the program")


def _summary(words: list[str]) -> dict[str, Any]:
    """What `rubato run --json` prints."""
    return _answer(words, (0, 3))


def _answer(words: list[str], statuses: tuple[int, ...]) -> dict[str, Any]:
    """The JSON object that the program prints where it ends with one of the statuses."""
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise AnalysisError(f"{words[0]}: {reason}; rubato=PATH names the program") from None
    if done.returncode in statuses and done.stdout:
        try:
            return dict(json.loads(done.stdout))
        except ValueError as error:
            raise AnalysisError(f"{words[0]}: printed no valid JSON: {error}") from None
    said = [line for line in done.stderr.splitlines() if line.strip()]
    errors = [line for line in said if not line.startswith(("note:", "warning:"))]
    line = (errors or said or [f"exit status {done.returncode}, without a word"])[-1]
    raise AnalysisError(line.removeprefix("error: "))
