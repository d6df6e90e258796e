"""Making a figure and leaving it on disk with its data and the command that repeats it."""

import os
import shlex
import textwrap
from dataclasses import dataclass, field
from typing import Callable, Iterable

import matplotlib
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from rubato_analysis.errors import AnalysisError
from rubato_analysis.styles import RC

FORMATS = (".png", ".pdf", ".svg")


@dataclass
class Data:
    """What a figure shows, point by point; becomes the CSV beside it."""

    parts: list[pd.DataFrame] = field(default_factory=list)

    def add(self, panel: str, label: str, path: str, x: Iterable[object], y: Iterable[object],
            **more: Iterable[object] | object) -> None:
        """Points of one series in one panel; `more` are further columns, or one value for all points."""
        points = pd.DataFrame({"x": list(x), "y": list(y)})
        points = points.assign(panel=panel, series=label, run=path)[["panel", "series", "run", "x", "y"]]
        self.parts.append(points.assign(**more))

    def frame(self) -> pd.DataFrame:
        """All points: panel, series, run (empty where several make a point), x, y, and further columns."""
        return pd.concat(self.parts, ignore_index=True) if self.parts else pd.DataFrame()


def new_figure(rows: int, columns: int, width: float, height: float, **options: object) -> tuple[Figure, list[Axes]]:
    """A figure of rows x columns panels (inches) in the house's look, and its axes in reading order."""
    matplotlib.rcParams.update(RC)
    # Without pyplot: no display, no state, the same pixels everywhere, and nothing of a notebook's own is touched.
    figure = Figure(figsize=(width, height), constrained_layout=True)
    FigureCanvasAgg(figure)
    axes = figure.subplots(rows, columns, squeeze=False, **options)
    figure.get_layout_engine().set(h_pad=0.06, w_pad=0.06, hspace=0.04, wspace=0.04)
    return figure, list(axes.flat)


def set_title(figure: Figure, title: str, subtitle: str) -> None:
    """Title of the figure, and what all its runs have in common below it."""
    figure.suptitle(title + (f"\n{subtitle}" if subtitle else ""), fontsize=10.5, linespacing=1.4)


def set_caption(figure: Figure, title: str, sentences: Iterable[str]) -> None:
    """Title, and below it in small letters what one must know to read the figure: n, bands, what was left out."""
    width = int(figure.get_figwidth() * 15.5)
    lines = textwrap.wrap(" ".join(filter(None, sentences)), width)
    figure.suptitle("\n".join([title, *lines]), fontsize=9, linespacing=1.4)


def shared_legend(figure: Figure, axes: list[Axes], columns: int = 3) -> None:
    """One legend below all panels: each label once, in the order of the series."""
    entries: dict[str, object] = {}
    for ax in axes:
        for handle, label in zip(*ax.get_legend_handles_labels()):
            entries.setdefault(label, handle)
    # Below the panels; save() widens the page to it, because constrained layout of matplotlib 3.6 ignores it.
    longest = max(map(len, entries), default=0)
    fit = max(1, int(figure.get_figwidth() * 13 / (longest + 9)))
    figure.legend(list(entries.values()), list(entries), loc="upper center", bbox_to_anchor=(0.5, 0.0),
                  ncol=min(columns, fit), handlelength=3.2)


def whole(output: str, write: Callable[[str], object]) -> None:
    """Has `write` make a file beside `output`, which becomes `output` once it is whole; otherwise nothing is left."""
    part = f"{output}.part"
    try:
        write(part)
        os.replace(part, output)
    finally:
        if os.path.exists(part):
            os.remove(part)


def save(figure: Figure, data: Data, output: str, command: list[str] | str, title: str) -> str:
    """Writes `output` and its data beside it as CSV; returns the path of the CSV. Equal input gives equal bytes."""
    stem, extension = os.path.splitext(output)
    if extension not in FORMATS:
        raise AnalysisError(f"{output}: expected a name that ends in {', '.join(FORMATS)}")
    line = command if isinstance(command, str) else shlex.join(command)
    metadata = {
        ".png": {"Title": title, "Command": line, "Software": "rubato"},
        ".pdf": {"Title": title, "Subject": line, "CreationDate": None, "Producer": None, "Creator": "rubato"},
        ".svg": {"Title": title, "Description": line, "Date": None, "Creator": "rubato"},
    }[extension]
    try:
        os.makedirs(os.path.dirname(output) or ".", exist_ok=True)
        whole(output, lambda part: figure.savefig(part, format=extension[1:], metadata=metadata, bbox_inches="tight",
                                                  pad_inches=0.08))
        whole(f"{stem}.csv", lambda part: data.frame().to_csv(part, index=False, lineterminator="\n"))
    except OSError as error:
        raise AnalysisError(f"{output}: {(error.strerror or str(error)).lower()}") from None
    return f"{stem}.csv"
