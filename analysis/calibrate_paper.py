#!/usr/bin/python3
"""Fits the simulated machine of scenarios/papers/rudra-table2.json to published training times.

    analysis/calibrate_paper.py                    compares the scenario as it is with the published rows
    analysis/calibrate_paper.py --fit              fits anew, leaves rows out one by one, and writes the scenario,
                                                   docs/calibration.md and docs/figures/table2.png

The model is the simulator itself: every prediction is a run of `rubato` with protocol, batch size and number of workers
set, and its figure is time_s * 140 / epochs. Six parameters are free; all else stands in the scenario as the paper
states it. The error that counts is the one of a row that the fit has not seen.
"""

import argparse
import concurrent.futures
import json
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
SCENARIO = ROOT / "scenarios/papers/rudra-table2.json"
ROWS = ROOT / "analysis/data/rudra.json"
PAGE = ROOT / "docs/calibration.md"
FIGURE = ROOT / "docs/figures/table2.png"

# Free parameters, all positive and fitted by their logarithm: keys of the scenario that bear it, and its unit.
PARAMETERS = {
    "c": (("cluster.devices.default.c",), "s"),
    "p": (("cluster.devices.default.p",), ""),
    "host_sharing": (("cluster.devices.default.host_sharing",), ""),
    "lognormal_cv": (("cluster.noise.lognormal_cv",), ""),
    "message_s": (("cluster.server.push_s", "cluster.server.pull_s"), "s"),
    "update_s": (("cluster.server.update_s",), "s"),
}
MEANINGS = {
    "c": "seconds of a gradient of 128 samples, alone on its host",
    "p": "exponent of the batch size",
    "host_sharing": "slowdown by each further learner on the host",
    "lognormal_cv": "standard deviation of compute times over their mean",
    "message_s": "the server's time for a model that comes in or goes out",
    "update_s": "the server's time for an update",
}
# One prediction takes this many gradients of each worker at least, or an epoch.
GRADIENTS = 60


PAGE_TEXT = """# Calibration against a paper

<!-- Written by analysis/calibrate_paper.py --fit. -->

`scenarios/papers/rudra-table2.json` predicts the training time of CIFAR-10 on Rudra-base (Gupta, Zhang and Milthorpe
2015, Tables 2 and 3), for any protocol, batch size and number of learners:

    rubato run scenarios/papers/rudra-table2.json --set protocol.name=hardsync \\
      --set workers.batch_size=8 --set workers.count=30

`time_s * 140 / epochs` of the summary is the time of the paper's 140 epochs. Six parameters are fitted, by least
squares of the logarithms of the times; all else stands in the scenario as the paper states it.

| parameter | value | unit | meaning |
|---|---:|---|---|
{parameters}

{rows}

Mean absolute error {error:.1%}; of rows that the fit has not seen {error_left_out:.1%}
(the others refitted by the slopes at the full fit, the row itself simulated).

![predicted against published](figures/table2.png)

Predicted ratios of times, 30 learners (published: 1.32 for the first; 1,995 s for hardsync with batch size 8, whose
1-softsync counterpart is not among the rows used):

| ratio | predicted |
|---|---:|
{ratios}

What the model cannot explain: the published rows of 30 learners with batch size 32 are slower than a smooth curve
through their neighbours, those of 18 learners with batch size 64 faster.
"""


def get(tree, path):
    for key in path.split("."):
        tree = tree[key]
    return tree


def label(row):
    protocol = "hardsync" if row["protocol"] == "hardsync" else f"{row['n']}-softsync"
    return f"{protocol}, batch size {row['batch_size']}, {row['workers']} workers"


def settings_of(values):
    return {key: repr(float(value)) for name, value in values.items() for key in PARAMETERS[name][0]}


