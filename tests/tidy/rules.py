"""What tidy means here. Every rule is a function of one file that yields findings; tidy_test.py runs them all."""

import json
import re
from dataclasses import dataclass
from typing import Callable, Iterator

LINE_LENGTH = 120
SCENARIO_TESTS = "tests/scenarios/meson.build"
FILE_LENGTH = 400
FILE_LENGTH_LISTED = 250

CODE = (".hpp", ".cpp", ".cu", ".cuh")
TEXT = CODE + (".py", ".sh", ".build", ".json", ".md", ".txt", ".supp", ".xml", ".in")

# What a room may include besides itself (docs/architecture.md shows the same table).
ROOMS = {
    "core": set(),
    "learn": {"core"},
    "trace": {"core"},
    "sim": {"core", "learn", "trace"},
    "exec": {"core", "learn", "trace"},
    "cli": {"core", "learn", "trace", "sim", "exec"},
}

# The standard library as far as the engine may see it: values and algorithms. No clock, thread, device or stream:
# <chrono>, <thread>, <mutex>, <atomic>, <future>, <random>, <iostream>, <fstream>, <cstdio>, <ctime>, <cstdlib> and
# the unordered containers (whose order differs between libraries) are left out on purpose.
CORE_STANDARD = set(
    """algorithm array bit bitset cassert charconv cinttypes climits cmath compare concepts cstddef cstdint cstring
    deque exception functional initializer_list iterator limits map memory memory_resource new numbers numeric optional
    queue ranges ratio set span stdexcept string string_view tuple type_traits typeinfo utility variant vector
    version""".split()
)

# Libraries whose headers cost seconds to compile or would spread into interfaces: at most one .cpp a room sees them,
# and no header does.
HEAVY = {"CLI": "CLI11", "spdlog": "spdlog", "nlohmann": "nlohmann_json", "rapidcheck": "rapidcheck"}
# Libraries that only the named room may see.
CONFINED = {"simgrid": {"sim"}, "Eigen": {"learn"}, "dnnl": {"learn"}, "oneapi": {"learn"}, "mpi.h": {"exec"}}

INCLUDE = re.compile(r'\s*#\s*include\s*([<"])([^>"]+)[>"]')
LEFTOVER = re.compile(r"\b(" + "|".join(("TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK")) + r")\b")


@dataclass(frozen=True)
class Finding:
    """One violation; `line` counts from 1, and is 0 where the whole file is meant."""

    path: str
    line: int
    rule: str
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text} [{self.rule}]"


def room_of(path: str) -> str | None:
    """The room of a source file: src/core/x.hpp is in "core"."""
    parts = path.split("/")
    return parts[1] if len(parts) > 2 and parts[0] == "src" else None


def includes(text: str) -> Iterator[tuple[int, bool, str]]:
    """(line, is <...>, header) of every include."""
    for number, line in enumerate(text.split("\n"), 1):
        if found := INCLUDE.match(line):
            yield number, found[1] == "<", found[2]


def core_is_pure(path: str, text: str) -> Iterator[Finding]:
    """src/core sees the allowed part of the standard library and itself."""
    if room_of(path) != "core" or not path.endswith(CODE):
        return
    for line, system, header in includes(text):
        if system and header not in CORE_STANDARD:
            yield Finding(path, line, "core", f"<{header}> is not for the engine: values and algorithms only")
        if not system and not header.startswith("core/"):
            yield Finding(path, line, "core", f'"{header}" is outside core/')


def rooms_see_what_they_may(path: str, text: str) -> Iterator[Finding]:
    """Quoted includes name their room and stay within what it may see; some libraries belong to one room."""
    room = room_of(path)
    if room not in ROOMS or not path.endswith(CODE):
        return
    for line, system, header in includes(text):
        first = header.split("/")[0]
        if not system and first not in ROOMS:
            yield Finding(path, line, "rooms", f'"{header}": write the path from src/ on')
        elif not system and first != room and first not in ROOMS[room]:
            yield Finding(path, line, "rooms", f'{room} may not see "{header}"')
        for library, owners in CONFINED.items():
            if system and (first == library or header.startswith(library + ".")) and room not in owners:
                yield Finding(path, line, "rooms", f"<{header}> belongs to {', '.join(sorted(owners))}")


