#!/usr/bin/python3
"""Points a second of a sweep, over the wall time of the whole command: sweep.py RUBATO.

scenarios/bench/sweep-bench.json: 1,000 timing-only points of 30 workers and 20 iterations, on two processes. One JSON
object a line.
"""
import csv
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

SWEEP = pathlib.Path(__file__).parents[2] / "scenarios/bench/sweep-bench.json"
TARGETS = {"simgrid": 400, "flow": 3_000}
ROUNDS = 5


def points_a_second(rubato, model):
    """Of one sweep into a new folder, every point of which has to be there."""
    with tempfile.TemporaryDirectory() as scratch:
        out = pathlib.Path(scratch) / "sweep"
        begin = time.perf_counter()
        subprocess.run([rubato, "sweep", SWEEP, "--quiet", "-j", "2", "--out", out,
                        "--set", f"cluster.network.model={model}"], check=True)
        seconds = time.perf_counter() - begin
        with open(out / "results.csv", encoding="utf-8", newline="") as table:
            finished = sum(row["status"] == "finished" for row in csv.DictReader(table))
    if finished != 1_000:
        raise SystemExit(f"sweep.py: {finished} points finished over {model}, expected 1,000")
    return finished / seconds


def main():
    rubato = str(pathlib.Path(sys.argv[1]).resolve())
    for model, target in TARGETS.items():
        rates = [points_a_second(rubato, model) for _ in range(ROUNDS)]
        detail = f"whole command, -j 2, fastest of {ROUNDS} (median {statistics.median(rates):,.0f})"
        print(json.dumps({"name": f"points/s, {model}, 1,000 points of 30 workers", "value": round(max(rates), 1),
                          "target": f">= {target:,}", "detail": detail}), flush=True)


if __name__ == "__main__":
    main()
