"""Least squares on a simulator, with rows left out one by one."""

import copy

import numpy as np


class LeastSquares:
    """Gauss-Newton on the logarithms of predictions and parameters. A point is an array of logarithms.

    Weak springs hold parameters that few rows determine near where they started; they are further residuals.
    """

    def __init__(self, predict, rows, measured, start, springs):
        """predict(rows, values) gives what is to come near `measured`; start: values by name, all positive; springs:
        the strength of some, as the error in the logarithm that a factor of e in the parameter counts for."""
        self.predict, self.rows, self.names = predict, rows, list(start)
        self.measured = np.log(measured)
        self.springs = np.diag([springs.get(name, 0.0) for name in self.names])
        self.origin = np.log([start[name] for name in self.names])

    def values(self, point):
        """The parameters by name."""
        return dict(zip(self.names, np.exp(point)))

    def residuals(self, point):
        """Errors of the rows in the logarithm, then the pull of the springs."""
        off = np.log(self.predict(self.rows, self.values(point))) - self.measured
        return np.concatenate([off, self.springs @ (point - self.origin)])

    def slopes(self, point):
        """Central differences over a tenth either way, wider than the grain of a discrete simulation."""
        columns = [(self.residuals(point + step) - self.residuals(point - step)) / 0.2
                   for step in 0.1 * np.eye(len(point))]
        return np.array(columns).T

    def fit(self, rounds=6):
        """Returns the best point and its residuals."""
        point, best = self.origin, self.residuals(self.origin)
        for _ in range(rounds):
            point, best, better = self.improve(point, best, self.slopes(point))
            if not better:
                break
        return point, best

    def improve(self, point, best, slopes):
        """One step, shorter where the whole of it overshoots; and whether it was worth another one."""
        step = np.clip(np.linalg.lstsq(slopes, -best, rcond=None)[0], -0.5, 0.5)
        for shorter in (1, 0.5, 0.25, 0.125):
            trial = self.residuals(point + shorter * step)
            if trial @ trial < best @ best:
                return point + shorter * step, trial, best @ best - trial @ trial > 1e-5
        return point, best, False

    def without(self, index, rounds=6):
        """The best point of the other rows alone, from the very start: the full fit has seen the row."""
        rest = copy.copy(self)
        rest.rows = [row for i, row in enumerate(self.rows) if i != index]
        rest.measured = np.delete(self.measured, index)
        return rest.fit(rounds)[0]
