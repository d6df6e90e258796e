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
GRADIENTS = 500_000
ROUNDS = 5


def run(rubato, workers, out, trace=False):
    """Messages a second and peak memory in MB of one process."""
    command = [rubato, "run", SCENARIO, "--quiet", "--force", "--out", out, "--set", f"workers.count={workers}",
               "--set", f"stop.gradients={GRADIENTS}", "--set", f"trace.gradients={str(trace).lower()}"]
    begin = time.perf_counter()
    child = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    seconds = time.perf_counter() - begin
    if status != 0:
        raise SystemExit(f"messages.py: the run with {workers} workers ended with status {status}")
    summary = json.loads((pathlib.Path(out) / "summary.json").read_text())
    return summary["traffic"]["messages"] / seconds, usage.ru_maxrss / 1024


def say(name, value, target, detail):
    print(json.dumps({"name": name, "value": round(value, 3), "target": target, "detail": detail}), flush=True)


def main():
    rubato = str(pathlib.Path(sys.argv[1]).resolve())
    targets = {30: 300_000, 1_000: 300_000, 10_000: 250_000}
    with tempfile.TemporaryDirectory() as scratch:
        for workers, target in targets.items():
            pairs = [(run(rubato, workers, scratch + "/plain"), run(rubato, workers, scratch + "/rows", True))
                     for _ in range(ROUNDS)]
            rates = [plain[0] for plain, _ in pairs]
            say(f"messages/s, {workers:,} workers", max(rates), f">= {target:,}",
                f"whole process, fastest of {ROUNDS} (median {statistics.median(rates):,.0f}); {GRADIENTS:,} gradients")
            say(f"rate with gradients.csv / without, {workers:,} workers",
                statistics.median(rows[0] / plain[0] for plain, rows in pairs), ">= 0.7", f"median of {ROUNDS} pairs")
            say(f"peak memory in MB, {workers:,} workers", max(plain[1] for plain, _ in pairs),
                "<= 100" if workers == 10_000 else "", "")


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    main()
