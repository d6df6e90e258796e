"""Runs and sweeps of rubato as pandas frames, and the figures made of them.

    import rubato_analysis
    run = rubato_analysis.load("runs/quickstart/softsync")
    run.gradients.query("outcome == 'applied'").staleness.mean()
    run.summary["test_error"]

    sweep = rubato_analysis.load_sweep("sweeps/tradeoff")
    sweep.aggregate[["label", "n", "test_error.mean", "test_error.ci95"]]
    rubato_analysis.plot("tradeoff", sweep).save("tradeoff.png")

    rubato_analysis.run("scenario.json", set={"protocol.n": 4})["test_error"]

docs/traces.md defines every file and column of a run, with its unit and its pandas type, docs/plots.md those of a sweep
and the kinds of figures; `rubato_analysis.schema` holds the types.
"""

from typing import Any

from rubato_analysis.errors import AnalysisError, TraceWarning
from rubato_analysis.program import run
from rubato_analysis.run_directory import Run, load
from rubato_analysis.sweep import Sweep, load_sweep

__all__ = ["AnalysisError", "Run", "Sweep", "TraceWarning", "load", "load_sweep", "plot", "run"]


def plot(kind: str, *inputs: Any, **options: Any) -> Any:
    """Draws a kind of figure of runs and sweeps: directories, or what load() and load_sweep() returned. The Drawing
    that comes back shows itself in a notebook; its `save(FILE)` writes it, its `data` is what it shows.

    Options are those of `rubato plot KIND --help` by their long names, such as band="std", metric="valid_error",
    where=["workers.count=30"]; curves takes its metrics as a list.
    """
    from rubato_analysis import drawing  # pylint: disable=import-outside-toplevel  # matplotlib only where it draws

    return drawing.plot(kind, *inputs, **options)
