"""Sums that the MPI library takes: books, replays, and the weights of sums that are made of messages.

Usage: native_test.py RUBATO.
"""

import signal
import subprocess
import unittest
from typing import Any

from launch import LaunchTest, MPIRUN, PROGRAM
from learning import learning

PROTOCOLS: list[dict[str, Any]] = [
    {"name": "allreduce"},
    {"name": "layer-wise"},
    {"name": "layer-wise", "bucket_bytes": 3000, "apply": "completion-order"},
    {"name": "layer-wise", "apply": "wait-all"},
    {"name": "delayed", "delay": 1},
    {"name": "delayed", "delay": 3},
]


def scenario_of(protocol: dict[str, Any], algorithm: str) -> dict[str, Any]:
    scenario = learning(protocol | {"algorithm": algorithm}, 4, hidden=30)
    scenario["model"]["hidden"] = [30, 20]
    return scenario


class NativeTest(LaunchTest):
    """MPI_Iallreduce in place of messages between workers."""

    def losses(self, out: str) -> dict[tuple[str, str], float]:
        return {(row["worker"], row["worker_seq"]): float(row["loss"]) for row in self.rows(out, "gradients.csv")}

    def refusal(self, command: list[str]) -> str:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        lines = [line for line in done.stderr.splitlines() if line.startswith("rubato: ")]
        self.assertEqual(len(lines), 1, done.stderr)
        return lines[0]

    def test_weights_are_those_of_ordered_sums(self) -> None:
        for number, protocol in enumerate(PROTOCOLS):
            with self.subTest(protocol):
                out = f"native{number}"
                summary = self.run_on("mpi", scenario_of(protocol, "native"), out, ranks=4)
                self.assertEqual((summary["backend"], summary["status"]), ("mpi", "finished"))
                self.assert_books(out)
                self.assert_replays(out)
                self.assertEqual(len(self.rows(out, "iterations.csv")), 4 * summary["updates"])
                ordered = self.run_on("sim", scenario_of(protocol, "ordered"), out + "-ordered")
                self.assertEqual(summary["updates"], ordered["updates"])
                self.assertAlmostEqual(summary["test_error"], ordered["test_error"], delta=0.021)
                # Every worker's losses, of the first gradient to the last: a replica that is another one shows.
                expected = self.losses(out + "-ordered")
                self.assertEqual(self.losses(out).keys(), expected.keys())
                for which, loss in self.losses(out).items():
                    self.assertAlmostEqual(loss, expected[which], delta=1e-5 * expected[which], msg=str(which))

    def test_long_sums_go_in_pieces(self) -> None:
        summary = self.run_on("mpi", scenario_of({"name": "delayed", "delay": 2}, "native"), "pieces", ranks=4,
                              environment={"RUBATO_CHUNK_BYTES": "1000"})
        self.assertEqual(summary["status"], "finished")
        whole = self.run_on("mpi", scenario_of({"name": "delayed", "delay": 2}, "ordered"), "whole", ranks=4)
        self.assertEqual(summary["updates"], whole["updates"])
        expected = self.losses("whole")
        for which, loss in self.losses("pieces").items():
            self.assertAlmostEqual(loss, expected[which], delta=1e-5 * expected[which], msg=str(which))

    def test_ranks_agree_on_a_delay(self) -> None:
        scenario = scenario_of({"name": "adaptive-delay", "adapt_every": 3, "max_delay": 2}, "native")
        summary = self.run_on("mpi", scenario, "adapts", ranks=4)
        self.assertEqual(summary["status"], "finished")
        self.assert_books("adapts")
        self.assert_replays("adapts")
        delays: dict[str, set[str]] = {}
        for row in self.rows("adapts", "iterations.csv"):
            delays.setdefault(row["iteration"], set()).add(row["delay"])
        self.assertTrue(all(len(each) == 1 for each in delays.values()), delays)

    def test_others_refuse_it(self) -> None:
        scenario = scenario_of({"name": "allreduce"}, "native")
        for backend in ("sim", "local"):
            line = self.refusal(self.command(0, scenario, "elsewhere", "--backend", backend))
            self.assertIn("elsewhere.json", line)
            self.assertIn("protocol.algorithm: \"native\" is the sum of the MPI library", line)
            self.assertIn(f"which backend {backend} does not have", line)
            self.assertIn("expected --backend mpi, or an algorithm that is made of messages", line)
        for key, value in (("workers_per_rank", 2), ("emulate", {"messages": True})):
            line = self.refusal(self.command(0, scenario | {"execution": {key: value}}, "with", "--backend", "mpi"))
            self.assertIn(f"execution.{key}", line)
            self.assertIn("native", line)

    def test_weights_cannot_be_computed_anew(self) -> None:
        self.run_on("mpi", scenario_of({"name": "allreduce"}, "native"), "logged", ranks=4)
        line = self.refusal([PROGRAM, "replay", self.path("logged"), "--weights"])
        self.assertIn("in an order that nobody records", line)

    def test_a_rank_that_stands_still_ends_the_run(self) -> None:
        scenario = scenario_of({"name": "allreduce"}, "native") | {
            "stop": {"epochs": 100000}, "evaluate": {"at_end": False},
            "execution": {"stall_timeout_s": 2}, "trace": {"events": True}}
        command = self.command(4, scenario, "stalls", "--backend", "mpi", "--quiet")
        self.assertEqual(command[:len(MPIRUN)], MPIRUN)
        status, output, _ = self.disturbed(command, self.signal_rank(2, signal.SIGSTOP),
                                           self.path("stalls", "gradients.csv"))
        self.assertNotEqual(status, 0, output)
        self.assertEqual(self.summary("stalls")["status"], "stalled")


if __name__ == "__main__":
    unittest.main()
