"""The files that tidiness is asked of."""

import os

from rules import CODE

IGNORED = {".git", ".cache", "__pycache__", "runs", "subprojects", "node_modules"}
PROSE = (".py", ".sh", ".build", ".json", ".md", ".supp", ".xml", ".txt")
SCRIPTS = {"check", "quickstart", ".ci/run"}


def asked(path: str) -> bool:
    """Code everywhere; data of tests may be as untidy as what it imitates."""
    if path.endswith(CODE + (".py", ".sh", ".build", ".supp")) or path in SCRIPTS:
        return True
    return path.endswith(PROSE) and not path.startswith("tests/") and path != "LICENSE"


def read_tree(root: str) -> dict[str, str]:
    """{path from the root, with slashes: text} of every file that is asked to be tidy."""
    files = {}
    for directory, names, leaves in os.walk(root):
        names[:] = sorted(n for n in names if n not in IGNORED and not n.startswith("build"))
        for leaf in leaves:
            path = os.path.relpath(os.path.join(directory, leaf), root).replace(os.sep, "/")
            if asked(path):
                with open(os.path.join(directory, leaf), encoding="utf-8", newline="") as file:
                    files[path] = file.read()
    return files
