"""What the tests of cases share: the program run on scenarios of a test's own, and what it leaves."""

import csv
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PROGRAM = ""
SHARED = Path(__file__).resolve().parents[3] / "shared" / "cases"


def shared_cases() -> Path:
    """The folder shared/cases beside the repository, or where RUBATO_SHARED says; it need not exist."""
    given = os.environ.get("RUBATO_SHARED")
    return Path(given) / "cases" if given else SHARED


class Case(unittest.TestCase):
    """Each test has a folder of its own."""

    def setUp(self) -> None:
        # pylint: disable-next=consider-using-with
        self.scratch = tempfile.TemporaryDirectory(prefix="rubato-")
        self.addCleanup(self.scratch.cleanup)
        self.work = Path(self.scratch.name)
        self.count = 0

    def call(self, *arguments: object) -> subprocess.CompletedProcess:
        return subprocess.run([PROGRAM, *map(str, arguments)], cwd=self.work, capture_output=True, text=True,
                              check=False, timeout=300)

    def write(self, scenario: dict) -> Path:
        self.count += 1
        path = self.work / f"s{self.count}.json"
        path.write_text(json.dumps({"name": "case", **scenario}))
        return path

    def run_scenario(self, scenario: dict, *arguments: str, status: int = 0) -> Path:
        path = self.write(scenario)
        out = self.work / f"run{self.count}"
        done = self.call("run", path, "--out", out, "--quiet", *arguments)
        self.assertEqual(done.returncode, status, done.stderr)
        return out

    def refused(self, scenario: dict, command: str = "run") -> str:
        """Exit status 2, nothing on stdout, nothing written, and exactly one line, which is returned."""
        path = self.write(scenario)
        out = self.work / f"run{self.count}"
        done = self.call(command, path, *(("--out", out) if command == "run" else ()))
        self.assertEqual((done.returncode, done.stdout), (2, ""), done)
        self.assertRegex(done.stderr, r"\Arubato: [^\n]+\n\Z")
        self.assertFalse(out.exists())
        return done.stderr.strip().removeprefix("rubato: ")

    @staticmethod
    def summary(run: Path) -> dict:
        return json.loads((run / "summary.json").read_text())

    @staticmethod
    def rows(run: Path, table: str = "gradients.csv") -> list[dict]:
        with open(run / table, newline="") as file:
            return list(csv.DictReader(file))


def main() -> None:
    """Takes the program from the command line and runs the tests."""
    global PROGRAM
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    unittest.main(module="__main__")
