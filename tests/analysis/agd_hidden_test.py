"""What analysis/agd_hidden.py makes of runs whose times are known.

Usage: agd_hidden_test.py REPOSITORY RUBATO
"""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import pandas as pd

ROOT, PROGRAM = Path(sys.argv.pop(1)).resolve(), Path(sys.argv.pop(1)).resolve()
sys.path.insert(0, str(ROOT / "analysis"))

# pylint: disable-next=wrong-import-position
from agd_hidden import exposed_seconds  # noqa: E402

# A sum is a ring of four: six steps of 20 us and 2 MB at 1 GB/s, 12.12 ms.
SUM_MS = 6 * (0.02 + 2)


def scenario(slow_ms: float) -> dict:
    """Three workers take 20 ms a gradient, the fourth one `slow_ms`."""
    return {"name": "hidden", "data": {"samples": 400, "sampling": "strided"}, "cost": {"push_bytes": "8MB"},
            "workers": {"groups": [{"count": 3, "device": "fast"}, {"count": 1, "device": "slow"}], "batch_size": 1},
            "protocol": {"name": "allreduce"}, "stop": {"updates": 60}, "trace": {"layers": True},
            "cluster": {"network": {"model": "flow", "star": {"bandwidth": "1GBps", "latency": "10us"}},
                        "devices": {"fast": {"a": 0, "b": 0.02}, "slow": {"a": 0, "b": slow_ms * 1e-3}}}}


def rows_of_two(sum_ms: int, delay: int, iterations: int = 302) -> pd.DataFrame:
    """Two workers whose gradients take 10 and 20 ms in turns, so that each iteration has another slow one."""
    rows, ready, sums = [], [0, 0], []
    for it in range(iterations):
        done = [ready[worker] + (10, 20)[(it + worker) % 2] for worker in range(2)]
        sums.append(max(done) + sum_ms)
        needed = sums[it - delay] if it >= delay else 0
        for worker in range(2):
            end = max(done[worker], needed)
            rows.append({"worker": worker, "iteration": it, "delay": delay, "begin_ns": ready[worker],
                         "computed_ns": done[worker], "waited_ns": end - done[worker], "end_ns": end})
            ready[worker] = end
    return pd.DataFrame(rows)


class Hidden(unittest.TestCase):
    """Each test has a folder of its own."""

    def setUp(self) -> None:
        # pylint: disable-next=consider-using-with
        self.scratch = tempfile.TemporaryDirectory(prefix="rubato-")
        self.addCleanup(self.scratch.cleanup)
        self.work = Path(self.scratch.name)

    def call(self, *arguments: object) -> subprocess.CompletedProcess:
        return subprocess.run([sys.executable, ROOT / "analysis/agd_hidden.py", *map(str, arguments)],
                              capture_output=True, text=True, check=False)

    def measured(self, slow_ms: float) -> dict[str, list[str]]:
        """Cells by protocol."""
        path = self.work / "scenario.json"
        path.write_text(json.dumps(scenario(slow_ms)))
        done = self.call("--launch", "", "--backend", "sim", "--program", PROGRAM, "--scenario", path, "--out",
                         self.work / f"runs-{slow_ms}")
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in done.stdout.splitlines()]
        return {line[0]: line[1:] for line in lines[2:]}

    def one_run(self, name: str, of: dict) -> Path:
        (self.work / f"{name}.json").write_text(json.dumps(of))
        subprocess.run([PROGRAM, "run", self.work / f"{name}.json", "--out", self.work / name, "--quiet"], check=True)
        return self.work / name

    def assert_cells(self, cells: list[str], expected: list[float | None]) -> None:
        for cell, value in zip(cells, expected, strict=True):
            if value is None:
                self.assertEqual(cell, "")
            else:
                self.assertAlmostEqual(float(cell), value, delta=0.11)

    def test_equal_workers_wait_for_the_sum_alone(self) -> None:
        found = self.measured(20)
        self.assert_cells(found["no-comm"], [20, 20, 0, 0, None, None, None])
        self.assert_cells(found["allreduce"], [20 + SUM_MS, 20, SUM_MS, SUM_MS, SUM_MS, None, None])
        self.assert_cells(found["delayed 1"], [20, 20, 0, 0, SUM_MS, 100, 100])
        self.assert_cells(found["delayed 2"], [20, 20, 0, 0, SUM_MS, 100, 100])

    def test_a_slow_worker_is_what_the_others_wait_for(self) -> None:
        found = self.measured(30)
        mean = (3 * 20 + 30) / 4
        waited = 30 + SUM_MS - mean
        self.assert_cells(found["allreduce"], [30 + SUM_MS, mean, waited, SUM_MS, SUM_MS, None, None])
        # The others are done with their gradient 10 ms before the slow one, whose last sum is there by then.
        self.assert_cells(found["delayed 1"][:5], [30, mean, 30 - mean, 0, SUM_MS])
        self.assertEqual(found["delayed 1"][5], "100.0")
        self.assertAlmostEqual(float(found["delayed 1"][6]), 100 * (1 - (30 - mean) / waited), delta=0.2)

    def test_what_communication_adds_where_workers_are_slow_in_turns(self) -> None:
        # A sum, and a gradient of 20 ms after it, take delay + 1 iterations, which are of 15 ms without communication,
        # of 20 where each waits for the slow one.
        for sum_ms in (0, 5, 10, 15, 30, 60):
            for delay in (0, 1, 2, 3):
                free = 15 if delay > 0 else 20
                with self.subTest(sum_ms=sum_ms, delay=delay):
                    rows = rows_of_two(sum_ms, delay)
                    self.assertAlmostEqual(1e9 * exposed_seconds(rows, 8),
                                           max(free, (sum_ms + 20) / (delay + 1)) - free, delta=0.1)
        # In every iteration one of them waits for nothing, and yet communication is in the way.
        rows = rows_of_two(30, 2)
        self.assertLess(rows[rows.iteration >= 8].groupby("iteration").waited_ns.min().mean(), 1)

    def test_runs_that_drain_their_sums_in_between_are_refused(self) -> None:
        paused = scenario(20) | {"model": {"name": "softmax"}, "evaluate": {"every_epochs": 0.3, "mode": "pause"}}
        saved = scenario(20) | {"execution": {"checkpoint": {"every_updates": 10}}}
        for name, refused in (("paused", paused), ("saved", saved)):
            done = self.call(self.one_run(name, refused))
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stderr, r"\Aagd_hidden.py: [^\n]+ drained for evaluations or checkpoints[^\n]+\n\Z")

    def test_runs_that_are_there_are_read_and_others_refused(self) -> None:
        self.measured(20)
        done = self.call(self.work / "runs-20" / "allreduce", self.work / "runs-20" / "delayed-2")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("| delayed 2 |", done.stdout)
        both = self.call(self.work / "runs-20" / "allreduce", self.work / "runs-20" / "allreduce")
        self.assertEqual(both.stdout.splitlines()[2:], done.stdout.splitlines()[2:3])  # the mean of the two
        alone = {"count": 1, "device": "fast", "batch_size": 1}  # which adds up nothing
        alone = self.call(self.one_run("alone", scenario(20) | {"workers": alone}))
        self.assertEqual(alone.returncode, 0, alone.stderr)
        self.assertNotIn("<NA>", alone.stdout)
        self.assertEqual(self.call("--skip", 1000, self.work / "runs-20" / "allreduce").returncode, 1)
        self.assertEqual(self.call(self.work / "nothing").returncode, 1)
        self.assertEqual(self.call().returncode, 2)


if __name__ == "__main__":
    unittest.main()
