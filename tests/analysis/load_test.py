"""Reading runs: types, runs that were cut, runs that are broken."""

import json
import os
import tempfile
import unittest
import warnings

import rubato_analysis
from rubato_analysis import AnalysisError, TraceWarning, load
from rubato_analysis.schema import TABLES
from synthetic import write_run


class LoadTest(unittest.TestCase):
    """Each test has a run of its own."""

    def setUp(self) -> None:
        self.root = tempfile.TemporaryDirectory()
        self.path = write_run(os.path.join(self.root.name, "run"), n=2)

    def tearDown(self) -> None:
        self.root.cleanup()

    def text(self, leaf: str) -> str:
        with open(os.path.join(self.path, leaf), encoding="utf-8") as file:
            return file.read()

    def write(self, leaf: str, text: str) -> None:
        with open(os.path.join(self.path, leaf), "w", encoding="utf-8") as file:
            file.write(text)

    def warned(self, table: str) -> tuple[int, list[str]]:
        """(rows read, warnings)."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            rows = len(getattr(load(self.path), table))
        return rows, [str(warning.message) for warning in caught if issubclass(warning.category, TraceWarning)]

    def error(self, table: str) -> str:
        """The message of the AnalysisError: one line."""
        with self.assertRaises(AnalysisError) as caught:
            getattr(load(self.path), table)
        self.assertNotIn("\n", str(caught.exception))
        return str(caught.exception)

    def test_types(self) -> None:
        run = load(self.path)
        for table, columns in TABLES.items():
            frame = getattr(run, table)
            self.assertGreater(len(frame), 0, table)
            for column, kind in columns.items():
                self.assertEqual(str(frame[column].dtype), {"str": "object"}.get(kind, kind), f"{table}.{column}")

    def test_values(self) -> None:
        run = load(self.path)
        applied = run.gradients[run.gradients.outcome == "applied"]
        self.assertTrue((applied.staleness == applied.apply_version - applied.read_version).all())
        cancelled = run.gradients[run.gradients.outcome == "cancelled"]
        self.assertEqual(len(cancelled), 1)
        self.assertTrue(cancelled.staleness.isna().all())
        by_update = applied.groupby("apply_version").staleness.mean()
        self.assertTrue((by_update.to_numpy() == run.updates.mean_staleness.to_numpy()).all())
        self.assertEqual((run.protocol, run.n, run.workers_count, run.batch_size), ("n-softsync", 2, 4, 32))
        self.assertEqual((run.gradients_per_update, run.staleness_rule, run.status), (2, "inverse-n", "finished"))
        self.assertEqual(run.summary["updates"], len(run.updates))

    def test_a_last_line_without_its_end_is_skipped(self) -> None:
        whole = self.text("gradients.csv")
        rows = whole.count("\n") - 1
        for cut in (1, 5, 30):  # without the newline alone, the line may still look whole
            self.write("gradients.csv", whole[:-cut])
            count, warned = self.warned("gradients")
            self.assertEqual(count, rows - 1)
            self.assertEqual(len(warned), 1)
            self.assertIn(f"gradients.csv:{rows + 1}: ", warned[0])

    def test_a_last_line_that_cannot_be_read_is_skipped(self) -> None:
        rows = self.text("updates.csv").count("\n") - 1
        for line in ("1,2,3\n", "1,2,0,x,0,1,1,1,1\n", "1,2,0,4,,zz,1,1,1\n", "\n", "\x00\x00\x00\n"):
            whole = self.text("updates.csv")
            self.write("updates.csv", whole + line)
            count, warned = self.warned("updates")
            self.assertEqual((count, len(warned)), (rows, 1), line)
            self.write("updates.csv", whole)

    def test_a_broken_line_in_the_middle_is_an_error(self) -> None:
        lines = self.text("updates.csv").split("\n")
        for broken in ("1,2,3", "1,2,0,x,0,1,1,1,1", lines[5] + ",7", ""):
            self.write("updates.csv", "\n".join(lines[:5] + [broken] + lines[6:]))
            self.assertIn("updates.csv:6: ", self.error("updates"), broken)

    def test_an_empty_or_cut_header(self) -> None:
        for text in ("", "time_ns,versi"):
            self.write("updates.csv", text)
            self.assertEqual(self.warned("updates")[0], 0)

    def test_a_header_alone_is_an_empty_table(self) -> None:
        self.write("updates.csv", self.text("updates.csv").split("\n")[0] + "\n")
        self.assertEqual(self.warned("updates"), (0, []))
        self.assertEqual(str(load(self.path).updates.version.dtype), "int64")

    def test_missing_columns_are_named(self) -> None:
        self.write("updates.csv", self.text("updates.csv").replace("mean_staleness,", "", 1))
        self.assertIn("updates.csv:1: column mean_staleness missing", self.error("updates"))

    def test_more_columns_are_kept(self) -> None:
        lines = self.text("updates.csv").rstrip("\n").split("\n")
        self.write("updates.csv", "\n".join([lines[0] + ",gap"] + [line + ",0.5" for line in lines[1:]]) + "\n")
        self.assertEqual(load(self.path).updates.gap.unique().tolist(), [0.5])

    def test_names_with_commas(self) -> None:
        self.write("servers.csv", self.text("servers.csv").replace("host-s", '"host, s"'))
        self.assertEqual(load(self.path).servers.host.tolist(), ["host, s"])

    def test_a_missing_table_says_how_to_get_it(self) -> None:
        os.remove(os.path.join(self.path, "timeline.csv"))
        self.assertIn("--timeline", self.error("timeline"))

    def test_numbers_that_are_none(self) -> None:
        text = self.text("evals.csv").split("\n")
        cells = text[1].split(",")
        cells[4] = "nan"
        cells[5] = "inf"
        self.write("evals.csv", "\n".join([text[0], ",".join(cells)] + text[2:]))
        first = load(self.path).evals.iloc[0]
        self.assertTrue(first.train_loss != first.train_loss and first.valid_loss == float("inf"))

    def test_what_is_not_a_run(self) -> None:
        os.mkdir(os.path.join(self.root.name, "empty"))
        for path, text in (("nowhere", "no such directory"), ("empty", "not a run directory"),
                           ("run/updates.csv", "not a directory")):
            with self.assertRaisesRegex(AnalysisError, text):
                load(os.path.join(self.root.name, path))
        self.write("scenario.json", '{"name": \n oops}')
        with self.assertRaisesRegex(AnalysisError, "scenario.json:2: not valid JSON"):
            load(self.path)

    def test_a_killed_run_has_no_summary(self) -> None:
        os.remove(os.path.join(self.path, "summary.json"))
        with self.assertWarnsRegex(TraceWarning, "did not finish"):
            run = load(self.path)
        self.assertEqual((run.summary, run.status), ({}, "unfinished"))

    def test_shapes_of_a_scenario(self) -> None:
        scenario = json.loads(self.text("scenario.json"))
        scenario["workers"] = {"groups": [{"count": 3}, {"count": 4}], "batch_size": 8}
        scenario["protocol"] = {"name": "SSGD"}
        scenario["optimizer"]["staleness_rule"] = {"expression": "1/(1+staleness)"}
        self.write("scenario.json", json.dumps(scenario))
        run = rubato_analysis.load(self.path)
        self.assertEqual((run.workers_count, run.protocol, run.n), (7, "hardsync", None))
        self.assertEqual((run.gradients_per_update, run.staleness_rule), (7, "1/(1+staleness)"))


if __name__ == "__main__":
    unittest.main()
