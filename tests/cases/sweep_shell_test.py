"""The sweep at a terminal, under mpirun, and as the job array does it.

Usage: sweep_shell_test.py RUBATO SBATCH_FILE.
"""

import os
import pty
import shutil
import subprocess
import sys
import unittest

import case
from sweeps import BASE, SweepCase

SBATCH = ""


class SweepShell(SweepCase):
    """What users see."""

    def test_progress_on_a_terminal(self) -> None:
        self.base({**BASE, "stop": {"gradients": 20_000}})
        path = self.sweep_file({"seeds": list(range(20))})
        terminal, end = pty.openpty()
        child = subprocess.Popen([case.PROGRAM, "sweep", path, "--out", self.out], stdout=subprocess.DEVNULL,
                                 stderr=end)
        os.close(end)
        said = b""
        while True:
            try:
                block = os.read(terminal, 4096)
            except OSError:  # Linux: the other end is closed
                break
            if not block:
                break
            said += block
        os.close(terminal)
        self.assertEqual(child.wait(timeout=60), 0, said)
        self.assertRegex(said.decode(),
                         r"\r\x1b\[K\[[#.]{24}\] \d+ of 20 done  0 failed  \d running  [\d.e+]+ points/s")
        # And it goes when all is done.
        self.assertTrue(said.decode().rstrip().endswith("\x1b[K"), said[-200:])

    @unittest.skipUnless(shutil.which("mpirun"), "no mpirun")
    def test_under_mpirun(self) -> None:
        path = self.sweep_file({"seeds": list(range(40))})
        launcher = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "3"]
        done = subprocess.run([*launcher, case.PROGRAM, "sweep", path, "--out", self.out], capture_output=True,
                              text=True, check=False, timeout=120)
        self.assertEqual(done.returncode, 0, done)
        self.assertEqual(done.stdout.count("40 points: 40 finished"), 1)
        self.each_once(40)

    def test_one_rank_tells_what_is_wrong(self) -> None:
        self.sweep_file({"seeds": [1]})
        mistakes = (["sweep.json", "--set", "workers.cuont=3"], ["sweep.json", "--statsu"], ["sweep.json", "-j", "-1"],
                    ["nowhere.json"], ["sweep.json", "--best", "1", "--by", "time_s", "--out", "empty"])
        for rank, size in (("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), ("PMI_RANK", "PMI_SIZE"),
                           ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS")):
            for words in mistakes:
                said = []
                for number in range(3):
                    environment = {**os.environ, rank: str(number), size: "3"}
                    done = subprocess.run([case.PROGRAM, "sweep", *words], cwd=self.work, capture_output=True,
                                          text=True, check=False, timeout=60, env=environment)
                    self.assertEqual((done.returncode, done.stdout), (2, ""))
                    said.append(done.stderr)
                self.assertRegex(said[0], r"\Arubato: [^\n]+\n\Z")
                self.assertEqual(said[1:], ["", ""])

    def test_the_job_array(self) -> None:
        """As Slurm would start its tasks, two at a time."""
        path = self.sweep_file({"seeds": list(range(30))})
        array = {"SLURM_ARRAY_TASK_MIN": "5", "SLURM_ARRAY_TASK_COUNT": "3", "SLURM_CPUS_PER_TASK": "1",
                 "RUBATO": case.PROGRAM}
        children = [subprocess.Popen(["bash", SBATCH, path, self.out], stderr=subprocess.PIPE, text=True,
                                     env={**os.environ, **array, "SLURM_ARRAY_TASK_ID": str(number)})
                    for number in (5, 6, 7)]
        for child in children:
            _, errors = child.communicate(timeout=120)
            self.assertEqual((child.returncode, errors), (0, ""))
        self.each_once(30)
        self.assertEqual([line["n"] for line in self.table("aggregate.csv")], ["30"])


if __name__ == "__main__":
    SBATCH = os.path.abspath(sys.argv.pop(2))
    case.main()
