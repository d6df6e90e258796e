"""Runs over MPI that are killed, or told to end, and go on from their last checkpoint.

Usage: resume_test.py RUBATO.
"""

import os
import signal
import subprocess
import time
import unittest
from typing import Any

from launch import PROGRAM, LaunchTest

POLICIES = [{"name": "hardsync"}, {"name": "n-softsync", "n": 1}, {"name": "n-softsync", "n": 2}, {"name": "async"}]
SAMPLES = 1003


def learning(policy: dict[str, Any]) -> dict[str, Any]:
    """A second or so of momentum SGD with a schedule; slices that do not divide an epoch."""
    return {
        "data": {"samples": SAMPLES, "shape": [8, 8, 1], "test_samples": 60, "classes": 4},
        "model": {"name": "mlp", "hidden": [16]},
        "workers": {"count": 4, "batch_size": 7},
        "protocol": policy,
        "optimizer": {"name": "momentum", "learning_rate": 0.02, "schedule": [{"epoch": 1.5, "factor": 0.5}]},
        "cluster": {"devices": {"default": {"a": 0.01, "b": 0}}},
        "stop": {"epochs": 3},
        "evaluate": {"every_epochs": 0.5},
        "execution": {"checkpoint": {"every_updates": 10}, "emulate": {"compute": True}},
        "trace": {"events": True, "timeline": True},
    }


