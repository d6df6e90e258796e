"""Runs of rubato as pandas frames, and the figures made of them.

    import rubato_analysis
    run = rubato_analysis.load("runs/quickstart/softsync")
    run.gradients.query("outcome == 'applied'").staleness.mean()
    run.summary["test_error"]

docs/traces.md defines every file and column, with its unit and its pandas type; `rubato_analysis.schema` holds the
types.
"""

from rubato_analysis.errors import AnalysisError, TraceWarning
from rubato_analysis.run import Run, load

__all__ = ["AnalysisError", "Run", "TraceWarning", "load"]
