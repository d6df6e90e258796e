#!/usr/bin/python3
"""Rudra-base, Rudra-adv and Rudra-adv* of Gupta et al. 2015 as the simulator predicts them, beside published figures.

    analysis/rudra_trees.py table1       communication overlap, scenarios/papers/rudra-table1.json
    analysis/rudra_trees.py imagenet     minutes an epoch, scenarios/papers/rudra-imagenet.json
    analysis/rudra_trees.py assumptions  the same under other readings of what the paper leaves open
    analysis/rudra_trees.py --fit        writes what is published or fitted into rudra-table1.json, which
                                         rudra-imagenet.json extends, and rudra-figure9.json

The first three print tables for docs/validation.md. Published figures are read from analysis/data/rudra-imagenet.json.
Two of them give the seconds of a gradient, without a run: ImageNet on one learner, and the epoch of Rudra-adv*, all of
whose communication the paper says is hidden. The one figure that is fitted is what a server needs for each byte, on the
overlap of Rudra-base. Exit status 2, with one line, where the input is wrong.
"""

import argparse
import concurrent.futures
import json
import math
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TABLE1 = ROOT / "scenarios/papers/rudra-table1.json"
IMAGENET = ROOT / "scenarios/papers/rudra-imagenet.json"
FIGURE9 = ROOT / "scenarios/papers/rudra-figure9.json"
PUBLISHED = ROOT / "analysis/data/rudra-imagenet.json"

COSTS = ("cluster.server.push_s_per_byte", "cluster.server.pull_s_per_byte")
TREE = {"topology.name": "tree"}
OVERLAP = {"workers.pipeline": "overlap"}
DOWNCAST = {"topology.name": "tree-downcast", **OVERLAP}
SYSTEMS = {
    "Rudra-base": {},
    "Rudra-adv": TREE,
    "Rudra-adv, computing while communicating": {**TREE, **OVERLAP},
    "Rudra-adv*": DOWNCAST,
}
CONFIGURATIONS = [
    (name, {"workers.batch_size": batch_size, "workers.count": workers, **sets})
    for name, batch_size, workers, sets in (
        ("base-hardsync", 16, 18, {"protocol.name": "hardsync"}),
        ("base-softsync", 16, 18, {}),
        ("adv-softsync", 4, 54, TREE),
        ("adv-softsync", 8, 54, TREE),
        ("adv*-softsync", 4, 54, DOWNCAST),
        ("adv*-softsync", 8, 54, DOWNCAST),
    )
]


class Wrong(Exception):
    """The input is wrong; the message is one line."""


def published():
    """The published figures, and seconds of a gradient by batch size that follow from them."""
    try:
        facts = json.loads(PUBLISHED.read_text(encoding="utf-8"))
        one, (hidden,) = facts["one_learner"], [row for row in facts["epochs"] if row["topology"] == "tree-downcast"]
        (facts["star"],) = [row for row in facts["overlap"] if row["topology"] == "star"]
        facts["seconds"] = {
            hidden["batch_size"]: 60 * hidden["minutes"] * hidden["batch_size"] * hidden["workers"] / facts["samples"],
            one["batch_size"]: 3600 * one["hours_per_epoch"] * one["batch_size"] / facts["samples"],
        }
    except OSError as error:
        raise Wrong(f"{PUBLISHED}: {(error.strerror or str(error)).lower()}") from None
    except (KeyError, TypeError, ValueError) as error:
        raise Wrong(f"{PUBLISHED}: expected samples, overlap, one_learner and epochs ({error})") from None
    return facts


class Simulator:
    """Summaries of runs, each in a process of its own."""

    def __init__(self, rubato):
        self.rubato = rubato

    def run(self, scenario, sets):
        with tempfile.TemporaryDirectory(prefix="rubato-") as out:
            command = [self.rubato, "run", scenario, "--quiet", "--json", "--force", "--out", out]
            for key, value in {**sets, "trace": {"gradients": False, "updates": False}}.items():
                command += ["--set", f"{key}={value if isinstance(value, str) else json.dumps(value)}"]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Wrong(f"{' '.join(done.stderr.split()) or f'exit status {done.returncode}'}")
        return json.loads(done.stdout)

    def overlap(self, sets):
        """Per cent, of the scenario of Table 1."""
        return 100 * self.run(TABLE1, sets)["compute_utilization"]

    def epochs(self, sets):
        """(configuration, settings, summary) of each configuration of ImageNet."""
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            runs = pool.map(lambda one: self.run(IMAGENET, {**one[1], **sets}), CONFIGURATIONS)
            return [(name, own, summary) for (name, own), summary in zip(CONFIGURATIONS, runs)]


def minutes(summary):
    return summary["time_s"] / summary["epochs"] / 60


def of_server(seconds_per_byte):
    return {key: repr(seconds_per_byte) for key in COSTS}


