"""The kinds of figures: what each shows, its options, and how it is drawn from runs and sweeps."""

import argparse
from dataclasses import dataclass
from typing import Any, Callable

from matplotlib.figure import Figure

from rubato_analysis import (compare, controller, curves, figures, phases, sensitivity, speedup, staleness,
                             staleness_sweep, target, timeline, tradeoff)
from rubato_analysis.errors import AnalysisError
from rubato_analysis.figure import Data
from rubato_analysis.points import Points, collect
from rubato_analysis.run_directory import Run
from rubato_analysis.statistics import BANDS
from rubato_analysis.sweep import Sweep

Opened = list[Run | Sweep]


@dataclass(frozen=True)
class Kind:
    """A kind of figure. `draw` takes what was opened and the options by name."""

    help: str
    declare: Callable[[argparse.ArgumentParser], None]
    draw: Callable[[Opened, dict[str, Any]], tuple[Figure, Data]]
    sweeps: bool = True


def runs_only(opened: Opened) -> list[Run]:
    """Refuses sweeps."""
    for one in opened:
        if isinstance(one, Sweep):
            raise AnalysisError(f"{one.path}: is a sweep; this figure is made of runs: {one.path}/runs/POINT, which "
                                "`rubato sweep --keep` leaves")
    return [one for one in opened if isinstance(one, Run)]


def conditions(words: list[str] | None) -> dict[str, list[str]]:
    """{key: values} of --where KEY=VALUE[,VALUE...]."""
    found: dict[str, list[str]] = {}
    for word in words or []:
        key, equals, values = word.partition("=")
        if not equals or not key:
            raise AnalysisError(f"--where {word}: expected KEY=VALUE[,VALUE...]")
        # A label may contain commas itself.
        found.setdefault(key, []).extend(dict.fromkeys([values, *values.split(",")]))
    return found


def points_of(opened: Opened, options: dict[str, Any]) -> Points:
    """What a figure of points is made of."""
    return collect(opened).where(conditions(options.get("where")))


def _curves(opened: Opened, options: dict[str, Any]) -> tuple[Figure, Data]:
    axis, log, band = options.get("x", "time"), options.get("log", False), options.get("band", "ci95")
    metrics, log_y = options.get("metric") or [], options.get("log_y", False)
    if any(isinstance(one, Sweep) for one in opened) or options.get("where"):
        return curves.plot_points(points_of(opened, options), axis, log, band, metrics, log_y)
    return curves.plot(runs_only(opened), axis, log, band, metrics, options.get("each", False), log_y)


def _staleness(opened: Opened, options: dict[str, Any]) -> tuple[Figure, Data]:
    if all(isinstance(one, Run) for one in opened) and not any(options.get(k) for k in ("by", "x", "where")):
        return staleness.plot(runs_only(opened))
    return staleness_sweep.plot(points_of(opened, options), options.get("by"), options.get("x"),
                                options.get("band", "ci95"))


def _timeline(opened: Opened, options: dict[str, Any]) -> tuple[Figure, Data]:
    runs = runs_only(opened)
    if options.get("chrome"):
        if len(runs) > 1:
            raise AnalysisError("--chrome takes one run")
        timeline.write_chrome_trace(runs[0], options["chrome"])
    return timeline.plot(runs, (options.get("begin_s"), options.get("end_s")))


def _phases(opened: Opened, options: dict[str, Any]) -> tuple[Figure, Data]:
    return phases.plot(runs_only(opened), (options.get("begin_s"), options.get("end_s")))


def _of_points(plot: Callable[..., tuple[Figure, Data]], **names: str) -> Callable[..., tuple[Figure, Data]]:
    """Calls `plot` with the options {its argument: name of the option} that are given."""
    def draw(opened: Opened, options: dict[str, Any]) -> tuple[Figure, Data]:
        given = {argument: options[name] for argument, name in names.items() if options.get(name) is not None}
        return plot(points_of(opened, options), **given)

    return draw


def _band(command: argparse.ArgumentParser) -> None:
    command.add_argument("--band", choices=BANDS, default="ci95",
                         help="around means over seeds: 95 %% confidence interval by Student's t (default), standard "
                              "deviation, or range")


def _where(command: argparse.ArgumentParser) -> None:
    command.add_argument("--where", action="append", metavar="KEY=VALUE[,VALUE...]",
                         help="only points whose column KEY (label, a swept key, a figure) has one of the values; may "
                              "be repeated")


def _log_y(command: argparse.ArgumentParser) -> None:
    command.add_argument("--log-y", action="store_true",
                         help="a logarithmic y axis, for what falls over several decades")


def _declare_curves(command: argparse.ArgumentParser) -> None:
    command.add_argument("--x", choices=curves.AXES, default="time", help="the x axis (default: time, in s)")
    command.add_argument("--log", action="store_true", help="a logarithmic x axis")
    _log_y(command)
    command.add_argument("--metric", action="append", metavar="COLUMN",
                         help="column of evals.csv, a panel each; may be repeated (default: test_error, valid_error "
                              "and train_loss, as far as they exist)")
    command.add_argument("--each", action="store_true", help="runs: each a curve, also those that differ in seed alone")
    _band(command)
    _where(command)


