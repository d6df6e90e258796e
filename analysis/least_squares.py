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

    def fit(self, starts=(), rounds=8):
        """Returns the best point and its residuals, over all starts: from a single one a fit may get stuck where the
        grain of a discrete simulation hides the way down, and a row left out then looks better than it is."""
        ends = [self.descend(start, rounds) for start in (self.origin, *starts)]
        return min(ends, key=lambda end: end[1] @ end[1])

    def descend(self, point, rounds):
        best = self.residuals(point)
        for _ in range(rounds):
            point, best, better = self.improve(point, best, self.slopes(point))
            if not better:
                break
        return point, best

    def improve(self, point, best, slopes):
        """One step, the more damped the less the slopes hold; and whether it was worth another one."""
        normal = slopes.T @ slopes
        for damping in (0, 0.01, 0.1, 1, 10):
            damped = normal + damping * np.diag(np.diag(normal))
            step = np.clip(np.linalg.lstsq(damped, -slopes.T @ best, rcond=None)[0], -0.5, 0.5)
            trial = self.residuals(point + step)
            if trial @ trial < best @ best:
                return point + step, trial, best @ best - trial @ trial > 1e-5
        return point, best, False

    def without(self, index, full, rounds=8):
        """The best point of the other rows alone, from the start and from the full fit's point."""
        rest = copy.copy(self)
        rest.rows = [row for i, row in enumerate(self.rows) if i != index]
        rest.measured = np.delete(self.measured, index)
        return rest.fit([full], rounds)[0]