def fit(simulator, facts):
    """Seconds a byte by which the star has the published overlap: the secant of the logarithms."""
    row, batches = facts["star"], {str(batch): value for batch, value in facts["seconds"].items()}

    def off(x):
        sets = {"cluster.devices.default": {"seconds": batches}, **of_server(math.exp(x))}
        return math.log(simulator.overlap(sets) / row["percent"])

    # A server that is never idle has 2 messages of each worker in a cycle, which takes compute seconds / overlap.
    cycle = facts["seconds"][row["batch_size"]] / (0.01 * row["percent"])
    guess = math.log(cycle / (2 * row["workers"] * message_bytes()))
    points = [(x, off(x)) for x in (guess, guess + 0.02)]
    while abs(points[-1][1]) > 1e-4 and len(points) < 8:
        (x0, y0), (x1, y1) = points[-2:]
        x = x1 - y1 * (x1 - x0) / (y1 - y0)
        points.append((x, off(x)))
    return float(f"{math.exp(points[-1][0]):.3g}")


def message_bytes():
    return float(json.loads(TABLE1.read_text())["cost"]["push_bytes"].removesuffix("MB")) * 1e6


def write(facts, cost):
    """Puts the numbers into the texts, so that comments and layout stay."""
    seconds = ", ".join(f'"{batch}": {value:g}' for batch, value in sorted(facts["seconds"].items()))
    for path in (TABLE1, FIGURE9):
        text = re.sub(r'"seconds": \{[^}]*\}', f'"seconds": {{{seconds}}}', path.read_text())
        for key in COSTS:
            text = re.sub(rf'("{key.rsplit(".", maxsplit=1)[-1]}": )[-+.e0-9]+', rf"\g<1>{cost!r}", text)
        path.write_text(text)


def table1(simulator, facts):
    known = {row["system"]: row for row in facts["overlap"]}
    print("| system | topology | pipeline | predicted | published |")
    print("|---|---|---|---:|---:|")
    for name, sets in SYSTEMS.items():
        told = f"{known[name]['percent']:.2f} % (fitted on)" if name in known else ""
        print(f"| {name} | {sets.get('topology.name', 'star')} | {sets.get('workers.pipeline', 'blocking')} | "
              f"{simulator.overlap(sets):.1f} % | {told} |")


def imagenet(simulator, facts):
    known = {(row["system"], row["batch_size"]): row["minutes"] for row in facts["epochs"]}
    print("| system | batch size | workers | predicted (min) | published (min) | mean staleness | utilization |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for name, sets, summary in simulator.epochs({}):
        batch_size = sets["workers.batch_size"]
        told = f"{known[name, batch_size]} (used)" if (name, batch_size) in known else ""
        print(f"| {name} | {batch_size} | {sets['workers.count']} | {minutes(summary):.0f} | {told} | "
              f"{summary['staleness']['mean']:.2f} | {100 * summary['compute_utilization']:.1f} % |")


def readings(facts):
    """{name: settings} of other readings, each with the published overlap of the star."""
    (small, short), (large, long) = sorted(facts["seconds"].items())
    power = math.log(long / short) / math.log(large / small)
    row = facts["star"]
    bandwidth = message_bytes() * row["workers"] * 0.01 * row["percent"] / facts["seconds"][row["batch_size"]]
    link = {**of_server(0.0), "cluster.network.star.server_bandwidth": bandwidth}
    return {
        "as it is": {},
        f"seconds of a gradient as a power of the batch size ({power:.3f})":
            {"cluster.devices.default": {"c": short, "b0": small, "p": round(power, 4)}},
        f"the root's link instead of servers ({bandwidth / 1e9:.2f} GB/s each way)": link,
        "a tree of fan-out 2": {"topology.fan_out": 2},
        "no scatter of compute times": {"cluster.noise.lognormal_cv": 0},
    }


def assumptions(simulator, facts):
    heads = [f"{name}, {sets['workers.batch_size']}" for name, sets in CONFIGURATIONS]
    heads += [name.replace(", computing while communicating", " + overlap") for name in SYSTEMS]
    print("| reading | " + " | ".join(heads) + " |")
    print("|---|" + "---:|" * len(heads))
    for reading, sets in readings(facts).items():
        def with_own(own, sets=sets):
            """A star has no fan-out."""
            tree = "topology.name" in own
            return {**{key: value for key, value in sets.items() if tree or key != "topology.fan_out"}, **own}
        cells = [f"{minutes(simulator.run(IMAGENET, with_own(own))):.0f}" for _, own in CONFIGURATIONS]
        cells += [f"{simulator.overlap(with_own(own)):.1f} %" for own in SYSTEMS.values()]
        print(f"| {reading} | " + " | ".join(cells) + " |", flush=True)


TABLES = {"table1": table1, "imagenet": imagenet, "assumptions": assumptions}


def run(options):
    if not Path(options.rubato).is_file():
        raise Wrong(f"{options.rubato}: no such program; build it, or name it with --rubato")
    facts, simulator = published(), Simulator(options.rubato)
    if options.fit:
        cost = fit(simulator, facts)
        write(facts, cost)
        print(f"{cost:g} s a byte, {1e-9 / cost:.2f} GB/s")
    if options.table:
        TABLES[options.table](simulator, facts)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", nargs="?", choices=TABLES, help="what to print")
    parser.add_argument("--fit", action="store_true", help="write the scenario anew")
    parser.add_argument("--rubato", default=ROOT / "build/rubato", help="the program (default: build/rubato)")
    options = parser.parse_args()
    if not options.fit and not options.table:
        parser.error("expected a table or --fit")
    try:
        run(options)
    except Wrong as error:
        print(f"rudra_trees.py: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
