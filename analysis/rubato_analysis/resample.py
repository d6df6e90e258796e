"""Curves of several seeds on one grid: at each of its points the last value that a run had measured."""

from dataclasses import dataclass

import numpy as np

from rubato_analysis.statistics import spread

GRID_MAX = 400


@dataclass(frozen=True)
class Band:
    """Mean of n curves on a grid, and a band around it (NaN where n is 1)."""

    x: np.ndarray
    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray
    n: int


def last_values(x: np.ndarray, y: np.ndarray, grid: np.ndarray) -> np.ndarray:
    """y of the last x that is not behind each point of the grid; NaN before the first. A run that has ended keeps its
    last value: its weights stay what they are."""
    index = np.searchsorted(x, grid, side="right") - 1
    values = np.asarray(y, dtype="float64")[np.maximum(index, 0)]
    return np.where(index >= 0, values, np.nan)


def common_grid(curves: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Every x at which some curve was measured, from where all have begun; thinned evenly to GRID_MAX points."""
    grid = np.unique(np.concatenate([x for x, _ in curves]))
    grid = grid[grid >= max(x[0] for x, _ in curves)]
    if len(grid) > GRID_MAX:
        grid = grid[np.unique(np.linspace(0, len(grid) - 1, GRID_MAX).round().astype(int))]
    return grid


def band_of(curves: list[tuple[np.ndarray, np.ndarray]], band: str) -> Band:
    """Mean and band of curves (x ascending, y) on their common grid; n is the same all along it."""
    grid = common_grid(curves)
    table = np.array([last_values(x, y, grid) for x, y in curves])
    columns = [spread(column, band) for column in table.T]
    mean, low, high = (np.array([getattr(one, what) for one in columns]) for what in ("mean", "low", "high"))
    return Band(grid, mean, low, high, len(curves))
