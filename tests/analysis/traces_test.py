"""docs/traces.md tells every file, column and field that a run leaves, no other, and their units and types.

Usage: traces_test.py SOURCE_ROOT RUBATO.
"""

import csv
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

import rubato_analysis
from rubato_analysis.schema import CATEGORIES, OF_FIGURES, OF_PROTOCOL, OF_TOPOLOGY, TABLES

ROOT = ""
PROGRAM = ""
SCENARIOS = {
    "learning": {"model": {"name": "softmax"}, "data": {"samples": 200, "shape": [4, 4, 1], "validation": 0.2},
                 "protocol": {"name": "hardsync"}, "stop": {"epochs": 2}, "evaluate": {"every_epochs": 1}},
    "quadratic": {"model": {"name": "quadratic", "dimension": 3}, "data": {"samples": 200},
                  "protocol": {"name": "async"}},
    "timing": {"cost": {"model": "cifar10-full"}, "data": {"samples": 300},
               "protocol": {"name": "n-softsync", "n": 2}},
    "dssp": {"cost": {"model": "cifar10-full"}, "data": {"samples": 600},
             "protocol": {"name": "dssp", "lower_bound": 0}, "cluster": {"noise": {"lognormal_cv": 0.5}}},
    "averaging": {"model": {"name": "mlp", "hidden": [5]}, "data": {"samples": 200, "shape": [4, 4, 1]},
                  "protocol": {"name": "sparknet", "tau": 2}},
    "sharded": {"model": {"name": "mlp", "hidden": [5]}, "data": {"samples": 200, "shape": [4, 4, 1]},
                "protocol": {"name": "async"}, "topology": {"name": "sharded", "shards": 2, "split": "layers"}},
    "faulty": {"cost": {"model": "cifar10-full"}, "data": {"samples": 600}, "protocol": {"name": "async"},
               "faults": [{"workers": [0], "at_s": 0.1, "until_s": 0.2},
                          {"links": ["host-1"], "at_s": 0.1, "bandwidth_factor": 0.5}]},
}


def tables_of(run: str) -> list[str]:
    """Those that such a run leaves."""
    with open(os.path.join(run, "scenario.json"), encoding="utf-8") as file:
        scenario = json.load(file)
    protocol, topology = scenario["protocol"]["name"], scenario["topology"]["name"]
    with open(os.path.join(run, "summary.json"), encoding="utf-8") as file:
        summary = json.load(file)
    return [table for table in TABLES if protocol in OF_PROTOCOL.get(table, (protocol,))
            and OF_TOPOLOGY.get(table, topology) == topology
            and (table not in OF_FIGURES or any(summary[OF_FIGURES[table]].values()))]


def sections() -> dict[str, list[list[str]]]:
    """{heading: the rows of its table, as cells without the head}."""
    with open(os.path.join(ROOT, "docs", "traces.md"), encoding="utf-8") as file:
        parts = re.split(r"(?m)^## ", file.read())[1:]
    found = {}
    for part in parts:
        rows = [line.strip("| ").split("|") for line in part.split("\n") if line.startswith("|")]
        found[part.split("\n")[0]] = [[cell.strip() for cell in row] for row in rows[2:]]
    return found


