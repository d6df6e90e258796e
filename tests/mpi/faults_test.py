"""What goes wrong around runs over MPI: wrong numbers of ranks, ranks that stall or die, signals, poor libraries.

Usage: faults_test.py RUBATO SHIM, a library whose MPI_Init_thread grants what RUBATO_TEST_THREAD_LEVEL says.
"""

import contextlib
import functools
import os
import re
import signal
import subprocess
import sys
import time
import unittest

from launch import MPIRUN, PROGRAM, LaunchTest

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

    def test_copies_of_a_command_that_is_for_one_are_refused_in_one_line(self) -> None:
        self.run_on("sim", endless("async") | {"stop": {"epochs": 1}}, "one")
        one, scenario = self.path("one"), self.path("one.json")
        for words in (["replay", one], ["check", scenario], ["compare", one, "--", one], ["list", "protocols"],
                      ["init", self.path("new.json")], ["help", "protocol.n"], ["plot", "curves", one], ["table", one]):
            with self.subTest(words[0]):
                done = subprocess.run([*MPIRUN, "-n", "3", PROGRAM, *words], capture_output=True, text=True, timeout=60,
                                      check=False)
                self.assertEqual((done.returncode, done.stdout.count("rubato")), (2, 0), done)
                lines = [line for line in done.stderr.splitlines() if line.startswith("rubato:")]
                self.assertEqual(len(lines), 1, done.stderr)
                self.assertIn(f"{words[0]}: a launcher has started 3 copies", lines[0])
        self.assertFalse(os.path.exists(self.path("new.json")))

    def test_a_mistake_on_the_command_line_is_told_once(self) -> None:
        for words in (["run", "--bakend", "mpi"], ["calibrate", "--runn", "x"], ["rum"]):
            line = self.refused([*MPIRUN, "-n", "3", PROGRAM, *words])
            self.assertIn("did you mean", line)

    def test_a_folder_that_cannot_be_made_is_named_as_it_was_given(self) -> None:
        with open(self.path("file"), "w", encoding="utf-8"):
            pass
        command = self.command(4, endless("async"), "run", "--backend", "mpi")
        given = [self.path("file", "run") if it == self.path("run") else it for it in command]
        done = subprocess.run(given, capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn(f"cannot write {self.path('file', 'run')}: ", done.stderr)
        self.assertNotIn("ranks:", done.stderr)

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

    def test_gradients_that_come_in_vain_keep_no_run_going(self) -> None:
        scenario = endless("admission")
        scenario["protocol"] = {"name": "admission", "admit": "withhold", "bound": 3}
        scenario["execution"]["emulate"] = {"slow": {"1": 2000}}
        command = self.command(4, scenario, "run", "--backend", "mpi")
        updates = self.path("run", "updates.csv")

        def stop_while_it_computes(process: subprocess.Popen[str]) -> None:
            """So that it has a version for whose sake updates are withheld: without one, the others rightly go on."""
            rank = self.rank_process(process.pid, 2)
            for _ in range(20):
                os.kill(rank, signal.SIGSTOP)
                time.sleep(1)
                size = os.path.getsize(updates)
                time.sleep(1)
                if os.path.getsize(updates) == size:
                    return
                os.kill(rank, signal.SIGCONT)
                time.sleep(0.3)
            self.fail("the rank was never stopped while it computed")

        status, output, took = self.disturbed(command, stop_while_it_computes, updates)
        self.assertEqual(status, 3, output)
        self.assertLess(took, 30)
        self.assertEqual(self.summary("run")["status"], "stalled")
        self.assertIn("rank 2 (worker 1", self.summary("run")["status_detail"])
        self.assert_books("run")
        self.assert_replays("run")

    def test_a_rank_that_stands_still_before_the_run_is_named(self) -> None:
        scenario = endless("async") | {"data": {"samples": 300000, "shape": [12, 12, 1], "test_samples": 50}}
        for rank in (0, 2):
            with self.subTest(rank):
                out = f"start{rank}"
                with subprocess.Popen(self.command(4, scenario, out, "--backend", "mpi"), stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, text=True) as process:
                    try:
                        # The data set takes a while to make, and ranks have begun to.
                        while not os.path.exists(self.path(f"{out}.json")) or len(self.ranks(process.pid)) < 4:
                            self.assertIsNone(process.poll(), "the run ended before it was disturbed")
                            time.sleep(0.01)
                        time.sleep(0.4)
                        self.signal_rank(rank, signal.SIGSTOP)(process)
                        output, _ = process.communicate(timeout=60)
                    finally:
                        process.kill()
                self.assertEqual(process.returncode, 3, output)
                self.assertRegex(output, rf"rank {rank} has not answered for \d+ s while ranks read the scenario and "
                                         "the data; the run ends before it begins")
                self.assertFalse(os.path.exists(self.path(out, "summary.json")))

    def test_what_a_relay_that_stands_still_has_taken_is_in_the_books(self) -> None:
        for topology in ("tree", "tree-downcast"):
            with self.subTest(topology):
                scenario = endless("n-softsync") | {"topology": {"name": topology, "fan_out": 2}}
                scenario["protocol"]["n"] = 1
                scenario["workers"] = {"count": 4, "batch_size": 16,
                                       "pipeline": "overlap" if topology == "tree-downcast" else "blocking"}
                # Workers of the other leaf go on by themselves for a while.
                scenario["stop"] = {"epochs": 40}
                scenario["execution"]["emulate"] = {"compute": True}
                scenario["cluster"] = {"devices": {"default": {"seconds": {"16": 0.002}}}}
                command = self.command(7, scenario, topology, "--backend", "mpi")
                status, output, _ = self.disturbed(command, self.signal_rank(6, signal.SIGSTOP),
                                                   self.path(topology, "updates.csv"))
                self.assertEqual(status, 3, output)
                self.assertIn("rank 6 (relay 1", output)
                summary = self.summary(topology)
                self.assertEqual(summary["status"], "stalled")
                self.assert_books(topology)
                for worker in self.rows(topology, "workers.csv"):
                    accounted = sum(int(worker[outcome]) for outcome in ("applied", "dropped", "cancelled", "leftover"))
                    self.assertGreaterEqual(accounted, int(worker["gradients"]))
                    self.assertLessEqual(accounted, int(worker["gradients"]) + 1)

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
        self.assert_replays("run")
        # The log of the lost rank breaks off before its last gradients, which the server has applied.
        pushed = sum(row["push_ns"] != "" for row in self.rows("run", "gradients.csv"))
        done = subprocess.run([PROGRAM, "replay", self.path("run"), "--weights"], capture_output=True, text=True,
                              timeout=120, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        told = re.search(r"the same losses of (\d+) gradients", done.stdout)
        self.assertIsNotNone(told, done.stdout)
        self.assertGreaterEqual(int(told[1]), pushed)
        again = self.path("again")
        subprocess.run([PROGRAM, "replay", self.path("run"), "--set", "optimizer.learning_rate=0.001", "--out", again,
                        "--quiet"], capture_output=True, timeout=120, check=True)
        self.assert_books("again")
        self.assertEqual(self.summary("again")["gradients"], self.summary("run")["gradients"])

    def test_a_first_rank_that_stands_still_ends_the_run_without_a_summary(self) -> None:
        command = self.command(4, endless("async"), "run", "--backend", "mpi")
        status, output, _ = self.disturbed(command, self.signal_rank(0, signal.SIGSTOP),
                                           self.path("run", "updates.csv"))
        self.assertEqual(status, 3, output)
        self.assertIn("rank 0 (server", output)
        self.assertFalse(os.path.exists(self.path("run", "summary.json")))
        self.assert_whole_lines("run")

    def test_a_rank_that_stands_still_while_the_run_is_evaluated_is_named(self) -> None:
        scenario = endless("async") | {
            "data": {"samples": 400, "test_samples": 4000, "shape": [20, 20, 1]},
            "model": {"name": "cnn"},
            "stop": {"seconds": 1},
            "evaluate": {"every_epochs": 0.5},
        }

        def stop(rank: int, out: str, process: subprocess.Popen[str]) -> None:
            # The first row comes when the workers have said their last word.
            while len(self.rows(out, "evals.csv")) < 1:
                self.assertIsNone(process.poll(), "the run ended before it was disturbed")
                time.sleep(0.02)
            self.signal_rank(rank, signal.SIGSTOP)(process)

        for rank in (0, 2):
            with self.subTest(rank):
                out = f"run{rank}"
                command = self.command(4, scenario, out, "--backend", "mpi")
                status, output, _ = self.disturbed(command, functools.partial(stop, rank, out),
                                                   self.path(out, "updates.csv"))
                self.assertEqual(status, 3, output)
                named = re.findall(r"rank (\d+) \(", output)
                if rank == 0:
                    # mpirun wakes it before it kills it, and then it misses those that have gone.
                    self.assertEqual(named[:1], ["0"], output)
                    self.assertRegex(output, r"rank 0 \(server[^;]* s; the run ends without a summary")
                    continue
                self.assertEqual(set(named), {str(rank)}, output)
                summary = self.summary(out)
                self.assertEqual(summary["status"], "stalled")
                self.assertRegex(summary["status_detail"],
                                 r"\Arank 2 \(worker 1[^;]* s; what it has in its books is lost")
                self.assertEqual(self.rows(out, "evals.csv")[-1]["version"], str(summary["updates"]))
                self.assert_books(out)
                self.assert_whole_lines(out)
                self.assert_replays(out)

    def test_a_rank_that_stands_still_while_the_summary_is_written_is_named(self) -> None:
        scenario = endless("async") | {"stop": {"seconds": 1}}

        def stop(rank: int, out: str, process: subprocess.Popen[str]) -> None:
            victim = self.rank_process(process.pid, rank)
            self.addCleanup(kill, victim)
            while not os.path.exists(self.path(out, "servers.csv")) and process.poll() is None:
                time.sleep(0.0005)
            with contextlib.suppress(ProcessLookupError):
                os.kill(victim, signal.SIGSTOP)

        def kill(victim: int) -> None:
            with contextlib.suppress(OSError), open(f"/proc/{victim}/cmdline", "rb") as file:
                if self.scratch.name.encode() in file.read():
                    os.kill(victim, signal.SIGKILL)

        status, output = 0, ""
        for rank, told, expected in ((0, r"rank 0 \(server[^;]* s; the run ends", 3),
                                     (2, r"rank 2 \(worker 1[^;]* s; the run is whole", 0)):
            # There are a few milliseconds, which may be missed, but not every time; a rank that has nothing left to do
            # but to end is mpirun's to wait for. Now and then mpirun dies of what it is told, by a signal of its own.
            for attempt in range(8):
                out = f"run{rank}-{attempt}"
                command = self.command(4, scenario, out, "--backend", "mpi")
                with contextlib.suppress(subprocess.TimeoutExpired):
                    status, output, _ = self.disturbed(command, functools.partial(stop, rank, out),
                                                       self.path(out, "updates.csv"), 20)
                    if re.search(told, output) and status >= 0:
                        break
            self.assertRegex(output, told)
            self.assertEqual(status, expected, output)
            if rank != 0:
                self.assertEqual(self.summary(out)["status"], "finished")
                self.assert_books(out)

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
                self.assert_all_lines_but_the_last(out)
                if rank != 0:
                    self.assert_whole_lines(out)
                for options in ((), ("--weights",)):
                    done = subprocess.run([PROGRAM, "replay", self.path(out), *options], capture_output=True, text=True,
                                          timeout=120, check=False)
                    self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                    self.assertIn("breaks off", done.stderr)

    def test_a_signal_to_the_launcher_ends_it_in_order(self) -> None:
        for what in (signal.SIGTERM, signal.SIGINT):
            # There is about a second; a busy machine may not get to the summary in it, but not every time.
            in_order = 0
            for attempt in range(4):
                out = f"run{what}-{attempt}"
                command = self.command(4, endless("n-softsync"), out, "--backend", "mpi")
                status, output, _ = self.disturbed(command, lambda process, what=what: process.send_signal(what),
                                                   self.path(out, "updates.csv"))
                self.assertNotEqual(status, 0, output)
                self.assert_whole_lines(out)
                if not os.path.exists(self.path(out, "summary.json")):
                    continue
                in_order += 1
                self.assertEqual(self.summary(out)["status"], "interrupted")
                self.assert_books(out)
                self.assert_replays(out)
                break
            self.assertEqual(in_order, 1, f"no summary after signal {what}")

    def test_a_signal_to_any_rank_ends_the_run(self) -> None:
        for rank in (0, 2):
            out = f"rank{rank}"
            command = self.command(4, endless("async"), out, "--backend", "mpi")
            status, output, _ = self.disturbed(command, self.signal_rank(rank, signal.SIGTERM),
                                               self.path(out, "updates.csv"))
            self.assertNotEqual(status, 0, output)
            self.assertEqual(self.summary(out)["status"], "interrupted")
            self.assert_books(out)
            self.assert_whole_lines(out)


if __name__ == "__main__":
    unittest.main()
