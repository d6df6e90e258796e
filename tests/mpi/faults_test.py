"""What goes wrong around runs over MPI: wrong numbers of ranks, ranks that stall or die, signals, poor libraries.

Usage: faults_test.py RUBATO SHIM, a library whose MPI_Init_thread grants what RUBATO_TEST_THREAD_LEVEL says.
"""

import os
import signal
import subprocess
import sys
import unittest

from launch import LaunchTest

SHIM = os.path.abspath(sys.argv.pop(1))


def endless(protocol: str) -> dict:
    """A run that goes on until somebody stops it."""
    return {
        "data": {"samples": 2000, "shape": [6, 6, 1], "test_samples": 50, "classes": 4},
        "model": {"name": "mlp", "hidden": [12]},
        "workers": {"count": 3, "batch_size": 16},
        "protocol": {"name": protocol},
        "stop": {"epochs": 1000000},
        "execution": {"stall_timeout_s": 2},
        "trace": {"events": True},
    }


class FaultsTest(LaunchTest):
    """One fault a test."""

    def refused(self, command: list[str], **environment: str) -> str:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False,
                              env=os.environ | environment)
        self.assertEqual(done.returncode, 2, done.stderr)
        lines = [line for line in done.stderr.splitlines() if line.startswith("rubato:")]
        self.assertEqual(len(lines), 1, done.stderr)
        self.assertFalse(os.path.exists(self.path("run")))
        return lines[0]

    def test_a_wrong_number_of_ranks_is_told_before_anything_is_done(self) -> None:
        for ranks in (1, 3, 9):
            line = self.refused(self.command(ranks, endless("async"), "run", "--backend", "mpi"))
            self.assertIn("needs 4 ranks", line)
            self.assertIn(f"gives {ranks}", line)
            self.assertIn("mpirun -n 4", line)

    def test_without_a_launcher_every_copy_says_so(self) -> None:
        command = self.command(0, endless("async"), "run", "--backend", "mpi")
        self.assertIn("gives 1", self.refused(command))
        hinted = self.refused(command, SLURM_NTASKS="4")
        self.assertIn("SLURM_NTASKS says 4", hinted)
        self.assertIn("--mpi=pmix", hinted)

    def test_copies_of_another_backend_are_refused(self) -> None:
        for backend in ("sim", "local"):
            line = self.refused(self.command(2, endless("async"), "run", "--backend", backend))
            self.assertIn("2 copies", line)

    def test_a_mistake_in_the_scenario_is_told_once(self) -> None:
        scenario = endless("async")
        scenario["protocol"]["nam"] = 1
        self.assertIn("nam", self.refused(self.command(4, scenario, "run", "--backend", "mpi")))

    def test_a_library_without_threads_is_refused(self) -> None:
        command = self.command(4, endless("async"), "run", "--backend", "mpi")
        single = [*command[:1], "-x", f"LD_PRELOAD={SHIM}", "-x", "RUBATO_TEST_THREAD_LEVEL=0", *command[1:]]
        self.assertIn("MPI_THREAD_SINGLE", self.refused(single))

    def test_a_library_that_serializes_is_enough(self) -> None:
        scenario = endless("async") | {"stop": {"epochs": 1}}
        command = self.command(4, scenario, "run", "--backend", "mpi")
        serialized = [*command[:1], "-x", f"LD_PRELOAD={SHIM}", "-x", "RUBATO_TEST_THREAD_LEVEL=2", *command[1:]]
        subprocess.run(serialized, capture_output=True, timeout=60, check=True)
        self.assertEqual(self.summary("run")["status"], "finished")

    def test_a_rank_that_stands_still_is_named(self) -> None:
        command = self.command(4, endless("hardsync"), "run", "--backend", "mpi")
        status, output, took = self.disturbed(command, self.signal_rank(2, signal.SIGSTOP),
                                              self.path("run", "updates.csv"))
        self.assertEqual(status, 3, output)
        self.assertLess(took, 30)
        summary = self.summary("run")
        self.assertEqual(summary["status"], "stalled")
        self.assertIn("rank 2 (worker 1", summary["status_detail"])
        self.assertIn("worker 1", summary["status_detail"].split("server waits", 1)[1])
        self.assert_books("run")
        self.assert_whole_lines("run")
        self.assert_replays("run")

    def test_workers_that_wait_for_a_rank_that_stands_still_are_named(self) -> None:
        scenario = endless("ssp")
        scenario["protocol"] = {"name": "ssp", "bound": 1}
        command = self.command(4, scenario, "run", "--backend", "mpi")
        status, output, _ = self.disturbed(command, self.signal_rank(2, signal.SIGSTOP),
                                           self.path("run", "updates.csv"))
        self.assertEqual(status, 3, output)
        detail = self.summary("run")["status_detail"]
        self.assertEqual(self.summary("run")["status"], "stalled")
        self.assertIn("rank 2 (worker 1", detail)
        self.assertIn("holds back worker 0 for worker 1, worker 2 for worker 1", detail)
        self.assert_books("run")
        self.assert_replays("run")

    def test_an_asynchronous_run_goes_on_without_it(self) -> None:
        scenario = endless("async") | {"stop": {"seconds": 8}}
        command = self.command(4, scenario, "run", "--backend", "mpi")
        status, output, _ = self.disturbed(command, self.signal_rank(2, signal.SIGSTOP),
                                           self.path("run", "updates.csv"))
        self.assertEqual(status, 3, output)
        self.assertIn("rank 2 (worker 1", output)
        self.assertIn("goes on", output)
        self.assertGreater(self.summary("run")["time_s"], 7)
        self.assertIn("last word of worker 1", self.summary("run")["status_detail"])
        self.assert_books("run")

    def test_a_first_rank_that_stands_still_ends_the_run_without_a_summary(self) -> None:
        command = self.command(4, endless("async"), "run", "--backend", "mpi")
        status, output, _ = self.disturbed(command, self.signal_rank(0, signal.SIGSTOP),
                                           self.path("run", "updates.csv"))
        self.assertEqual(status, 3, output)
        self.assertIn("rank 0 (server", output)
        self.assertFalse(os.path.exists(self.path("run", "summary.json")))
        self.assert_whole_lines("run")

    def test_a_killed_rank_ends_the_run_at_once(self) -> None:
        for rank in (0, 2):
            with self.subTest(rank):
                out = f"run{rank}"
                command = self.command(4, endless("async"), out, "--backend", "mpi")
                status, output, took = self.disturbed(command, self.signal_rank(rank, signal.SIGKILL),
                                                      self.path(out, "updates.csv"))
                self.assertNotEqual(status, 0, output)
                self.assertLess(took, 10)
                self.assertFalse(os.path.exists(self.path(out, "summary.json")))
                if rank != 0:
                    self.assert_whole_lines(out)

    def test_a_signal_to_the_launcher_ends_it_in_order(self) -> None:
        for number, what in enumerate((signal.SIGTERM, signal.SIGINT)):
            out = f"run{number}"
            command = self.command(4, endless("n-softsync"), out, "--backend", "mpi")
            status, output, _ = self.disturbed(command, lambda process, what=what: process.send_signal(what),
                                               self.path(out, "updates.csv"))
            self.assertNotEqual(status, 0, output)
            self.assert_whole_lines(out)
            # There is about a second; a busy machine may not get to the summary in it.
            if os.path.exists(self.path(out, "summary.json")):
                self.assertEqual(self.summary(out)["status"], "interrupted")
                self.assert_books(out)


if __name__ == "__main__":
    unittest.main()
