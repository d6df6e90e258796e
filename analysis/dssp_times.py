#!/usr/bin/python3
"""Simulated times of bsp, asp, ssp and dssp beside those that Zhao et al. (2019) publish, from what sweeps left.

    analysis/dssp_times.py table SWEEP [-o FIGURE]      sweep of scenarios/sweeps/dssp-table1.json
    analysis/dssp_times.py order alexnet SWEEP          of scenarios/sweeps/dssp-alexnet.json
    analysis/dssp_times.py order resnet SWEEP           of scenarios/sweeps/dssp-resnet.json

Prints a table for docs/validation.md. Published figures are read from analysis/data/dssp.json. Exit status 2, with one
line, where the input is wrong.
"""

import argparse
import json
import sys
from pathlib import Path

import numpy as np

from rubato_analysis import AnalysisError, load_sweep
from rubato_analysis.figure import Data, new_figure, save

PUBLISHED = Path(__file__).resolve().parent / "data/dssp.json"
NOISE = "cluster.noise.lognormal_cv"
UPDATE = "cluster.server.update_s"


def published():
    """What the paper gives; docs of the keys are the file's comments."""
    try:
        return json.loads(PUBLISHED.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise AnalysisError(f"{PUBLISHED}: {error}") from None


def means(path, key):
    """{value of `key`: {label: mean seconds over the seeds}} of a sweep; refuses one that has lost points."""
    frame = load_sweep(path).aggregate
    for column in (key, "time_s.mean"):
        if column not in frame:
            raise AnalysisError(f"{path}: no column {column}; expected a sweep over {key}")
    lost = frame[(frame.diverged > 0) | (frame.failed > 0)]
    if len(lost):
        raise AnalysisError(f"{path}: runs of {lost.label.iloc[0]} diverged or failed")
    return {value: dict(zip(rows.label, rows["time_s.mean"])) for value, rows in frame.groupby(key, sort=True)}


def ratios(times, reference):
    """{label: time over that of the label `reference`}."""
    if reference not in times:
        raise AnalysisError(f"no runs of {reference}, which all times are divided by")
    return {label: seconds / times[reference] for label, seconds in times.items()}


def by_protocol(times):
    """{protocol: seconds}; of settings of one protocol ("ssp 3", "ssp 4", ...) the mean."""
    groups = {}
    for label, seconds in times.items():
        groups.setdefault(label.split()[0], []).append(seconds)
    return {name: float(np.mean(seconds)) for name, seconds in groups.items()}


def published_ratios(facts):
    """{label: (published ratio, whether the speed ratio was fitted on it)}."""
    rows = {row["label"]: row for row in facts["rows"]}
    base = rows[facts["reference"]]["time_s"]
    return {label: (row["time_s"] / base, row.get("fitted", False)) for label, row in rows.items()}


def table(path, output):
    facts = published()["table1"]
    known = published_ratios(facts)
    cells = {noise: ratios(times, facts["reference"]) for noise, times in means(path, NOISE).items()}
    print("| protocol | " + " | ".join(f"cv {noise:g}" for noise in cells) + " | published |")
    print("|---|" + "---:|" * (len(cells) + 1))
    labels = list(dict.fromkeys(label for one in cells.values() for label in one))
    for label in labels:
        ratio, fitted = known.get(label, (None, False))
        told = "" if ratio is None else f"{ratio:.3f}" + (" (fitted on)" if fitted else "")
        print(f"| {label} | " + " | ".join(f"{one[label]:.3f}" for one in cells.values()) + f" | {told} |")
    if output:
        draw(labels, cells, known, output, path)


def draw(labels, cells, known, output, path):
    """A row a protocol; a mark for each scatter of compute times, a ring for what is published."""
    figure, (axes,) = new_figure(1, 1, 6.0, 3.6)
    data, places = Data(), np.arange(len(labels))
    marks = zip(("o", "s", "^", "v", "D"), ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000"))
    for lane, ((noise, one), (marker, color)) in enumerate(zip(cells.items(), marks)):
        name, values = f"simulated, cv {noise:g}", [one[label] for label in labels]
        axes.plot(values, places + 0.16 * (lane - (len(cells) - 1) / 2), marker, color=color, markersize=5, label=name)
        data.add("a", name, path, values, labels)
    there = [label for label in labels if label in known]
    axes.plot([known[label][0] for label in there], [labels.index(label) for label in there], "o", markersize=13,
              fillstyle="none", color="#555555", label="published")
    data.add("a", "published", "", [known[label][0] for label in there], there)
    axes.set_yticks(places, labels)
    axes.set_ylim(len(labels) - 0.5, -0.5)
    axes.set(xlabel="time of 200 epochs over that of asp")
    axes.set_title("Two workers, one 2.79 times slower (Zhao et al. 2019, Table I)", loc="left")
    axes.legend(loc="lower left", fontsize=7.5)
    save(figure, data, output, ["analysis/dssp_times.py", "table", path], "Times of Table I of Zhao et al. 2019")


def order_text(times):
    """Protocols from the fastest to the slowest, joined by < or, where they are within 1 %, by ~."""
    names = sorted(times, key=times.get)
    text = names[0]
    for before, after in zip(names, names[1:]):
        text += (" ~ " if times[after] <= 1.01 * times[before] else " < ") + after
    return text


def order(model, path):
    facts = published()["orders"][model]
    told = " < ".join(facts["first"] + (["...", *facts["last"]] if facts["last"] else []))
    print("| update (ms) | asp (s) | bsp | ssp | dssp | order | published |")
    print("|---:|---:|---:|---:|---:|---|---|")
    for update_s, times in means(path, UPDATE).items():
        seconds = by_protocol(times)
        relative = ratios(seconds, "asp")
        cells = " | ".join(f"{relative[name]:.3f}" for name in ("bsp", "ssp", "dssp"))
        print(f"| {1000 * update_s:g} | {seconds['asp']:,.0f} | {cells} | {order_text(seconds)} | {told} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("table", help="times relative to asp, beside Table I")
    one.add_argument("sweep")
    one.add_argument("-o", "--output", metavar="FIGURE")
    one = commands.add_parser("order", help="order by time, four equal workers")
    one.add_argument("model", choices=("alexnet", "resnet"))
    one.add_argument("sweep")
    options = parser.parse_args()
    try:
        if options.command == "table":
            table(options.sweep, options.output)
        else:
            order(options.model, options.sweep)
    except AnalysisError as error:
        print(f"dssp_times.py: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
