"""The command line: python3 -m rubato_analysis plot KIND RUN... [-o FILE]."""

import argparse
import sys
import warnings
from typing import NoReturn

from rubato_analysis import curves, figures, staleness, timeline
from rubato_analysis.errors import AnalysisError, TraceWarning
from rubato_analysis.figure import save
from rubato_analysis.series import load_all, title_of

KINDS = {
    "staleness": "distribution of staleness over gradients, and its mean from update to update",
    "curves": "test and validation error and training loss against time",
    "timeline": "what each role did when (needs timeline.csv: rubato run --timeline)",
    "figure4": "staleness under n-softsync as in Figure 4 of Gupta et al. 2015",
    "figure5": "learning rate undivided and divided by n as in Figure 5 of Gupta et al. 2015",
}


class Parser(argparse.ArgumentParser):
    """One line on stderr and exit status 2, as everywhere in rubato."""

    def error(self, message: str) -> NoReturn:
        print(f"{self.prog}: {message} (see --help)", file=sys.stderr)
        raise SystemExit(2)


def parser() -> Parser:
    """Arguments of all commands."""
    top = Parser(prog="rubato_analysis", description="Figures of rubato's runs.")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    plot = commands.add_parser("plot", help="draw a figure of one or several runs")
    kinds = plot.add_subparsers(dest="kind", required=True, metavar="KIND")
    # figure4 and figure5 are commands of their own too: they ask for particular sets of runs.
    places = [(kinds, kind) for kind in KINDS] + [(commands, "figure4"), (commands, "figure5")]
    for place, kind in places:
        command = place.add_parser(kind, help=KINDS[kind], description=KINDS[kind] + ".")
        command.set_defaults(kind=kind)
        command.add_argument("runs", nargs="+", metavar="RUN", help="a run directory")
        command.add_argument("-o", "--output", metavar="FILE", default=f"{kind}.png",
                             help=f"PNG, PDF or SVG; its data go beside it as CSV (default: {kind}.png)")
        if kind == "curves":
            command.add_argument("--x", choices=curves.AXES, default="time", help="the x axis (default: time, in s)")
            command.add_argument("--log", action="store_true", help="a logarithmic x axis")
        if kind == "timeline":
            command.add_argument("--from", dest="begin_s", type=float, metavar="S", help="begin of the window, s")
            command.add_argument("--to", dest="end_s", type=float, metavar="S", help="end of the window, s")
            command.add_argument("--chrome", metavar="FILE",
                                 help="also write the (one) run as Chrome trace JSON, for Perfetto")
    return top


def execute(arguments: argparse.Namespace, command: list[str]) -> list[str]:
    """Draws what is asked for; the files that were written."""
    runs = load_all(arguments.runs)
    written = []
    match arguments.kind:
        case "staleness":
            figure, data = staleness.plot(runs)
        case "curves":
            figure, data = curves.plot(runs, arguments.x, arguments.log)
        case "timeline":
            if arguments.chrome:
                if len(runs) > 1:
                    raise AnalysisError("--chrome takes one run")
                timeline.write_chrome_trace(runs[0], arguments.chrome)
                written.append(arguments.chrome)
            figure, data = timeline.plot(runs, (arguments.begin_s, arguments.end_s))
        case "figure4":
            figure, data = figures.figure4(runs)
        case _:
            figure, data = figures.figure5(runs)
    table = save(figure, data, arguments.output, command, f"{arguments.kind}: {title_of(runs)}")
    return written + [arguments.output, table]


def main(arguments: list[str] | None = None) -> int:
    """Exit status 0, or 2 with one line where the input is wrong."""
    words = sys.argv[1:] if arguments is None else arguments
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", TraceWarning)
        try:
            written = execute(parser().parse_args(words), ["python3", "-m", "rubato_analysis", *words])
        except AnalysisError as error:
            print(f"rubato_analysis: {error}", file=sys.stderr)
            return 2
        finally:
            for warning in caught:
                if issubclass(warning.category, TraceWarning):
                    print(f"warning: {warning.message}", file=sys.stderr)
    for path in written:
        print(path)
    return 0