def names(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def flat(value: object, path: str = "") -> list[str]:
    """Dotted keys; `environment.libraries` holds whatever there is."""
    if isinstance(value, dict) and path != "environment.libraries":
        return [leaf for key, child in value.items() for leaf in flat(child, f"{path}.{key}" if path else key)]
    return [path]


class TracesTest(unittest.TestCase):
    """One run of each kind, on every backend that can, for all tests."""

    @classmethod
    def setUpClass(cls) -> None:
        # pylint: disable-next=consider-using-with
        cls.scratch = tempfile.TemporaryDirectory()
        cls.runs = []
        for name, scenario in SCENARIOS.items():
            path = os.path.join(cls.scratch.name, f"{name}.json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump({"workers": {"count": 3, "batch_size": 10}, **scenario}, file)
            for backend in ("sim", "local") if "model" in scenario else ("sim",):
                run = os.path.join(cls.scratch.name, f"{name}-{backend}")
                subprocess.run([PROGRAM, "run", path, "--out", run, "--quiet", "--timeline", "--events", "--backend",
                                backend], check=True, timeout=120)
                cls.runs.append(run)
        cls.told = sections()

    @classmethod
    def tearDownClass(cls) -> None:
        cls.scratch.cleanup()

    def test_every_file(self) -> None:
        files = {heading for heading in self.told if re.fullmatch(r"\w+\.\w+", heading)}
        with open(os.path.join(ROOT, "docs", "traces.md"), encoding="utf-8") as file:
            listed = re.findall(r"(?m)^\| \[([\w.]+)\]\(#\w+\) \|", file.read())
        self.assertEqual(set(listed), files)
        self.assertEqual(len(listed), len(files))
        for run in self.runs:
            without = {f"{table}.csv" for table in TABLES} - {f"{table}.csv" for table in tables_of(run)}
            self.assertEqual(set(os.listdir(run)), files - without)

    def test_every_column_in_its_order(self) -> None:
        for run in self.runs:
            for table in tables_of(run):
                with open(os.path.join(run, f"{table}.csv"), encoding="utf-8", newline="") as file:
                    header = next(csv.reader(file))
                told = [name for row in self.told[f"{table}.csv"] for name in names(row[0])]
                self.assertEqual(told, header, f"{run}: {table}")
                self.assertEqual(list(TABLES[table]), header, f"{run}: {table}")

    def test_every_field_of_the_summary(self) -> None:
        told = [name for row in self.told["summary.json"] for name in names(row[0])]
        self.assertEqual(len(told), len(set(told)))
        for run in self.runs:
            with open(os.path.join(run, "summary.json"), encoding="utf-8") as file:
                self.assertEqual(set(told), set(flat(json.load(file))), run)

    def test_types_and_units(self) -> None:
        units = {"_ns": "ns", "_s": "s", "_error": "fraction", "_loss": "nats", "version": "version"}
        for table, columns in TABLES.items():
            for row in self.told[f"{table}.csv"]:
                self.assertEqual(len(row), 4, row)
                for name in names(row[0]):
                    self.assertEqual(row[2], columns[name], f"{table}.{name}")
                    self.assertTrue(row[3], f"{table}.{name}")
                    for ending, unit in units.items():
                        if name.endswith(ending):
                            self.assertEqual(row[1], unit, f"{table}.{name}")
                            break
                if words := CATEGORIES.get(names(row[0])[0]):
                    self.assertEqual(sorted(word for word in names(row[3]) if word in words), sorted(words))
        for row in self.told["summary.json"]:
            self.assertEqual(len(row), 3, row)
            self.assertTrue(row[2], row)
            for name in names(row[0]):
                if name.endswith("_per_s") or name.endswith("_ci95"):
                    self.assertEqual(row[1], "1/s", name)
                elif name.endswith("_s"):
                    self.assertEqual(row[1], "s", name)

    def test_what_is_loaded_has_the_types(self) -> None:
        for run in self.runs:
            loaded = rubato_analysis.load(run)
            for table in tables_of(run):
                columns, frame = TABLES[table], getattr(loaded, table)
                types = {name: {"object": "str"}.get(str(frame[name].dtype), str(frame[name].dtype)) for name in frame}
                self.assertEqual(types, columns, f"{run}: {table}")
            self.assertEqual(loaded.gradients.outcome.isna().sum(), 0)
            self.assertEqual(set(loaded.gradients.outcome.cat.categories), set(CATEGORIES["outcome"]))
            self.assertEqual(set(loaded.timeline.kind.cat.categories), set(CATEGORIES["kind"]))

    def test_words_of_the_summary(self) -> None:
        with open(os.path.join(ROOT, "src", "core", "types.hpp"), encoding="utf-8") as file:
            enumeration = re.search(r"enum class Status[^{]*\{([^}]*)\}", file.read())[1]
        rows = {names(row[0])[0]: row[2] for row in self.told["summary.json"]}
        self.assertEqual(names(rows["status"]), [word.strip() for word in enumeration.split(",")])
        listed = subprocess.run([PROGRAM, "list", "backends"], capture_output=True, text=True, check=True).stdout
        self.assertEqual(names(rows["backend"]), [line.split()[0] for line in listed.splitlines()])

    def test_lines_of_the_event_log(self) -> None:
        kinds = [name for row in self.told["events.log"] for name in names(row[0])]
        for run in self.runs:
            with open(os.path.join(run, "events.log"), encoding="utf-8") as file:
                found = {line.split(" ")[0] for line in file}
        # S stands in the logs of resumed runs alone, which tests/cases has.
        self.assertEqual(found | {"S"}, set(kinds))


if __name__ == "__main__":
    PROGRAM = os.path.abspath(sys.argv.pop())
    ROOT = os.path.abspath(sys.argv.pop())
    unittest.main()
