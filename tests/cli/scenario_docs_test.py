"""docs/scenario.md is what scripts/scenario_docs.py writes, and leaves no key, name or description out.

Usage: scenario_docs_test.py SOURCE_ROOT.
"""

import contextlib
import importlib.util
import io
import json
import os
import re
import sys
import tempfile
import unittest
from typing import Any, Iterator

ROOT = ""


def read(*names: str) -> str:
    with open(os.path.join(ROOT, *names), encoding="utf-8") as file:
        return file.read()


def keys(node: Any, name: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """(key, schema) of every property anywhere in the schema, by a walk that knows nothing of the page."""
    if isinstance(node, list):
        for child in node:
            yield from keys(child)
    if not isinstance(node, dict):
        return
    for word, child in node.items():
        if word == "properties":
            yield from child.items()
            for one in child.values():
                yield from keys(one)
        elif word != "x-keywords":
            yield from keys(child, name)


def generator() -> Any:
    """The script as a module."""
    spec = importlib.util.spec_from_file_location("scenario_docs", os.path.join(ROOT, "scripts", "scenario_docs.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class ScenarioDocsTest(unittest.TestCase):
    """The page as it stands in the tree."""

    def setUp(self) -> None:
        self.page = read("docs", "scenario.md")
        self.schema = json.loads(read("src", "cli", "scenario.schema.json"))

    def test_it_is_up_to_date(self) -> None:
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            status = generator().main(["--check"])
        self.assertEqual((status, output.getvalue()), (0, ""))

    def test_an_old_page_is_found_out(self) -> None:
        module = generator()
        with tempfile.TemporaryDirectory() as folder:
            module.PAGE = os.path.join(folder, "scenario.md")
            for old in (self.page.replace("`batch_size`", "`batchsize`"), self.page[:-10], self.page + "more\n", ""):
                with open(module.PAGE, "w", encoding="utf-8") as file:
                    file.write(old)
                output = io.StringIO()
                with contextlib.redirect_stdout(output):
                    self.assertEqual(module.main(["--check"]), 1)
                self.assertRegex(output.getvalue(), r"\Adocs/scenario.md:[1-9]\d*: out of date; run .*\n\Z")
            module.main([])
            self.assertEqual(module.main(["--check"]), 0)

    def test_every_key_has_its_row_and_every_name_its_place(self) -> None:
        plain = self.page.replace("\\|", "|")
        found = list(keys(self.schema))
        self.assertGreater(len(found), 100)
        for key, node in found:
            has_table = node.get("properties") and f"\n## {key}\n" in plain
            mark = " †" if "x-not-yet" in node else ""
            self.assertTrue(has_table or f"| `{key}`{mark} |" in plain, key)
            self.assertIn(node.get("description", ""), plain, key)
            for name in node.get("enum", []):
                self.assertIn(f"`{name}`", plain, f"{key}: {name}")
                if name in node.get("x-not-yet-values", []) and "x-not-yet" not in node:
                    self.assertIn(f"`{name}` †", plain, f"{key}: {name}")

    def test_links_lead_to_headings(self) -> None:
        anchors = {re.sub(r"[^\w-]", "", heading.lower().replace(" ", "-"))
                   for heading in re.findall(r"(?m)^#+ (.*)$", self.page)}
        links = re.findall(r"\]\(#([^)]*)\)", self.page)
        self.assertGreater(len(links), 20)
        self.assertEqual([link for link in links if link not in anchors], [])


if __name__ == "__main__":
    ROOT = os.path.abspath(sys.argv.pop())
    unittest.main()
