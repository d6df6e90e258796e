"""The command line: python3 -m rubato_analysis plot KIND RUN_OR_SWEEP... [-o FILE], and table SWEEP...."""

import argparse
import os
import sys
import warnings
from typing import NoReturn

from rubato_analysis import tables
from rubato_analysis.errors import AnalysisError, TraceWarning
from rubato_analysis.figure import save
from rubato_analysis.kinds import KINDS, conditions
from rubato_analysis.points import collect, open_inputs


class Parser(argparse.ArgumentParser):
    """One line on stderr and exit status 2, as everywhere in rubato."""

    def error(self, message: str) -> NoReturn:
        print(f"{self.prog}: {message} (see --help)", file=sys.stderr)
        raise SystemExit(2)


def parser() -> Parser:
    """Arguments of all commands."""
    top = Parser(prog="rubato_analysis", description="Figures and tables of rubato's runs and sweeps.")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    plot = commands.add_parser("plot", help="draw a figure of runs and sweeps")
    kinds = plot.add_subparsers(dest="kind", required=True, metavar="KIND")
    # figure4 and figure5 are commands of their own too: they ask for particular sets of runs.
    places = [(kinds, kind) for kind in KINDS] + [(commands, "figure4"), (commands, "figure5")]
    for place, kind in places:
        command = place.add_parser(kind, help=KINDS[kind].help, description=KINDS[kind].help + ".")
        command.set_defaults(kind=kind)
        command.add_argument("runs", nargs="+", metavar="RUN_OR_SWEEP" if KINDS[kind].sweeps else "RUN",
                             help="a run directory" + (", or one of a sweep" if KINDS[kind].sweeps else ""))
        command.add_argument("-o", "--output", metavar="FILE", default=f"{kind}.png",
                             help=f"PNG, PDF or SVG; its data go beside it as CSV (default: {kind}.png)")
        KINDS[kind].declare(command)
    declare_table(commands)
    return top


def declare_table(commands: "argparse._SubParsersAction[Parser]") -> None:
    """The command `table`."""
    about = "mean, 95 % confidence interval and n of the settings of sweeps"
    command = commands.add_parser("table", help=about.replace("%", "%%"), description=about.replace("%", "%%") + ".")
    command.add_argument("runs", nargs="+", metavar="SWEEP", help="a sweep directory (or run directories)")
    form = command.add_mutually_exclusive_group()
    form.add_argument("--latex", action="store_true", help="LaTeX with booktabs (default: text)")
    form.add_argument("--csv", action="store_true", help="CSV, a row a cell")
    command.add_argument("--rows", metavar="KEY", help="key whose values make the rows (default: settings)")
    command.add_argument("--columns", metavar="KEY", help="key whose values make the columns (default: figures)")
    command.add_argument("--value", metavar="FIGURE", action="append",
                         help="column of results.csv; may be repeated without --rows and --columns (default: errors, "
                              "times and mean staleness; test_error with them)")
    command.add_argument("--best", choices=("min", "max"),
                         help="mark the best mean: bold in LaTeX, stars in text (default: none)")
    command.add_argument("--where", action="append", metavar="KEY=VALUE[,VALUE...]", help="only such points")
    command.add_argument("-o", "--output", metavar="FILE", help="where to write it (default: standard output)")


def draw(arguments: argparse.Namespace, command: list[str]) -> list[str]:
    """Draws what is asked for; the files that were written."""
    opened = open_inputs(arguments.runs)
    figure, data = KINDS[arguments.kind].draw(opened, vars(arguments))
    names = list(dict.fromkeys(one.name for one in opened))
    title = ", ".join(names) if len(names) <= 3 else f"{names[0]} and {len(names) - 1} other scenarios"
    table = save(figure, data, arguments.output, command, f"{arguments.kind}: {title}")
    chrome = getattr(arguments, "chrome", None)
    return ([chrome] if chrome else []) + [arguments.output, table]


def write_table(arguments: argparse.Namespace) -> list[str]:
    """Prints or writes a table; the files that were written."""
    points = collect(open_inputs(arguments.runs)).where(conditions(arguments.where))
    values = arguments.value or []
    if (arguments.rows is None) != (arguments.columns is None):
        raise AnalysisError("--rows and --columns go together")
    if arguments.rows is not None:
        if len(values) > 1:
            raise AnalysisError("--rows and --columns take one --value")
        table = tables.pivot_table(points, arguments.rows, arguments.columns, (values or ["test_error"])[0])
    else:
        table = tables.settings_table(points, values)
    if arguments.csv:
        text = tables.csv_table(table)
    else:
        write = tables.latex_table if arguments.latex else tables.text_table
        text = write(table, points.title, arguments.best)
    if arguments.output is None:
        sys.stdout.write(text)
        return []
    try:
        os.makedirs(os.path.dirname(arguments.output) or ".", exist_ok=True)
        with open(arguments.output, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise AnalysisError(f"{arguments.output}: {(error.strerror or str(error)).lower()}") from None
    return [arguments.output]


def main(arguments: list[str] | None = None) -> int:
    """Exit status 0, or 2 with one line where the input is wrong."""
    words = sys.argv[1:] if arguments is None else arguments
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", TraceWarning)
        try:
            parsed = parser().parse_args(words)
            if parsed.command == "table":
                written = write_table(parsed)
            else:
                written = draw(parsed, ["python3", "-m", "rubato_analysis", *words])
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
