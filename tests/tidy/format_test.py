"""Every C++ and CUDA file is as clang-format 14 leaves it; skipped (exit 77) where that version is missing.

scripts/format.sh mends what this test finds.
"""

import os
import re
import shutil
import subprocess
import sys

from rules import CODE
from tree import read_tree


def clang_format() -> str | None:
    """Version 14: others break lines elsewhere."""
    for name in ("clang-format-14", "clang-format"):
        if program := shutil.which(name):
            answer = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
            if re.search(r"version 14\.", answer):
                return program
    return None


def main(root: str) -> int:
    """Names the files that differ."""
    program = clang_format()
    if program is None:
        print("clang-format 14 is not installed")
        return 77
    paths = [path for path in read_tree(root) if path.endswith(CODE)]
    command = [program, "--dry-run", "--Werror", "--style=file", *paths]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    differ = sorted(set(re.findall(r"^(\S+?):\d+:\d+: error: ", done.stderr, re.MULTILINE)))
    if done.returncode != 0 and not differ:
        print(done.stderr)
        return 1
    for path in differ:
        print(f"{path}: not formatted; run scripts/format.sh")
    print(f"{len(paths)} files, {len(differ)} differ")
    return 1 if differ else 0


if __name__ == "__main__":
    here = os.path.dirname(os.path.abspath(__file__))
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(here, "..", "..")))
