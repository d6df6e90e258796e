"""Cells of tables: means with their intervals, to the digits that these justify."""

import math

from rubato_analysis.metrics import Measured, is_fraction
from rubato_analysis.schema import SUMMARY_TYPES

DIGITS = 4  # of a mean, at most
LARGE, SMALL = 1e6, 1e-4  # from where on and up to where numbers are written as 1.2e7


def cell_text(cell: Measured | None, value: str) -> str:
    """`12.3 ± 0.4 (3)`, errors in per cent; what diverged or failed is told."""
    if cell is None:
        return "–"
    lost = [f"{count} {word}" for count, word in ((cell.diverged, "diverged"), (cell.failed, "failed")) if count]
    one = cell.spread
    if not one.n:
        return f"– ({', '.join(lost)})" if lost else "–"
    factor = 100.0 if is_fraction(value) else 1.0
    mean, width = factor * one.mean, factor * (one.high - one.mean)
    text = numbers(mean, width, SUMMARY_TYPES.get(value) == "Int64")
    return f"{text} ({', '.join([str(one.n), *lost])})"


def numbers(mean: float, width: float, count: bool = False) -> str:
    """A mean to the second digit of its interval, but to four digits at most. Counts stay whole: such that are the same
    in all runs are told in full."""
    if math.isnan(width) or width == 0.0:
        text = f"{mean:.0f}" if count and mean == round(mean) else rounded(mean, DIGITS)
        return text if math.isnan(width) else f"{_without_zeros(text)} ± 0"
    places = 1 - _exponent(width)
    if count and 1000.0 <= abs(mean) < LARGE and width >= 1.0:
        return f"{round(mean, min(places, 0)):.0f} ± {round(width, min(places, 0)):.0f}"
    digits = min(DIGITS, _exponent(mean) + places + 1)
    # Next to nothing beside its interval; one much narrower than the four digits keeps its own two.
    text = rounded(mean, digits) if digits > 0 else rounded(round(mean, places), 1)
    return f"{text} ± {rounded(width, 2)}"


def rounded(number: float, digits: int) -> str:
    """To so many significant digits; 1.2e7 where plain digits would be many."""
    mantissa, _, exponent = f"{number:.{digits - 1}e}".partition("e")
    number = float(f"{mantissa}e{exponent}")
    if number and not SMALL <= abs(number) < LARGE:
        return f"{mantissa}e{int(exponent)}"
    return f"{number:.{max(digits - 1 - int(exponent), 0)}f}"


def _without_zeros(text: str) -> str:
    """Zeros behind the point are no digits of an exact number."""
    mantissa, e, exponent = text.partition("e")
    return (mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa) + e + exponent


def _exponent(number: float) -> int:
    return math.floor(math.log10(abs(number))) if number else 0
