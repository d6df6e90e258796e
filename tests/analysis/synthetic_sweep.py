"""Writes sweep directories as `rubato sweep` does, out of formulas; for tests and for looking at figures."""

import csv
import itertools
import json
import math
import os
import random
from typing import Any

from synthetic import write_run

FIGURES = ["time_s", "epochs", "samples", "gradients.applied", "gradients.dropped", "gradients.cancelled",
           "gradients.leftover", "updates", "throughput.samples_per_s", "staleness.mean", "staleness.max",
           "staleness.p50", "staleness.p99", "compute_utilization", "seconds.compute", "train_loss", "valid_error",
           "test_error", "best_valid_error", "time_to_target_s", "updates_to_target", "samples_to_target",
           "setting.protocol", "setting.workers", "setting.batch_size", "setting.model", "setting.cost"]
PROTOCOLS = {"hardsync": "hardsync", "1-softsync": "n-softsync", "lambda-softsync": "n-softsync", "async": "async"}
LOSES = {"test_error", "valid_error", "best_valid_error", "train_loss", "time_to_target_s", "updates_to_target",
         "samples_to_target"}


def figures(label: str, workers: int, batch: int, rate: float, seed: int, status: str) -> dict[str, Any]:
    """Figures of one point: time falls with workers and batch, error grows with their product and off the best rate."""
    draw = random.Random(f"{label}/{workers}/{batch}/{rate}/{seed}")
    protocol = PROTOCOLS.get(label, "async")
    wait = {"hardsync": 1.35, "1-softsync": 1.0}.get(label, 1.1)
    time = wait * 8000 * (1 + 4 / batch) * (1 / workers + 0.02 * 8 / batch + 0.004) * draw.lognormvariate(0, 0.02)
    stale = {"hardsync": 0.0, "1-softsync": 0.97}.get(label, workers - 1.0)
    error = 0.16 + 0.00012 * batch * workers + 0.0003 * stale + 0.03 * math.log10(rate / 0.01) ** 2
    error += draw.gauss(0, 0.003)
    reached = error < 0.2
    updates = 50_000 * 140 // batch // (workers if protocol == "hardsync" else 1)
    values: dict[str, Any] = dict.fromkeys(FIGURES, 0) | {
        "time_s": time, "epochs": 140.0, "samples": 7_000_000, "gradients.applied": 7_000_000 // batch,
        "updates": updates, "throughput.samples_per_s": 7e6 / time, "staleness.mean": stale,
        "staleness.max": int(2 * stale), "staleness.p50": int(stale), "staleness.p99": int(1.6 * stale),
        "compute_utilization": 0.8, "train_loss": 2 * error, "valid_error": error + 0.004, "test_error": error,
        "best_valid_error": error, "setting.protocol": protocol, "setting.workers": workers,
        "setting.batch_size": batch, "setting.model": "cnn", "setting.cost": "cifar10-full",
        "time_to_target_s": time * 0.7 if reached else "", "updates_to_target": updates * 7 // 10 if reached else "",
        "samples_to_target": 4_900_000 if reached else "",
    }
    if status == "diverged":
        values |= dict.fromkeys(LOSES, "") | {"time_s": time / 20, "epochs": 7.0}
    return dict.fromkeys(FIGURES, "") if status == "failed" else values


def write_sweep(directory: str, labels: tuple[str, ...] = ("hardsync", "1-softsync"),
                workers: tuple[int, ...] = (1, 4), batches: tuple[int, ...] = (4, 16), rates: tuple[float, ...] = (),
                seeds: tuple[int, ...] = (1, 2, 3), tune: bool = False, keep: bool = False,
                tune_by: str = "valid_error",
                lost: dict[tuple[str, int, int, int], str] | None = None) -> str:
    """A sweep over labels, workers.count, workers.batch_size and, with `rates`, optimizer.learning_rate; its path.

    tune: the rates are tried on seeds 101 and 102, and the report takes 0.01. lost: {(label, workers, batch, seed):
    status} of the points that did not finish; rates above 0.05 diverge everywhere.
    """
    os.makedirs(directory, exist_ok=True)
    swept = ["workers.count", "workers.batch_size"] + (["optimizer.learning_rate"] if rates else [])
    rows, points = [], []
    phases = [("report", seeds, (0.01,) if tune else rates or (0.01,))]
    if tune:
        phases.insert(0, ("tune", (101, 102), rates))
    for phase, some, tried in phases:
        for label, count, batch, rate, seed in itertools.product(labels, workers, batches, tried, some):
            status = (lost or {}).get((label, count, batch, seed), "finished")
            status = "diverged" if rate > 0.05 else status
            values = figures(label, count, batch, rate, seed, status)
            point = f"{len(rows):08x}"
            detail = {"finished": "", "diverged": 'a loss is not finite, "nan"'}.get(status, "no route")
            rows.append([point, phase, label, seed, count, batch, *([rate] if rates else []), status, detail,
                         *values.values()])
            points.append(point)
            if keep and status != "failed" and phase == "report":
                protocol = PROTOCOLS.get(label, "async")
                write_run(os.path.join(directory, "runs", point), protocol, n=1, workers=count, updates=25, seed=seed,
                          status=status, name="synthetic sweep")
    with open(os.path.join(directory, "results.csv"), "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["point", "phase", "label", "seed", *swept, "status", "status_detail", *FIGURES])
        writer.writerows(rows)
    with open(os.path.join(directory, "sweep.json"), "w", encoding="utf-8") as file:
        json.dump({"base": "base.json", "seeds": list(seeds)} | ({"tune": {"by": tune_by}} if tune else {}), file)
    with open(os.path.join(directory, "points.txt"), "w", encoding="utf-8") as file:
        file.writelines(f"{point}\n" for point in points)
    return directory
