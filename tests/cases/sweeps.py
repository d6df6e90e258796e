"""What the tests of sweeps share: small bases, and the tables that a sweep leaves."""

import csv
import json
import subprocess
import time
from pathlib import Path

import case

# Timing only, a few milliseconds. The rule fails in mid-run where `a` is large: a factor must not be negative.
BASE = {
    "name": "base", "cost": {"push_bytes": "1kB", "flops_per_sample": 1e6}, "data": {"samples": 1000},
    "workers": {"count": 4, "batch_size": 10}, "protocol": {"name": "async"}, "stop": {"gradients": 200},
    "optimizer": {"staleness_rule": {"expression": "2 - a * staleness", "a": 0.01}},
    "cluster": {"noise": {"lognormal_cv": 0.2}},
}
A = "optimizer.staleness_rule.a"


class SweepCase(case.Case):
    """A base scenario and sweeps of it in a folder of the test's own."""

    def setUp(self) -> None:
        super().setUp()
        self.base(BASE)
        self.out = self.work / "out"

    def base(self, scenario: dict) -> None:
        (self.work / "base.json").write_text(json.dumps(scenario))

    def sweep_file(self, sweep: dict) -> Path:
        path = self.work / "sweep.json"
        path.write_text(json.dumps({"base": "base.json", **sweep}))
        return path

    def sweep(self, sweep: dict, *arguments: object, status: int | None = 0) -> dict:
        """Runs it, quiet but for the counts, which are returned. status None: any."""
        done = self.call("sweep", self.sweep_file(sweep), "--out", self.out, "--json", *arguments)
        if status is not None:
            self.assertEqual(done.returncode, status, done.stderr)
        self.said = done.stderr
        return json.loads(done.stdout)

    def start(self, *arguments: object, stdout: int = subprocess.DEVNULL) -> subprocess.Popen:
        return subprocess.Popen([case.PROGRAM, "sweep", self.work / "sweep.json", "--out", self.out, "--quiet",
                                 *map(str, arguments)], cwd=self.work, stdout=stdout, stderr=subprocess.PIPE,
                                text=True)

    def lines(self) -> list[str]:
        path = self.out / "results.csv"
        return path.read_text().split("\n") if path.exists() else []

    def wait_for_rows(self, count: int) -> None:
        deadline = time.monotonic() + 60
        while len(self.lines()) < count + 2:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.002)

    def table(self, name: str = "results.csv") -> list[dict]:
        """Every line of it is whole."""
        with open(self.out / name, newline="") as file:
            rows = list(csv.DictReader(file))
        for row in rows:
            self.assertNotIn(None, row)
            self.assertNotIn(None, row.values())
        return rows

    def each_once(self, count: int) -> list[dict]:
        """So many rows, each of a point of its own."""
        rows = self.table()
        self.assertEqual(len(rows), count)
        self.assertEqual(len({row["point"] for row in rows}), count)
        return rows
