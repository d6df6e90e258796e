"""Reading sweeps: types, statistics, kills, points that are gone; and running the program from Python."""

import json
import math
import os
import sys
import tempfile
import unittest
import warnings
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
import rubato_analysis
from rubato_analysis import AnalysisError, TraceWarning, load_sweep, program
from rubato_analysis.kinds import conditions
from rubato_analysis.points import collect, series_of_points
from rubato_analysis.statistics import student_quantile
from synthetic_sweep import write_sweep

FAKE = """#!{python}
import json, sys
words = sys.argv[1:]
sets = dict(words[i + 1].split("=", 1) for i, word in enumerate(words) if word == "--set")
if "bad" in sets:
    sys.exit("note: something is dropped\\nrubato: --set bad: unknown key; did you mean bed?")
if "cut" in sets:
    print("{{")
else:
    print(json.dumps({{"status": "diverged" if "lost" in sets else "finished", "words": words}}))
sys.exit(3 if "lost" in sets else 0)
"""


class SweepTest(unittest.TestCase):
    """Each test has a sweep of its own."""

    def setUp(self) -> None:
        # pylint: disable-next=consider-using-with
        self.root = tempfile.TemporaryDirectory()
        self.path = write_sweep(os.path.join(self.root.name, "sweep"), lost={
            ("hardsync", 4, 16, 2): "diverged", ("1-softsync", 1, 4, 1): "failed"})
        self.table = os.path.join(self.path, "results.csv")

    def tearDown(self) -> None:
        self.root.cleanup()

    def load(self) -> tuple[rubato_analysis.Sweep, list[str]]:
        """The sweep, and warnings."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            sweep = load_sweep(self.path)
        return sweep, [str(one.message) for one in caught if issubclass(one.category, TraceWarning)]

    def text(self) -> str:
        with open(self.table, encoding="utf-8") as file:
            return file.read()

    def write(self, text: str) -> None:
        with open(self.table, "w", encoding="utf-8") as file:
            file.write(text)

    def test_types(self) -> None:
        sweep, warned = self.load()
        self.assertEqual(warned, [])
        self.assertEqual((len(sweep.results), sweep.swept), (24, ["workers.count", "workers.batch_size"]))
        types = {"seed": "Int64", "workers.count": "Int64", "status": "object", "time_s": "float64", "updates": "Int64",
                 "test_error": "float64", "setting.protocol": "object", "samples_to_target": "Int64"}
        self.assertEqual({name: str(sweep.results[name].dtype) for name in types}, types)
        self.assertEqual(sweep.results.status_detail[sweep.results.status == "diverged"].iloc[0],
                         'a loss is not finite, "nan"')
        self.assertIn("time_s", sweep.figures)
        self.assertNotIn("setting.protocol", sweep.figures)

    def test_aggregate(self) -> None:
        sweep, _ = self.load()
        table = sweep.aggregate.set_index(["label", "workers.count", "workers.batch_size"])
        self.assertEqual(len(table), 8)
        places = ("hardsync", 1, 4), ("hardsync", 4, 16), ("1-softsync", 1, 4)
        whole, lost, failed = (table.loc[place] for place in places)
        self.assertEqual([whole[k] for k in ("n", "diverged", "failed")], [3, 0, 0])
        self.assertEqual([lost[k] for k in ("n", "diverged", "failed")], [2, 1, 0])
        self.assertEqual([failed[k] for k in ("n", "diverged", "failed")], [2, 0, 1])
        rows = sweep.results
        values = rows.test_error[(rows.label == "hardsync") & (rows["workers.count"] == 1)
                                 & (rows["workers.batch_size"] == 4)]
        self.assertAlmostEqual(whole["test_error.mean"], values.mean())
        self.assertAlmostEqual(whole["test_error.median"], values.median())
        self.assertAlmostEqual(whole["test_error.std"], values.std())
        self.assertAlmostEqual(whole["test_error.ci95"], student_quantile(0.975, 2) * values.std() / math.sqrt(3))
        times = rows.time_s[(rows.label == "hardsync") & (rows["workers.count"] == 4) & (rows.status == "finished")
                            & (rows["workers.batch_size"] == 16)]
        self.assertAlmostEqual(lost["time_s.mean"], times.mean())  # the diverged run ended early
        self.assertEqual(whole.reached, 3)
        self.assertIsNone(sweep.written_aggregate)

    def test_one_seed_has_a_mean_and_no_interval(self) -> None:
        sweep = load_sweep(write_sweep(os.path.join(self.root.name, "one"), seeds=(7,)))
        self.assertTrue((sweep.aggregate.n == 1).all())
        self.assertTrue(sweep.aggregate["time_s.mean"].notna().all() and sweep.aggregate["time_s.ci95"].isna().all())

    def test_the_written_aggregate_is_read_with_types(self) -> None:
        sweep, _ = self.load()
        sweep.aggregate.to_csv(os.path.join(self.path, "aggregate.csv"), index=False, lineterminator="\n")
        written = load_sweep(self.path).written_aggregate
        self.assertEqual(list(written.columns), list(sweep.aggregate.columns))
        self.assertEqual(written.label.tolist(), sweep.aggregate.label.tolist())
        for name in sweep.aggregate.columns[1:]:
            np.testing.assert_allclose(written[name].astype("float64"), sweep.aggregate[name].astype("float64"))

    def test_a_last_line_that_a_kill_broke(self) -> None:
        whole = self.text()
        for cut in (1, 30, 100):
            self.write(whole[:-cut])
            sweep, warned = self.load()
            self.assertEqual((len(sweep.results), len(warned)), (23, 1))
            self.assertIn("results.csv:25: ", warned[0])
        self.write(whole + "ff,report,hard\n")
        self.assertEqual((len(self.load()[0].results), len(self.load()[1])), (24, 1))
        lines = whole.split("\n")
        self.write("\n".join(lines[:5] + ["ff,report"] + lines[5:]))
        with self.assertRaisesRegex(AnalysisError, "results.csv:6: 2 cells"):
            load_sweep(self.path)

    def test_a_table_that_a_spreadsheet_saved(self) -> None:
        whole, expected = self.text(), self.load()[0]
        for text in (whole, "\ufeff" + whole):
            with open(self.table, "w", encoding="utf-8", newline="\r\n") as file:
                file.write(text)
            sweep, warned = self.load()
            self.assertEqual(warned, [])
            pd.testing.assert_frame_equal(sweep.results, expected.results)
            pd.testing.assert_frame_equal(sweep.aggregate, expected.aggregate)

    def test_a_point_that_was_run_again_counts_once(self) -> None:
        failed = next(line for line in self.text().split("\n") if ",failed," in line)
        done = self.text().rstrip("\n").split("\n")[-1].split(",")
        again = failed.split(",")[:6] + done[6:]
        self.write(self.text() + ",".join(again) + "\n")
        sweep, _ = self.load()
        self.assertEqual((len(sweep.results), (sweep.results.status == "failed").sum()), (24, 0))

    def test_points_that_are_gone_and_points_to_come(self) -> None:
        sweep, _ = self.load()
        points = sweep.results.point.tolist()
        with open(os.path.join(self.path, "points.txt"), "w", encoding="utf-8") as file:
            file.write("\n".join(points[3:] + ["new"]) + "\n")
        sweep, warned = self.load()
        self.assertEqual((len(sweep.results), len(warned)), (21, 1))
        self.assertIn("3 rows of points that no longer belong", warned[0])
        self.assertEqual((len(sweep.points), sweep.points.status.iloc[-1]), (22, "pending"))
        os.remove(os.path.join(self.path, "points.txt"))
        self.assertEqual((len(self.load()[0].results), self.load()[1]), (24, []))

    def test_values_of_swept_keys(self) -> None:
        text = self.text().replace("workers.batch_size", "optimizer.staleness_rule", 1)
        lines = text.rstrip("\n").split("\n")
        rules = ["none", '"{""expression"":""1/(1+staleness)"",""a"":0.5}"', "", "true"]
        for i, line in enumerate(lines[1:], 1):
            cells = line.split(",")
            cells[5] = rules[i % 4]
            lines[i] = ",".join(cells)
        self.write("\n".join(lines) + "\n")
        sweep, _ = self.load()
        self.assertIn('{"expression":"1/(1+staleness)","a":0.5}', set(sweep.results["optimizer.staleness_rule"]))
        self.assertEqual(sweep.aggregate[["n", "diverged", "failed"]].sum().sum(), 24)

    def test_a_key_that_some_variants_lack(self) -> None:
        lines = self.text().rstrip("\n").split("\n")
        for i, line in enumerate(lines[1:], 1):
            cells = line.split(",")
            cells[5] = "" if i % 2 else cells[5]
            lines[i] = ",".join(cells)
        self.write("\n".join(lines) + "\n")
        sweep, _ = self.load()
        self.assertEqual(str(sweep.results["workers.batch_size"].dtype), "Int64")
        self.assertEqual(sweep.results["workers.batch_size"].isna().sum(), 12)
        self.assertEqual(sweep.aggregate[["n", "diverged", "failed"]].sum().sum(), 24)
        self.assertTrue(sweep.aggregate["workers.batch_size"].isna().any())

    def test_what_is_no_sweep(self) -> None:
        for path, message in (("nowhere", "no such directory"), (self.table, "not a directory"),
                              (self.root.name, "not a sweep directory")):
            with self.assertRaisesRegex(AnalysisError, message):
                load_sweep(path)
        self.write("point,phase,label\n")
        with self.assertRaisesRegex(AnalysisError, "results.csv:1: columns seed, status, status_detail missing"):
            load_sweep(self.path)
        for text in ("", self.text().split("\n")[0][:9], "point,phase,label,seed,status,status_detail\n"):
            self.write(text)
            self.assertEqual(len(self.load()[0].results), 0)

    def test_series(self) -> None:
        points = collect([self.load()[0]])
        rows = points.report
        names = [one.name for one in series_of_points(rows, points.swept, ["setting.workers", "setting.batch_size"])]
        self.assertEqual(names, ["hardsync", "1-softsync"])
        names = [one.name for one in series_of_points(rows, points.swept, ["workers.count"])]
        self.assertEqual(names, ["hardsync, batch 4", "hardsync, batch 16", "1-softsync, batch 4",
                                 "1-softsync, batch 16"])
        some = points.where({"label": ["hardsync"], "workers.count": ["1"]})
        self.assertEqual(len(some.rows), 6)
        self.assertEqual(conditions(["label=a, b", "seed=1", "seed=2"]), {"label": ["a, b", "a", " b"],
                                                                          "seed": ["1", "2"]})
        with self.assertRaisesRegex(AnalysisError, "no such column; swept are label, workers.count"):
            points.where({"workers": ["1"]})

    def test_kept_runs(self) -> None:
        sweep = load_sweep(write_sweep(os.path.join(self.root.name, "kept"), workers=(2,), batches=(4,), keep=True))
        self.assertTrue((sweep.points.run != "").all())
        self.assertEqual(sweep.run(sweep.results.point[0]).protocol, "hardsync")
        with self.assertRaisesRegex(AnalysisError, "--keep"):
            self.load()[0].run("00000000")


class RunTest(unittest.TestCase):
    """run() over a program that only answers."""

    def setUp(self) -> None:
        # pylint: disable-next=consider-using-with
        self.root = tempfile.TemporaryDirectory()
        self.program = os.path.join(self.root.name, "rubato")
        with open(self.program, "w", encoding="utf-8") as file:
            file.write(FAKE.format(python=sys.executable))
        os.chmod(self.program, 0o755)

    def tearDown(self) -> None:
        self.root.cleanup()

    def test_command(self) -> None:
        summary = rubato_analysis.run("a.json", set={"protocol.n": 4, "name": "x y", "optimizer.staleness_rule": None},
                                      rubato=self.program, out="runs/one")
        self.assertEqual(summary["words"], ["run", "--json", "--quiet", "--set", "protocol.n=4", "--set", 'name="x y"',
                                            "--set", "optimizer.staleness_rule=null", "--out", "runs/one", "a.json"])

    def test_a_run_that_diverged_has_a_summary(self) -> None:
        self.assertEqual(rubato_analysis.run("a.json", set={"lost": 1}, rubato=self.program)["status"], "diverged")

    def test_where_the_program_is(self) -> None:
        nothing = os.path.join(self.root.name, "nothing")
        os.makedirs(nothing)
        at = os.path.dirname(self.program)
        with mock.patch.object(program, "BUILD", Path(nothing)), mock.patch.dict(os.environ, {"PATH": nothing}):
            os.environ.pop("RUBATO", None)
            with self.assertRaisesRegex(AnalysisError, r"\Arubato is neither on PATH nor at \S+/nothing/rubato; the "
                                        r"environment variable RUBATO, or rubato=PATH, names the program\Z"):
                rubato_analysis.run("a.json")
            with mock.patch.object(program, "BUILD", Path(at)):
                self.assertEqual(program.find_program(), self.program)
                self.assertEqual(rubato_analysis.run("a.json")["words"][-1], "a.json")
            with mock.patch.dict(os.environ, {"PATH": at}):
                self.assertEqual(program.find_program(), "rubato")
            with mock.patch.dict(os.environ, {"RUBATO": self.program}):
                self.assertEqual(rubato_analysis.run("a.json")["words"][-1], "a.json")
            with mock.patch.dict(os.environ, {"RUBATO": "/nowhere/rubato"}):
                with self.assertRaisesRegex(AnalysisError, r"\ARUBATO=/nowhere/rubato: is no program that can be"):
                    rubato_analysis.run("a.json")
        self.assertEqual(program.BUILD, Path(__file__).resolve().parents[2] / "build")

    def test_failures(self) -> None:
        with self.assertRaises(AnalysisError) as caught:
            rubato_analysis.run("a.json", set={"bad": 1}, rubato=self.program)
        self.assertEqual(str(caught.exception), "rubato: --set bad: unknown key; did you mean bed?")
        with self.assertRaisesRegex(AnalysisError, "no valid JSON"):
            rubato_analysis.run("a.json", set={"cut": 1}, rubato=self.program)
        with self.assertRaisesRegex(AnalysisError, "no such file or directory; rubato=PATH"):
            rubato_analysis.run("a.json", rubato=os.path.join(self.root.name, "nowhere"))


if __name__ == "__main__":
    unittest.main()
