#!/usr/bin/env python3
"""How much of the communication that synchronous sums expose a delay hides, and where the exposed time goes.

    analysis/agd_hidden.py --launch "mpirun -n 4 --bind-to none" --out DIR [--set KEY=VALUE]...
    analysis/agd_hidden.py RUN...

The first line makes runs of scenarios/papers/agd-hidden.json in DIR, one for each protocol, and then does what the
second does with runs that are there: no-comm, allreduce, layer-wise and delayed by some iterations, with trace.layers.
A machine is to have a core for each rank and one for its reactor at least: otherwise ranks wait for cores.

Prints tables for docs/validation.md, means over workers and iterations from the 20th on (--skip), milliseconds.
`waited` is communication that is exposed (iterations.csv). Of it, `for others to begin` went by before the last worker
had begun the sum that was waited for, and `for the sum` after that; the sum itself lasts from that begin to the last
worker's end (layers.csv). Layers are many sums at a time, and are not taken apart.
"""

import argparse
import json
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from rubato_analysis import AnalysisError, load

ROOT = Path(__file__).resolve().parent.parent
PROTOCOLS = {
    "no-comm": {"name": "no-comm"},
    "allreduce": {"name": "allreduce"},
    "layer-wise": {"name": "layer-wise", "apply": "completion-order"},
    "delayed 1": {"name": "delayed", "delay": 1},
    "delayed 2": {"name": "delayed", "delay": 2},
}


@dataclass
class Times:
    """Means of a run, seconds."""

    iteration: float
    gradient: float
    waited: float
    begin_wait: float | None = None  # of `waited`, before the last worker has begun the sum
    sum_wait: float | None = None
    sum: float | None = None


def label_of(protocol):
    return f"delayed {protocol['delay']}" if protocol["name"] == "delayed" else protocol["name"]


def take_apart(rows, layers, delay, times):
    """What a worker waits for: until all have begun the sum of `delay` iterations before, and then for that sum."""
    sums = layers.groupby("iteration").agg(begun=("reduce_begin_ns", "max"), ended=("reduce_end_ns", "max"))
    rows = rows.assign(awaited=rows.iteration - delay)
    rows = rows[rows.awaited >= 0].merge(sums, left_on="awaited", right_index=True)
    begun = (rows.begun.astype("int64") - rows.computed_ns).clip(lower=0)
    times.begin_wait = begun.combine(rows.waited_ns, min).mean() * 1e-9
    times.sum_wait = times.waited - times.begin_wait
    inner = sums[sums.index >= rows.awaited.min()]
    times.sum = (inner.ended - inner.begun).mean() * 1e-9


def measure(path, skip):
    """The label of a run, and its Times."""
    run = load(path)
    protocol = run.scenario["protocol"]
    rows = run.iterations[run.iterations.iteration >= skip]
    if rows.empty:
        raise AnalysisError(f"{path}: has no iteration from the {skip}th on")
    times = Times((rows.end_ns - rows.begin_ns).mean() * 1e-9, (rows.computed_ns - rows.begin_ns).mean() * 1e-9,
                  rows.waited_ns.mean() * 1e-9)
    if protocol["name"] in ("allreduce", "delayed"):
        take_apart(rows, run.layers, protocol.get("delay", 0), times)
    return label_of(protocol), times


def cell(value, scale=1e3):
    return "" if value is None else f"{scale * value:.1f}"


def table(found):
    print("| protocol | iteration | gradient | waited | for others to begin | for the sum | a sum | hidden (%) |")
    print("|---|" + "---:|" * 7)
    exposed = found["allreduce"].waited if "allreduce" in found else None
    for label, it in found.items():
        hidden = None if not exposed or label in ("no-comm", "allreduce") else 1 - it.waited / exposed
        cells = [cell(it.iteration), cell(it.gradient), cell(it.waited), cell(it.begin_wait), cell(it.sum_wait),
                 cell(it.sum), cell(hidden, 100)]
        print(f"| {label} | " + " | ".join(cells) + " |")


def launch(options):
    """Makes the runs; their folders."""
    paths = []
    for label, protocol in PROTOCOLS.items():
        path = Path(options.out) / label.replace(" ", "-")
        if options.algorithm and protocol["name"] != "no-comm":
            protocol = protocol | {"algorithm": options.algorithm}
        sets = [*options.set, f"protocol={json.dumps(protocol)}"]
        command = [*shlex.split(options.launch), options.program, "run", options.scenario, "--backend", options.backend,
                   "--quiet", "--force", "--out", path]
        for assignment in sets:
            command += ["--set", assignment]
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise AnalysisError((done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1])
        paths.append(path)
    return paths


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="*", metavar="RUN", help="folders of runs that are there")
    parser.add_argument("--launch", help="makes the runs first: what stands before rubato, such as \"mpirun -n 4\"")
    parser.add_argument("--out", help="where the runs go")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="of the scenario")
    parser.add_argument("--algorithm", help="of the sums, such as native")
    parser.add_argument("--backend", default="mpi")
    parser.add_argument("--scenario", default=ROOT / "scenarios/papers/agd-hidden.json")
    parser.add_argument("--program", default=ROOT / "build/rubato")
    parser.add_argument("--skip", type=int, default=20, help="iterations that do not count")
    options = parser.parse_args()
    if (options.launch is None) == (not options.runs) or (options.launch is None) != (options.out is None):
        parser.error("expected runs, or --launch and --out")
    try:
        paths = options.runs or launch(options)
        table(dict(measure(path, options.skip) for path in paths))
    except AnalysisError as error:
        print(f"agd_hidden.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
