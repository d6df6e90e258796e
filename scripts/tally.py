"""Adds up the results of meson's test logs: tally.py LOG...

Prints the ends of what failed tests wrote, so that the end of a long log says what went wrong, then the tests that
failed or were skipped, the number skipped and, as the last line, "N passed, N failed".
An argument `broken:NAME` stands for a build that failed, and counts as one failure. Exit status 1 if anything failed.
"""

import json
import sys
from typing import Iterator

PASSED = {"OK", "EXPECTEDFAIL"}
LINES_SHOWN = 12  # at the head and at the end of what a failed test wrote


def results(log: str) -> Iterator[tuple[str, str, str]]:
    """(name, result, what it wrote) of every test in a testlog.json: one JSON object a line."""
    with open(log, encoding="utf-8", errors="replace") as file:
        for line in file:
            if line.strip():
                entry = json.loads(line)
                yield entry["name"], entry["result"], entry.get("stdout", "") + entry.get("stderr", "")


def excerpt(text: str) -> str:
    """Head and end of a text: a sanitizer says first what it found, a test says it last."""
    lines = [line[:240] for line in text.splitlines() if line.strip()]
    if len(lines) > 2 * LINES_SHOWN:
        lines[LINES_SHOWN:-LINES_SHOWN] = ["..."]
    return "".join(f"    {line}\n" for line in lines)


def main(arguments: list[str]) -> int:
    """Prints the totals; see the head of the file."""
    passed, skipped, failed = 0, [], []
    for argument in arguments:
        if argument.startswith("broken:"):
            failed.append(f"{argument.removeprefix('broken:')} (could not be built or run)")
            continue
        place = argument.split("/")[0]
        for name, result, text in results(argument):
            if result in PASSED:
                passed += 1
            elif result == "SKIP":
                skipped.append(f"{place}: {name}")
            else:
                failed.append(f"{place}: {name} ({result})")
                print(f"{failed[-1]}:\n{excerpt(text)}", end="")
    for title, names in (("skipped", skipped), ("FAILED", failed)):
        for name in names:
            print(f"{title}: {name}")
    print(f"{len(skipped)} skipped")
    print(f"{passed} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
