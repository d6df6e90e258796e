"""Adds up the results of meson's test logs: tally.py LOG...

Prints the tests that failed or were skipped, the number skipped and, as the last line, "N passed, N failed".
An argument `broken:NAME` stands for a build that failed, and counts as one failure. Exit status 1 if anything failed.
"""

import json
import sys
from typing import Iterator

PASSED = {"OK", "EXPECTEDFAIL"}


def results(log: str) -> Iterator[tuple[str, str]]:
    """(name, result) of every test in a testlog.json: one JSON object a line."""
    with open(log, encoding="utf-8", errors="replace") as file:
        for line in file:
            if line.strip():
                entry = json.loads(line)
                yield entry["name"], entry["result"]


def main(arguments: list[str]) -> int:
    """Prints the totals; see the head of the file."""
    passed, skipped, failed = 0, [], []
    for argument in arguments:
        if argument.startswith("broken:"):
            failed.append(f"{argument.removeprefix('broken:')} (could not be built or run)")
            continue
        place = argument.split("/")[0]
        for name, result in results(argument):
            if result in PASSED:
                passed += 1
            elif result == "SKIP":
                skipped.append(f"{place}: {name}")
            else:
                failed.append(f"{place}: {name} ({result})")
    for title, names in (("skipped", skipped), ("FAILED", failed)):
        for name in names:
            print(f"{title}: {name}")
    print(f"{len(skipped)} skipped")
    print(f"{passed} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