class ResumeTest(LaunchTest):
    """Each test runs the program under mpirun."""

    size = 5  # ranks

    def checkpoints(self, out: str) -> list[int]:
        try:
            names = os.listdir(self.path(out, "checkpoints"))
        except FileNotFoundError:
            return []
        return sorted(int(name.removesuffix(".ckpt")) for name in names if name.endswith(".ckpt"))

    def stopped(self, scenario: dict[str, Any], out: str, version: int, rank: int, *options: str) -> None:
        """Starts a run, or goes on with it, and kills `rank` of it once a checkpoint of `version` or later is there."""
        command = self.command(self.size, scenario, out, "--backend", "mpi", "--quiet", *options)
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True) as process:
            limit = time.monotonic() + 60
            while not [it for it in self.checkpoints(out) if it >= version]:
                self.assertIsNone(process.poll(), "the run ended before it was killed")
                self.assertLess(time.monotonic(), limit)
                time.sleep(0.002)
            self.signal_rank(rank, signal.SIGKILL)(process)
            self.assertNotEqual(process.wait(30), 0)
        self.assertFalse(os.path.exists(self.path(out, "summary.json")))

    def resume(self, scenario: dict[str, Any], out: str) -> str:
        done = subprocess.run(self.command(self.size, scenario, out, "--backend", "mpi", "--resume"),
                              capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stderr

    def assert_one_run(self, out: str) -> None:
        summary = self.summary(out)
        self.assertEqual(summary["status"], "finished")
        self.assert_books(out)
        rows = self.rows(out, "gradients.csv")
        for epoch in range(3):
            seen: list[int] = []
            for row in rows:
                if int(row["data_epoch"]) == epoch:
                    seen += range(int(row["data_first"]), int(row["data_first"]) + int(row["samples"]))
            self.assertEqual(sorted(seen), list(range(SAMPLES)))
        updates = self.rows(out, "updates.csv")
        self.assertEqual([int(row["version"]) for row in updates], list(range(1, summary["updates"] + 1)))
        times = [int(row["time_ns"]) for row in updates]
        self.assertEqual(times, sorted(times))
        versions = [int(row["version"]) for row in self.rows(out, "evals.csv")]
        self.assertEqual(versions, sorted(set(versions)))
        self.assertEqual(len(versions), 7)
        computed = [row for row in self.rows(out, "timeline.csv") if row["kind"] == "compute"]
        self.assertGreaterEqual(len(computed), sum(summary["gradients"].values()) - 4)
        for worker in self.rows(out, "workers.csv"):
            seconds = sum(float(value) for name, value in worker.items() if name.endswith("_s"))
            self.assertAlmostEqual(seconds, summary["time_s"], delta=0.02 * summary["time_s"])
        self.assertFalse(os.path.exists(self.path(out, "ranks")))
        self.assert_replays(out)
        computed = subprocess.run([PROGRAM, "replay", self.path(out), "--weights", "--evaluate"], capture_output=True,
                                  text=True, timeout=120, check=False)
        self.assertEqual(computed.returncode, 0, computed.stdout + computed.stderr)
        self.assertIn(f"the same final weights {summary['weights_hash']}", computed.stdout)

    def test_killed_runs_go_on_as_one_run(self) -> None:
        for number, policy in enumerate(POLICIES):
            with self.subTest(policy):
                scenario, out = learning(policy), f"run{number}"
                self.stopped(scenario, out, 20, 0)
                self.stopped(scenario, out, 50, 2, "--resume")
                told = self.resume(scenario, out)
                self.assertIn("goes on from version", told)
                self.assertNotIn("looked at", told)
                self.assert_one_run(out)
                if policy["name"] == "hardsync":
                    whole = self.run_on("local", scenario, "whole")
                    self.assertEqual(self.summary(out)["weights_hash"], whole["weights_hash"])

    def test_killed_runs_that_average_go_on_from_the_joint_model(self) -> None:
        protocols = [{"name": "sparknet", "tau": 4}, {"name": "mpca", "phases": 3, "split": "bytes"},
                     {"name": "easgd", "tau": 4},
                     {"name": "streaming-diloco", "tau": 6, "fragments": 2, "overlap": 1, "split": "bytes"}]
        for number, protocol in enumerate(protocols):
            with self.subTest(protocol):
                scenario, out = learning(protocol), f"run{number}"
                scenario["data"] |= {"samples": 500, "sampling": "strided"}
                scenario["optimizer"] = {"name": "sgd", "learning_rate": 0.02}
                scenario["stop"] = {"gradients": 400}
                scenario["execution"]["checkpoint"] = {"every_updates": 3}
                self.stopped(scenario, out, 3, 0)
                self.stopped(scenario, out, 6, 2, "--resume")
                self.assertIn("goes on from version", self.resume(scenario, out))
                summary = self.summary(out)
                self.assertEqual(summary["status"], "finished")
                self.assertGreaterEqual(summary["gradients"]["applied"], 400)
                self.assert_books(out)
                self.assert_replays(out)
                computed = subprocess.run([PROGRAM, "replay", self.path(out), "--weights"], capture_output=True,
                                          text=True, timeout=120, check=False)
                self.assertIn(f"the same final weights {summary['weights_hash']}", computed.stdout)
                if protocol["name"] == "sparknet":
                    whole = self.run_on("local", scenario, "whole")
                    self.assertEqual(summary["weights_hash"], whole["weights_hash"])

    def test_killed_runs_without_a_server_go_on_from_a_replica(self) -> None:
        self.size = 4
        protocols = [{"name": "allreduce"}, {"name": "layer-wise"}, {"name": "delayed", "delay": 2},
                     {"name": "allreduce", "algorithm": "native"}]
        for number, protocol in enumerate(protocols):
            with self.subTest(protocol):
                scenario, out = learning(protocol), f"run{number}"
                scenario["data"]["sampling"] = "strided"
                scenario["evaluate"]["mode"] = "pause" if number % 2 == 0 else "deferred"
                self.stopped(scenario, out, 20, 0)
                self.stopped(scenario, out, 50, 2, "--resume")
                self.assertIn("goes on from version", self.resume(scenario, out))
                summary = self.summary(out)
                self.assertEqual((summary["status"], summary["samples"]), ("finished", 3 * SAMPLES))
                self.assert_books(out)
                self.assertEqual(len(self.rows(out, "iterations.csv")), 4 * summary["updates"])
                if protocol.get("algorithm") == "native":
                    self.assert_replays(out)
                    continue
                self.assert_replays(out, "--weights")
                if protocol["name"] != "delayed":
                    whole = self.run_on("local", scenario, f"whole{number}")
                    self.assertEqual(summary["weights_hash"], whole["weights_hash"])

    def test_a_signal_saves_once_more_where_that_fits(self) -> None:
        for number, policy in enumerate(POLICIES):
            with self.subTest(policy):
                scenario, out = learning(policy), f"run{number}"
                scenario["execution"]["checkpoint"] = {"every_epochs": 100}
                # mpirun takes a second or so to pass a signal on.
                scenario["cluster"]["devices"]["default"]["a"] = 0.04
                status, told, took = self.disturbed(
                    self.command(5, scenario, out, "--backend", "mpi", "--quiet"),
                    lambda process: process.send_signal(signal.SIGTERM), self.path(out, "gradients.csv"))
                self.assertNotEqual(status, 0, told)
                self.assertLess(took, 20)
                self.assertEqual(len(self.checkpoints(out)), 1, told)
                self.resume(scenario, out)
                self.assert_one_run(out)

    def test_a_kill_before_the_first_checkpoint_begins_anew(self) -> None:
        scenario, out = learning({"name": "hardsync"}), "early"
        scenario["execution"]["checkpoint"] = {"every_epochs": 100}
        command = self.command(5, scenario, out, "--backend", "mpi", "--quiet", "--resume")
        self.disturbed(command, self.signal_rank(0, signal.SIGKILL), self.path(out, "gradients.csv"))
        self.assertEqual(self.checkpoints(out), [])
        self.assertIn("which has left no checkpoint: the run begins anew", self.resume(scenario, out))
        self.assert_one_run(out)
        whole = self.run_on("local", scenario, "whole")
        self.assertEqual(self.summary(out)["weights_hash"], whole["weights_hash"])

    def test_other_ranks_need_not_see_the_checkpoint_and_another_scenario_is_refused_in_one_line(self) -> None:
        scenario = learning({"name": "hardsync"})
        scenario["trace"] = {}
        self.stopped(scenario, "run", 20, 1)
        scenario["optimizer"]["learning_rate"] = 1
        done = subprocess.run(self.command(5, scenario, "run", "--backend", "mpi", "--resume"), capture_output=True,
                              text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, 2)
        lines = [line for line in done.stderr.splitlines() if line.startswith("rubato:")]
        self.assertEqual(len([line for line in lines if "differs in optimizer.learning_rate;" in line]), 1, done.stderr)


if __name__ == "__main__":
    unittest.main()
