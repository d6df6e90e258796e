"""Trains the cifar10_full network on Fashion-MNIST as scenarios/papers describes, and holds the errors to their bounds.

The effect is that of Figure 5 of Gupta et al. 2015: under 30-softsync the learning rate must be divided by n.
Usage: fashion_test.py RUBATO SCENARIOS
"""

import csv
import json
import subprocess
import sys
import tempfile
from pathlib import Path


def train(program, scenario, out):
    """Runs a scenario; returns its summary and its evaluations."""
    status = subprocess.run([program, "run", scenario, "--quiet", "--out", out], check=False).returncode
    assert status in (0, 3), status
    summary = json.loads((out / "summary.json").read_text())
    with open(out / "evals.csv", newline="") as file:
        evals = list(csv.DictReader(file))
    print(f"{scenario.stem}: {summary['status']}, test error {summary['test_error']}, staleness mean "
          f"{summary['staleness']['mean']:.4g}, {summary['engine']['wall_s']:.0f} s of wall time", flush=True)
    return summary, evals


def main():
    program, scenarios = sys.argv[1], Path(sys.argv[2])
    with tempfile.TemporaryDirectory(prefix="rubato-") as name:
        work = Path(name)
        undivided, _ = train(program, scenarios / "fashion-undivided.json", work / "undivided")
        assert undivided["status"] == "diverged" or undivided["test_error"] >= 0.8, undivided["test_error"]
        divided, _ = train(program, scenarios / "fashion-divided.json", work / "divided")
        assert divided["status"] == "finished" and divided["test_error"] <= 0.35, divided["test_error"]
        _, evals = train(program, scenarios / "fashion-baseline.json", work / "baseline")
        best = min(float(row["test_error"]) for row in evals)
        assert best <= 0.10, best
        print(f"baseline: lowest test error {best}")


if __name__ == "__main__":
    main()
