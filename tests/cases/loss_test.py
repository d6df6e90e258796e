"""What is left where a run is killed, and what is said where it cannot write.

Usage: loss_test.py RUBATO ANALYSIS_FOLDER
"""

import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import warnings
from pathlib import Path

PROGRAM = ""
ANALYSIS = ""
TABLES = ("gradients.csv", "updates.csv", "timeline.csv", "evals.csv", "workers.csv", "servers.csv")


def small_disk() -> None:
    """A limit on the size of files stands for the disk: write(2) fails in mid-run alike."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))


class Loss(unittest.TestCase):
    """Each test runs the program on a run that would last for hours."""

    def setUp(self) -> None:
        self.scratch = tempfile.TemporaryDirectory(prefix="rubato-")
        self.work = Path(self.scratch.name)
        self.scenario = self.work / "long.json"
        self.scenario.write_text(json.dumps({
            "name": "long", "data": {"samples": 1000}, "cost": {"push_bytes": 1000, "pull_bytes": 1000},
            "workers": {"count": 4, "batch_size": 10}, "protocol": {"name": "n-softsync", "n": 2},
            "stop": {"gradients": 1_000_000_000}, "trace": {"timeline": True, "events": True},
            "cluster": {"devices": {"default": {"a": 0.001, "b": 0.0001}}, "noise": {"lognormal_cv": 0.3}}}))

    def tearDown(self) -> None:
        self.scratch.cleanup()

    def start(self, out: Path, **options: object) -> subprocess.Popen:
        return subprocess.Popen([PROGRAM, "run", self.scenario, "--out", out, "--quiet"],
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, **options)

    def check_rows(self, table: Path) -> int:
        """At most the last line is broken; returns the number of whole rows."""
        if not table.exists():
            return 0
        lines = table.read_text().split("\n")
        whole, columns = lines[1:-1], lines[0].count(",")
        for number, line in enumerate(whole):
            self.assertEqual(line.count(","), columns, f"{table}, line {number + 2}")
        return len(whole)

    def read_by_the_analysis(self, run: Path) -> None:
        from rubato_analysis import load  # pylint: disable=import-outside-toplevel
        from rubato_analysis.errors import TraceWarning  # pylint: disable=import-outside-toplevel

        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            found = load(run)
            self.assertEqual(found.summary, {})
            gradients = found.gradients
        self.assertEqual(len(gradients), self.check_rows(run / "gradients.csv"))
        self.assertLessEqual(sum(issubclass(one.category, TraceWarning) for one in told), 2)

    def test_a_disk_that_fills_up_ends_the_run_with_a_summary(self) -> None:
        if subprocess.run(["unshare", "-rm", "true"], check=False, capture_output=True).returncode != 0:
            self.skipTest("no namespace of mounts of one's own here")
        disk = self.work / "disk"
        disk.mkdir()
        for size in (300, 1024, 3000):
            for backend in ("sim", "local"):
                saved = self.work / f"saved-{size}-{backend}"
                run = [PROGRAM, "run", self.scenario, "--out", disk / "run", "--quiet", "--backend", backend]
                if backend == "local":
                    run += ["--set", 'model={"name":"quadratic"}', "--set", "cost={}"]
                script = 'mount -t tmpfs -o size="$1"k none "$2" && shift && shift && saved=$1 && shift && "$@"; ' \
                         'status=$?; cp -r "' + str(disk) + '/run" "$saved"; exit $status'
                done = subprocess.run(["unshare", "-rm", "sh", "-c", script, "sh", str(size), disk, saved, *run],
                                      capture_output=True, text=True, timeout=120, check=False)
                with self.subTest(size=size, backend=backend):
                    self.assertEqual(done.returncode, 3, done.stderr)
                    self.assertRegex(done.stderr, r"\Arubato: .*the run ended as disk_full: cannot write .*/run/\w+\."
                                                  r"(csv|log): No space left on device\n\Z")
                    summary = json.loads((saved / "summary.json").read_text())
                    self.assertEqual(summary["status"], "disk_full")
                    self.assertEqual(list(saved.glob(".room*")), [])
                    for table in TABLES:
                        self.check_rows(saved / table)
                        self.assertTrue((saved / table).read_text().endswith("\n"), table)

    def test_kill_at_ten_random_moments(self) -> None:
        draw = random.Random(3)
        rows = []
        for moment in range(10):
            out = self.work / f"run{moment}"
            child = self.start(out)
            # From "hardly begun" to "well on the way", however slow the machine is today.
            if moment % 3:
                wanted = draw.randrange(1_000_000)
                deadline = time.monotonic() + 30
                while time.monotonic() < deadline:
                    table = out / "gradients.csv"
                    if table.exists() and table.stat().st_size >= wanted:
                        break
                    time.sleep(0.002)
            time.sleep(draw.random() * 0.05)
            child.kill()
            child.communicate()
            self.assertFalse((out / "summary.json").exists())
            rows.append(sum(self.check_rows(out / table) for table in TABLES))
            if rows[-1]:
                self.read_by_the_analysis(out)
        self.assertGreater(sum(rows), 10_000)

    def test_readers_go_on_after_a_kill(self) -> None:
        out = self.work / "run"
        child = self.start(out)
        time.sleep(1.5)
        child.kill()
        child.communicate()
        with open(out / "gradients.csv", "a", encoding="ascii") as table:
            table.write("17,1,")  # the very line that a kill breaks
        plot = subprocess.run([PROGRAM, "plot", "staleness", out, "-o", self.work / "picture.png"],
                              capture_output=True, text=True, check=False, timeout=120)
        self.assertEqual(plot.returncode, 0, plot.stderr)
        self.assertIn("gradients.csv", plot.stderr)
        replay = subprocess.run([PROGRAM, "replay", out], capture_output=True, text=True, check=False, timeout=120)
        self.assertEqual(replay.returncode, 0, replay.stderr)

    def test_a_full_disk_is_an_ending_with_one_line(self) -> None:
        out = self.work / "full"
        child = self.start(out, preexec_fn=small_disk)
        _, errors = child.communicate(timeout=120)
        self.assertEqual(child.returncode, 3, errors)
        self.assertEqual(len(errors.strip().splitlines()), 1, errors)
        self.assertRegex(errors, "disk_full: cannot write .*/full/")
        self.assertEqual(json.loads((out / "summary.json").read_text())["status"], "disk_full")
        for table in TABLES:
            self.check_rows(out / table)

    def test_outputs_that_cannot_be_written(self) -> None:
        (self.work / "file").write_text("")
        for out in ("/proc/rubato", "/dev/null/run", str(self.work / "file"), str(self.work / "file" / "run")):
            child = self.start(Path(out))
            _, errors = child.communicate(timeout=120)
            self.assertEqual(child.returncode, 2, f"{out}: {errors}")
            self.assertEqual(len(errors.strip().splitlines()), 1, errors)
            self.assertIn(out, errors)

    @unittest.skipIf(os.geteuid() == 0, "root may write everywhere")
    def test_a_read_only_folder(self) -> None:
        folder = self.work / "locked"
        folder.mkdir(mode=0o500)
        child = self.start(folder / "run")
        _, errors = child.communicate(timeout=120)
        self.assertEqual(child.returncode, 2, errors)
        self.assertIn("locked", errors)


if __name__ == "__main__":
    PROGRAM, ANALYSIS = sys.argv.pop(1), sys.argv.pop(1)
    sys.path.insert(0, ANALYSIS)
    unittest.main()
