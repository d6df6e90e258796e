#!/usr/bin/python3
"""Messages of whole runs over MPI against bare calls of the library: driver.py RUBATO BENCH_MPI [LAUNCHER ...].

A run of one worker, whose gradients cost next to nothing, moves messages as long as those of MPI_Send and MPI_Recv
between two ranks that, like the run's, send what another of their threads has just computed and let it read what has
come; the medians of its pushes and pulls are laid beside that, which bench_mpi measures before and after it. Prints a
JSON object a figure.
"""

import csv
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

LAUNCHER = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]
RUNS = {1 << 20: 1500, 100_000_000: 30}  # bytes of a message: gradients


def bare(program: str, launcher: list[str]) -> dict[int, float]:
    """Seconds of a message by its bytes."""
    done = subprocess.run([*launcher, "-n", "2", program], check=True, stdout=subprocess.PIPE, text=True)
    told = [json.loads(line) for line in done.stdout.splitlines()]
    return {one["bytes"]: one["between_us"] * 1e-6 for one in told if "between_us" in one}


def moving(rubato: str, launcher: list[str], size: int, gradients: int) -> float:
    """Seconds of a message in a run: from when there is a slot for it until it lies there."""
    scenario = {"data": {"samples": 2000}, "model": {"name": "constant", "dimension": size // 4},
                "workers": {"count": 1, "batch_size": 1}, "protocol": {"name": "async"},
                "optimizer": {"name": "sgd", "learning_rate": 1e-6}, "stop": {"gradients": gradients},
                "evaluate": {"at_end": False}, "trace": {"gradients": False, "updates": False, "timeline": True}}
    with tempfile.TemporaryDirectory(prefix="rubato-") as folder:
        path = Path(folder, "bench.json")
        path.write_text(json.dumps(scenario))
        subprocess.run([*launcher, "-n", "2", rubato, "run", path, "--backend", "mpi", "--out", Path(folder, "run"),
                        "--quiet"], check=True, stdout=subprocess.DEVNULL)
        with open(Path(folder, "run", "timeline.csv"), newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
    return statistics.fmean(
        statistics.median(int(row["end_ns"]) - int(row["begin_ns"]) for row in rows if row["kind"] == kind)
        for kind in ("push", "pull")) * 1e-9


def main() -> None:
    rubato, program, *launcher = sys.argv[1:]
    launcher = launcher or LAUNCHER
    if (os.cpu_count() or 1) < 4:  # two ranks of two threads each, of which one waits by looking
        for size in RUNS:
            print(json.dumps({"figure": "goodput of push and pull in a run, driver over bare", "bytes": size,
                              "skipped": "needs four cores", "target": ">= 0.9"}))
        return
    before = bare(program, launcher)
    found = {size: moving(rubato, launcher, size, gradients) for size, gradients in RUNS.items()}
    after = bare(program, launcher)
    for size, seconds in found.items():
        plain = (before[size] + after[size]) / 2
        print(json.dumps({"figure": "goodput of push and pull in a run, driver over bare", "bytes": size,
                          "value": round(plain / seconds, 3), "target": ">= 0.9", "bare_us": round(plain * 1e6, 2),
                          "driver_us": round(seconds * 1e6, 2)}))


if __name__ == "__main__":
    main()
