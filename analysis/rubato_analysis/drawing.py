"""Figures from Python: what `rubato plot` draws, as an object that a notebook shows."""

import io
import os
from dataclasses import dataclass

import pandas as pd
from matplotlib.figure import Figure

from rubato_analysis.errors import AnalysisError
from rubato_analysis.figure import Data, save
from rubato_analysis.kinds import KINDS
from rubato_analysis.points import Input, open_inputs


@dataclass(frozen=True)
class Drawing:
    """A figure with its data."""

    kind: str
    figure: Figure
    points: Data
    command: str

    @property
    def data(self) -> pd.DataFrame:
        """What the figure shows, point by point: the CSV that `save` leaves."""
        return self.points.frame()

    def save(self, path: str | os.PathLike[str]) -> str:
        """Writes PNG, PDF or SVG, and the data beside it; the path of the CSV."""
        path = os.fspath(path)
        return save(self.figure, self.points, path, self.command, self.kind)

    def _repr_png_(self) -> bytes:
        """What Jupyter shows."""
        memory = io.BytesIO()
        self.figure.savefig(memory, format="png", bbox_inches="tight", pad_inches=0.08)
        return memory.getvalue()


def plot(kind: str, *inputs: Input, **options: object) -> Drawing:
    """As rubato_analysis.plot, which tells of it."""
    if kind not in KINDS:
        raise AnalysisError(f"{kind}: no such kind of figure; there is {', '.join(KINDS)}")
    opened = open_inputs(list(inputs))
    figure, data = KINDS[kind].draw(opened, dict(options))
    words = [repr(kind), *(repr(one.path) for one in opened), *(f"{key}={value!r}" for key, value in options.items())]
    return Drawing(kind, figure, data, f"rubato_analysis.plot({', '.join(words)})")
