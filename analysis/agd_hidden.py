#!/usr/bin/env python3
"""How much of the communication that synchronous sums expose a delay hides, and where the exposed time goes.

    analysis/agd_hidden.py --launch "mpirun -n 4 --bind-to none" --out DIR [--set KEY=VALUE]...
    analysis/agd_hidden.py RUN...

The first line makes runs of scenarios/papers/agd-hidden.json in DIR, one for each protocol, and then does what the
second does with runs that are there: no-comm, allreduce, layer-wise and delayed by some iterations, with trace.layers.
A machine is to have a core for each rank and one for its reactor at least: otherwise ranks wait for cores.

Prints a table for docs/validation.md, milliseconds, means over workers and iterations from the 20th on (--skip), and
over runs of one protocol (--repeat). `waited` is what workers wait for sums, in all (iterations.csv): for their
messages, and for workers that are slower, and the latter no communication could take away. `exposed` is what
communication adds to an iteration: the run's time less the time of the same run, each gradient taking as long as it
did, were every sum there at once when the last of its gradients is. `a sum` lasts from the begin of its last worker to
its end (layers.csv). `hidden` and `saved` say which part of what allreduce has is gone, of `exposed` and of `waited`.
"""

import argparse
import itertools
import json
import shlex
import subprocess
import sys
from dataclasses import astuple, dataclass
from pathlib import Path

import numpy as np
import pandas as pd
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
    exposed: float
    sum: float | None = None


def require_whole_rows(path, scenario):
    """Sums that are drained between two iterations are in no row, so what is waited for them would count as nothing."""
    evaluate = scenario.get("evaluate", {})
    pauses = evaluate.get("mode") == "pause" and any(key.startswith("every") for key in evaluate)
    if pauses or scenario.get("execution", {}).get("checkpoint"):
        raise AnalysisError(f"{path}: its sums are drained for evaluations or checkpoints; expected a run without "
                            "evaluate.mode pause and execution.checkpoint")


def label_of(protocol):
    return f"delayed {protocol['delay']}" if protocol["name"] == "delayed" else protocol["name"]


def sum_seconds(layers, skip):
    """From where the last worker has begun a sum to where the last one has it."""
    sums = layers.groupby("iteration").agg(begun=("reduce_begin_ns", "max"), ended=("reduce_end_ns", "max"))
    sums = sums[sums.index >= skip]
    return (sums.ended - sums.begun).mean() * 1e-9


def exposed_seconds(rows, skip):
    """What communication adds to an iteration, from the `skip`th on: along the chain of what waits for what.

    rows: of iterations.csv. Iteration t ends when its own gradient is there and, of iteration t - delay, those of all
    workers; what a worker does then, and how long its gradients take, is as recorded.
    """
    begin, computed, waited, end, delay = (
        rows.pivot(index="iteration", columns="worker", values=name).to_numpy(dtype=np.int64)
        for name in ("begin_ns", "computed_ns", "waited_ns", "end_ns", "delay"))
    if skip < delay.max():
        raise AnalysisError(f"expected at least {delay.max()} iterations that do not count, as many as the delay")
    done = computed.copy()
    ready = begin[skip]
    for it in range(skip, len(begin)):
        done[it] = ready + computed[it] - begin[it]
        after = (begin[it + 1] if it + 1 < len(begin) else end[it]) - computed[it] - waited[it]
        ready = np.maximum(done[it], done[it - delay[it]].max(axis=1)) + after
    return (end[-1].max() - ready.max()) * 1e-9 / (len(begin) - skip)


def measure(path, skip):
    """The label of a run, and its Times."""
    run = load(path)
    require_whole_rows(path, run.scenario)
    protocol = run.scenario["protocol"]
    rows = run.iterations[run.iterations.iteration >= skip]
    if rows.empty:
        raise AnalysisError(f"{path}: has no iteration from the {skip}th on")
    times = Times((rows.end_ns - rows.begin_ns).mean() * 1e-9, (rows.computed_ns - rows.begin_ns).mean() * 1e-9,
                  rows.waited_ns.mean() * 1e-9,
                  0 if protocol["name"] == "no-comm" else exposed_seconds(run.iterations, skip))
    if protocol["name"] in ("allreduce", "delayed"):
        times.sum = sum_seconds(run.layers, skip)
    return label_of(protocol), times


def together(runs):
    """Means of the runs of each label."""
    found = {}
    for label, times in runs:
        found.setdefault(label, []).append(times)
    return {label: Times(*(None if None in column else sum(column) / len(column)
                           for column in zip(*map(astuple, several), strict=True)))
            for label, several in found.items()}


def cell(value, scale=1e3):
    return "" if value is None or pd.isna(value) else f"{scale * value:.1f}"


def table(found):
    print("| protocol | iteration | gradient | waited | exposed | a sum | hidden (%) | saved (%) |")
    print("|---|" + "---:|" * 7)
    sync = found.get("allreduce")
    for label, it in found.items():
        compared = sync is not None and label not in ("no-comm", "allreduce")
        hidden = 1 - it.exposed / sync.exposed if compared and sync.exposed > 0 else None
        saved = 1 - it.waited / sync.waited if compared and sync.waited > 0 else None
        cells = [cell(it.iteration), cell(it.gradient), cell(it.waited), cell(it.exposed), cell(it.sum),
                 cell(hidden, 100), cell(saved, 100)]
        print(f"| {label} | " + " | ".join(cells) + " |")


def launch(options):
    """Makes the runs; their folders."""
    paths = []
    for number, (label, protocol) in itertools.product(range(options.repeat), PROTOCOLS.items()):
        path = Path(options.out) / (label.replace(" ", "-") + (f"-{number + 1}" if options.repeat > 1 else ""))
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
    parser.add_argument("--repeat", type=int, default=1, help="runs of each protocol")
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
        table(together(measure(path, options.skip) for path in paths))
    except AnalysisError as error:
        print(f"agd_hidden.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
