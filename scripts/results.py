"""Prints one line a run: what it reached, after how much time, at what staleness. results.py RUN..."""

import json
import os
import sys


def percent(fraction: float | None) -> str:
    """A fraction in [0, 1] for people; what was not measured is a dash."""
    return "-" if fraction is None else f"{100 * fraction:.2f} %"


def main(runs: list[str]) -> int:
    """Reads each summary.json and prints a table."""
    width = max(map(len, runs), default=0)
    print(f"{'run':<{width}}  {'test error':>10}  {'time':>10}  {'staleness':>9}  {'updates':>8}  status")
    for run in runs:
        with open(os.path.join(run, "summary.json"), encoding="utf-8") as file:
            summary = json.load(file)
        mean = summary["staleness"]["mean"]
        cells = [
            f"{run:<{width}}",
            f"{percent(summary['test_error']):>10}",
            f"{summary['time_s']:>8.3f} s",
            f"{'-' if mean is None else format(mean, '.2f'):>9}",
            f"{summary['updates']:>8}",
            summary["status"],
        ]
        print("  ".join(cells))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
