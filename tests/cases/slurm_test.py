"""The job array that ships, on a real Slurm of one node. Exit status 77 (skipped) where there is none.

Usage: slurm_test.py RUBATO SBATCH_FILE SWEEP.
"""

import csv
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def slurm_answers() -> bool:
    """Whether a controller with an idle or mixed node answers."""
    if not all(map(shutil.which, ("sbatch", "sinfo", "squeue"))):
        return False
    done = subprocess.run(["sinfo", "--noheader", "--format=%t"], capture_output=True, text=True, check=False,
                          timeout=30)
    return done.returncode == 0 and any(word in done.stdout for word in ("idle", "mix", "alloc"))


def main(program: str, sbatch: str, sweep: str) -> int:
    if not slurm_answers():
        print("no Slurm answers here")
        return 77
    with tempfile.TemporaryDirectory(prefix="rubato-", dir=Path.home()) as name:
        out = Path(name) / "out"
        done = subprocess.run(
            ["sbatch", "--parsable", "--array=3-5", "--cpus-per-task=1", f"--output={name}/%a.log", sbatch, sweep, out,
             "--set", 'stop={"updates": 2}'],
            env={**os.environ, "RUBATO": program}, capture_output=True, text=True, check=True, timeout=60)
        job = done.stdout.strip().split(";")[0]
        deadline = time.monotonic() + 200
        while subprocess.run(["squeue", "--noheader", "--job", job], capture_output=True, text=True,
                             check=False).stdout.strip():
            assert time.monotonic() < deadline, "the jobs do not end"
            time.sleep(1)
        logs = "".join(path.read_text() for path in Path(name).glob("*.log"))
        assert (out / "results.csv").exists(), logs
        with open(out / "results.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        assert len(rows) == len({row["point"] for row in rows}) == 1000, (len(rows), logs)
        assert {row["status"] for row in rows} == {"finished"}, logs
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
