#!/usr/bin/python3
"""Exchange times, suggested and least tau, and utilisation on the cluster of Langer et al. (2018), simulated.

    analysis/mpca_times.py [--rubato PROGRAM]          prints a table for docs/validation.md
    analysis/mpca_times.py --fit [--rubato PROGRAM]    first fits the two costs of scenarios/papers/mpca-table1.json

Two parameters are free, the seconds that a message takes beside the network and those for each of its bytes, and two
published rows decide them (`fitted` in analysis/data/mpca.json); all else are predictions. Exit status 2, with one
line, where the input is wrong.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from rubato_analysis import AnalysisError, load

ROOT = Path(__file__).resolve().parent.parent
SCENARIO = ROOT / "scenarios/papers/mpca-table1.json"
PUBLISHED = ROOT / "analysis/data/mpca.json"
MARGIN = 1.3  # of the paper, over EASGD's least tau


def run(program, row, sets):
    """The run directory of the scenario with the row's model, loaded, and its summary."""
    with tempfile.TemporaryDirectory() as folder:
        size = f"{row['MiB']}MiB"
        keys = {"cost.push_bytes": size, "cost.pull_bytes": size, "workers.batch_size": row["batch"],
                "cluster.devices.default.seconds": json.dumps({str(row["batch"]): row["step_s"]})} | sets
        command = [program, "run", SCENARIO, "--quiet", "--out", Path(folder) / "run"]
        for key, value in keys.items():
            command += ["--set", f"{key}={value}"]
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise AnalysisError(done.stderr.strip().splitlines()[-1] if done.stderr else "rubato failed")
        it = load(Path(folder) / "run")
        return it, it.rounds, it.workers


def exchange_s(program, row, costs=None):
    """Seconds of a round of one step, less the step: broadcast, reduce and what the driver does."""
    sets = {"protocol.tau": 1} | (costs or {})
    _, rounds, _ = run(program, row, sets)
    ends = rounds.prepare_end_ns.astype("int64")
    return float(ends.diff().iloc[2:].mean()) / 1e9 - row["step_s"]


def utilization(program, row, protocol, tau, more=None):
    """Part of the workers' time in which they compute, without the first fifth of a run of some exchanges."""
    sets = {"protocol.name": protocol, "protocol.tau": tau, "stop.updates": 25 * 8 if protocol == "easgd" else 12}
    _, _, workers = run(program, row, sets | (more or {}))
    columns = [name for name in workers if name.endswith("_s") and name != "compute_s"]
    total = workers.compute_s.sum() + sum(workers[name].sum() for name in columns)
    return float(workers.compute_s.sum() / total)


def least_tau(program, row):
    """The smallest tau under which EASGD's workers compute nearly as much as with ten times as many steps.

    Below it the driver's link and its serialisation are never idle, and workers queue for them.
    """
    def busy(tau):
        with_tau = utilization(program, row, "easgd", tau)
        # What a download and its own move take of a worker alone cannot be had back by a larger tau.
        return with_tau >= 0.95 * alone(tau)

    def alone(tau):
        return utilization(program, row, "easgd", tau, {"workers.count": 1, "stop.updates": 25})

    low, high = 0, 1
    while not busy(high):
        low, high = high, 2 * high
    while high - low > max(1, high // 50):
        middle = (low + high) // 2
        low, high = (low, middle) if busy(middle) else (middle, high)
    return high


def fit(program, rows):
    """Newton's method on two rows; the exchange time is affine in both costs but for what overlaps."""
    scenario = json.loads(SCENARIO.read_text(encoding="utf-8"))
    costs = scenario["cluster"]["exchange"]
    fixed, per_byte = costs["send_s"], costs["send_s_per_byte"]
    for _ in range(8):
        def error(a, b):
            sets = {"cluster.exchange.send_s": a, "cluster.exchange.send_s_per_byte": b}
            return [exchange_s(program, row, sets) - row["exchange_s"] for row in rows]
        at = error(fixed, per_byte)
        by_fixed = [(new - old) / 1e-3 for new, old in zip(error(fixed + 1e-3, per_byte), at)]
        by_byte = [(new - old) / 1e-10 for new, old in zip(error(fixed, per_byte + 1e-10), at)]
        slope = by_fixed[0] * by_byte[1] - by_byte[0] * by_fixed[1]
        fixed -= (at[0] * by_byte[1] - by_byte[0] * at[1]) / slope
        per_byte -= (by_fixed[0] * at[1] - at[0] * by_fixed[1]) / slope
        if max(map(abs, at)) < 1e-3:
            break
    text = SCENARIO.read_text(encoding="utf-8")
    old = f'"send_s": {json.dumps(costs["send_s"])}, "send_s_per_byte": {json.dumps(costs["send_s_per_byte"])}'
    new = f'"send_s": {float(f"{fixed:.4g}")}, "send_s_per_byte": {float(f"{per_byte:.4g}")}'
    if old not in text:
        raise AnalysisError(f"{SCENARIO}: expected {old}")
    SCENARIO.write_text(text.replace(old, new), encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rubato", default=str(ROOT / "build/rubato"), help="the program (default: build/rubato)")
    parser.add_argument("--fit", action="store_true", help="fit the two costs anew")
    options = parser.parse_args()
    try:
        rows = json.loads(PUBLISHED.read_text(encoding="utf-8"))["rows"]
        if options.fit:
            fit(options.rubato, [row for row in rows if row.get("fitted")])
        print("| model | MiB | exchange s | published | suggested tau | published | EASGD's least tau, with margin |")
        print("|---|---:|---:|---:|---:|---:|---:|")
        for row in rows:
            seconds = exchange_s(options.rubato, row)
            tau = round(5 * seconds / row["step_s"])
            least = MARGIN * least_tau(options.rubato, row)
            fitted = " (fitted on)" if row.get("fitted") else ""
            print(f"| {row['model']} | {row['MiB']:g} | {seconds:.2f} | {row.get('exchange_s', '')}{fitted} | {tau} | "
                  f"{row.get('tau', '')} | {least:.0f} |")
    except (AnalysisError, OSError, KeyError, ValueError) as error:
        print(f"mpca_times: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
