#!/usr/bin/python3
"""Simulation against reality: runs scenarios/validation/agreement.json on ranks of this machine, calibrates, compares.

    scripts/agreement.py real DIR     real runs, in rounds; a run to calibrate from before and after each group of them
    scripts/agreement.py table DIR    simulates each with the profile of its round and prints the table, as Markdown

The second step may be taken elsewhere. Options: --rounds N (3), --seconds S of each run (5), --data FOLDER of
Fashion-MNIST where it is not installed, --rubato PROGRAM, --launcher "mpirun ...", --calibrate-with N: all from runs of
N workers (default: each from runs of as many).
"""

import argparse
import itertools
import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SCENARIO = ROOT / "scenarios/validation/agreement.json"
WORKERS, BATCHES = (4, 8), (16, 64)
SIDES = ("before", "after")


def protocols(workers: int) -> dict[str, dict[str, Any]]:
    """The protocols of the table, by the name of their runs."""
    return {
        "hardsync": {"name": "hardsync"},
        "1-softsync": {"name": "n-softsync", "n": 1},
        f"{workers}-softsync": {"name": "n-softsync", "n": workers},
        "async": {"name": "async"},
    }


def cells() -> list[tuple[str, int, int, dict[str, Any]]]:
    """Name, workers, batch size and protocol of each row."""
    return [(f"{name}-{workers}-{batch}", workers, batch, protocol)
            for batch, workers in itertools.product(BATCHES, WORKERS)
            for name, protocol in protocols(workers).items()]


def real_run(options: argparse.Namespace, out: Path, workers: int, batch: int, protocol: dict[str, Any],
             *more: str) -> None:
    """One run over MPI; what is there already stays."""
    if (out / "summary.json").exists():
        return
    sets = [f"workers.count={workers}", f"workers.batch_size={batch}", f"protocol={json.dumps(protocol)}",
            f"stop.seconds={options.seconds}"]
    if options.data:
        sets.append(f"data.path={Path(options.data).resolve()}")
    command = [*options.launcher.split(), "-n", str(workers + 1), options.rubato, "run", str(SCENARIO), "--backend",
               "mpi", "--out", str(out), "--quiet", "--force", *more]
    subprocess.run(command + [word for text in sets for word in ("--set", text)], check=True)


def make_real(options: argparse.Namespace) -> None:
    """All rounds. What a machine does changes within minutes, so each group of runs has profiles of its own time."""
    for round_, batch, group in itertools.product(range(options.rounds), BATCHES, groups(options)):
        folder = options.directory / f"round{round_}"
        for side in SIDES:
            if side == "after":
                for name, workers, size, protocol in cells():
                    if size == batch and workers in group:
                        real_run(options, folder / name, workers, size, protocol)
            real_run(options, calibration(folder, options, group[0], batch, side), options.calibrate_with or group[0],
                     batch, {"name": "async"}, "--timeline")


def groups(options: argparse.Namespace) -> list[tuple[int, ...]]:
    """Numbers of workers whose rows stand between the same two runs to calibrate from."""
    return [WORKERS] if options.calibrate_with else [(workers,) for workers in WORKERS]


def calibration(folder: Path, options: argparse.Namespace, workers: int, batch: int, side: str) -> Path:
    """The run that rows of so many workers are calibrated from."""
    return folder / f"calibration-{options.calibrate_with or workers}-{batch}-{side}"


def simulate(options: argparse.Namespace, real: Path, profile: Path, out: Path, seed: int) -> None:
    """The recorded scenario again, timing only, on the profile. Long, for slow moments of a machine are few."""
    traffic = summary(real)["traffic"]  # every message is a gradient or the weights, of one size
    size = traffic["bytes"] // traffic["messages"]
    cost = {"push_bytes": size, "pull_bytes": size, "flops_per_sample": 1}
    cluster = {"profile": str(profile.resolve()), "network": {"model": "flow"}}
    sets = ["model.gradients=none", 'data={"samples": 60000}', f"cost={json.dumps(cost)}",
            f"cluster={json.dumps(cluster)}", "stop.seconds=60",
            "workers.hosts=1", f"seed={seed}"]
    subprocess.run([options.rubato, "run", str(real / "scenario.json"), "--out", str(out), "--quiet", "--force"] +
                   [word for text in sets for word in ("--set", text)], check=True, stderr=subprocess.DEVNULL)


def summary(run: Path) -> dict[str, Any]:
    return json.loads((run / "summary.json").read_text())


def distribution(runs: list[dict[str, Any]], length: int) -> list[float]:
    """Mean over runs of the distribution function of staleness."""
    total = [0.0] * length
    for run in runs:
        counts = run["staleness"]["histogram"]
        for i, sum_ in enumerate(itertools.accumulate(counts + [0] * (length - len(counts)))):
            total[i] += sum_ / sum(counts) / len(runs)
    return total


def row(name: str, workers: int, batch: int, predicted: list[dict], measured: list[dict]) -> str:
    """One line of the table."""
    def mean(runs: list[dict], group: str, key: str) -> float:
        return statistics.fmean(run[group][key] for run in runs)

    def spread(runs: list[dict]) -> float:
        return statistics.stdev(run["throughput"]["steady_samples_per_s"] for run in runs) if len(runs) > 1 else 0

    speeds = [mean(runs, "throughput", "steady_samples_per_s") for runs in (predicted, measured)]
    stale = [mean(runs, "staleness", "steady_mean") for runs in (predicted, measured)]
    length = max(len(run["staleness"]["histogram"]) for run in predicted + measured)
    ks = max(abs(a - b) for a, b in zip(distribution(predicted, length), distribution(measured, length)))
    stale_error = f"{100 * (stale[0] / stale[1] - 1):+.1f} %" if stale[1] > 0 else "exact"
    return (f"| {name.rsplit('-', 2)[0]} | {workers} | {batch} | {speeds[0]:.0f} ± {spread(predicted):.0f} "
            f"| {speeds[1]:.0f} ± {spread(measured):.0f} | {100 * (speeds[0] / speeds[1] - 1):+.1f} % "
            f"| {stale[0]:.3f} | {stale[1]:.3f} | {stale_error} | {ks:.3f} |")


def make_table(options: argparse.Namespace) -> None:
    """Calibrates, simulates and prints."""
    print("| protocol | workers | batch | predicted samples/s | measured samples/s | error | predicted staleness "
          "| measured staleness | error | KS |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    rounds = sorted(options.directory.glob("round*"))
    for folder in rounds:
        for group, batch, side in itertools.product(groups(options), BATCHES, SIDES):
            run = calibration(folder, options, group[0], batch, side)
            subprocess.run([options.rubato, "calibrate", "--run", str(run), "--out", str(folder / f"{run.name}.json"),
                            "--force", "--quiet"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for name, workers, batch, _ in cells():
        predicted, measured = [], []
        for folder in rounds:
            measured.append(summary(folder / name))
            for side in SIDES:
                out = folder / f"predicted-{name}-{side}"
                profile = calibration(folder, options, workers, batch, side)
                simulate(options, folder / name, profile.with_suffix(".json"), out, len(predicted) + 1)
                predicted.append(summary(out))
        print(row(name, workers, batch, predicted, measured), flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=["real", "table"])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--data")
    parser.add_argument("--calibrate-with", type=int, choices=WORKERS)
    parser.add_argument("--rubato", default=str(ROOT / "build/rubato"))
    parser.add_argument("--launcher", default="mpirun --allow-run-as-root --bind-to none")
    options = parser.parse_args()
    (make_real if options.step == "real" else make_table)(options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