class Simulator:
    """Predicted seconds of 140 epochs; rows in parallel, each in a process of its own."""

    def __init__(self, rubato, published, gradients=GRADIENTS):
        self.rubato, self.published, self.gradients = rubato, published, gradients
        self.pool = concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1)

    def row(self, row, settings):
        samples = self.published["samples"]
        epochs = max(1, math.ceil(self.gradients * row["workers"] * row["batch_size"] / samples))
        protocol = {"name": row["protocol"], **({"n": row["n"]} if "n" in row else {})}
        sets = {**settings, "protocol": json.dumps(protocol), "workers.batch_size": row["batch_size"],
                "workers.count": row["workers"], "stop": json.dumps({"epochs": epochs}),
                "trace": json.dumps({"gradients": False, "updates": False})}
        with tempfile.TemporaryDirectory(prefix="rubato-") as out:
            command = [self.rubato, "run", SCENARIO, "--quiet", "--json", "--force", "--out", out]
            for key, value in sets.items():
                command += ["--set", f"{key}={value}"]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"calibrate_paper.py: {label(row)}: {done.stderr.strip()}")
        summary = json.loads(done.stdout)
        return summary["time_s"] * self.published["epochs"] / summary["epochs"]

    def rows(self, rows, values=None):
        """values: by parameter; None: as the scenario says."""
        settings = settings_of(values or {})
        return np.array(list(self.pool.map(lambda row: self.row(row, settings), rows)))


class LeastSquares:
    """Gauss-Newton on the logarithms of times and parameters.

    Scatter and the two costs of the server are told apart by few rows only, so weak springs hold them near where they
    started; the springs are further residuals.
    """

    def __init__(self, simulator, rows):
        self.simulator, self.rows, self.names = simulator, rows, list(PARAMETERS)
        self.published = np.log([row["time_s"] for row in rows])
        self.springs = np.diag([SPRINGS.get(name, 0.0) for name in self.names])
        self.origin = np.log([START[name] for name in self.names])

    def values(self, point):
        return dict(zip(self.names, np.exp(point)))

    def residuals(self, point):
        off = np.log(self.simulator.rows(self.rows, self.values(point))) - self.published
        return np.concatenate([off, self.springs @ (point - self.origin)])

    def slopes(self, point):
        """Central differences over a tenth either way, wider than the grain of a discrete simulation."""
        columns = [(self.residuals(point + step) - self.residuals(point - step)) / 0.2
                   for step in 0.1 * np.eye(len(point))]
        return np.array(columns).T

    def fit(self, rounds=5):
        """Returns the best point, its residuals and the slopes there."""
        point, best = self.origin, self.residuals(self.origin)
        for _ in range(rounds):
            slopes = self.slopes(point)
            step = np.clip(np.linalg.lstsq(slopes, -best, rcond=None)[0], -0.5, 0.5)
            for shorter in (1, 0.5, 0.25, 0.125):
                trial = self.residuals(point + shorter * step)
                if trial @ trial < best @ best:
                    point, best = point + shorter * step, trial
                    break
            else:
                break
        return point, best, self.slopes(point)

    def without(self, index, point, residuals, slopes):
        """The point that the other rows alone ask for, by the slopes at the full fit."""
        keep = np.arange(len(residuals)) != index
        return point + np.linalg.lstsq(slopes[keep], -residuals[keep], rcond=None)[0]


# Where a fit starts and what the spring pulls to: one core's time of the baseline, work that grows a little slower than
# the batch, a tenth of scatter, and costs of the server of the size that the two rows with batch size 4 ask for.
START = {"c": 0.41, "p": 0.82, "host_sharing": 0.06, "lognormal_cv": 0.1, "message_s": 3e-4, "update_s": 5e-4}
SPRINGS = {"host_sharing": 0.02, "lognormal_cv": 0.05, "message_s": 0.02, "update_s": 0.02}


def rounded(values):
    return {name: float(f"{value:.3g}") for name, value in values.items()}


def write_scenario(values):
    """Puts the numbers into the text, so that comments and layout stay."""
    text = SCENARIO.read_text()
    for name, (keys, _) in PARAMETERS.items():
        for key in keys:
            leaf = f'"{key.split(".")[-1]}": '
            begin = text.index(leaf) + len(leaf)
            end = min(i for i in (text.find(c, begin) for c in ",}\n") if i >= 0)
            text = text[:begin] + repr(values[name]) + text[end:]
    SCENARIO.write_text(text)


def scenario_values():
    tree = json.loads(SCENARIO.read_text())
    return {name: get(tree, keys[0]) for name, (keys, _) in PARAMETERS.items()}


