"""Tables for papers: mean, confidence interval and number of seeds of a sweep's settings, as text, CSV or LaTeX."""

import csv
import io
import math
import re
from dataclasses import dataclass

from rubato_analysis.errors import AnalysisError
from rubato_analysis.label_styles import natural
from rubato_analysis.cells import cell_text
from rubato_analysis.metrics import TEXTS, Measured, check_metric, is_fraction, measure, metric_text
from rubato_analysis.points import Points, follows, key_text, series_of_points, value_text

DEFAULT_VALUES = ("test_error", "valid_error", "time_s", "time_to_target_s", "staleness.mean")
LABEL = "label"

_LATEX = {"\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{",
          "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}",
          ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\textquotedbl{}", "λ": r"$\lambda$", "μ": r"$\mu$",
          "±": r"$\pm$", "≤": r"$\le$", "×": r"$\times$", "\u00a0": "~", "–": "--"}


@dataclass(frozen=True)
class Table:
    """Cells by row and column; None where there is no setting. `corner` names what stands in the first column."""

    corner: str
    rows: list[str]
    columns: list[str]
    values: list[str]  # the figure of each column
    cells: list[list[Measured | None]]


def settings_table(points: Points, values: list[str]) -> Table:
    """A row a setting, a column a figure."""
    rows = points.report
    values = values or [name for name in DEFAULT_VALUES if name in rows and rows[name].notna().any()]
    for name in values:
        check_metric(rows, name, points.title)
    if not values:
        raise AnalysisError(f"{points.title}: none of {', '.join(DEFAULT_VALUES)} is there; --value FIGURE names one")
    series = series_of_points(rows, points.swept, [], limit=100_000)
    cells: list[list[Measured | None]] = [[measure(one.rows, name) for name in values] for one in series]
    return Table("setting", [one.name for one in series], [metric_text(name) for name in values], values, cells)


def pivot_table(points: Points, row: str, column: str, value: str) -> Table:
    """A row for each value of one key, a column for each of another."""
    rows = points.report
    for key in (row, column):
        if key not in rows:
            raise AnalysisError(f"{points.title}: {key} is not among the columns; swept are {points.swept_text()}")
    if row == column:
        raise AnalysisError(f"--rows and --columns name the same key, {row}")
    check_metric(rows, value, points.title)
    others = [key for key in [LABEL, *points.swept] if not follows(rows, key, [row, column])]
    if others:
        raise AnalysisError(f"{points.title}: several settings fall into one cell; they differ in {', '.join(others)}: "
                            "narrow them down with --where KEY=VALUE")
    heads = {key: sorted(dict.fromkeys(value_text(v) for v in rows[key]), key=natural) for key in (row, column)}
    if LABEL in heads:
        heads[LABEL] = list(dict.fromkeys(rows[LABEL]))
    groups = {name: some for name, some in rows.groupby([rows[row].map(value_text), rows[column].map(value_text)])}
    cells = [[measure(groups[r, c], value) if (r, c) in groups else None for c in heads[column]] for r in heads[row]]
    told = [text if column == LABEL else key_text(column, text) for text in heads[column]]
    return Table(row if row == LABEL else TEXTS.get(row, row), heads[row], told, [value] * len(told), cells)


def best_cells(table: Table, best: str) -> set[tuple[int, int]]:
    """Cells with the best mean: of each column, or of the whole where all columns show the same figure. Settings of
    which a run was lost, or has no such figure, do not compete."""
    sign = 1.0 if best == "min" else -1.0
    whole = len(set(table.values)) == 1 and len(table.values) > 1
    found = set()
    for area in ([range(len(table.columns))] if whole else [[c] for c in range(len(table.columns))]):
        means = {(r, c): sign * cell.spread.mean for c in area for r, line in enumerate(table.cells)
                 if (cell := line[c]) is not None and 0 < cell.spread.n == cell.points}
        if means:
            found |= {place for place, mean in means.items() if mean == min(means.values())}
    return found


def heads(table: Table) -> list[str]:
    """Column heads, with the unit of errors."""
    if len(set(table.values)) == 1 and len(table.values) > 1:
        return table.columns
    return [f"{name} (%)" if is_fraction(value) else name for name, value in zip(table.columns, table.values)]


def caption(table: Table, title: str) -> str:
    """What the cells are."""
    shown = f"{metric_text(table.values[0])}{' (%)' if is_fraction(table.values[0]) else ''}: "
    same = len(set(table.values)) == 1
    return f"{title}. {shown if same else ''}mean ± 95 % confidence interval (Student's\u00a0t), in brackets n."


def text_table(table: Table, title: str, best: str | None) -> str:
    """Columns that line up; the best in stars."""
    bold = best_cells(table, best) if best else set()
    lines = [[table.corner, *heads(table)]]
    for r, name in enumerate(table.rows):
        texts = [cell_text(cell, value) for cell, value in zip(table.cells[r], table.values)]
        lines.append([name, *(f"*{text}*" if (r, c) in bold else text for c, text in enumerate(texts))])
    widths = [max(map(len, column)) for column in zip(*lines)]
    padded = ["  ".join(text.ljust(width) for text, width in zip(line, widths)).rstrip() for line in lines]
    rule = "  ".join("-" * width for width in widths)
    return "\n".join([caption(table, title), "", padded[0], rule, *padded[1:]]) + "\n"


def csv_table(table: Table) -> str:
    """A row a cell: row, column, figure, mean, ci95, n, diverged, failed; fractions as they are."""
    memory = io.StringIO()
    writer = csv.writer(memory, lineterminator="\n")
    writer.writerow([table.corner, "column", "figure", "mean", "ci95", "n", "diverged", "failed"])
    for name, line in zip(table.rows, table.cells):
        for column, value, cell in zip(table.columns, table.values, line):
            if cell is not None:
                one = cell.spread
                known = ["" if math.isnan(number) else repr(number) for number in (one.mean, one.high - one.mean)]
                writer.writerow([name, column, value, *known, one.n, cell.diverged, cell.failed])
    return memory.getvalue()


def latex(text: str) -> str:
    """Text with LaTeX's special characters escaped."""
    return "".join(_LATEX.get(letter, letter) for letter in text)


def latex_cell(text: str) -> str:
    """The same of a cell: 1.2e7 becomes 1.2 x 10^7."""
    return re.sub(r"(-?[\d.]+)e(-?\d+)", r"$\1\\times10^{\2}$", latex(text))


def _bold(text: str) -> str:
    """Powers of ten as well."""
    return rf"\textbf{{\boldmath {text}}}" if r"\times" in text else rf"\textbf{{{text}}}"


def latex_table(table: Table, title: str, best: str | None) -> str:
    r"""A table of the package booktabs, to be \input; the best in bold. Needs \usepackage[T1]{fontenc}."""
    bold = best_cells(table, best) if best else set()
    lines = [r"% \usepackage[T1]{fontenc} \usepackage{booktabs}", r"\begin{table}", r"\centering",
             rf"\caption{{{latex(caption(table, title))}}}", rf"\begin{{tabular}}{{l{'r' * len(table.columns)}}}",
             r"\toprule", " & ".join(latex(head) for head in [table.corner, *heads(table)]) + r" \\", r"\midrule"]
    for r, name in enumerate(table.rows):
        texts = [latex_cell(cell_text(cell, value)) for cell, value in zip(table.cells[r], table.values)]
        texts = [_bold(text) if (r, c) in bold else text for c, text in enumerate(texts)]
        lines.append(" & ".join([latex(name), *texts]) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}"]) + "\n"