def _declare_staleness(command: argparse.ArgumentParser) -> None:
    command.add_argument("--by", choices=("means", "histograms"),
                         help="sweeps: means, a row a setting; or histograms, which need run directories (default: "
                              "histograms where there are directories and settings are few)")
    command.add_argument("--x", metavar="KEY", help="sweeps: means as lines over this key")
    _band(command)
    _where(command)


def _controller(opened: Opened, _: dict[str, Any]) -> tuple[Figure, Data]:
    return controller.plot(runs_only(opened))


def _window(command: argparse.ArgumentParser) -> None:
    command.add_argument("--from", dest="begin_s", type=float, metavar="S", help="begin of the window, s")
    command.add_argument("--to", dest="end_s", type=float, metavar="S", help="end of the window, s")


def _declare_timeline(command: argparse.ArgumentParser) -> None:
    _window(command)
    command.add_argument("--chrome", metavar="FILE", help="also write the (one) run as Chrome trace JSON, for Perfetto")


def _declare_tradeoff(command: argparse.ArgumentParser) -> None:
    command.add_argument("--metric", metavar="FIGURE", default="test_error", help="the y axis (default: test_error)")
    command.add_argument("--x", metavar="FIGURE", default="time_s", help="the x axis (default: time_s)")
    command.add_argument("--linear", action="store_true", help="a linear x axis")
    _log_y(command)
    _band(command)
    _where(command)


def _declare_speedup(command: argparse.ArgumentParser) -> None:
    command.add_argument("--metric", metavar="FIGURE", default="time_s",
                         help="what is compared: a time, or a rate (default: time_s)")
    command.add_argument("--reference", metavar="LABEL", help="series to compare with (default: each with itself)")
    command.add_argument("--base", type=int, metavar="WORKERS", help="workers of the reference (default: the fewest)")
    _band(command)
    _where(command)


def _declare_target(command: argparse.ArgumentParser) -> None:
    command.add_argument("--by", choices=tuple(target.COLUMNS), default="time", help="what it took (default: time)")
    command.add_argument("--x", metavar="KEY", help="lines over this key, such as workers.count")
    command.add_argument("--log", action="store_true", help="a logarithmic x axis")
    _band(command)
    _where(command)


def _declare_sensitivity(command: argparse.ArgumentParser) -> None:
    command.add_argument("--metric", metavar="FIGURE",
                         help="the y axis (default: what the sweep tunes by; else valid_error, or test_error)")
    _log_y(command)
    command.add_argument("--x", metavar="KEY", default=sensitivity.LEARNING_RATE,
                         help=f"the x axis (default: {sensitivity.LEARNING_RATE})")
    command.add_argument("--phase", choices=("tune", "report", "all"),
                         help="of the sweep (default: tune, where it tunes)")
    _band(command)
    _where(command)


def _declare_compare(command: argparse.ArgumentParser) -> None:
    command.add_argument("--measured", nargs="+", metavar="RUN", default=[],
                         help="the measured runs; the others are the predicted ones (`rubato plot compare` takes them "
                              "after --)")


def _nothing(_: argparse.ArgumentParser) -> None:
    """No options."""


KINDS: dict[str, Kind] = {
    "staleness": Kind("distribution of staleness over gradients, and its mean from update to update; of sweeps the "
                      "mean by setting, or distributions", _declare_staleness, _staleness),
    "curves": Kind("test and validation error and training loss against time; means over seeds with a band",
                   _declare_curves, _curves),
    "timeline": Kind("what each role did when (needs timeline.csv: rubato run --timeline)", _declare_timeline,
                     _timeline, sweeps=False),
    "controller": Kind("what the controller of dssp granted, at which lead, and how close it expected pushes to come",
                       lambda _: None, _controller, sweeps=False),
    "phases": Kind("which part of the joint model is in which stage when, and the steps of workers between exchanges "
                   "(Figure 9 of Langer et al. 2018); of protocols that average models", _window, _phases,
                   sweeps=False),
    "tradeoff": Kind("error against training time, with contours of equal batch size and equal number of workers, and "
                     "the Pareto front (Figures 6 and 7 of Gupta et al. 2015)", _declare_tradeoff,
                     _of_points(tradeoff.plot, metric="metric", x="x", linear="linear", band="band", log_y="log_y")),
    "speedup": Kind("speed-up over a named reference against the number of workers (Figure 8 of Gupta et al. 2015)",
                    _declare_speedup,
                    _of_points(speedup.plot, metric="metric", reference="reference", base="base", band="band")),
    "target": Kind("time to target of each setting, and how many of its runs reached it", _declare_target,
                   _of_points(target.plot, by="by", key="x", log="log", band="band")),
    "sensitivity": Kind("a figure against the learning rate, or another key", _declare_sensitivity,
                        _of_points(sensitivity.plot, metric="metric", key="x", phase="phase", band="band",
                                   log_y="log_y")),
    "compare": Kind("predicted beside measured runs: seconds per gradient by cause, what the gap is due to, staleness "
                    "and throughput", _declare_compare,
                    lambda opened, options: compare.plot(runs_only(opened), options.get("measured", [])), sweeps=False),
    "figure4": Kind("staleness under n-softsync as in Figure 4 of Gupta et al. 2015", _nothing,
                    lambda opened, _: figures.figure4(runs_only(opened)), sweeps=False),
    "figure5": Kind("learning rate undivided and divided by n as in Figure 5 of Gupta et al. 2015", _nothing,
                    lambda opened, _: figures.figure5(runs_only(opened)), sweeps=False),
}
