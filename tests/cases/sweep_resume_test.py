"""Case 28 and its kind: sweeps that are interrupted, run twice at once, edited, or cannot write.

Usage: sweep_resume_test.py RUBATO.
"""

import json
import os
import resource
import signal
import subprocess
import time
import unittest

import case
from sweeps import A, BASE, SweepCase

SIX = {"axes": {A: [0.01, 0.02, 0.03, 5, 0.04, 0.05]}}
LONG = {**BASE, "stop": {"gradients": 60_000}}


def small_disk() -> None:
    """A limit on the size of files stands for the disk."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))


class SweepResume(SweepCase):
    """Rows are compared as text: a point that ran again has another wall time in its row."""

    def test_case_28(self) -> None:
        self.base(LONG)
        self.sweep_file(SIX)
        child = self.start("-j", 1)
        self.wait_for_rows(4)
        child.kill()
        child.communicate()
        first = self.each_once(4)
        self.assertEqual([row["status"] for row in first], ["finished"] * 3 + ["failed"])
        self.assertRegex(first[3]["status_detail"], "staleness rule .*expected a finite factor of at least 0")

        # The finished ones stay, 4 is tried again and fails again, 5 and 6 run.
        counts = self.sweep(SIX, "-j", 1, status=1)
        self.assertEqual((counts["skipped"], counts["retried"], counts["finished"], counts["failed"]), (3, 1, 5, 1))
        rows = {row[A]: row for row in self.each_once(6)}
        self.assertEqual([rows[row[A]] for row in first[:3]], first[:3])

        # The row of point 2 goes, and only it comes back (and 4, which fails).
        kept = [line for line in self.lines() if not line.startswith(rows["0.02"]["point"])]
        (self.out / "results.csv").write_text("\n".join(kept))
        counts = self.sweep(SIX, status=1)
        self.assertEqual((counts["skipped"], counts["finished"]), (4, 5))
        again = {row[A]: row for row in self.each_once(6)}
        self.assertEqual([key for key in rows if again[key] != rows[key]], ["0.02"])
        self.assertEqual(again["0.02"]["point"], rows["0.02"]["point"])

        # Another value is another point; the old row stays, and is no part of the aggregate.
        edited = {"axes": {A: [0.01, 0.02, 0.03, 5, 0.04, 0.06]}}
        counts = self.sweep(edited, status=1)
        self.assertEqual((counts["skipped"], counts["of_other_points"], counts["finished"]), (4, 1, 5))
        self.assertIn("1 rows of results.csv are of other points", self.said)
        # Other readers of the table are told which rows count.
        listed = (self.out / "points.txt").read_text().split()
        self.assertEqual(len(listed), 6)
        self.assertEqual({row["point"] for row in self.table()} - set(listed), {rows["0.05"]["point"]})
        self.assertIn("sweep.json: the sweep has changed", self.said)
        self.assertEqual({row[A] for row in self.each_once(7)}, {*rows, "0.06"})
        self.assertEqual([row[A] for row in self.table("aggregate.csv")], ["0.01", "0.02", "0.03", "5", "0.04", "0.06"])

    def test_nothing_is_left_to_do(self) -> None:
        sweep = {"axes": {A: [0.01, 0.02]}}
        self.sweep(sweep)
        before = self.lines()
        self.assertEqual(self.sweep(sweep)["skipped"], 2)
        self.assertEqual(self.lines(), before)

    def test_a_failed_point_that_is_mended_has_one_row(self) -> None:
        sweep = {"axes": {A: [0.01, 5]}}
        self.sweep(sweep, status=1)
        text = (self.out / "results.csv").read_text()
        self.assertEqual(self.sweep(sweep, status=1)["retried"], 1)
        # As if the cause had gone: the row of a success after that of a failure.
        failed = next(line for line in text.split("\n") if ",failed," in line)
        good = next(line for line in text.split("\n") if ",finished," in line)
        (self.out / "results.csv").write_text(text + good.replace(good[:16], failed[:16]) + "\n")
        counts = self.sweep(sweep)
        self.assertEqual((counts["failed"], counts["retried"], counts["finished"]), (0, 0, 2))
        self.assertEqual([row["status"] for row in self.each_once(2)], ["finished"] * 2)

    def test_kill_in_the_middle_each_point_once(self) -> None:
        sweep = {"seeds": list(range(200)), "variants": [
            {"label": "async"}, {"label": "soft", "set": {"protocol": {"name": "n-softsync", "n": 2}}}]}
        self.sweep_file(sweep)
        rows = []
        for moment in range(4):
            child = self.start("-j", 2)
            self.wait_for_rows(len(rows) + 20 * moment)
            child.kill()
            child.communicate()
            now = self.lines()
            self.assertEqual(now[:len(rows)], rows)
            rows = now[:-1]
        counts = self.sweep(sweep)
        self.assertEqual((counts["points"], counts["finished"], counts["superseded"]), (400, 400, 0))
        self.assertEqual(self.lines()[:len(rows)], rows)
        self.each_once(400)

    def test_a_signal_ends_it_in_order(self) -> None:
        self.base(LONG)
        for number in (signal.SIGTERM, signal.SIGINT):
            self.sweep_file({"seeds": list(range(50))})
            there = len(self.lines())
            child = self.start("-j", 2)
            self.wait_for_rows(there + 2)
            child.send_signal(number)
            _, errors = child.communicate(timeout=30)
            self.assertEqual(child.returncode, 3, errors)
            self.assertRegex(errors, r"\Arubato: the sweep ended as interrupted: \d+ of 50 points are done, [^\n]+\n\Z")
            self.assertLess(len(self.table()), 50)
            self.assertTrue((self.out / "aggregate.csv").exists())

    def test_a_cut_row_is_skipped_and_its_point_runs_again(self) -> None:
        sweep = {"seeds": [1, 2, 3]}
        self.sweep(sweep)
        whole = (self.out / "results.csv").read_text()
        for cut in (10, 40, 300):
            (self.out / "results.csv").write_text(whole[:-cut])
            counts = self.sweep(sweep, "--status")
            self.assertEqual((counts["finished"], counts["missing"]), (2, 1))
            self.assertIn("results.csv:4: the last row is cut off and is skipped", self.said)
            counts = self.sweep(sweep)
            self.assertEqual((counts["skipped"], counts["finished"]), (2, 3))
            self.assertIn("results.csv:4: a broken row is skipped", self.said)
            self.each_once(3)
        # Only the line break is gone: an editor did that.
        (self.out / "results.csv").write_text(whole[:-1])
        self.assertEqual(self.sweep(sweep)["skipped"], 3)

    def test_a_table_that_a_spreadsheet_saved(self) -> None:
        sweep = {"seeds": [1, 2], "axes": {A: [0.01, 0.02]}}
        self.sweep(sweep)
        table = self.out / "results.csv"
        whole = table.read_bytes()
        saved = b"\xef\xbb\xbf" + whole.replace(b"\n", b"\r\n")
        for text in (saved, saved[3:], saved[:-2], whole.replace(b"\n", b"\r\n").replace(b"\r", b"", 1)):
            table.write_bytes(text)
            done = self.call("sweep", self.work / "sweep.json", "--out", self.out, "--status")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn("4 finished", done.stdout)
            self.assertEqual(table.read_bytes(), text)
        table.write_bytes(saved)
        aggregate = (self.out / "aggregate.csv").read_bytes()
        self.assertEqual(self.sweep(sweep)["skipped"], 4)
        self.assertEqual((table.read_bytes(), (self.out / "aggregate.csv").read_bytes()), (whole, aggregate))
        # Rows to come, in a wider table too.
        table.write_bytes(saved)
        self.assertEqual(self.sweep({**sweep, "seeds": [1, 2, 3]})["skipped"], 4)
        table.write_bytes(table.read_bytes().replace(b"\n", b"\r\n"))
        self.sweep({**sweep, "axes": {A: [0.01], "workers.count": [4, 5]}})
        self.assertNotIn(b"\r", table.read_bytes())
        self.each_once(8)

    def test_two_sweeps_at_once(self) -> None:
        sweep = {"seeds": list(range(150)), "axes": {A: [0.01, 0.02]}}
        self.sweep_file(sweep)
        children = [self.start("-j", 2, "--json", stdout=subprocess.PIPE) for _ in range(3)]
        for child in children:
            counts, errors = child.communicate(timeout=120)
            self.assertEqual((child.returncode, errors), (0, ""))
            # Not once did one of them run what another had.
            self.assertEqual((json.loads(counts)["superseded"], json.loads(counts)["finished"]), (0, 300))
        self.each_once(300)

    def test_what_a_killed_sweep_had_is_taken_over(self) -> None:
        self.base(LONG)
        self.sweep_file({"seeds": list(range(12))})
        first, second = self.start("-j", 2), self.start("-j", 2)
        self.wait_for_rows(3)
        first.kill()
        first.communicate()
        _, errors = second.communicate(timeout=120)
        self.assertEqual((second.returncode, errors), (0, ""))
        self.each_once(12)

    def test_shards_are_parts_of_the_whole(self) -> None:
        sweep = {"seeds": [1, 2, 3], "axes": {A: [0.01, 0.02, 0.03]}}
        parts = [self.sweep(sweep, "--shard", f"{i}/4")["points"] for i in (1, 2, 3, 4)]
        self.assertEqual(sum(parts), 9)
        self.assertLessEqual(max(parts) - min(parts), 1)
        self.each_once(9)
        self.assertEqual(self.sweep(sweep)["skipped"], 9)
        self.assertEqual([row["n"] for row in self.table("aggregate.csv")], ["3"] * 3)

    def test_ranks_share_the_points(self) -> None:
        self.sweep_file({"seeds": list(range(60))})
        children = []
        for rank in range(3):
            env = {**os.environ, "OMPI_COMM_WORLD_RANK": str(rank), "OMPI_COMM_WORLD_SIZE": "3"}
            children.append(subprocess.Popen([case.PROGRAM, "sweep", self.work / "sweep.json", "--out", self.out],
                                             env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        said = [child.communicate(timeout=120) for child in children]
        self.assertEqual([child.returncode for child in children], [0, 0, 0], said)
        self.assertIn("60 points: 60 finished", said[0][0])
        self.assertEqual(said[1:], [("", "")] * 2)
        self.each_once(60)

    def test_a_crash_is_a_failed_point(self) -> None:
        self.base(LONG)
        self.sweep_file({"seeds": [1, 2, 3]})
        child = self.start("-j", 1)
        time.sleep(0.1)
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            found = subprocess.run(["ps", "-eo", "pid,ppid"], capture_output=True, text=True, check=True)
            parents = dict(map(str.split, found.stdout.strip().split("\n")[1:]))
            runs = [pid for pid, parent in parents.items() if parents.get(parent) == str(child.pid)]
            if runs:
                os.kill(int(runs[0]), signal.SIGKILL)
                break
        _, errors = child.communicate(timeout=60)
        self.assertEqual(child.returncode, 1, errors)
        rows = self.each_once(3)
        failed = [row for row in rows if row["status"] == "failed"]
        self.assertEqual(len(failed), 1)
        self.assertIn("killed by signal 9", failed[0]["status_detail"])
        self.assertEqual(self.sweep({"seeds": [1, 2, 3]})["finished"], 3)

    def test_a_full_disk_is_one_line_and_loses_nothing(self) -> None:
        self.sweep_file({"seeds": list(range(150))})
        child = subprocess.Popen([case.PROGRAM, "sweep", self.work / "sweep.json", "--out", self.out, "--quiet"],
                                 stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, preexec_fn=small_disk)
        _, errors = child.communicate(timeout=120)
        self.assertEqual(child.returncode, 3, errors)
        self.assertRegex(errors, r"\Arubato: the sweep ended as disk_full: cannot write [^\n]*results.csv: [^\n]+\n\Z")
        rows = self.table()
        self.assertGreater(len(rows), 10)
        self.assertTrue((self.out / "results.csv").read_text().endswith("\n"))
        counts = self.sweep({"seeds": list(range(150))})
        self.assertEqual((counts["skipped"], counts["finished"]), (len(rows), 150))
        self.assertEqual(self.each_once(150)[:len(rows)], rows)

    def test_a_full_disk_with_run_directories(self) -> None:
        self.base({**LONG, "trace": {"events": True}})
        self.sweep_file({"seeds": [1, 2]})
        child = subprocess.Popen([case.PROGRAM, "sweep", self.work / "sweep.json", "--out", self.out, "--quiet",
                                  "--keep"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                 preexec_fn=small_disk)
        _, errors = child.communicate(timeout=120)
        self.assertEqual(child.returncode, 3, errors)
        self.assertEqual(errors.count("\n"), 1)
        self.assertEqual(self.table(), [])

    def test_outputs_that_cannot_be_written(self) -> None:
        self.sweep_file({"seeds": [1]})
        (self.work / "file").write_text("")
        (self.work / "full").mkdir()
        (self.work / "full" / "thing").write_text("")
        for out in ("/proc/rubato", "/dev/null/sweep", str(self.work / "file"), str(self.work / "full")):
            done = self.call("sweep", "sweep.json", "--out", out)
            self.assertEqual((done.returncode, done.stdout), (2, ""), done)
            self.assertRegex(done.stderr, r"\Arubato: [^\n]+\n\Z")
            self.assertIn(out, done.stderr)

    @unittest.skipIf(os.geteuid() == 0, "root may write everywhere")
    def test_a_read_only_folder(self) -> None:
        self.sweep({"seeds": [1]})
        os.chmod(self.out, 0o500)
        self.addCleanup(os.chmod, self.out, 0o700)
        done = self.call("sweep", self.sweep_file({"seeds": [1, 2]}), "--out", self.out)
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, r"cannot write [^\n]+\n\Z")


if __name__ == "__main__":
    case.main()
