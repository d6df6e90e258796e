"""Runs of rubato under mpirun, each in a folder of its own."""

import csv
import json
import os
import re
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest
from collections.abc import Callable
from typing import Any

MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]
PROGRAM = os.path.abspath(sys.argv.pop(1))


def weights_hash(weights: list[float]) -> str:
    """The hash of summary.json: FNV-1a over the bytes of float32 weights."""
    value = 14695981039346656037
    for byte in struct.pack(f"<{len(weights)}f", *weights):
        value = ((value ^ byte) * 1099511628211) % 2**64
    return f"{value:016x}"


class LaunchTest(unittest.TestCase):
    """Every test has a folder of its own and runs the program in it."""

    def setUp(self) -> None:
        # pylint: disable-next=consider-using-with
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)

    def path(self, *names: str) -> str:
        return os.path.join(self.scratch.name, *names)

    def command(self, ranks: int, scenario: dict[str, Any], out: str, *options: str) -> list[str]:
        """The command line; ranks 0: without a launcher."""
        with open(self.path(f"{out}.json"), "w", encoding="utf-8") as file:
            json.dump(scenario, file)
        launcher = [*MPIRUN, "-n", str(ranks)] if ranks else []
        return [*launcher, PROGRAM, "run", self.path(f"{out}.json"), "--out", self.path(out), *options]

    def run_on(self, backend: str, scenario: dict[str, Any], out: str, *options: str, ranks: int = 0,
               environment: dict[str, str] | None = None) -> dict[str, Any]:
        """The summary of a run that finishes; `ranks` 0: one for the server and each worker."""
        if backend == "mpi" and ranks == 0:
            ranks = scenario["workers"]["count"] + 1
        done = subprocess.run(
            self.command(ranks, scenario, out, "--backend", backend, "--quiet", *options),
            capture_output=True, text=True, timeout=240, check=False, env=os.environ | (environment or {}))
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.summary(out)

    def summary(self, out: str) -> dict[str, Any]:
        with open(self.path(out, "summary.json"), encoding="utf-8") as file:
            return json.load(file)

    def rows(self, out: str, table: str) -> list[dict[str, str]]:
        with open(self.path(out, table), encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    def assert_books(self, out: str) -> None:
        """started = applied + dropped + cancelled + leftover, in the summary, by row and by worker."""
        told = self.summary(out)["gradients"]
        rows = self.rows(out, "gradients.csv")
        for outcome, count in told.items():
            self.assertEqual(sum(row["outcome"] == outcome for row in rows), count, outcome)
        for worker in self.rows(out, "workers.csv"):
            mine = [row for row in rows if row["worker"] == worker["worker"]]
            # What a worker has begun is numbered without a gap, and every number has one row.
            self.assertEqual(sorted(int(row["worker_seq"]) for row in mine), list(range(len(mine))))
            for outcome in told:
                self.assertEqual(sum(row["outcome"] == outcome for row in mine), int(worker[outcome]))

    def assert_replays(self, out: str, *options: str) -> None:
        done = subprocess.run([PROGRAM, "replay", self.path(out), *options], capture_output=True, text=True,
                              timeout=120, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        if "--weights" in options:
            self.assertIn(f"the same final weights {self.summary(out)['weights_hash']}", done.stdout)

    def assert_whole_lines(self, out: str) -> None:
        for folder, _, names in os.walk(self.path(out)):
            for name in names:
                with open(os.path.join(folder, name), "rb") as file:
                    text = file.read()
                if name != "summary.json" and not name.startswith(".room"):
                    self.assertTrue(not text or text.endswith(b"\n"), name)

    def assert_all_lines_but_the_last(self, out: str) -> None:
        """What a process leaves that is killed while it writes: whole lines, and a last one that may be cut."""
        tables = 0
        for folder, _, names in os.walk(self.path(out)):
            for name in names:
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    lines = file.read().split("\n")[:-1]
                if name.startswith("events.log"):
                    for line in lines:
                        self.assertRegex(line, r"\A(H|S|E|A|R|END) [0-9a-f]{16} ", name)
                elif ".csv" in name:
                    tables += 1
                    self.assertEqual({len(line.split(",")) for line in lines}, {len(lines[0].split(","))}, name)
                    self.assertRegex(lines[0], r"\A[a-z_,]+\Z", name)
        self.assertGreater(tables, 2)

    def disturbed(self, command: list[str], disturb: Callable[[subprocess.Popen[str]], None],
                  begun: str, seconds: float = 60) -> tuple[int, str, float]:
        """Starts a run and calls `disturb` once the file `begun` has rows; exit status, output, seconds since then."""
        with open(self.path("output"), "w+", encoding="utf-8") as output:
            with subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, text=True) as process:
                try:
                    limit = time.monotonic() + 60
                    while not os.path.exists(begun) or os.path.getsize(begun) < 2000:
                        self.assertIsNone(process.poll(), "the run ended before it was disturbed")
                        self.assertLess(time.monotonic(), limit, "the run did not begin")
                        time.sleep(0.05)
                    disturb(process)
                    since = time.monotonic()
                    status = process.wait(seconds)
                    took = time.monotonic() - since
                finally:
                    process.kill()
            output.seek(0)
            return status, output.read(), took

    def ranks(self, launcher: int) -> dict[int, int]:
        """Process ids of the ranks of this launcher, by rank."""
        found = {}
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{name}/stat", encoding="utf-8") as file:
                    parent = int(file.read().rsplit(")", 1)[1].split()[1])
                with open(f"/proc/{name}/environ", "rb") as file:
                    told = re.search(rb"\0OMPI_COMM_WORLD_RANK=(\d+)\0", file.read())
            except (OSError, IndexError):
                continue
            if parent == launcher and told:
                found[int(told[1])] = int(name)
        return found

    def rank_process(self, launcher: int, rank: int) -> int:
        """Process id of a rank of this launcher."""
        found = self.ranks(launcher)
        self.assertIn(rank, found)
        return found[rank]

    def signal_rank(self, rank: int, what: signal.Signals) -> Callable[[subprocess.Popen[str]], None]:
        return lambda process: os.kill(self.rank_process(process.pid, rank), what)
