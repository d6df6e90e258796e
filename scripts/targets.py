"""Asks meson's introspection data which ninja targets to build and which tests to run.

targets.py program BUILD     targets of the program and its modules: everything that is not a test
targets.py tests BUILD DIR   names of the tests under DIR (or in the suite of its name), one a line
targets.py needs BUILD DIR   ninja targets that those tests run
"""

import json
import os
import sys
from typing import Any


def introspect(build: str, what: str) -> list[dict[str, Any]]:
    """Reads meson-info/intro-WHAT.json, which meson writes whenever it configures."""
    with open(os.path.join(build, "meson-info", f"intro-{what}.json"), encoding="utf-8") as file:
        return json.load(file)


def program_targets(build: str) -> list[str]:
    """Output files, relative to `build`, of executables and modules that are defined outside tests/."""
    root = os.path.abspath(build)
    tests = os.path.join(os.path.dirname(root), "tests") + os.sep
    return [
        os.path.relpath(output, root)
        for target in introspect(build, "targets")
        if target["type"] in ("executable", "shared module") and not target["defined_in"].startswith(tests)
        for output in target["filename"]
    ]


def tests_of(build: str, directory: str) -> list[dict[str, Any]]:
    """Tests whose program lies in tests/DIRECTORY, or that belong to the suite DIRECTORY."""
    prefix = os.path.join(os.path.abspath(build), "tests", directory) + os.sep
    return [
        test
        for test in introspect(build, "tests")
        if test["cmd"][0].startswith(prefix) or any(s.split(":")[-1] == directory for s in test["suite"])
    ]


def needs(build: str, directory: str) -> list[str]:
    """Every word of the tests' commands that is a file of the build directory."""
    root = os.path.abspath(build)
    words = {word for test in tests_of(build, directory) for word in test["cmd"]}
    return sorted(os.path.relpath(word, root) for word in words if word.startswith(root + os.sep))


def main(arguments: list[str]) -> int:
    """Prints what is asked for; see the head of the file."""
    match arguments:
        case ["program", build]:
            print("\n".join(program_targets(build)))
        case ["tests", build, directory]:
            print("\n".join(test["name"] for test in tests_of(build, directory)))
        case ["needs", build, directory]:
            print("\n".join(needs(build, directory)))
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
