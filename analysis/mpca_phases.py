#!/usr/bin/python3
"""What averaging in phases (Langer et al. 2018, MPCA SGD) does on the cluster of that paper, in simulation.

    analysis/mpca_phases.py phases        cycles, the driver's link and the workers' devices, by phases and workers
    analysis/mpca_phases.py stragglers    what slow workers do to a mean and to a stage
    analysis/mpca_phases.py means DIR     plain mean against weighted, and gamma, of scenarios/sweeps/mpca-means.json
    analysis/mpca_phases.py errors DIR    errors at equal times, of scenarios/sweeps/mpca-fashion.json, run with --keep

They print tables for docs/validation.md. The link's use is bytes that the driver sends, or receives (servers.csv), over
what the link could have carried meanwhile. Exit status 2, with one line, where the input is wrong.
"""

import argparse
import json
import sys
from itertools import combinations

from mpca_runs import PUBLISHED, ROOT, computing, run
from pandas import Series
from rubato_analysis import AnalysisError, load_sweep
from rubato_analysis.statistics import half_width

BANDWIDTH = 125e6  # bytes/s a direction, of the scenario
CYCLES = 60
TIMES = (25, 50, 100)  # virtual seconds
SCATTER = 0.1  # of compute times among stragglers: without any, steps of workers that are alike end at one moment
# MiB of the first fully connected layer (25,088 x 4,096 weights) and of the rest: the shards of the paper.
VGG_LAYERS = [392, 99]


def seconds(column):
    return column.astype("float64") / 1e9


def stages(rounds):
    """{name: mean seconds} of the cycle, the interval of a shard, and what lies between its reduce and its broadcast.

    Rounds that were cut short by the end, and the first shards of all, which nobody has reduced, are left out.
    """
    whole = rounds[rounds.broadcast_end_ns.notna()].sort_values("reduce_begin_ns").iloc[3:]
    begin, end = seconds(whole.reduce_begin_ns), seconds(whole.broadcast_end_ns)
    own = begin.groupby(whole["shard"]).apply(lambda times: times.diff().mean())
    return {"cycle": float(begin.diff().mean()), "interval": float(own.mean()), "delay": float((end - begin).mean())}


def link(servers, time_s):
    """(out, in): parts of what the driver's link could have carried."""
    driver = servers[servers.role == 0].iloc[0]
    return tuple(float(count) / (BANDWIDTH * time_s) for count in (driver.bytes_out, driver.bytes_in))


def reduces(rounds):
    """Seconds of each reduce, from the word to the workers until the driver has the mean."""
    return (seconds(rounds.reduce_end_ns) - seconds(rounds.reduce_begin_ns)).iloc[3:]


def weights(exchanges, slow):
    """(of a slow worker, of another one): mean parts of the steps behind a mean, the first cycles left out."""
    later = exchanges[exchanges.cycle >= 6]
    part = later.steps / later.groupby("cycle").steps.transform("sum")
    return float(part[later.worker.isin(slow)].mean()), float(part[~later.worker.isin(slow)].mean())


def ci95(values):
    """(mean, half width of its 95 % confidence interval) of a series."""
    return float(values.mean()), half_width(float(values.std()), len(values))


def paired(one, other):
    """The same of one - other, series by seed."""
    if sorted(one.index) != sorted(other.index):
        raise AnalysisError("two settings have not the same seeds")
    return ci95(one - other.reindex(one.index))


def phases(program, rows):
    print("| model | workers | phases | shards | cycle (s) | update of a shard every (s) | its way, reduce to "
          "broadcast (s) | driver sends | driver receives | workers compute |")
    print("|---|---:|---:|---|---:|---:|---:|---:|---:|---:|")
    cases = [(number, "even", {}) for number in (1, 2, 3)]
    for row in rows:
        by_layers = [(2, "first fc layer, rest", {"sizes": VGG_LAYERS})] if row["model"] == "VGG-A" else []
        for workers in (2, 4, 8):
            for number, said, more in cases + by_layers:
                sets = {"protocol": {"name": "mpca", "phases": number, **more}, "workers.count": workers,
                        "stop.updates": CYCLES, "trace.gradients": True}
                it = run(program, row, sets, ("rounds", "servers", "gradients"))
                means, used = stages(it.rounds), link(it.servers, it.summary["time_s"])
                shards = said if number > 1 else "one"
                print(f"| {row['model']} | {workers} | {number} | {shards} | {means['cycle']:.2f} | "
                      f"{means['interval']:.2f} | {means['delay']:.2f} | {100 * used[0]:.0f} % | "
                      f"{100 * used[1]:.0f} % | {100 * computing(it, workers):.1f} % |", flush=True)


def longest_wait(exchanges, workers):
    """Seconds from the word until the step under way is done, the most that one of these workers took."""
    later = exchanges[(exchanges.cycle >= 6) & exchanges.worker.isin(workers)]
    return float((seconds(later.begin_ns) - seconds(later.asked_ns)).max())


