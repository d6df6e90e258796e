#!/usr/bin/python3
"""Exchange times, intervals and utilisation on the cluster of Langer et al. (2018), as the simulator predicts them.

    analysis/mpca_times.py            prints two tables for docs/validation.md
    analysis/mpca_times.py --fit      first fits the two costs of scenarios/papers/mpca-table1.json

Two parameters are free, the seconds that a message takes beside the network and those for each of its bytes, and two
published rows decide them (`fitted` in analysis/data/mpca.json); all else are predictions. Exit status 2, with one
line, where the input is wrong.
"""

import argparse
import json
import re
import sys

from mpca_runs import MIB, PUBLISHED, ROOT, SCENARIO, computing, newton, run, smallest, suggested_tau
from rubato_analysis import AnalysisError

SWEEP_BASE = ROOT / "scenarios/sweeps/mpca-fashion-base.json"
MARGIN = 1.3  # of the paper, over EASGD's least tau
NEARLY = 0.95  # of what a worker computes that has the server for itself
WORKERS = 8
SHARDS = {"name": "sharded", "shards": WORKERS, "split": "bytes", "servers_on": "workers"}
COSTS = ("cluster.exchange.send_s", "cluster.exchange.send_s_per_byte")


def period_s(program, row, tau, more=None):
    """Seconds from one joint model to the next under sparknet, without the first two, which begin otherwise."""
    it = run(program, row, {"protocol": {"name": "sparknet", "tau": tau}, **(more or {})})
    return float(it.rounds.prepare_end_ns.astype("int64").diff().iloc[2:].mean()) / 1e9


def exchange_s(program, row, costs=None):
    """Seconds of a round of one step, less the step: broadcast, reduce and what the driver does."""
    return period_s(program, row, 1, costs) - row["step_s"]


def elastic(program, row, tau, workers=WORKERS):
    """Part of the workers' time in which they take steps under EASGD."""
    sets = {"protocol": {"name": "easgd", "tau": tau}, "workers.count": workers, "stop.updates": 25 * workers,
            "trace.gradients": True}
    return computing(run(program, row, sets, ("gradients",)), workers)


def stall_s(program, row):
    """Seconds for which a worker alone stops for its exchange under EASGD, in which nobody is in its way."""
    tau = 100
    return tau * row["step_s"] * (1 / elastic(program, row, tau, 1) - 1)


def least_tau(program, row):
    """The smallest tau under which EASGD's workers compute nearly as much as a worker alone with the same tau.

    Below it the server's messages are never at an end, and workers queue for them.
    """
    return smallest(lambda tau: elastic(program, row, tau) >= NEARLY * elastic(program, row, tau, 1))


def costs_of_scenario():
    exchange = json.loads(SCENARIO.read_text(encoding="utf-8"))["cluster"]["exchange"]
    return exchange["send_s"], exchange["send_s_per_byte"]


def at_servers():
    """The fitted costs as costs of the servers, which the topology `sharded` charges."""
    each, per_byte = costs_of_scenario()
    return {"cluster.server": {"push_s": each, "push_s_per_byte": per_byte, "pull_s": each,
                               "pull_s_per_byte": per_byte}}


def sharded(program, row, protocol, more=None):
    """(seconds of a step beyond its computation, samples/s) with a shard of the servers beside each worker."""
    sets = {"protocol": {"name": protocol}, "topology": SHARDS, "stop": {"gradients": 50 * WORKERS},
            "trace.gradients": True, **(more or {})}
    it = run(program, row, sets, ("gradients",))
    steps = it.gradients[it.gradients.outcome == "applied"].sort_values(["worker", "worker_seq"])
    cycles = steps.groupby("worker").begin_ns.apply(lambda begin: begin.astype("int64").diff().iloc[10:].mean())
    return float(cycles.mean()) / 1e9 - row["step_s"], it.summary["throughput"]["steady_samples_per_s"]


def pulls(program, row):
    """Steps of a worker between two updates of a shard in three phases, and those that drew it to the joint model."""
    sets = {"protocol": {"name": "mpca", "phases": 3}, "stop.updates": 60}
    it = run(program, row, sets, ("rounds", "exchanges"))
    later = it.exchanges[it.exchanges.cycle >= 9]
    return float(later.steps.mean()), float(later.pulls.mean())