def heavy_headers(files: dict[str, str]) -> Iterator[Finding]:
    """Over all files: a heavy library stands in no header, and in at most one .cpp of a room."""
    homes: dict[tuple[str, str], str] = {}
    for path, text in sorted(files.items()):
        room = room_of(path)
        if room is None or not path.endswith(CODE):
            continue
        for line, system, header in includes(text):
            library = HEAVY.get(header.split("/")[0])
            # The forward declarations of nlohmann_json are made for headers.
            if not system or library is None or header == "nlohmann/json_fwd.hpp":
                continue
            if path.endswith((".hpp", ".cuh")):
                yield Finding(path, line, "heavy", f"{library} in a header")
                continue
            home = homes.setdefault((room, library), path)
            if home != path:
                yield Finding(path, line, "heavy", f"{library} stands in {home} already: one file a room")


def length(path: str, text: str) -> Iterator[Finding]:
    """Files and lines that a reader can take in."""
    lines = text.split("\n")
    if path.endswith(CODE + (".py", ".sh")) and len(lines) > FILE_LENGTH:
        yield Finding(path, 0, "file-length", f"{len(lines) - 1} lines; at most {FILE_LENGTH}")
    for number, line in enumerate(lines, 1):
        # A link in prose cannot be broken, and neither can a row of a Markdown table or a string in JSON.
        whole = path.endswith(".md") and (line.lstrip().startswith("|") or "](" in line or "http" in line)
        if len(line) > LINE_LENGTH and not whole and not path.endswith(".json"):
            yield Finding(path, number, "line-length", f"{len(line)} columns; at most {LINE_LENGTH}")


def whitespace(path: str, text: str) -> Iterator[Finding]:
    """No tabs, no trailing spaces, no carriage returns; one newline at the end."""
    for number, line in enumerate(text.split("\n"), 1):
        if "\t" in line:
            yield Finding(path, number, "whitespace", "tab")
        if "\r" in line:
            yield Finding(path, number, "whitespace", "carriage return")
        elif line != line.rstrip():
            yield Finding(path, number, "whitespace", "trailing space")
    if text and (not text.endswith("\n") or text.endswith("\n\n")):
        yield Finding(path, 0, "whitespace", "a file ends with one newline")


def leftovers(path: str, text: str) -> Iterator[Finding]:
    """What is not done is not in the code."""
    for number, line in enumerate(text.split("\n"), 1):
        if found := LEFTOVER.search(line):
            yield Finding(path, number, "leftover", f"{found[0]} is left over")


def reject_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Hook for json: an object with two equal keys is a mistake."""
    keys = [key for key, _ in pairs]
    if len(set(keys)) != len(keys):
        raise ValueError(f"duplicate key among {keys}")
    return dict(pairs)


def valid_json(path: str, text: str) -> Iterator[Finding]:
    """Scenarios and platforms in JSON can be read, without duplicate keys."""
    if not path.startswith(("scenarios/", "platforms/")) or not path.endswith(".json"):
        return
    try:
        json.loads(text, object_pairs_hook=reject_duplicates)
    except ValueError as error:
        yield Finding(path, getattr(error, "lineno", 0), "json", str(error))


def scenarios_are_tests(files: dict[str, str]) -> Iterator[Finding]:
    """tests/scenarios/meson.build names every scenario, and none that is not there."""
    listed = set(re.findall(r"'([\w/.-]+\.json)'", files.get(SCENARIO_TESTS, "")))
    there = {path.removeprefix("scenarios/") for path in files if re.fullmatch(r"scenarios/.*\.json", path)}
    for name in sorted(there - listed):
        yield Finding("scenarios/" + name, 0, "scenario-test", f"{SCENARIO_TESTS} does not name it")
    for name in sorted(listed - there):
        yield Finding(SCENARIO_TESTS, 0, "scenario-test", f"scenarios/{name} does not exist")


RULES: tuple[Callable[[str, str], Iterator[Finding]], ...] = (
    core_is_pure,
    rooms_see_what_they_may,
    length,
    whitespace,
    leftovers,
    valid_json,
)


def check(files: dict[str, str]) -> list[Finding]:
    """All findings over files {path from the root: text}."""
    found = [finding for path, text in sorted(files.items()) for rule in RULES for finding in rule(path, text)]
    whole = [*heavy_headers(files)]
    if SCENARIO_TESTS in files:
        whole += scenarios_are_tests(files)
    return found + whole


def long_files(files: dict[str, str]) -> list[str]:
    """Files that are allowed but worth a look."""
    counts = {path: text.count("\n") for path, text in files.items() if path.endswith(CODE + (".py", ".sh"))}
    return [f"{path}: {n} lines" for path, n in sorted(counts.items()) if FILE_LENGTH_LISTED < n <= FILE_LENGTH]
