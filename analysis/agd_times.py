#!/usr/bin/env python3
"""Batches a second without a server, as Figure 1 of Daily, Vishnu and Siegel (2016), on two modelled clusters.

    analysis/agd_times.py [--program build/rubato] [-o docs/figures/agd.png]
    analysis/agd_times.py --errors DIR [-o docs/figures/agd-early.png]    of scenarios/sweeps/agd-early.json, --keep

Prints a table for docs/validation.md: what an iteration takes under each protocol, for 1 to 8 devices that share an
effective batch, the speed-up of delayed over synchronous sums, and the parallel efficiency. Timing only: nothing is
fitted, and no figure of the paper is used but the effective batches. The data of a figure goes beside it, as CSV.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from mpca_phases import ci95, paired
from pandas import Series
from rubato_analysis import AnalysisError, load, load_sweep
from rubato_analysis.figure import Data, new_figure, save

ROOT = Path(__file__).resolve().parent.parent
NETS = {"alexnet": ("AlexNet", 256), "googlenet": ("GoogLeNet", 32)}
CLUSTERS = {"dgx1": "DGX-1-like", "cluster": "Sandy Bridge, InfiniBand"}
DEVICES = (1, 2, 4, 8)
DELAYS = (1, 2, 3)
PROTOCOLS = {
    "sync": {"name": "allreduce"},
    "layer-wise (a)": {"name": "layer-wise", "apply": "wait-all"},
    "layer-wise (b)": {"name": "layer-wise", "apply": "backprop-order"},
    "layer-wise (c)": {"name": "layer-wise", "apply": "completion-order"},
    "layer-wise (b), 4 MB": {"name": "layer-wise", "apply": "backprop-order", "bucket_bytes": "4MB"},
    "delayed 1": {"name": "delayed", "delay": 1},
    "delayed 2": {"name": "delayed", "delay": 2},
    "delayed 3": {"name": "delayed", "delay": 3},
    "no-comm": {"name": "no-comm"},
}
COLORS = ["#000000", "#56B4E9", "#0072B2", "#004C6D", "#999999", "#E69F00", "#D55E00", "#CC79A7", "#009E73"]


def period_s(program, scenario, devices, batch, protocol):
    """Seconds between two versions, without the first ten and those near the end, when delayed sums are drained."""
    with tempfile.TemporaryDirectory(prefix="rubato-") as folder:
        out = Path(folder) / "run"
        sets = {"workers.count": devices, "workers.batch_size": batch // devices, "protocol": protocol}
        command = [program, "run", scenario, "--quiet", "--out", out]
        for key, value in sets.items():
            command += ["--set", f"{key}={json.dumps(value)}"]
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise AnalysisError((done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1])
        times = load(out).updates.time_ns
    inner = times.iloc[9 : -1 - max(DELAYS)]
    return float(inner.iloc[-1] - inner.iloc[0]) * 1e-9 / (len(inner) - 1)


def measure(program, devices=DEVICES):
    """{(net, cluster): {devices: {protocol: seconds}}}."""
    found = {}
    for net, (_, batch) in NETS.items():
        for cluster in CLUSTERS:
            scenario = ROOT / f"scenarios/papers/agd-{net}-{cluster}.json"
            found[net, cluster] = {
                n: {name: period_s(program, scenario, n, batch, protocol) for name, protocol in PROTOCOLS.items()}
                for n in devices}
    return found


def table(found):
    print("| net, cluster | devices | " + " | ".join(f"{name} (ms)" for name in PROTOCOLS) +
          " | best delayed / sync | efficiency of the best |")
    print("|---|---:|" + "---:|" * (len(PROTOCOLS) + 2))
    for (net, cluster), by_devices in found.items():
        alone = by_devices[1]["no-comm"]
        for n, times in by_devices.items():
            best = min(times[f"delayed {k}"] for k in DELAYS)
            cells = " | ".join(f"{1e3 * times[name]:.2f}" for name in PROTOCOLS)
            print(f"| {NETS[net][0]}, {CLUSTERS[cluster]} | {n} | {cells} | {times['sync'] / best:.2f} | "
                  f"{100 * alone / (n * best):.0f} % |")


def errors(folder, path):
    """Of the sweep: test errors in the first epoch, by checkpoint, and at the end; paired differences to sync."""
    figure, (ax,) = new_figure(1, 1, 6, 4)
    data = Data()
    sweep = load_sweep(folder)
    report = sweep.report[sweep.report.status == "finished"]
    first, last = {}, {}
    columns = ["protocol", *(f"{k}/6 epoch (%)" for k in range(1, 7)), "mean of these (%)", "at the end (%)"]
    print("| " + " | ".join(columns) + " |")
    print("|---|" + "---:|" * 8)
    for label, of in report.groupby("label", sort=False):
        evals = [sweep.run(point).evals for point in of.point]
        curve(ax, data, label, evals)
        tables = [100 * table.test_error.iloc[1:7].reset_index(drop=True) for table in evals]
        first[label] = Series([table.mean() for table in tables], index=of.seed)
        last[label] = Series(100 * of.test_error.to_numpy(), index=of.seed)
        checkpoints = [Series([table[k] for table in tables]) for k in range(6)]
        cells = [ci95(values) for values in (*checkpoints, first[label], last[label])]
        print(f"| {label} | " + " | ".join(f"{mean:.2f} ± {half:.2f}" for mean, half in cells) + " |")
    print()
    print("| difference, paired by seed | mean of the first epoch (points) | at the end (points) |")
    print("|---|---:|---:|")
    for one, other in (("delayed 1", "sync"), ("delayed 2", "sync"), ("delayed 2", "delayed 1")):
        cells = [paired(of[one], of[other]) for of in (first, last)]
        print(f"| {one} - {other} | " + " | ".join(f"{mean:+.2f} ± {half:.2f}" for mean, half in cells) + " |")
    if path:
        ax.set(xlabel="epoch", ylabel="test error (%)", title="The first epochs: mean and 95 % confidence interval")
        ax.legend()
        save(figure, data, path, ["analysis/agd_times.py", "--errors", folder], "Errors in the first epochs")


def curve(ax, data, label, evals):
    """The mean of the seeds at each checkpoint, and a band of its ci95."""
    count = min(len(table) for table in evals)
    epochs = evals[0].epoch.iloc[1:count].to_numpy()
    bands = [ci95(Series([100 * table.test_error.iloc[k] for table in evals])) for k in range(1, count)]
    color = COLORS[list(PROTOCOLS).index(label)]
    means, low, high = ([mean + sign * half for mean, half in bands] for sign in (0, -1, 1))
    data.add("test_error", label, "", epochs, means, low=low, high=high, n=len(evals))
    ax.plot(epochs, means, marker="o", markersize=3, color=color, label=label)
    ax.fill_between(epochs, low, high, color=color, alpha=0.25, linewidth=0)


def draw(found, path):
    figure, axes = new_figure(len(found), 1, 8, 3.0 * len(found))
    data = Data()
    for ax, ((net, cluster), by_devices) in zip(axes, found.items()):
        width = 0.8 / len(PROTOCOLS)
        for place, (name, color) in enumerate(zip(PROTOCOLS, COLORS)):
            heights = [1 / times[name] for times in by_devices.values()]
            data.add(f"{net}, {cluster}", name, "", by_devices, heights)
            ax.bar([i - 0.4 + width * (place + 0.5) for i in range(len(by_devices))], heights, width, color=color,
                   label=name)
        ax.set_xticks(range(len(by_devices)), [str(n) for n in by_devices])
        ax.set(xlabel="devices", ylabel="batches/s", title=f"{NETS[net][0]}, {CLUSTERS[cluster]}")
    axes[0].legend(ncols=4, fontsize=7)
    save(figure, data, path, ["analysis/agd_times.py"], "Batches a second without a server")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default=ROOT / "build/rubato")
    parser.add_argument("-o", "--output", help="where the figure goes")
    parser.add_argument("--errors", metavar="DIR", help="the folder that the sweep of the first epochs has left")
    options = parser.parse_args()
    try:
        if options.errors:
            errors(options.errors, options.output)
            return 0
        found = measure(options.program)
    except AnalysisError as error:
        print(f"agd_times.py: {error}", file=sys.stderr)
        return 1
    table(found)
    if options.output:
        draw(found, options.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