def stragglers(program, rows):
    print("| model | three of 8 workers | weight of a slow one | of another | by speeds | its longest step (s) | "
          "longest wait for its end (s) | reduce longer (s): mean | longest | cycle (s) | workers compute |")
    print("|---|---|---:|---:|---|---:|---:|---:|---:|---:|---:|")
    slow = [5, 6, 7]
    for row in rows:
        alike = None
        for factor in (1, 2, 4, 16):
            sets = {"protocol": {"name": "mpca", "phases": 3}, "stop.updates": CYCLES, "trace.gradients": True,
                    "workers.slow": {str(worker): factor for worker in slow}, "cluster.noise.lognormal_cv": SCATTER}
            it = run(program, row, sets, ("rounds", "exchanges", "gradients"))
            lengths, (part, other) = reduces(it.rounds), weights(it.exchanges, slow)
            alike = float(lengths.mean()) if alike is None else alike
            own = it.gradients[it.gradients.worker.isin(slow) & it.gradients.end_ns.notna()]
            step = float((seconds(own.end_ns) - seconds(own.begin_ns)).max())
            ideal = 100 / (5 * factor + 3)
            said = "as fast as others" if factor == 1 else f"{factor} times as slow"
            print(f"| {row['model']} | {said} | {100 * part:.1f} % | {100 * other:.1f} % | {ideal:.1f} %, "
                  f"{factor * ideal:.1f} % | {step:.3f} | {longest_wait(it.exchanges, slow):.3f} | "
                  f"{lengths.mean() - alike:.3f} | {lengths.max() - alike:.3f} | {stages(it.rounds)['cycle']:.3f} | "
                  f"{100 * computing(it, 8):.1f} % |", flush=True)


def means(folder):
    """Of the sweep: test errors, and paired differences to the setting that the paper has."""
    sweep = load_sweep(folder)
    report = sweep.report[sweep.report.status == "finished"]
    error = {label: 100 * of.set_index("seed").test_error for label, of in report.groupby("label", sort=False)}
    rate = report.groupby("label")["optimizer.learning_rate"].first()
    pairs = (("plain mean, 3 slow", "weighted mean, 3 slow"), ("plain mean, alike", "weighted mean, alike"),
             ("gamma 0, alike", "weighted mean, alike"), ("gamma 0, 3 slow", "weighted mean, 3 slow"))
    print("| setting | rate | test error (%) | seeds |")
    print("|---|---:|---:|---:|")
    for label, values in error.items():
        mean, half = ci95(values)
        print(f"| {label} | {rate[label]:g} | {mean:.2f} ± {half:.2f} | {len(values)} |")
    differences(error, pairs)


def differences(error, pairs):
    """Table of one less the other, error having a series by seed of each label."""
    print("\n| difference, paired by seed | percentage points |")
    print("|---|---:|")
    for one, other in pairs:
        mean, half = paired(error[one], error[other])
        print(f"| {one} less {other} | {mean:+.2f} ± {half:.2f} |")


def compared(labels):
    """Pairs of the comparison: all of those that average, async with mpca, and without what messages cost with that."""
    averaging = [label for label in labels if not label.startswith("async")]
    pairs = [(one, other) for other, one in combinations(averaging, 2)]
    more = (("async", "mpca"), ("async, free messages", "async"))
    return pairs + [pair for pair in more if set(pair) <= set(labels)]


def last_error(evals, seconds_):
    """Test error in per cent of the newest model that was evaluated by then."""
    return 100 * float(evals[evals.time_ns <= 1e9 * seconds_].test_error.iloc[-1])


def errors(folder):
    """Of each setting at equal virtual times, with what its workers did meanwhile.

    The last column is of the final models: their evaluation has the time at which the last message had come.
    """
    sweep = load_sweep(folder)
    report = sweep.report[sweep.report.status == "finished"]
    print("| protocol | rate | " + " | ".join(f"error at {time} s (%)" for time in TIMES)
          + " | at the end (%) | epochs | workers compute | seeds |")
    print("|---|---:|" + "---:|" * len(TIMES) + "---:|---:|---:|---:|")
    for label, of in report.groupby("label", sort=False):
        runs = [sweep.run(point) for point in of.point]
        cells = []
        for time in TIMES:
            mean, half = ci95(Series([last_error(run.evals, time) for run in runs]))
            cells.append(f"{mean:.2f} ± {half:.2f}")
        mean, half = ci95(100 * of.test_error)
        cells.append(f"{mean:.2f} ± {half:.2f}")
        print(f"| {label} | {of['optimizer.learning_rate'].iloc[0]:g} | {' | '.join(cells)} | {of.epochs.mean():.1f} | "
              f"{100 * of.compute_utilization.mean():.1f} % | {len(of)} |")
    error = {label: 100 * of.set_index("seed").test_error for label, of in report.groupby("label", sort=False)}
    differences(error, compared(list(error)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", choices=("phases", "stragglers", "means", "errors"), help="what to print")
    parser.add_argument("sweep", nargs="?", help="means, errors: the folder that the sweep has left")
    parser.add_argument("--rubato", default=str(ROOT / "build/rubato"), help="the program (default: build/rubato)")
    options = parser.parse_args()
    of_sweep = {"means": means, "errors": errors}
    if (options.table in of_sweep) != (options.sweep is not None):
        parser.error("expected a folder with means and errors, and with nothing else")
    try:
        rows = json.loads(PUBLISHED.read_text(encoding="utf-8"))["rows"][:2]
        if options.table in of_sweep:
            of_sweep[options.table](options.sweep)
        else:
            {"phases": phases, "stragglers": stragglers}[options.table](options.rubato, rows)
    except (AnalysisError, OSError, KeyError, ValueError) as error:
        print(f"mpca_phases: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
