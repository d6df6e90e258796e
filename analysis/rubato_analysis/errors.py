"""What may go wrong with somebody's runs, in one line each."""


class AnalysisError(Exception):
    """The input is wrong; the message is one line with the file, and the line of it where known."""


class TraceWarning(UserWarning):
    """Something was skipped, or a run is not what a finished one should be."""
