"""CITATION.cff agrees with meson.build on version and licence, and has what CFF 1.2.0 asks for.

Usage: citation_test.py ROOT.
"""

import os
import re
import sys

REQUIRED = ("cff-version", "message", "title", "authors")


def fields(text: str) -> dict[str, str]:
    """Top-level keys of the file; it is plain enough to do without a YAML parser."""
    found = re.findall(r"(?m)^([a-z-]+):[ ]*(.*)$", text)
    assert len(found) == len({key for key, _ in found}), "a key stands there twice"
    return {key: value.strip('"') for key, value in found}


def main(root: str) -> int:
    """Counts what does not agree."""
    with open(os.path.join(root, "CITATION.cff"), encoding="utf-8") as file:
        text = file.read()
    with open(os.path.join(root, "meson.build"), encoding="utf-8") as file:
        project = file.read().partition("default_options")[0]
    with open(os.path.join(root, "LICENSE"), encoding="utf-8") as file:
        licence = file.read()
    cited = fields(text)
    problems = [f"{key} is missing" for key in REQUIRED if key not in cited]
    for key in ("version", "license"):
        own = re.search(rf"(?<!_){key}: '([^']+)'", project)[1]
        if cited.get(key) != own:
            problems.append(f"{key} is {cited.get(key)}, meson.build says {own}")
    expected = {"cff-version": "1.2.0", "title": "rubato", "type": "software"}
    problems += [f"{key} is {cited.get(key)}, expected {value}" for key, value in expected.items()
                 if cited.get(key) != value]
    if not re.search(r"(?m)^authors:\n  - name: \S", text):
        problems.append("no authors")
    name, _, number = cited.get("license", "").partition("-")
    if not re.search(rf"{name} License\s+Version {re.escape(number)}", licence):
        problems.append("LICENSE is another licence")
    print("\n".join([f"CITATION.cff: {problem}" for problem in problems] + [f"{len(problems)} problems"]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