def fit(program, rows):
    """Puts the costs into the texts of the scenarios, so that its comments and layout stay."""
    def error(each, per_byte):
        sets = dict(zip(COSTS, (each, per_byte)))
        return [exchange_s(program, row, sets) - row["exchange_s"] for row in rows]

    fitted = newton(error, costs_of_scenario(), (1e-3, 1e-10))
    for path in (SCENARIO, SWEEP_BASE):
        text = path.read_text(encoding="utf-8")
        for key, value in zip(COSTS, fitted):
            name = key.rsplit(".", maxsplit=1)[-1]
            text = re.sub(rf'("{name}": )[-+.e0-9]+', rf"\g<1>{float(f'{value:.4g}')!r}", text)
        path.write_text(text, encoding="utf-8")


def percent(share):
    return f"{100 * share:.1f} %"


def models(program, rows):
    """The first table: a row a model."""
    print("| model | MiB | exchange (s) | published | suggested tau | published | EASGD stalls for (s) | "
          "K stall / step | + 30 % | least tau | + 30 % |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    for row in rows:
        seconds, stall, least = exchange_s(program, row), stall_s(program, row), least_tau(program, row)
        formula = WORKERS * stall / row["step_s"]
        told = f"{row['exchange_s']} (fitted on)" if row.get("fitted") else ""
        print(f"| {row['model']} | {row['MiB']:g} | {seconds:.2f} | {told} | {suggested_tau(seconds, row['step_s'])} | "
              f"{row.get('tau', '')} | {stall:.2f} | {formula:.1f} | {MARGIN * formula:.1f} | {least} | "
              f"{MARGIN * least:.1f} |", flush=True)


def others(program, rows):
    """The second table: a row a prediction."""
    by_name = {row["model"]: row for row in rows}
    small, large = by_name["ResNet-110"], by_name["VGG-A"]
    print("| what | predicted |")
    print("|---|---:|")
    formula = WORKERS * stall_s(program, large) / large["step_s"]
    least = (round(MARGIN * least_tau(program, large)), round(MARGIN * formula))
    for name, tau in (("ResNet-110", 20), ("ResNet-152", 50), ("VGG-A", least[0]), ("VGG-A", least[1])):
        print(f"| EASGD's compute utilization, {name}, tau {tau} | {percent(elastic(program, by_name[name], tau))} |")
    for row in (small, large):
        tau = suggested_tau(exchange_s(program, row), row["step_s"])
        share = tau * row["step_s"] / period_s(program, row, tau)
        print(f"| compute utilization of the synchronous approach, {row['model']}, tau {tau} (suggested) | "
              f"{percent(share)} |")
    busy = 100 * large["step_s"]
    print(f"| idle share of the synchronous approach, VGG-A, tau 100 | "
          f"{percent(1 - busy / period_s(program, large, 100))} |")
    print(f"| the same by tau c / (tau c + m) | {percent(1 - busy / (busy + exchange_s(program, large)))} |")
    steps, drawn = pulls(program, small)
    print(f"| steps of a worker between two updates of a shard, ResNet-110, mpca in 3 phases | {steps:.1f} |")
    print(f"| of these drawn towards the joint model (penalties) | {drawn:.1f} |")
    alone = 2 * (WORKERS - 1) / WORKERS * small["MiB"] * MIB / 125e6
    print(f"| 7/8 of ResNet-110 out and in over 1 Gb/s, one after the other, by hand (s) | {alone:.3f} |")
    readings = (("", {}), (", compute times scatter by 0.1", {"cluster.noise.lognormal_cv": 0.1}),
                (", fitted costs at the servers", at_servers()))
    for said, more in readings:
        print(f"| MXNet, async: remote exchange of ResNet-110, 8 shards beside workers{said} (s) | "
              f"{sharded(program, small, 'async', more)[0]:.3f} |")
    for said, more in readings:
        print(f"| MXNet, synchronous: VGG-A, 8 shards beside workers{said} (samples/s) | "
              f"{sharded(program, large, 'hardsync', more)[1]:.1f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rubato", default=str(ROOT / "build/rubato"), help="the program (default: build/rubato)")
    parser.add_argument("--fit", action="store_true", help="fit the two costs anew")
    options = parser.parse_args()
    try:
        rows = json.loads(PUBLISHED.read_text(encoding="utf-8"))["rows"]
        if options.fit:
            fit(options.rubato, [row for row in rows if row.get("fitted")])
        models(options.rubato, rows)
        print()
        others(options.rubato, rows)
    except (AnalysisError, OSError, KeyError, ValueError) as error:
        print(f"mpca_times: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
