"""Statistics of the settings of a sweep over its seeds: what aggregate.csv says, to the last digit."""

import numpy as np
import pandas as pd

from rubato_analysis.statistics import student_quantile

STATISTICS = ("mean", "std", "median", "ci95")


def aggregate(rows: pd.DataFrame, swept: list[str], figures: list[str]) -> pd.DataFrame:
    """A row a setting, which is a label and values of the swept keys, in the order of first appearance.

    n         points that finished: what mean, std (of the sample), median and ci95 (half width of the 95 % confidence
              interval, Student's t) are taken over, less those where the figure is missing
    diverged  points that diverged: counted, in no mean
    failed    points that ended otherwise
    reached   finished points that reached the target
    """
    keys = ["label", *swept]
    places: dict[tuple[object, ...], list[int]] = {}
    for row, cells in enumerate(zip(*(rows[key].astype(object).where(rows[key].notna(), None) for key in keys))):
        places.setdefault(cells, []).append(row)
    finished = (rows.status == "finished").to_numpy(bool)
    diverged = (rows.status == "diverged").to_numpy(bool)
    reached = finished & _has_target(rows)
    # Rows that did not finish lose their figures.
    numbers = rows[figures].astype("float64").to_numpy("float64")
    numbers = np.where(finished[:, None] & np.isfinite(numbers), numbers, np.nan)
    frame = rows[keys].iloc[[some[0] for some in places.values()]].reset_index(drop=True)
    groups = list(places.values())
    counts = {"n": finished, "diverged": diverged, "failed": ~(finished | diverged), "reached": reached}
    counted = {name: np.array([flags[some].sum() for some in groups], dtype="int64") for name, flags in counts.items()}
    table = np.array([statistics(numbers[some]) for some in groups]).reshape(len(groups), len(STATISTICS), len(figures))
    columns = {f"{name}.{kind}": table[:, k, f] for f, name in enumerate(figures) for k, kind in enumerate(STATISTICS)}
    return pd.concat([frame, pd.DataFrame(counted | columns, index=frame.index)], axis=1)


def statistics(values: np.ndarray) -> np.ndarray:
    """A row a statistic, a column a figure, of a row a run; NaN is no value.

    The operations and their order are those of the program, so that both say the same: sorted values are summed one
    after the other, and equal ones have a deviation of 0 without rounding.
    """
    ordered = np.sort(values, axis=0)  # what is missing comes last
    columns, known = np.arange(values.shape[1]), np.isfinite(ordered).sum(axis=0)
    last = np.maximum(known - 1, 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        equal = ordered[0] == ordered[last, columns]
        mean = np.where(equal, ordered[0], np.cumsum(np.nan_to_num(ordered), axis=0)[-1] / known)
        squares = np.cumsum(np.nan_to_num((ordered - mean) ** 2), axis=0)[-1]
        deviation = np.where(known > 1, np.where(equal, 0.0, np.sqrt(squares / (known - 1))), np.nan)
    # The two in the middle, which are one and the same where their number is odd.
    median = (ordered[last // 2, columns] + ordered[np.minimum(known // 2, last), columns]) / 2
    counts, which = np.unique(known, return_inverse=True)
    quantiles = np.array([student_quantile(0.975, int(n) - 1) if n > 1 else np.nan for n in counts])
    return np.array([mean, deviation, median, quantiles[which] * deviation / np.sqrt(np.maximum(known, 1))])


def _has_target(rows: pd.DataFrame) -> np.ndarray:
    """Whether the target was reached."""
    if "time_to_target_s" in rows:
        return np.isfinite(rows.time_to_target_s.to_numpy("float64"))
    return np.zeros(len(rows), dtype=bool)
