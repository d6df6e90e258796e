"""Figures of a summary: what they are called, and what one number for several seeds is."""

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import PercentFormatter

from rubato_analysis.errors import AnalysisError
from rubato_analysis.statistics import BAND_NAMES, Spread, spread

TEXTS = {
    "time_s": "training time (s)", "test_error": "test error", "valid_error": "validation error",
    "best_valid_error": "best validation error", "train_loss": "training loss", "valid_loss": "validation loss",
    "test_loss": "test loss", "time_to_target_s": "time to target (s)", "updates_to_target": "updates to target",
    "samples_to_target": "samples to target", "staleness.mean": "mean staleness (versions)",
    "staleness.p99": "staleness, 99th percentile (versions)", "compute_utilization": "compute utilization",
    "throughput.samples_per_s": "throughput (samples/s)", "throughput.gradients_per_s": "throughput (gradients/s)",
    "throughput.updates_per_s": "throughput (updates/s)", "setting.workers": "workers (λ)",
    "throughput.steady_samples_per_s": "steady throughput (samples/s)",
    "optimizer.learning_rate": "learning rate", "workers.count": "workers (λ)",
    "workers.batch_size": "batch size of a worker (μ)", "setting.batch_size": "batch size of a worker (μ)",
    "setting.global_batch": "global batch size (λμ)",
}


def metric_text(name: str) -> str:
    """What an axis says, with its unit."""
    if name in TEXTS:
        return TEXTS[name]
    plain = name.replace(".", " ").replace("_", " ")
    if name.endswith("_per_s"):
        return plain.removesuffix(" per s") + " (1/s)"
    return plain.removesuffix(" s") + " (s)" if name.endswith("_s") else plain


def title_text(name: str) -> str:
    """The same without its unit."""
    return metric_text(name).partition(" (")[0]


def is_fraction(name: str) -> bool:
    """Shown in per cent."""
    return name.endswith("_error") or name in ("compute_utilization", "communication_hidden_fraction")


def format_axis(axis: Axis, name: str) -> None:
    """Errors are fractions in the files and per cent for the eye."""
    if is_fraction(name):
        axis.set_major_formatter(PercentFormatter(1.0, symbol=" %"))


def within_fractions(ax: Axes, name: str) -> None:
    """A confidence interval may reach below 0 % and beyond 100 %; what the eye sees of errors does not."""
    if is_fraction(name):
        low, high = ax.get_ylim()
        ax.set_ylim(max(low, 0.0), min(high, 1.02))


def check_metric(rows: pd.DataFrame, name: str, where: str) -> None:
    """Refuses a figure that no row has."""
    if name in rows and pd.api.types.is_numeric_dtype(rows[name]) and rows[name].notna().any():
        return
    known = [column for column in rows if column in TEXTS and pd.api.types.is_numeric_dtype(rows[column])
             and rows[column].notna().any()]
    what = "is empty" if name in rows else "is no column of the results"
    raise AnalysisError(f"{where}: {name} {what}; there is {', '.join(known) or 'no figure'}")


@dataclass(frozen=True)
class Measured:
    """One setting: a figure over its seeds. Only finished points are in `spread` and `values`."""

    spread: Spread
    values: np.ndarray
    points: int
    diverged: int
    failed: int


def measure(rows: pd.DataFrame, name: str, band: str = "ci95") -> Measured:
    """Of the points of one setting."""
    status = rows.status
    values = rows.loc[status == "finished", name].astype("float64").to_numpy()
    values = values[np.isfinite(values)]
    diverged = int((status == "diverged").sum())
    return Measured(spread(values, band), values, len(rows), diverged, int((status != "finished").sum()) - diverged)


def errors_of(one: Spread) -> tuple[list[float], list[float]] | None:
    """Lengths of an error bar, as matplotlib wants them; None where there is no band."""
    if math.isnan(one.low):
        return None
    return [one.mean - one.low], [one.high - one.mean]


def count_text(counts: list[int]) -> str:
    """`n = 3`, or `n = 2 to 5`."""
    low, high = min(counts, default=0), max(counts, default=0)
    return (f"n = {low}" if low == high else f"n = {low} to {high}").replace(" ", "\u00a0")  # not to be broken


def band_text(counts: list[int], band: str, what: str = "band") -> str:
    """A sentence: over how many seeds means are, and what the band around them is."""
    counts = [n for n in counts if n > 0]
    if not counts:
        return ""
    if max(counts) == 1:
        return "One seed each (n = 1): no band."
    return f"Means over seeds, {count_text(counts)}; {what}: {BAND_NAMES[band]}."


def losses_text(rows: pd.DataFrame, mark: str = "marked ×", unended: str = "not shown") -> str:
    """Sentences about points that did not finish, and how they are drawn; empty where all did."""
    diverged = int((rows.status == "diverged").sum())
    failed = int((~rows.status.isin(["finished", "diverged"])).sum())
    parts = []
    if diverged:
        parts.append(f"{diverged} of {len(rows)} runs diverged: {mark}, in no mean.")
    if failed:
        kinds = ", ".join(sorted(set(rows.status[~rows.status.isin(["finished", "diverged"])])))
        parts.append(f"{failed} of {len(rows)} runs did not end ({kinds}): {unended}.")
    return " ".join(parts)
