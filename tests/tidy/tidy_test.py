"""The style of the house as a test: tidy_test.py [ROOT]. Lists long files; fails with one line a finding."""

import os
import sys

from rules import check, long_files
from tree import read_tree


def main(root: str) -> int:
    """Checks the tree at `root`; exit status 1 if anything is found."""
    files = read_tree(root)
    if not any(path.startswith("src/core/") for path in files):
        print(f"{root}: no src/core there, so nothing was checked")
        return 1
    for line in long_files(files):
        print("long:", line)
    findings = check(files)
    for finding in findings:
        print(finding)
    print(f"{len(files)} files, {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    here = os.path.dirname(os.path.abspath(__file__))
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(here, "..", "..")))
