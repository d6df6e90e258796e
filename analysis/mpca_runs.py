"""Simulated runs on the cluster of Langer et al. (2018), and the arithmetic of their tables.

What mpca_times.py and mpca_phases.py share. A *row* is one of analysis/data/mpca.json: a model's MiB, batch and step_s.
"""

import json
import subprocess
import tempfile
from pathlib import Path

from rubato_analysis import AnalysisError, load

ROOT = Path(__file__).resolve().parent.parent
SCENARIO = ROOT / "scenarios/papers/mpca-table1.json"
PUBLISHED = ROOT / "analysis/data/mpca.json"
MIB = 2**20


def sets_of(row):
    """Keys of the scenario that make it the row's model."""
    size = f"{row['MiB']}MiB"
    return {"cost.push_bytes": size, "cost.pull_bytes": size, "workers.batch_size": row["batch"],
            "cluster.devices.default.seconds": {str(row["batch"]): row["step_s"]}}


def run(program, row, sets, tables=("rounds",)):
    """The scenario with the row's model, run; of its tables those that are named, and the summary, are in memory."""
    with tempfile.TemporaryDirectory(prefix="rubato-") as folder:
        out = Path(folder) / "run"
        command = [program, "run", SCENARIO, "--quiet", "--out", out]
        for key, value in {**sets_of(row), **sets}.items():
            command += ["--set", f"{key}={value if isinstance(value, str) else json.dumps(value)}"]
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            said = done.stderr.strip().splitlines()
            raise AnalysisError(said[-1] if said else f"rubato failed, exit status {done.returncode}")
        it = load(out)
        for name in ("summary", *tables):
            getattr(it, name)
    if it.summary["status"] != "finished":
        raise AnalysisError(f"a run ended as {it.summary['status']}: {it.summary['status_detail']}")
    return it


def busy_share(begin, end, window, workers):
    """Part of the workers' time in the window (a pair) that lies in the stretches from begin to end."""
    first, last = window
    inside = end.clip(upper=last) - begin.clip(lower=first)
    return float(inside.clip(lower=0).sum()) / (workers * (last - first))


def middle(seconds):
    """Without the beginning, when queues form, and the end: the middle three fifths of so many seconds, in ns."""
    return 0.2e9 * seconds, 0.8e9 * seconds


def computing(it, workers):
    """Part of the workers' time in the middle of a run in which they take steps."""
    steps = it.gradients[it.gradients.end_ns.notna()]
    window = middle(it.summary["time_s"])
    return busy_share(steps.begin_ns.astype("float64"), steps.end_ns.astype("float64"), window, workers)


def suggested_tau(exchange_s, step_s):
    """Of the paper, whose four rows follow it: the exchange is then a sixth of the time."""
    return round(5 * exchange_s / step_s)


def smallest(holds, low=0, high=1):
    """The smallest whole number above low that holds, where whatever is larger than one that holds does, too."""
    while not holds(high):
        low, high = high, 2 * high
    while high - low > 1:
        at = (low + high) // 2
        low, high = (low, at) if holds(at) else (at, high)
    return high


def newton(error, start, steps, close=1e-4, turns=12):
    """The pair at which a pair of errors, smooth in both, is below `close`; slopes by differences of `steps`."""
    (x, y), (dx, dy) = start, steps
    for _ in range(turns):
        at = error(x, y)
        if max(map(abs, at)) < close:
            return x, y
        by_x = [(new - old) / dx for new, old in zip(error(x + dx, y), at)]
        by_y = [(new - old) / dy for new, old in zip(error(x, y + dy), at)]
        slope = by_x[0] * by_y[1] - by_y[0] * by_x[1]
        x -= (at[0] * by_y[1] - by_y[0] * at[1]) / slope
        y -= (by_x[0] * at[1] - at[0] * by_x[1]) / slope
    raise AnalysisError(f"no costs were found that give the fitted rows: still off by {max(map(abs, at)):.3g} s")
