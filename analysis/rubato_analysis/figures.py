"""Figures of Gupta, Zhang and Milthorpe (2015), drawn from runs."""

import numpy as np
from matplotlib.figure import Figure

from rubato_analysis.curves import draw_curve
from rubato_analysis.errors import AnalysisError
from rubato_analysis.figure import Data, new_figure, set_title
from rubato_analysis.metrics import format_axis
from rubato_analysis.run_directory import Run
from rubato_analysis.series import Series, protocol_label, subtitle_of, title_of
from rubato_analysis.staleness import distribution, draw_distribution, draw_means, largest_staleness, mean_staleness
from rubato_analysis.styles import protocol_style


def _softsync(runs: list[Run]) -> list[Run]:
    """The runs by n; refuses others."""
    for run in runs:
        if run.protocol != "n-softsync":
            raise AnalysisError(f"{run.path}: protocol {run.protocol}, expected n-softsync")
    return sorted(runs, key=lambda run: (run.n, run.path))


def expected_staleness(run: Run) -> float:
    """(lambda - 1) / c: the mean staleness of a star whose server is lightly loaded (docs/protocols.md)."""
    return (run.workers_count - 1) / run.gradients_per_update


def figure4(runs: list[Run]) -> tuple[Figure, Data]:
    """Figure 4: a row a run. Mean staleness of every update where several gradients make one, and the distribution
    over gradients where each gradient is an update of its own (lambda-softsync)."""
    ordered, data = _softsync(runs), Data()
    figure, axes = new_figure(len(ordered), 1, 6.4, 1.0 + 2.1 * len(ordered))
    for ax, run, letter in zip(axes, ordered, "abcdefghijklmnopqrstuvwxyz"):
        series = Series(run, protocol_label(run), protocol_style(run.protocol, run.n))
        expected = expected_staleness(run)
        if run.gradients_per_update > 1:
            draw_means(ax, series, data, letter)
            ax.axhline(expected, color="#555555", linewidth=1.0, linestyle=(0, (1, 1.5)),
                       label=r"$(\lambda-1)/c$ = " + f"{expected:.2f}")
            top = max(2.0 * run.n, 1.15 * float(run.updates.mean_staleness.max()))
            ax.set(xlabel="update", ylabel="mean staleness (versions)", ylim=(0, top))
            ax.set_xlim(0, None)
            ax.legend(loc="lower right")
        else:
            ax.set_xlim(-0.6, largest_staleness(distribution(run)) + 0.6)
            draw_distribution(ax, series, data, letter)
            ax.set_xlabel("staleness of a gradient (versions)")
        table = distribution(run)
        beyond = float(table[table.index > 2 * run.n].sum())
        note = f"mean {mean_staleness(table):.2f}, largest {largest_staleness(table)}"
        note += f", P(> 2n) = {beyond:.1e}" if beyond else f", none above 2n = {2 * run.n}"
        ax.set_title(f"({letter}) {protocol_label(run)}: {note}", loc="left")
    set_title(figure, f"Staleness under n-softsync: {title_of(ordered)}", subtitle_of(ordered))
    return figure, data


def figure5(runs: list[Run]) -> tuple[Figure, Data]:
    """Figure 5: test error against epochs with the learning rate as it is and divided by n; a panel for each n."""
    ordered, data = _softsync(runs), Data()
    values = list(dict.fromkeys(run.n for run in ordered))
    figure, axes = new_figure(1, len(values), 1.0 + 3.6 * len(values), 3.4, sharey=True)
    for ax, n in zip(axes, values):
        same = [run for run in ordered if run.n == n]
        for run in same:
            divided = run.staleness_rule == "inverse-n"
            if not divided and run.staleness_rule != "none":
                raise AnalysisError(f"{run.path}: staleness rule {run.staleness_rule}, expected none or inverse-n")
            series = Series(run, protocol_label(run), protocol_style(run.protocol, n, 0 if divided else 1))
            label = r"rate $\alpha_0/n$" if divided else r"rate $\alpha_0$"
            if [other.staleness_rule for other in same].count(run.staleness_rule) > 1:
                label += f", seed {run.scenario.get('seed')}"
            if not draw_curve(ax, series, "test_error", "epochs", data, label):
                raise AnalysisError(f"{run.path}: evals.csv has no test error")
        ax.set(xlabel="epochs", ylim=(0, None))
        ax.set_xlim(0, None)
        ax.set_title(f"{n}-softsync", loc="left")
        ax.legend(loc="best")
    highest = max(float(np.max(line.get_ydata())) for ax in axes for line in ax.lines)
    axes[0].set(ylabel="test error", ylim=(0, _round_up(highest)))
    format_axis(axes[0].yaxis, "test_error")
    set_title(figure, f"Learning rate and staleness: {title_of(ordered)}", subtitle_of(ordered))
    return figure, data


def _round_up(error: float) -> float:
    """The next tenth, so that the axis ends on a tick."""
    return float(np.ceil(error * 10 + 0.2) / 10)
