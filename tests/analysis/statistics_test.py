"""Student's t against tables, and what a band is."""

import math
import unittest

import numpy as np
from rubato_analysis.resample import band_of, common_grid, last_values
from rubato_analysis.statistics import half_width, spread, student_cdf, student_quantile

# {degrees of freedom: (t at 0.95, t at 0.975, t at 0.995)}, as in tables (Abramowitz and Stegun 1964, table 26.10).
TABLE = {
    1: (6.314, 12.706, 63.657), 2: (2.920, 4.303, 9.925), 3: (2.353, 3.182, 5.841), 4: (2.132, 2.776, 4.604),
    5: (2.015, 2.571, 4.032), 9: (1.833, 2.262, 3.250), 10: (1.812, 2.228, 3.169), 20: (1.725, 2.086, 2.845),
    30: (1.697, 2.042, 2.750), 60: (1.671, 2.000, 2.660), 120: (1.658, 1.980, 2.617), 100_000: (1.645, 1.960, 2.576),
}


class StatisticsTest(unittest.TestCase):
    """Small numbers, by hand."""

    def test_quantiles_are_those_of_tables(self) -> None:
        for freedom, values in TABLE.items():
            for probability, expected in zip((0.95, 0.975, 0.995), values):
                self.assertAlmostEqual(student_quantile(probability, freedom), expected, delta=6e-4, msg=str(freedom))
                self.assertAlmostEqual(student_quantile(1 - probability, freedom), -expected, delta=6e-4)

    def test_closed_forms(self) -> None:
        for t in (-3.0, -0.5, 0.0, 0.7, 12.0):
            self.assertAlmostEqual(student_cdf(t, 1), 0.5 + math.atan(t) / math.pi, places=14)
            self.assertAlmostEqual(student_cdf(t, 2), 0.5 + t / (2 * math.sqrt(2 + t * t)), places=14)
        for freedom in (1, 2, 7, 30, 101):
            self.assertAlmostEqual(student_cdf(student_quantile(0.975, freedom), freedom), 0.975, places=12)
        self.assertEqual(student_quantile(0.5, 3), 0.0)
        for probability, freedom in ((0.0, 1), (1.0, 1), (0.5, 0)):
            with self.assertRaises(ValueError):
                student_quantile(probability, freedom)

    def test_bands(self) -> None:
        values = [1.0, 2.0, 6.0, math.nan, math.inf]
        one = spread(values)
        deviation = math.sqrt(7.0)
        self.assertEqual((one.n, one.mean), (3, 3.0))
        self.assertAlmostEqual(one.high - one.mean, 4.302652729 * deviation / math.sqrt(3), places=6)
        self.assertAlmostEqual(one.mean - one.low, half_width(deviation, 3))
        self.assertAlmostEqual(spread(values, "std").high, 3.0 + deviation)
        self.assertEqual((spread(values, "minmax").low, spread(values, "minmax").high), (1.0, 6.0))
        self.assertEqual((spread([4.0]).n, spread([4.0]).mean), (1, 4.0))
        self.assertTrue(math.isnan(spread([4.0]).low) and math.isnan(half_width(1.0, 1)))
        self.assertEqual(spread([]).n, 0)
        for band in ("ci95", "std", "minmax"):
            equal = spread([0.1] * 7, band)
            self.assertEqual((equal.n, equal.mean, equal.low, equal.high), (7, 0.1, 0.1, 0.1))

    def test_last_values(self) -> None:
        x, y = np.array([1.0, 2.0, 4.0]), np.array([10.0, 20.0, 40.0])
        found = last_values(x, y, np.array([0.5, 1.0, 1.9, 2.0, 3.0, 4.0, 9.0]))
        np.testing.assert_array_equal(found, [np.nan, 10, 10, 20, 20, 40, 40])

    def test_common_grid(self) -> None:
        first, second = (np.array([1.0, 3.0]), np.array([9.0, 5.0])), (np.array([2.0, 5.0]), np.array([8.0, 4.0]))
        band = band_of([first, second], "minmax")
        np.testing.assert_array_equal(band.x, [2, 3, 5])
        np.testing.assert_array_equal(band.mean, [8.5, 6.5, 4.5])
        np.testing.assert_array_equal(band.low, [8, 5, 4])
        np.testing.assert_array_equal(band.high, [9, 8, 5])
        self.assertEqual(band.n, 2)
        self.assertTrue(np.isnan(band_of([first], "ci95").low).all())
        many = np.arange(10_000.0)
        grid = common_grid([(many, many)])
        self.assertEqual((len(grid), grid[0], grid[-1]), (400, 0.0, 9999.0))


if __name__ == "__main__":
    unittest.main()
