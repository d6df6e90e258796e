"""The engine and the simulation's driver are C++20 to Clang 14 as well, which the fuzz targets are built with.

Usage: clang_test.py ROOT. Skipped where there is no such Clang.
"""

import glob
import os
import shutil
import subprocess
import sys


def main() -> int:
    compiler = os.environ.get("CLANG") or shutil.which("clang++-14") or shutil.which("clang++")
    if not compiler:
        print("no clang++")
        return 77
    os.chdir(sys.argv[1])
    sources = sorted(glob.glob("src/core/**/*.cpp", recursive=True)) + ["src/sim/run.cpp", "src/sim/run_actions.cpp"]
    return subprocess.run([compiler, "-std=c++20", "-fsyntax-only", "-Isrc", "-Wall", "-Wextra", "-Werror", *sources],
                          check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
