"""Runs of the program that are killed and go on."""

import signal
import subprocess
import time
from pathlib import Path

import case
from case import Case


class Resumes(Case):
    """Starts runs, kills them, and goes on with them."""

    def killed(self, scenario: dict, out: Path, when: str, *options: str) -> Path:
        """Starts a run, or goes on with one, and kills it once checkpoint `when` is there; its scenario file."""
        path = self.write(scenario)
        command = [case.PROGRAM, "run", str(path), "--out", str(out), "--quiet", *options]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
            limit = time.monotonic() + 60
            while not [it for it in out.glob("checkpoints/*.ckpt") if int(it.stem) >= int(when)]:
                self.assertIsNone(process.poll(), "the run ended before it was killed")
                self.assertLess(time.monotonic(), limit)
                time.sleep(0.001)
            process.send_signal(signal.SIGKILL)
        self.assertFalse((out / "summary.json").exists())
        return path

    def resume(self, path: Path, out: Path, *options: str, status: int = 0) -> str:
        done = self.call("run", path, "--out", out, "--resume", *options)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stderr
