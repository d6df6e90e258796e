#!/usr/bin/python3
"""Messages a second of a simulation, over the wall time of the whole process: messages.py RUBATO.

Messages are pushes and weight deliveries. One JSON object a line. The ratio of a run that writes gradients.csv is taken
between neighbours, as machines change their speed.
"""
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

SCENARIO = pathlib.Path(__file__).with_name("messages.json")
TREE = pathlib.Path(__file__).with_name("tree.json")
TREE_TARGETS = {"simgrid": 200_000, "flow": 1_500_000}
GRADIENTS = {"simgrid": 500_000, "flow": 3_000_000}
ROUNDS = 5
# Messages a second by number of workers.
TARGETS = {"simgrid": {30: 300_000, 1_000: 300_000, 10_000: 250_000},
           "flow": {30: 4_000_000, 1_000: 2_500_000, 10_000: 1_800_000, 100_000: 0}}
MEMORY = {("simgrid", 10_000): "<= 100", ("flow", 100_000): "<= 500"}


def run(rubato, model, workers, out, trace=False, noise=0):
    """Messages a second and peak memory in MB of one process. noise: coefficient of variation of compute times."""
    return timed([rubato, "run", SCENARIO, "--quiet", "--force", "--out", out, "--set", f"workers.count={workers}",
                  "--set", f"stop.gradients={GRADIENTS[model]}", "--set", f"trace.gradients={str(trace).lower()}",
                  "--set", f"cluster.network.model={model}", "--set", f"cluster.noise.lognormal_cv={noise}"], out)


def timed(command, out):
    """Messages a second and peak memory in MB of one process."""
    begin = time.perf_counter()
    child = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    seconds = time.perf_counter() - begin
    if status != 0:
        raise SystemExit(f"messages.py: {' '.join(map(str, command))} ended with status {status}")
    summary = json.loads((pathlib.Path(out) / "summary.json").read_text())
    return summary["traffic"]["messages"] / seconds, usage.ru_maxrss / 1024


def say(name, value, target, detail):
    print(json.dumps({"name": name, "value": round(value, 3), "target": target, "detail": detail}), flush=True)


def measure(rubato, model, workers, scratch):
    """Rates and memory over one network model; tables of rows only over SimGrid, whose rate they could slow down.
    Returns the best rates, without and with noise.
    """
    plain, noisy, ratios = [], [], []
    for _ in range(ROUNDS):
        plain.append(run(rubato, model, workers, scratch + "/plain"))
        noisy.append(run(rubato, model, workers, scratch + "/noisy", noise=0.1)[0])
        if model == "simgrid":
            ratios.append(run(rubato, model, workers, scratch + "/rows", True)[0] / plain[-1][0])
    rates = [rate for rate, _ in plain]
    where = f"{model}, {workers:,} workers"
    target = TARGETS[model][workers]
    say(f"messages/s, {where}", max(rates), f">= {target:,}" if target else "",
        f"whole process, fastest of {ROUNDS} (median {statistics.median(rates):,.0f}); {GRADIENTS[model]:,} gradients")
    say(f"messages/s with noise, {where}", max(noisy), "",
        f"compute times that vary by 0.1; fastest of {ROUNDS} (median {statistics.median(noisy):,.0f})")
    if ratios:
        say(f"rate with gradients.csv / without, {where}", statistics.median(ratios), ">= 0.7",
            f"median of {ROUNDS} pairs")
    say(f"peak memory in MB, {where}", max(memory for _, memory in plain), MEMORY.get((model, workers), ""), "")
    return max(rates), max(noisy)


def measure_tree(rubato, model, scratch):
    """A tree of 10,000 workers; messages of relays count."""
    command = [rubato, "run", TREE, "--quiet", "--force", "--out", scratch, "--set", f"cluster.network.model={model}"]
    plain, noisy = [], []
    for _ in range(ROUNDS):
        plain.append(timed(command, scratch))
        noisy.append(timed([*command, "--set", "cluster.noise.lognormal_cv=0.1"], scratch)[0])
    rates = [rate for rate, _ in plain]
    say(f"messages/s, tree, {model}, 10,000 workers", max(rates), f">= {TREE_TARGETS[model]:,}",
        f"whole process, fastest of {ROUNDS} (median {statistics.median(rates):,.0f}); 100 updates of 1-softsync, "
        "leaves on the hosts of their workers")
    say(f"messages/s with noise, tree, {model}, 10,000 workers", max(noisy), "",
        f"compute times that vary by 0.1; fastest of {ROUNDS} (median {statistics.median(noisy):,.0f})")
    say(f"peak memory in MB, tree, {model}, 10,000 workers", max(memory for _, memory in plain), "", "")


def main():
    rubato = str(pathlib.Path(sys.argv[1]).resolve())
    with tempfile.TemporaryDirectory() as scratch:
        for model in TREE_TARGETS:
            measure_tree(rubato, model, scratch + "/tree")
        for model, targets in TARGETS.items():
            best = {workers: measure(rubato, model, workers, scratch) for workers in targets}
            for noise, what in enumerate(("", " with noise")):
                growth = best[30][noise] / best[10_000][noise]
                say(f"cost of a message at 10,000 workers / at 30{what}, {model}", growth,
                    "<= 2.5" if model == "flow" else "", "")


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    main()
