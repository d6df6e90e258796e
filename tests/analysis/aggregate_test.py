"""load_sweep(DIR).aggregate says what aggregate.csv says: columns, order and values. aggregate_test.py ROOT RUBATO."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
import warnings

import numpy as np
import pandas as pd
import rubato_analysis
from rubato_analysis.aggregate import statistics

PROGRAM = ""
BASE = {
    "name": "bowl", "data": {"samples": 400}, "model": {"name": "quadratic", "dimension": 4, "noise": 0.05},
    "workers": {"count": 2, "batch_size": 10}, "protocol": {"name": "async"}, "stop": {"epochs": 1},
    "evaluate": {"every_epochs": 1}, "cluster": {"devices": {"default": {"a": 0.001}}},
    "optimizer": {"learning_rate": 0.1},
}
VARIANTS = [{"label": "soft, 1", "set": {"protocol": {"name": "n-softsync", "n": 1}}},
            {"label": "async", "set": {"protocol": {"name": "async"}, "comment": "x"}}]


class AggregateTest(unittest.TestCase):
    """Sweeps as rubato leaves them."""

    def setUp(self) -> None:
        # pylint: disable-next=consider-using-with
        self.root = tempfile.TemporaryDirectory()
        self.out = os.path.join(self.root.name, "out")
        with open(os.path.join(self.root.name, "base.json"), "w", encoding="utf-8") as file:
            json.dump(BASE, file)

    def tearDown(self) -> None:
        self.root.cleanup()

    def compare(self, sweep: dict, *words: str) -> rubato_analysis.Sweep:
        """Runs it and compares both."""
        path = os.path.join(self.root.name, "sweep.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"base": "base.json", **sweep}, file)
        done = subprocess.run([PROGRAM, "sweep", path, "--out", self.out, "--quiet", *words], capture_output=True,
                              text=True, check=False)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            sweep = rubato_analysis.load_sweep(self.out)
        computed, written = sweep.aggregate, sweep.written_aggregate
        self.assertEqual(list(computed.columns), list(written.columns))
        widths = [name for name in computed if name.endswith(".ci95")]
        pd.testing.assert_frame_equal(computed.drop(columns=widths), written.drop(columns=widths), check_dtype=False,
                                      check_exact=True)
        pd.testing.assert_frame_equal(computed[widths], written[widths], rtol=1e-13, atol=0)
        return sweep

    def test_columns_order_and_values(self) -> None:
        axes = {"workers.batch_size": [20, 4, 10], "optimizer.learning_rate": [0.1, 0.01, 60]}
        for seeds in ([3, 1], [3, 1, 2], [5, 4, 3, 2, 1, 0, 9]):
            sweep = self.compare({"variants": VARIANTS, "axes": axes, "seeds": seeds}, "-j", "2")
        table = sweep.aggregate
        self.assertEqual(table.label.tolist(), ["soft, 1"] * 9 + ["async"] * 9)
        self.assertEqual(table["workers.batch_size"].tolist(), [20] * 3 + [4] * 3 + [10] * 3 + [20] * 3 + [4] * 3
                         + [10] * 3)
        self.assertEqual(table.n.sum() + table.diverged.sum(), 7 * 18)
        self.assertGreater(table.diverged.sum(), 0)
        self.assertNotIn("setting.workers.mean", table)
        # Times are 0.1 s and the like, equal in all seeds.
        self.assertTrue((table["time_s.std"][table.n > 1] == 0.0).all())
        self.assertTrue((table["time_s.ci95"][table.n > 1] == 0.0).all())

    def test_an_earlier_version_of_the_sweep(self) -> None:
        batches, counts = {"workers.batch_size": [10, 20]}, {"workers.count": [2, 4]}
        self.compare({"axes": batches})
        self.compare({"axes": counts, "variants": VARIANTS})
        self.assertEqual(self.compare({"axes": counts}).swept, ["workers.count"])
        sweep = self.compare({"axes": batches, "seeds": [1, 2, 3]})
        self.assertEqual((sweep.swept, len(sweep.aggregate)), (["workers.batch_size"], 2))
        self.compare({"axes": batches | counts, "variants": VARIANTS})
        self.compare({"seeds": [1]})

    def test_tuning(self) -> None:
        tune = {"axes": {"optimizer.learning_rate": [0.2, 0.1, 80]}, "by": "train_loss", "seeds": [11]}
        bad = {"label": "bad", "set": {"optimizer.weight_decay": 1e4}}
        sweep = self.compare({"tune": tune, "variants": [bad, *VARIANTS], "seeds": [1, 2]})
        self.assertEqual(sweep.aggregate["failed"].tolist(), [2, 0, 0])
        self.assertTrue(sweep.aggregate["optimizer.learning_rate"].isna()[0])


class StatisticsTest(unittest.TestCase):
    """Columns with gaps."""

    def test_gaps(self) -> None:
        gap = np.nan
        mean, deviation, median, _ = statistics(np.array([[0.1, gap, 3.0, 1.0], [0.1, gap, gap, 4.0],
                                                          [0.1, gap, gap, 2.0], [gap, gap, gap, 9.0]]))
        np.testing.assert_array_equal(mean, [0.1, gap, 3.0, 4.0])
        np.testing.assert_array_equal(median, [0.1, gap, 3.0, 3.0])
        np.testing.assert_array_equal(deviation[:3], [0.0, gap, gap])
        self.assertAlmostEqual(deviation[3], np.sqrt(38.0 / 3.0))


if __name__ == "__main__":
    PROGRAM = os.path.abspath(sys.argv.pop())
    sys.argv.pop()
    unittest.main()
