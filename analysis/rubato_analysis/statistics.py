"""Statistics over seeds: mean, deviation, and confidence by Student's t."""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Iterable

import numpy as np

BANDS = ("ci95", "std", "minmax")
BAND_NAMES = {"ci95": "95 % confidence interval (Student's\u00a0t)", "std": "standard deviation", "minmax": "range"}


def student_cdf(t: float, freedom: int) -> float:
    """P(T <= t) for Student's t with `freedom` degrees of freedom: the finite sums that hold for whole numbers of them
    (Abramowitz and Stegun 1964, 26.7.3 and 26.7.4)."""
    angle = math.atan(abs(t) / math.sqrt(freedom))
    cosine, total = math.cos(angle), 0.0
    term, first = (1.0, 0) if freedom % 2 == 0 else (cosine, 1)
    for k in range(first, freedom - 1, 2):
        total += term
        term *= cosine * cosine * (k + 1) / (k + 2)
    inside = math.sin(angle) * total
    if freedom % 2:
        inside = 2.0 / math.pi * (angle + inside)
    return 0.5 + math.copysign(0.5 * inside, t)


@lru_cache(maxsize=None)
def student_quantile(probability: float, freedom: int) -> float:
    """t with P(T <= t) = probability, by bisection down to neighbouring floats; `probability` strictly between 0 and
    1."""
    if not 0.0 < probability < 1.0 or freedom < 1:
        raise ValueError(f"no quantile {probability} with {freedom} degrees of freedom")
    if probability == 0.5:
        return 0.0
    if probability < 0.5:
        return -student_quantile(1.0 - probability, freedom)
    low, high = 0.0, 1.0
    while student_cdf(high, freedom) < probability:
        low, high = high, 2.0 * high
    while low < (middle := 0.5 * (low + high)) < high:
        if student_cdf(middle, freedom) < probability:
            low = middle
        else:
            high = middle
    return high


def half_width(deviation: float, n: int) -> float:
    """Half width of the 95 % confidence interval of a mean, in the unit of `deviation` (the sample's); NaN for one
    value."""
    return student_quantile(0.975, n - 1) * deviation / math.sqrt(n) if n > 1 else math.nan


@dataclass(frozen=True)
class Spread:
    """n values, their mean and a band around it; `low` and `high` are NaN where one value gives no band."""

    n: int
    mean: float
    low: float
    high: float


def spread(values: Iterable[float], band: str = "ci95") -> Spread:
    """Of the finite ones among `values`."""
    known = np.asarray(list(values), dtype="float64")
    known = known[np.isfinite(known)]
    if known.size == 0:
        return Spread(0, math.nan, math.nan, math.nan)
    if known.size == 1:
        return Spread(1, float(known[0]), math.nan, math.nan)
    if known.min() == known.max():  # a sum of equal values is rounded, and so would be their deviation
        return Spread(known.size, *[float(known[0])] * 3)
    mean = float(known.mean())
    if band == "minmax":
        return Spread(known.size, mean, float(known.min()), float(known.max()))
    width = float(known.std(ddof=1))
    if band == "ci95":
        width = half_width(width, known.size)
    return Spread(known.size, mean, mean - width, mean + width)
