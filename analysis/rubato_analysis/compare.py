"""Predicted beside measured: seconds per gradient by cause, who answers for the gap, staleness and throughput."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from rubato_analysis.errors import AnalysisError
from rubato_analysis.figure import Data, new_figure, set_caption, shared_legend
from rubato_analysis.program import compare
from rubato_analysis.run_directory import Run
from rubato_analysis.series import protocol_label, subtitle_of
from rubato_analysis.timeline import unit_of

# Lines of the explanation that are drawn.
LINES_SHOWN = 6
# Staleness beyond this probability at both sides is not drawn.
TAIL = 1e-4


@dataclass(frozen=True)
class SideStyle:
    """How a side is drawn, in every panel; they differ in grey as well."""

    color: str
    hatch: str


SIDES = {"predicted": SideStyle("#0072B2", ""), "measured": SideStyle("#E69F00", "///")}


def _bars(ax: Axes, side: str, x: Any, y: Any, horizontal: bool = False, **more: Any) -> None:
    """Bars of one side, beside those of the other."""
    style, shift = SIDES[side], -0.2 if side == "predicted" else 0.2
    looks = {"color": style.color, "hatch": style.hatch, "edgecolor": "white", "linewidth": 0.4, "label": side, **more}
    if horizontal:
        ax.barh(np.asarray(x) + shift, y, 0.4, **looks)
    else:
        ax.bar(np.asarray(x) + shift, y, 0.4, **looks)


def draw_causes(ax: Axes, explanation: dict[str, Any], data: Data) -> None:
    """Seconds of a worker per gradient by cause, as spent."""
    lines = [line for line in explanation["by_cause"] if line["predicted"] or line["measured"]]
    names = [line["cause"] for line in lines]
    size, unit = unit_of(max(max(line[side] for line in lines) for side in SIDES) * 1e9)
    for side in SIDES:
        values = [line[side] for line in lines]
        _bars(ax, side, range(len(lines)), [value * 1e9 / size for value in values], horizontal=True)
        data.add("seconds per gradient", side, "", names, values)
    ax.set_yticks(range(len(lines)), names)
    ax.set_ylim(len(lines) - 0.5, -0.5)
    ax.set(xlabel=f"{unit} of a worker per gradient")
    ax.set_title("where time is spent", loc="left")
    ax.grid(axis="y", visible=False)


def draw_gap(ax: Axes, explanation: dict[str, Any], data: Data) -> None:
    """What causes answer for, in the same unit: bars to the right are longer in the measured runs."""
    lines = [line for line in explanation["causes"] if abs(line["total"]) > 1e-12][:LINES_SHOWN]
    totals = [line["total"] for line in lines]
    size, unit = unit_of(max([abs(total) for total in totals], default=1.0) * 1e9)
    ax.barh(range(len(lines)), [total * 1e9 / size for total in totals], 0.6, color="#555555")
    ax.axvline(0, color="#000000", linewidth=0.8)
    for row, line in enumerate(lines):
        ax.annotate(f"{100 * line['share']:.0f} %", (max(line["total"], 0) * 1e9 / size, row), (4, 0),
                    textcoords="offset points", va="center", fontsize=8)
    ax.set_yticks(range(len(lines)), [line["label"] for line in lines])
    ax.set_ylim(max(len(lines), 1) - 0.5, -0.5)
    ax.margins(x=0.15)
    ax.set(xlabel=f"{unit} per gradient, measured - predicted")
    ax.set_title(f"what the gap of {100 * explanation['gap'] / explanation['predicted']:+.1f} % is due to", loc="left")
    ax.grid(axis="y", visible=False)
    data.add("due to", "difference", "", [line["label"] for line in lines], totals,
             share=[line["share"] for line in lines])


def draw_staleness(ax: Axes, report: dict[str, Any], data: Data) -> None:
    """Both distributions over each other."""
    tables = {side: np.asarray(report[side]["staleness"], dtype="float64") for side in SIDES}
    last = max(int(np.max(np.nonzero(table > TAIL)[0], initial=0)) for table in tables.values())
    for side, table in tables.items():
        shown = np.zeros(last + 1)
        shown[: min(len(table), last + 1)] = table[: last + 1]
        _bars(ax, side, range(last + 1), shown)
        data.add("staleness", side, "", range(last + 1), shown)
    ax.set(xlabel="staleness of a gradient (versions)", ylabel="probability")
    ax.set_title(f"staleness, Kolmogorov-Smirnov distance {report['ks']:.3f}", loc="left")
    ax.set_xlim(-0.7, max(last, 1) + 0.7)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.grid(axis="x", visible=False)


def draw_throughput(ax: Axes, report: dict[str, Any], data: Data) -> None:
    """Means over the runs of each side, with their standard deviation."""
    figure = report["figures"]["throughput"]
    for side in SIDES:
        value = figure[side]
        spread = value["std"]
        # One bar a side: no shift between them is needed, only places of their own.
        place = list(SIDES).index(side) + (0.2 if side == "predicted" else -0.2)
        _bars(ax, side, [place], [value["mean"]], yerr=None if spread is None else [spread], capsize=3)
        data.add("throughput", side, "", [side], [value["mean"]], std=[spread])
    ax.set_xticks([0, 1], list(SIDES))
    ax.set_xlim(-0.7, 1.7)
    ax.set(ylabel="samples/s, steady")
    error = figure["error"]
    ax.set_title("throughput" + ("" if error is None else f", predicted {100 * error:+.1f} % off"), loc="left")
    ax.grid(axis="x", visible=False)


def plot(predicted: list[Run], measured: list[str]) -> tuple[Figure, Data]:
    """Four panels of `rubato compare --explain`."""
    if not measured:
        raise AnalysisError("expected measured runs: rubato plot compare SIM... -- REAL..., in Python measured=[...]")
    report = compare([run.path for run in predicted], measured)
    data = Data()
    figure, axes = new_figure(2, 2, 9.4, 6.0, gridspec_kw={"height_ratios": [1.2, 1]})
    draw_causes(axes[0], report["explanation"], data)
    draw_gap(axes[1], report["explanation"], data)
    draw_staleness(axes[2], report, data)
    draw_throughput(axes[3], report, data)
    counts = [len(report[side]["runs"]) for side in SIDES]
    set_caption(figure, f"Predicted against measured: {report['scenario']}", [
        f"{protocol_label(predicted[0])}, {subtitle_of(predicted[:1])};",
        f"{report['predicted']['backend']} against {report['measured']['backend']},",
        f"n = {counts[0]} and {counts[1]} runs" + ("; whiskers: standard deviation." if max(counts) > 1 else "."),
        report["explanation"]["reading"]])
    shared_legend(figure, [axes[0]])
    return figure, data
