"""Training times of Table 2 of Gupta et al. 2015, predicted by the scenario that ships.

Usage: table2_test.py RUBATO REPOSITORY
"""

import json
import re
import subprocess
import sys
import tempfile
import unittest
from unittest import mock
from pathlib import Path

PROGRAM = ""
ROOT = Path()


class Table2(unittest.TestCase):
    """Published rows are read from analysis/data, and are targets of what runs predict."""

    @classmethod
    def setUpClass(cls) -> None:
        import calibrate_paper  # pylint: disable=import-outside-toplevel

        cls.script = calibrate_paper
        cls.published = json.loads((ROOT / "analysis/data/rudra.json").read_text())
        cls.simulator = calibrate_paper.Simulator(PROGRAM, cls.published)
        cls.ratios = calibrate_paper.ratios(cls.simulator)

    def seconds(self, protocol: str, n: int, batch_size: int, workers: int) -> float:
        row = {"protocol": protocol, "batch_size": batch_size, "workers": workers, **({"n": n} if n else {})}
        return self.simulator.row(row, {})

    def published_seconds(self, n: int, batch_size: int) -> float:
        (row,) = [row for row in self.published["rows"]
                  if row.get("n") == n and row["batch_size"] == batch_size and row["workers"] == 30]
        return row["time_s"]

    def test_published_rows(self) -> None:
        rows = self.published["rows"]
        predicted = self.simulator.rows(rows)
        self.assertLessEqual(self.script.mean_error(rows, predicted), 0.08)
        for row, seconds in zip(rows, predicted):
            self.assertLess(abs(seconds / row["time_s"] - 1), 0.2, self.script.label(row))

    def test_many_updates_cost_the_server_time(self) -> None:
        published = self.published_seconds(30, 4) / self.published_seconds(1, 4)
        self.assertLess(abs(self.ratios["30-softsync / 1-softsync, batch size 4"] / published - 1), 0.15)
        self.assertLess(self.ratios["the same without costs of the server"], 1.1)

    def test_order_of_protocols(self) -> None:
        # Small batches: 1-softsync before lambda-softsync before hardsync; large ones: both softsyncs about equal.
        for batch_size in (4, 128):
            one, many = self.seconds("n-softsync", 1, batch_size, 30), self.seconds("n-softsync", 30, batch_size, 30)
            hard = self.seconds("hardsync", 0, batch_size, 30)
            self.assertLess(max(one, many), hard)
            if batch_size == 4:
                self.assertLess(1.1 * one, many)
            else:
                self.assertLess(abs(many / one - 1), 0.05)

    def test_more_learners_are_faster(self) -> None:
        for protocol, n in (("hardsync", 0), ("n-softsync", 1)):
            times = [self.seconds(protocol, n, 32, workers) for workers in (1, 2, 4, 10, 18, 30)]
            self.assertEqual(times, sorted(times, reverse=True))

    def test_the_script_compares(self) -> None:
        done = subprocess.run([sys.executable, ROOT / "analysis/calibrate_paper.py", "--rubato", PROGRAM],
                              capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        page = (ROOT / "docs/calibration.md").read_text()
        for row in self.published["rows"]:
            (line,) = [line for line in done.stdout.splitlines() if self.script.label(row) in line]
            self.assertIn(line, page)  # the page is that of the scenario as it is

    def test_wrong_input_is_one_line(self) -> None:
        done = subprocess.run([sys.executable, ROOT / "analysis/calibrate_paper.py", "--rubato", "/no/such/program"],
                              capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done.stderr)
        row = {"protocol": "n-softsync", "batch_size": 4, "workers": 30, "time_s": 1}
        with tempfile.TemporaryDirectory(prefix="rubato-") as name:
            path = Path(name) / "rows.json"
            for text in ("", "[]", "{}", '{"rows": []}', json.dumps({"rows": [row]}),
                         json.dumps({"rows": [{**row, "n": 1, "time_s": 0}]}), '{"rows": [{"protocol": "hardsync"}]}'):
                path.write_text(text)
                with mock.patch.object(self.script, "ROWS", path):
                    self.assertRaisesRegex(self.script.Wrong, "^[^\n]+$", self.script.read_published)
        with self.assertRaisesRegex(self.script.Wrong, "^[^\n]*batch_size[^\n]*$"):
            self.seconds("n-softsync", 1, -4, 30)

    def test_least_squares_finds_a_power_law(self) -> None:
        import least_squares  # pylint: disable=import-outside-toplevel

        def predict(rows, values):
            return [values["c"] * x ** values["p"] for x in rows]

        rows, truth = [1, 2, 4, 8, 16], {"c": 3.0, "p": 0.8}
        measured = predict(rows, truth)
        measured[2] *= 1.5
        problem = least_squares.LeastSquares(predict, rows, measured, {"c": 1.0, "p": 0.5}, {})
        point, _ = problem.fit(rounds=20)
        self.assertGreater(problem.values(point)["c"], 3.1)
        for name, value in problem.values(problem.without(2, point, rounds=20)).items():
            self.assertAlmostEqual(value, truth[name], delta=0.01 * truth[name])

    def test_the_scenario_lists_what_is_fitted(self) -> None:
        self.assertLessEqual(len(self.script.PARAMETERS), 8)
        scenario = (ROOT / "scenarios/papers/rudra-table2.json").read_text()
        page = (ROOT / "docs/calibration.md").read_text()
        for name, (keys, _) in self.script.PARAMETERS.items():
            values = {self.script.get(json.loads(scenario), key) for key in keys}
            self.assertEqual(len(values), 1, f"{keys} are one parameter")
            self.assertIn(f"| `{name}` | {values.pop():g} |", page)
            for key in keys:
                self.assertRegex(re.search(r"Fitted by [^\"]*", scenario).group(), key.rsplit(".", 1)[-1])


if __name__ == "__main__":
    PROGRAM, ROOT = sys.argv.pop(1), Path(sys.argv.pop(1))
    sys.path.insert(0, str(ROOT / "analysis"))
    unittest.main()
