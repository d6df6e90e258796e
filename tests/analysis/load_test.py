"""Reading runs: types, runs that were cut, runs that are broken."""

import json
import os
import re
import tempfile
import unittest
import warnings

import pandas as pd

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
        with self.assertRaises(AnalysisError) as caught, warnings.catch_warnings():
            warnings.simplefilter("ignore", TraceWarning)
            getattr(load(self.path), table)
        self.assertNotIn("\n", str(caught.exception))
        return str(caught.exception)

    def assert_types(self, frame: pd.DataFrame, table: str) -> None:
        """Those of the table's columns."""
        for column, kind in TABLES[table].items():
            self.assertEqual(str(frame[column].dtype), {"str": "object"}.get(kind, kind), f"{table}.{column}")

    def test_types(self) -> None:
        run = load(self.path)
        for table in TABLES:
            frame = getattr(run, table)
            self.assertGreater(len(frame), 0, table)
            self.assert_types(frame, table)

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

    def test_tables_without_rows_have_all_types(self) -> None:
        for table in TABLES:
            self.write(f"{table}.csv", self.text(f"{table}.csv").split("\n")[0] + "\n")
        run = load(self.path)
        for table, columns in TABLES.items():
            frame = getattr(run, table)
            self.assertEqual((len(frame), list(frame.columns)), (0, list(columns)))
            self.assert_types(frame, table)

    def test_categories_are_the_same_in_every_run(self) -> None:
        run = load(self.path)
        outcomes = ["applied", "dropped", "cancelled", "leftover"]
        self.assertEqual(run.gradients.outcome.cat.categories.tolist(), outcomes)
        kinds = run.timeline.kind.cat.categories.tolist()
        expected = ["compute", "push", "pull", "inquiry", "apply", "evaluate", "wait", "down", "relay", "copy"]
        self.assertEqual(kinds, expected)
        self.write("gradients.csv", self.text("gradients.csv").replace(",applied,", ",lost,", 1))
        other = load(self.path).gradients
        self.assertEqual(other.outcome.cat.categories.tolist(), outcomes + ["lost"])
        self.assertEqual((other.outcome == "lost").sum(), 1)

    def test_integers_are_exact(self) -> None:
        lines = self.text("gradients.csv").split("\n")
        for value in (2**53 + 1, 2**62 + 3, -(2**60) - 1):
            cells = lines[1].split(",")
            cells[7] = cells[0] = str(value)
            self.write("gradients.csv", "\n".join([lines[0], ",".join(cells)] + lines[2:]))
            frame = load(self.path).gradients
            self.assertEqual((int(frame.pull_ns[0]), int(frame.seq[0])), (value, value))
            self.assert_types(frame, "gradients")
            self.assertEqual(frame.apply_version.isna().sum(), 1)

    def test_numbers_that_no_integer_holds(self) -> None:
        whole = self.text("updates.csv")
        lines = whole.split("\n")
        for cell in (str(2**63), "1.5", "", "0x1"):
            broken = lines[5].replace(",", f",{cell},", 1).split(",")
            del broken[2]
            self.write("updates.csv", "\n".join(lines[:5] + [",".join(broken)] + lines[6:]))
            self.assertIn(f"updates.csv:6: version is '{cell}', expected an integer", self.error("updates"))
            self.write("updates.csv", whole + ",".join(broken) + "\n")
            rows, warned = self.warned("updates")
            self.assertEqual((rows, len(warned)), (len(lines) - 2, 1), cell)
            self.assertIn(f"updates.csv:{len(lines)}: version is", warned[0])

    def test_broken_lines_beside_quoted_names(self) -> None:
        lines = self.text("workers.csv").replace("host-0", '"host, 0"').rstrip("\n").split("\n")
        broken = "1,default"
        self.write("workers.csv", "\n".join(lines[:2] + [broken] + lines[2:]) + "\n")
        self.assertIn("workers.csv:3: 2 cells where the header has 21", self.error("workers"))
        self.write("workers.csv", "\n".join(lines + [broken]) + "\n")
        rows, warned = self.warned("workers")
        self.assertEqual((rows, len(warned)), (len(lines) - 1, 1))
        self.assertIn(f"workers.csv:{len(lines) + 1}: ", warned[0])
        self.write("workers.csv", "\n".join(lines) + "\n")
        self.assertEqual(load(self.path).workers.host[0], "host, 0")

    def test_a_run_that_was_killed_at_once(self) -> None:
        """Headers, perhaps cut; no tables of workers and servers, no summary."""
        for table in ("gradients", "updates", "evals", "timeline"):
            self.write(f"{table}.csv", "")
        for leaf in ("workers.csv", "servers.csv", "summary.json"):
            os.remove(os.path.join(self.path, leaf))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            run = load(self.path)
            for table in ("gradients", "updates", "evals", "timeline"):
                self.assertEqual(len(getattr(run, table)), 0)
                self.assert_types(getattr(run, table), table)
        messages = [str(warning.message) for warning in caught]
        self.assertEqual(len(messages), 5, messages)
        self.assertIn("no summary.json", messages[0])
        self.assertIn("updates.csv:1: the file is empty", messages[2])
        self.assertIn("workers.csv: no such file", self.error("workers"))

    def test_a_column_that_stands_there_twice(self) -> None:
        self.write("evals.csv", self.text("evals.csv").replace("valid_loss", "train_loss", 1))
        self.assertIn("evals.csv:1: column valid_loss missing", self.error("evals"))
        self.write("evals.csv", self.text("evals.csv").replace("suboptimality", "valid_loss", 1))
        self.assertIn("evals.csv:1: ", self.error("evals"))

    def test_the_docstring_tells_every_type(self) -> None:
        """Columns that it does not name are of the type that "all others" have."""
        told = load.__doc__
        for table, columns in TABLES.items():
            text = told[told.index(f"\n    {table} ") :].partition(table)[2]
            ends = [text.index(f"\n    {other} ") for other in TABLES if f"\n    {other} " in text]
            text = text[: min(ends, default=len(text))]
            parts = re.findall(r"(\w+):([^;]*)", text)
            named = {word: kind for kind, words in parts for word in words.split()}
            others = [kind for kind, words in parts if "all others" in words]
            seconds = [kind for kind, words in parts if "seconds" in words]
            for column, kind in columns.items():
                expected = [named[column]] if column in named else seconds if column.endswith("_s") else others
                self.assertEqual(expected, [kind], f"{table}.{column}")

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
