"""The program from outside: exit statuses, one line a mistake, run directories, replay, signals.

Usage: program_test.py RUBATO.
"""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = ""
TIMING = {
    "cost": {"model": "cifar10-full"},
    "data": {"samples": 3000},
    "workers": {"count": 4, "batch_size": 100},
    "protocol": {"name": "n-softsync", "n": 2},
}
LEARNING = {
    "model": {"name": "quadratic", "dimension": 20, "conditioning": 5, "noise": 0.1},
    "data": {"samples": 400},
    "workers": {"count": 3, "batch_size": 10},
    "protocol": {"name": "hardsync"},
    "optimizer": {"learning_rate": 0.05},
}


class ProgramTest(unittest.TestCase):
    """Every test has a folder of its own and runs the program in it."""

    def setUp(self) -> None:
        # pylint: disable-next=consider-using-with
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.write("timing.json", TIMING)
        self.write("learning.json", LEARNING)

    def path(self, *names: str) -> str:
        return os.path.join(self.scratch.name, *names)

    def write(self, name: str, scenario: object) -> None:
        with open(self.path(name), "w", encoding="utf-8") as file:
            json.dump(scenario, file)

    def read(self, *names: str) -> bytes:
        with open(self.path(*names), "rb") as file:
            return file.read()

    def rubato(self, *arguments: str, status: int = 0) -> subprocess.CompletedProcess:
        answer = subprocess.run(
            [PROGRAM, *arguments], cwd=self.scratch.name, capture_output=True, text=True, check=False, timeout=120
        )
        self.assertEqual(answer.returncode, status, answer)
        return answer

    def refused(self, *arguments: str) -> str:
        """Exit status 2 and exactly one line."""
        answer = self.rubato(*arguments, status=2)
        self.assertEqual(answer.stdout, "")
        self.assertRegex(answer.stderr, r"\Arubato: [^\n]+\n\Z")
        return answer.stderr.strip().removeprefix("rubato: ")

    def test_mistakes_on_the_command_line(self) -> None:
        self.assertEqual(self.refused(), "expected a command; rubato --help lists them")
        self.assertEqual(self.refused("rnu", "timing.json"), 'unknown command "rnu"; did you mean run?')
        self.assertIn("did you mean: rubato run timing.json?", self.refused("timing.json"))
        self.assertEqual(self.refused("run"), "run: expected a scenario file")
        self.assertIn("did you mean --force?", self.refused("run", "timing.json", "--frce"))
        self.assertIn('unexpected argument "b.json"', self.refused("run", "timing.json", "b.json"))
        self.assertIn("--out", self.refused("run", "timing.json", "--out"))
        self.assertIn("--out: expected the name of a folder", self.refused("run", "timing.json", "--out", ""))
        self.assertIn("expected SIM... -- REAL...", self.refused("compare", "a", "b"))
        self.assertEqual(self.refused("sweep"), "sweep: expected a sweep file")
        self.assertIn("not yet built", self.refused("run", "timing.json", "--backend", "shm"))
        self.assertIn("did you mean local?", self.refused("run", "timing.json", "--backend", "lokal"))
        self.assertIn("did you mean protocols?", self.refused("list", "protocol"))
        self.assertIn("did you mean staleness?", self.refused("plot", "stalenes", "x"))
        self.assertIn("no such run directory", self.refused("replay", "nowhere"))
        self.assertEqual(os.listdir(self.scratch.name).count("runs"), 0)

    def test_mistakes_in_the_scenario(self) -> None:
        with open(self.path("bad.json"), "w", encoding="utf-8") as file:
            file.write('{"workers": {"count": 2},\n"optimizer": {"learing_rate": 0.1}}')
        self.assertEqual(
            self.refused("run", "bad.json"),
            'bad.json:2: optimizer.learing_rate: unknown key; did you mean "learning_rate"?',
        )
        self.assertIn("there is no file", self.refused("check", "timing.json", "--set", "cluster.platform=no.xml"))
        self.assertIn("flops_per_sample", self.refused("run", "timing.json", "--set", 'cost={"push_bytes": 5}'))
        self.assertIn("timing only", self.refused("run", "timing.json", "--backend", "local"))
        self.assertNotIn("runs", os.listdir(self.scratch.name))

    def test_help_version_list(self) -> None:
        self.assertIn("run", self.rubato("--help").stdout)
        self.assertIn("--set", self.rubato("run", "--help").stdout)
        self.assertRegex(self.rubato("--version").stdout, r"^rubato \d+\.\d+\.\d+ ")
        self.assertRegex(self.rubato("list", "protocols").stdout, r"gadei .*\(not yet\)")
        for topic in ("protocols", "rules"):
            lines = self.rubato("list", topic).stdout.splitlines()
            plugins = [line for line in lines if line.split()[0] == "plugin"]
            self.assertEqual(len(plugins), 1, lines)
            self.assertIn("docs/write-a-", plugins[0])
        everything = self.rubato("list").stdout
        for word in ("hardsync", "inverse-n", "star", "quadratic", "fashion-mnist", "local", "resnet50"):
            self.assertIn(word, everything)

    def test_less_than_a_sample_is_refused(self) -> None:
        for backend in ("sim", "local"):
            text = self.refused("run", "timing.json" if backend == "sim" else "learning.json", "--backend", backend,
                                "--set", "stop={\"epochs\": 1e-9}")
            self.assertIn("stop.epochs: asks for not one of the", text)

    def test_bytes_that_are_not_text(self) -> None:
        for assignment in (b"name=\xff", b"comment=\xff", b"\xff=1"):
            done = subprocess.run([PROGRAM, "run", "timing.json", "--set", assignment], cwd=self.scratch.name,
                                  capture_output=True, check=False, timeout=60)
            self.assertEqual(done.returncode, 2)
            self.assertIn(b"not UTF-8", done.stderr)
            self.assertEqual(done.stderr.count(b"\n"), 1)
        self.assertNotIn("runs", os.listdir(self.scratch.name))

    def test_a_full_disk_behind_stdout(self) -> None:
        with open("/dev/full", "wb") as full:
            answer = subprocess.run([PROGRAM, "list"], stdout=full, stderr=subprocess.PIPE, check=False, timeout=60)
        self.assertEqual(answer.returncode, 2)
        self.assertEqual(answer.stderr.count(b"\n"), 1)

    def test_check_explains(self) -> None:
        text = self.rubato("check", "timing.json").stdout
        for piece in ("floor(4 / 2) = 2 gradients", "30 slices an epoch", "350 kB", "workers 0-3 on", "exactly once"):
            self.assertIn(piece, text)
        self.assertNotIn("runs", os.listdir(self.scratch.name))

    def test_a_run_is_reported_not_repeated(self) -> None:
        first = self.rubato("run", "timing.json", "--quiet", "--json")
        self.assertEqual(first.stderr, "")
        summary = json.loads(first.stdout)
        self.assertEqual(summary["status"], "finished")
        self.assertEqual(summary["samples"], 3000)
        (name,) = os.listdir(self.path("runs"))
        self.assertRegex(name, r"^timing-[0-9a-f]{8}$")
        written = os.stat(self.path("runs", name, "summary.json")).st_mtime_ns
        again = self.rubato("run", "timing.json")
        self.assertIn("holds this run already (finished)", again.stderr)
        self.assertIn("finished", again.stdout)
        self.assertEqual(os.stat(self.path("runs", name, "summary.json")).st_mtime_ns, written)
        self.rubato("run", "timing.json", "--force")
        self.assertNotEqual(os.stat(self.path("runs", name, "summary.json")).st_mtime_ns, written)

    def test_another_directory_is_refused_without_force(self) -> None:
        os.mkdir(self.path("mine"))
        self.write("mine/notes.json", {})
        self.assertIn("is not empty", self.refused("run", "timing.json", "--out", "mine"))
        self.rubato("run", "timing.json", "--out", "mine", "--force")
        self.assertIn("notes.json", os.listdir(self.path("mine")))
        self.assertIn("another scenario", self.refused("run", "timing.json", "--set", "seed=2", "--out", "mine"))
        self.assertIn("cannot write", self.refused("run", "timing.json", "--out", "/proc/nowhere"))

    def test_a_saved_scenario_repeats_its_run(self) -> None:
        self.rubato("run", "timing.json", "--out", "a", "--set", "workers.count=5", "--quiet")
        command = self.read("a", "command.txt").decode().split()
        self.assertEqual(command[0], "rubato")
        subprocess.run([PROGRAM, *command[1:]], cwd=self.path("a"), capture_output=True, check=True, timeout=120)
        for table in ("scenario.json", "gradients.csv", "updates.csv", "workers.csv", "command.txt"):
            self.assertEqual(self.read("a", table), self.read("a", "again", table), table)

    def test_replay_finds_an_altered_byte(self) -> None:
        for backend in ("sim", "local"):
            self.rubato("run", "learning.json", "--events", "--backend", backend, "--out", backend, "--quiet")
            self.assertIn("the same actions", self.rubato("replay", backend).stdout)
        log = bytearray(self.read("sim", "events.log"))
        log[len(log) // 2] ^= 1
        with open(self.path("sim", "events.log"), "wb") as file:
            file.write(log)
        self.assertIn("differs", self.rubato("replay", "sim", status=1).stdout)
        self.rubato("run", "timing.json", "--out", "plain")
        self.assertIn("--events", self.refused("replay", "plain"))

    def test_a_signal_ends_a_run_in_order(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            out = f"signal{int(number)}"
            command = [PROGRAM, "run", "timing.json", "--set", "stop.epochs=1000000", "--out", out, "--json"]
            command += ["--set", "trace.gradients=false", "--set", "trace.updates=false"]
            pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
            with subprocess.Popen(command, cwd=self.scratch.name, **pipes) as run:
                until = time.monotonic() + 60
                while not os.path.exists(self.path(out, "evals.csv")) and time.monotonic() < until:
                    time.sleep(0.02)
                time.sleep(0.1)
                run.send_signal(number)
                stdout, stderr = run.communicate(timeout=60)
                self.assertEqual(run.returncode, 3, stderr)
            self.assertEqual(json.loads(stdout)["status"], "interrupted")
            self.assertEqual(json.loads(self.read(out, "summary.json"))["status"], "interrupted")
        self.assertIn("ended as interrupted", self.refused(*command[1:]))

    def test_an_echo_of_a_signal_is_no_second_one(self) -> None:
        for pause, status in ((0.005, 3), (1.2, -signal.SIGTERM)):
            out = f"pause{pause}"
            # Cannot end in order before the second signal where that is to end it: its one gradient takes long.
            command = [PROGRAM, "run", "timing.json", "--set", "stop.epochs=1000000", "--out", out, "--quiet"]
            if status < 0:
                command = [PROGRAM, "run", "learning.json", "--backend", "local", "--out", out, "--quiet", "--set",
                           'execution.emulate={"slow":{"0":1}, "compute":true}', "--set",
                           'cluster.devices={"default":{"a":60}}', "--set", "workers.count=1"]
            with subprocess.Popen(command, cwd=self.scratch.name, stderr=subprocess.PIPE) as run:
                until = time.monotonic() + 60
                while not os.path.exists(self.path(out, "evals.csv")) and time.monotonic() < until:
                    time.sleep(0.02)
                time.sleep(0.1)
                run.send_signal(signal.SIGTERM)
                time.sleep(pause)
                run.send_signal(signal.SIGTERM)
                _, stderr = run.communicate(timeout=60)
                self.assertEqual(run.returncode, status, stderr)
            self.assertEqual(os.path.exists(self.path(out, "summary.json")), status == 3)

    def test_a_rule_that_fails_in_mid_run_names_its_inputs(self) -> None:
        rule = 'optimizer.staleness_rule={"expression":"2-version"}'
        message = self.refused("run", "learning.json", "--set", rule)
        self.assertRegex(message, r'staleness rule "2-version" gives -1, expected .* version = 3')

    def test_dropped_keys_are_told(self) -> None:
        answer = self.rubato("run", "timing.json", "--set", "protocol.name=async")
        self.assertTrue(re.search(r"note: protocol\.n is dropped", answer.stderr), answer.stderr)

    def test_plot_hands_over(self) -> None:
        self.rubato("run", "timing.json", "--out", "a")
        self.rubato("plot", "staleness", "a", "-o", "figure.png")
        self.assertEqual(self.read("figure.png")[:4], b"\x89PNG")

    def test_table_hands_over(self) -> None:
        self.rubato("run", "timing.json", "--out", "a")
        self.assertIn("training time (s)", self.rubato("table", "a").stdout)
        self.assertIn(r"\toprule", self.rubato("table", "a", "--latex", "--value", "time_s").stdout)
        self.assertIn("table: expected SWEEP", self.refused("table"))


if __name__ == "__main__":
    PROGRAM = os.path.abspath(sys.argv.pop())
    unittest.main()
