"""Runs a small part of one sweep file, cut short: every setting resolves, and what runs comes to its end.

Usage: sweep_test.py RUBATO SWEEP. Exit status 0: all held.
"""

import csv
import re
import subprocess
import sys
import tempfile
from pathlib import Path

POINTS = 12


def rubato(program, *arguments):
    done = subprocess.run([program, "sweep", *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, f"exit {done.returncode}: {done.stdout}{done.stderr}"
    return done.stdout


def main():
    program, sweep = sys.argv[1], Path(sys.argv[2])
    said = rubato(program, sweep, "--dry-run")
    points = int(re.search(r"points +([0-9,]+)", said)[1].replace(",", ""))
    parts = max(1, points // POINTS)
    with tempfile.TemporaryDirectory(prefix="rubato-") as name:
        rubato(program, sweep, "--out", name, "--shard", f"1/{parts}", "--set", 'stop={"updates": 3}')
        with open(Path(name) / "results.csv", newline="") as file:
            rows = list(csv.DictReader(file))
    assert len(rows) >= min(points, POINTS), len(rows)
    # Two or three updates say nothing about learning; some rates of a sweep are meant to be too large.
    assert {row["status"] for row in rows} <= {"finished", "diverged"}, rows
    print(f"{sweep}: {points} points, {len(rows)} of them run")


if __name__ == "__main__":
    main()