def ratios(simulator):
    """What the paper says about protocols, predicted: with the fitted costs of the server and without any."""
    def seconds(protocol, n, batch, none=False):
        row = {"protocol": protocol, "batch_size": batch, "workers": 30, **({"n": n} if n else {})}
        free = {"cluster.server": json.dumps({"push_s": 0, "pull_s": 0, "update_s": 0})} if none else {}
        return simulator.row(row, free)
    soft4, soft8 = seconds("n-softsync", 1, 4), seconds("n-softsync", 1, 8)
    return {
        "30-softsync / 1-softsync, batch size 4": seconds("n-softsync", 30, 4) / soft4,
        "the same without costs of the server":
            seconds("n-softsync", 30, 4, True) / seconds("n-softsync", 1, 4, True),
        "hardsync / 1-softsync, batch size 8": seconds("hardsync", 0, 8) / soft8,
        "hardsync / 1-softsync, batch size 4": seconds("hardsync", 0, 4) / soft4,
    }


def table(rows, predicted, left_out=None):
    lines = ["| row | published (s) | predicted (s) | error |", "|---|---:|---:|---:|"]
    if left_out is not None:
        lines = [lines[0] + " error when left out |", lines[1] + "---:|"]
    for i, row in enumerate(rows):
        line = f"| {label(row)} | {row['time_s']:,} | {predicted[i]:,.0f} | {predicted[i] / row['time_s'] - 1:+.1%} |"
        lines.append(line + (f" {left_out[i] / row['time_s'] - 1:+.1%} |" if left_out is not None else ""))
    return lines


def mean_error(rows, predicted):
    return float(np.mean([abs(p / row["time_s"] - 1) for row, p in zip(rows, predicted)]))


def draw(rows, predicted, left_out):
    import matplotlib  # pylint: disable=import-outside-toplevel
    matplotlib.use("Agg")
    from matplotlib import pyplot  # pylint: disable=import-outside-toplevel

    figure, axes = pyplot.subplots(figsize=(5, 4.2), layout="constrained")
    published = [row["time_s"] for row in rows]
    ends = np.array([min(published) * 0.8, max(published) * 1.2])
    axes.fill_between(ends, ends * 0.92, ends * 1.08, color="0.9", label="within 8 %")
    axes.plot(ends, ends, color="0.5", linewidth=0.8)
    axes.scatter(published, predicted, marker="o", s=28, label="fitted to all rows")
    axes.scatter(published, left_out, marker="x", s=28, label="fitted without this row")
    axes.set(xscale="log", yscale="log", xlabel="published time of 140 epochs (s)", ylabel="predicted (s)",
             title="CIFAR-10 on Rudra-base (Gupta et al. 2015)")
    axes.legend()
    figure.savefig(FIGURE, dpi=150, metadata={"Software": None})


def write_page(values, rows, predicted, left_out, told):
    parameters = [f"| `{name}` | {values[name]:g} | {unit} | {MEANINGS[name]} |"
                  for name, (_, unit) in PARAMETERS.items()]
    PAGE.write_text(PAGE_TEXT.format(
        parameters="\n".join(parameters), rows="\n".join(table(rows, predicted, left_out)),
        error=mean_error(rows, predicted), error_left_out=mean_error(rows, left_out),
        ratios="\n".join(f"| {name} | {value:.2f} |" for name, value in told.items())))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fit", action="store_true", help="fit anew and write scenario, page and figure (minutes)")
    parser.add_argument("--rubato", default=ROOT / "build/rubato", help="the program (default: build/rubato)")
    options = parser.parse_args()
    if not Path(options.rubato).is_file():
        parser.error(f"{options.rubato}: no such program; build it, or name it with --rubato")
    published = json.loads(ROWS.read_text())
    rows = published["rows"]
    simulator = Simulator(options.rubato, published)
    if not options.fit:
        predicted = simulator.rows(rows)
        print("\n".join(table(rows, predicted)), f"\n\nmean absolute error {mean_error(rows, predicted):.1%}\n")
        for name, value in ratios(simulator).items():
            print(f"{name}: {value:.3f}")
        return 0
    problem = LeastSquares(simulator, rows)
    point, residuals, slopes = problem.fit()
    values = rounded(problem.values(point))
    print(values, flush=True)
    write_scenario(values)
    predicted = simulator.rows(rows)
    left_out = [simulator.row(row, settings_of(problem.values(problem.without(i, point, residuals, slopes))))
                for i, row in enumerate(rows)]
    write_page(values, rows, predicted, left_out, ratios(simulator))
    draw(rows, predicted, left_out)
    print(f"mean absolute error {mean_error(rows, predicted):.1%}, left out {mean_error(rows, left_out):.1%}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
