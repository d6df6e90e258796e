#!/usr/bin/python3
"""Fits the simulated machine of scenarios/papers/rudra-table2.json to published training times.

    analysis/calibrate_paper.py                    compares the scenario as it is with the published rows
    analysis/calibrate_paper.py --fit              fits anew, leaves rows out one by one, and writes the scenario,
                                                   docs/calibration.md and docs/figures/table2.png

The model is the simulator itself: every prediction is a run of `rubato` with protocol, batch size and number of workers
set, and its figure is time_s * 140 / epochs. Six parameters are free; all else stands in the scenario as the paper
states it. The error that counts is the one of a row that the fit has not seen: all parameters are fitted again without
it. Exit status 2, with one line, where the input is wrong.
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

from least_squares import LeastSquares

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


HEADING = "## Against a paper"
PAGE_TEXT = HEADING + """

<!-- From here on written by analysis/calibrate_paper.py --fit. -->

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
(all parameters fitted again to the other rows from two starts, and the row itself simulated).

![predicted against published](figures/table2.png)

Predicted ratios of times, 30 learners (published: 1.32 for the first; 1,995 s for hardsync with batch size 8, whose
1-softsync counterpart is not among the rows used):

| ratio | predicted |
|---|---:|
{ratios}

What the model cannot explain: the published rows of 30 learners with batch size 32 are slower than a smooth curve
through their neighbours, those of 18 learners with batch size 64 faster. Server costs as a whole are known from one
row, 30-softsync with batch size 4, where the server is never idle, and are too low where it is left out; hardsync with
batch size 8 alone tells them apart from scatter, and the three trade off against each other.
"""


class Wrong(Exception):
    """The input is wrong; the message is one line."""


def read_json(path):
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise Wrong(f"{path}: {(error.strerror or str(error)).lower()}") from None
    except ValueError as error:
        raise Wrong(f"{path}: not JSON: {error}") from None


def read_published():
    """The published rows; refuses what a prediction could not be held against."""
    published = read_json(ROWS)
    try:
        for i, row in enumerate(published["rows"]):
            names = ("batch_size", "workers", "time_s") + (("n",) if row["protocol"] != "hardsync" else ())
            if not all(row[name] > 0 for name in names):
                raise Wrong(f"{ROWS}: rows[{i}]: expected positive {', '.join(names)}")
        if len(published["rows"]) <= len(PARAMETERS) or not published["samples"] * published["epochs"] > 0:
            raise Wrong(f"{ROWS}: expected more rows than parameters, and positive samples and epochs")
    except (KeyError, TypeError) as error:
        raise Wrong(f"{ROWS}: expected rows with protocol, n, batch_size, workers and time_s, and the number of "
                    f"samples and of epochs ({error})") from None
    return published


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
            raise Wrong(f"{label(row)}: {' '.join(done.stderr.split()) or f'exit status {done.returncode}'}")
        summary = json.loads(done.stdout)
        return summary["time_s"] * self.published["epochs"] / summary["epochs"]

    def rows(self, rows, values=None):
        """values: by parameter; None: as the scenario says."""
        settings = settings_of(values or {})
        return np.array(list(self.pool.map(lambda row: self.row(row, settings), rows)))


# Where a fit starts and what the springs pull to. Only c and p, which have no spring, start near rows of the table. A
# tenth of scatter is what the published staleness agrees with; the server's costs start alike, at the few tenths of a
# millisecond that a core takes to touch 350 kB several times. Few rows tell scatter and the two costs of the server
# apart, hence the springs.
START = {"c": 0.41, "p": 0.82, "host_sharing": 0.06, "lognormal_cv": 0.1, "message_s": 3e-4, "update_s": 3e-4}
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
    tree = read_json(SCENARIO)
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
    """Predicted against published times, in the look of the other figures, with its data as CSV beside it."""
    from rubato_analysis.figure import Data, new_figure, save  # pylint: disable=import-outside-toplevel

    figure, (axes,) = new_figure(1, 1, 5.0, 4.2)
    data, published = Data(), [row["time_s"] for row in rows]
    ends = np.array([min(published) * 0.8, max(published) * 1.2])
    axes.fill_between(ends, ends * 0.92, ends * 1.08, color="#E3E3E3", label="within 8 %")
    axes.plot(ends, ends, color="#777777", linewidth=0.8)
    for seconds, name, style in ((predicted, "fitted to all rows", {"marker": "o", "color": "#0072B2"}),
                                 (left_out, "fitted without this row", {"marker": "x", "color": "#D55E00"})):
        axes.scatter(published, seconds, s=28, label=name, zorder=3, **style)
        data.add("a", name, "scenarios/papers/rudra-table2.json", published, np.round(seconds, 1))
    axes.set(xscale="log", yscale="log", xlabel="published time of 140 epochs (s)", ylabel="predicted (s)")
    axes.set_title("CIFAR-10 on Rudra-base (Gupta et al. 2015)", loc="left")
    axes.legend()
    save(figure, data, str(FIGURE), ["analysis/calibrate_paper.py", "--fit"], "Training times of Table 2")


def write_page(values, rows, predicted, left_out, told):
    parameters = [f"| `{name}` | {values[name]:g} | {unit} | {MEANINGS[name]} |"
                  for name, (_, unit) in PARAMETERS.items()]
    before, _, _ = PAGE.read_text().partition(HEADING)
    PAGE.write_text(before + PAGE_TEXT.format(
        parameters="\n".join(parameters), rows="\n".join(table(rows, predicted, left_out)),
        error=mean_error(rows, predicted), error_left_out=mean_error(rows, left_out),
        ratios="\n".join(f"| {name} | {value:.2f} |" for name, value in told.items())))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fit", action="store_true",
                        help="fit anew and write scenario, page and figure (a quarter of an hour)")
    parser.add_argument("--rubato", default=ROOT / "build/rubato", help="the program (default: build/rubato)")
    return parser.parse_args()


def run(options):
    if not Path(options.rubato).is_file():
        raise Wrong(f"{options.rubato}: no such program; build it, or name it with --rubato")
    published = read_published()
    rows = published["rows"]
    simulator = Simulator(options.rubato, published)
    if not options.fit:
        predicted = simulator.rows(rows)
        print("\n".join(table(rows, predicted)), f"\n\nmean absolute error {mean_error(rows, predicted):.1%}\n")
        for name, value in ratios(simulator).items():
            print(f"{name}: {value:.3f}")
        return
    problem = LeastSquares(simulator.rows, rows, [row["time_s"] for row in rows], START, SPRINGS)
    others = [np.log([{**START, "message_s": cost, "update_s": cost}[name] for name in START]) for cost in (1e-4, 1e-3)]
    point, _ = problem.fit(others)
    values = rounded(problem.values(point))
    print(values, flush=True)
    write_scenario(values)
    predicted = simulator.rows(rows)
    left_out = [simulator.row(row, settings_of(problem.values(problem.without(i, point))))
                for i, row in enumerate(rows)]
    write_page(values, rows, predicted, left_out, ratios(simulator))
    draw(rows, predicted, left_out)
    print(f"mean absolute error {mean_error(rows, predicted):.1%}, left out {mean_error(rows, left_out):.1%}")


def main():
    options = arguments()
    try:
        run(options)
    except Wrong as error:
        print(f"calibrate_paper.py: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
