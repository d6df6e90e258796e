#!/usr/bin/python3
"""Writes docs/scenario.md from the JSON Schema of scenarios.

    scripts/scenario_docs.py            writes it
    scripts/scenario_docs.py --check    exit status 1, with the first difference, where it is out of date
"""

import json
import os
import sys
from typing import Any, Iterator

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
SCHEMA = os.path.join(ROOT, "src", "cli", "scenario.schema.json")
PAGE = os.path.join(ROOT, "docs", "scenario.md")

HEAD = """\
# Scenarios

<!-- Written by scripts/scenario_docs.py from src/cli/scenario.schema.json: change the schema, not this page. -->

A scenario is one JSON file that describes one experiment: what is trained, by which workers, under which protocol, on
which cluster. `rubato init` writes a small one to begin with, `rubato check FILE` explains one, and `rubato help KEY`
says in the terminal what this page says, with an example. Only `workers`, `protocol`, and `model` or `cost` are needed:

    {"model": {"name": "softmax"},
     "workers": {"count": 4, "batch_size": 32},
     "protocol": {"name": "n-softsync", "n": 2}}

- A key is named by its path, such as `protocol.n`. `--set protocol.n=4` on the command line gives it another value,
  JSON or a bare word. `[]` stands for each entry of an array, NAME for a name of your choice.
- Quantities are plain numbers, in the unit that is given here, or texts with a unit: `"25Gbps"` (bits) or `"3GBps"`
  (bytes), `"10us"`, `"350kB"`, `"100Gf"`. Prefixes are k, M, G, T (powers of 1000) and Ki, Mi, Gi, Ti (of 1024).
- `comment`, a text, may stand in every object, and is not listed again below. Unknown keys are errors.
- `extends` names another scenario that this one completes: objects are merged, everything else is replaced.
- Relative paths are relative to the file that they stand in.
- † marks what is reserved for later versions, and refused for now. An empty default: none.
- Editors complete and check scenarios by the schema: see [below](#editors).
"""

EDITORS = """\
## Editors

`src/cli/scenario.schema.json` is a JSON Schema (draft 2020-12); `meson install` puts it
at `PREFIX/share/rubato/scenario.schema.json`, and `rubato help --schema` prints it. An editor that knows JSON Schema,
such as VS Code, completes keys, shows their descriptions and marks mistakes in every file that names it, by a path from
the file or by an address. `rubato init` writes such a line:

    "$schema": "../src/cli/scenario.schema.json"

For files without this line, VS Code takes it from `.vscode/settings.json`:

    {"json.schemas": [{"fileMatch": ["scenarios/**/*.json"], "url": "./src/cli/scenario.schema.json"}]}

The program makes nothing of `$schema`; a saved `scenario.json` does without it. An editor sees one file at a time: in a
file that extends another it may miss the required key of a section (`protocol.name`, say) that the other file has.
"""

UNITS = {"bandwidth": "bytes/s", "time": "s", "speed": "flop/s", "flops": "flop", "bytes": "bytes"}


class Page:
    """The page, section by section."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self.schema = schema
        self.lines: list[str] = []

    def resolved(self, node: dict[str, Any]) -> dict[str, Any]:
        """Follows a $ref."""
        return self.schema["$defs"][node["$ref"].rpartition("/")[2]] if "$ref" in node else node

    def text(self) -> str:
        """The whole page."""
        sections = self.schema["properties"]
        self.lines = [HEAD, "## Contents\n"]
        self.lines.append("- [top level](#top-level): name, seed, and what the file builds on")
        for key, node in sections.items():
            if "properties" in node:
                needed = " **Required.**" if key in self.schema["else"]["required"] else ""
                self.lines.append(f"- [{key}](#{key}): {sentence(node['description'])}{needed}")
                self.lines += [f"  - [{title}](#{anchor(title)})" for title in self.titles(key, node)]
            elif has_keys(node.get("items", {})):
                self.lines.append(f"- [{key}[]](#{key}): {sentence(node['description']).partition(':')[0]}.")
        self.lines += ["- [editors](#editors): completion by the schema", "", "## Top level", ""]
        plain = {key: node for key, node in sections.items() if "properties" not in node}
        self.table("", {"properties": plain})
        for key, node in sections.items():
            if "properties" in node:
                self.section(key, node, 2)
            elif has_keys(node.get("items", {})):
                self.section(key + "[]", {"description": node["description"], **node["items"]}, 2)
        return "\n".join(self.lines) + "\n" + EDITORS

    def titles(self, path: str, node: dict[str, Any]) -> Iterator[str]:
        """Headings of the objects in an object."""
        for child_path, child in self.objects(path, node):
            yield title(child_path, child)
            yield from self.titles(child_path, child)

    def section(self, path: str, node: dict[str, Any], level: int) -> None:
        """A heading, what it is, its keys; then the objects in it."""
        self.lines += ["#" * level + " " + title(path, node), ""]
        self.lines += [*wrapped(sentence(node.get("description", "")), ""), ""]
        self.lines += [f"Default: {node['x-default']}.", ""] if "x-default" in node else []
        self.table(path, node)
        for child_path, child in self.objects(path, node):
            self.section(child_path, child, min(level + 1, 4))

    def objects(self, path: str, node: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
        """(path, schema) of the objects in an object that have keys of their own."""
        for name, child in self.keys(node):
            child, place = self.resolved(child), f"{path}.{name}"
            if has_keys(child):
                yield place, child
            elif has_keys(child.get("items", {})):
                items = child["items"]
                yield place + "[]", {**items, "description": items.get("description", child["description"])}
            for branch in child.get("anyOf", []):
                if has_keys(branch):
                    yield place, {**branch, "x-shape": branch["required"][0], "description": child["description"]}
                elif has_keys(branch.get("items", {})):
                    yield place + "[]", branch["items"]

    def keys(self, node: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
        """Keys of an object, and NAME where the user names them."""
        yield from ((key, child) for key, child in node.get("properties", {}).items() if key != "comment")
        if isinstance(node.get("additionalProperties"), dict):
            yield "NAME", node["additionalProperties"]

    def table(self, path: str, node: dict[str, Any]) -> None:
        """A row a key, then the names that enumerations allow."""
        rows = [(name, self.resolved(child)) for name, child in self.keys(node)]
        if path == "":
            rows.insert(0, ("comment", self.resolved({"$ref": "#/$defs/comment"})))
        if not rows:
            return
        self.lines += ["| key | value | unit | default | meaning |", "|---|---|---|---|---|"]
        for name, child in rows:
            mark = " †" if "x-not-yet" in child else ""
            cells = [f"`{name}`{mark}", self.value(child), unit(child), default(name, child, node),
                     self.meaning(name, child, node)]
            self.lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        self.lines.append("")
        for name, child in rows:
            self.names(f"{path}.{name}" if path else name, child)

    def names(self, path: str, node: dict[str, Any]) -> None:
        """What each name of an enumeration means."""
        values = next((one for one in [node, *node.get("anyOf", [])] if "x-values" in one), None)
        if values is None:
            return
        later, aliases = values.get("x-not-yet-values", []), values.get("x-aliases", {})
        self.lines += [f"`{path}`:", ""]
        for name, what in sorted(values["x-values"].items(), key=lambda pair: pair[0] in later):
            also = [f"`{alias}`" for alias, canonical in aliases.items() if canonical == name]
            self.lines += wrapped(f"- `{name}`{' †' if name in later else ''}: {what}"
                                  + (f"; also called {', '.join(also)}" if also else ""))
        self.lines.append("")

    def value(self, node: dict[str, Any]) -> str:
        """Type and bounds in few words."""
        if "enum" in node:
            if set(node["enum"]) <= {*node.get("x-values", {}), *node.get("x-aliases", {})}:
                return "a name, below"
            later = node.get("x-not-yet-values", [])
            return ", ".join(f"`{name}`{' †' if name in later else ''}" for name in node["enum"])
        if "anyOf" in node:
            return " or ".join(f"object with `{one['required'][0]}`" if "required" in one else
                               "a name, below" if "enum" in one else self.value(one) for one in node["anyOf"])
        types = node.get("type", "any")
        return " or ".join(self.one_type(kind, node) for kind in (types if isinstance(types, list) else [types])
                           if not (kind == "string" and "x-unit" in node))

    def one_type(self, kind: str, node: dict[str, Any]) -> str:
        """One of the types that a value may have."""
        match kind:
            case "integer" | "number":
                return kind + bounds(node) + (" or text with a unit" if "x-unit" in node else "")
            case "string":
                return ("path" if "x-path" in node else "text") + (
                    f", at most {node['maxLength']} bytes" if "maxLength" in node else "")
            case "boolean":
                return "true or false"
            case "array":
                least, most = node.get("minItems", 0), node.get("maxItems")
                count = f"{least} " if least == most else f"{least} to {number(most)} " if most else ""
                return f"array: {count}× {self.value(node['items'])}" if "items" in node else "array"
            case "object" if "patternProperties" in node:
                (entry,) = node["patternProperties"].values()
                return f"table: whole number → {self.value(entry)}"
        return kind

    def meaning(self, name: str, node: dict[str, Any], parent: dict[str, Any]) -> str:
        """Description and company."""
        parts = [sentence(node.get("description", ""))]
        for sibling, values in node.get("x-goes-with", {}).items():
            parts.append(f"Goes with `{sibling}` " + listed([f"`{value}`" for value in values], "or") + ".")
        if needed := parent.get("dependentRequired", {}).get(name):
            parts.append("Needs " + listed([f"`{key}`" for key in needed], "and") + ".")
        if "x-excludes" in node:
            parts.append("Never with " + listed([f"`{key}`" for key in node["x-excludes"]], "or") + ".")
        if "x-variables" in node:
            parts.append("Variables: " + ", ".join(f"`{key}`" for key in node["x-variables"]) + ".")
        return " ".join(part for part in parts if part)


def has_keys(node: dict[str, Any]) -> bool:
    """Whether it is an object with keys worth a table."""
    return bool(set(node.get("properties", {})) - {"comment"}) or (
        isinstance(node.get("additionalProperties"), dict) and "properties" in node)


def bounds(node: dict[str, Any]) -> str:
    """", 1 to 10", " > 0, < 1"."""
    if "minimum" in node and "maximum" in node:
        return f", {number(node['minimum'])} to {number(node['maximum'])}"
    signs = (("minimum", "≥"), ("exclusiveMinimum", ">"), ("maximum", "≤"), ("exclusiveMaximum", "<"))
    found = [f"{sign} {number(node[key])}" for key, sign in signs if key in node]
    return " " + ", ".join(found) if found else ""


def number(value: float) -> str:
    """Large integers with separators."""
    return "2^63 - 1" if value == 2**63 - 1 else f"{value:,}" if isinstance(value, int) else f"{value:g}"


def unit(node: dict[str, Any]) -> str:
    """Of a plain number."""
    own = node.get("x-measure") or UNITS.get(node.get("x-unit", ""), "")
    for entry in node.get("patternProperties", {}).values():
        own = own or UNITS.get(entry.get("x-unit", ""), "")
    return own


def default(name: str, node: dict[str, Any], parent: dict[str, Any]) -> str:
    """The value, or in words where it depends; required keys have none."""
    if name in parent.get("required", []):
        return "**required**"
    if "x-default" in node:
        return node["x-default"]
    if "default" not in node or node["default"] == {}:
        return ""
    value = node["default"]
    return f"`{value:g}`" if isinstance(value, float) else f"`{json.dumps(value)}`"


def sentence(text: str) -> str:
    """With its full stop."""
    return text if not text or text.endswith((".", ":")) else text + "."


def listed(words: list[str], last: str) -> str:
    """a, b or c."""
    return f" {last} ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def title(path: str, node: dict[str, Any]) -> str:
    """Heading of an object; one of several shapes of a value is told by its own key."""
    return f"{path}, with {node['x-shape']}" if "x-shape" in node else path


def anchor(heading: str) -> str:
    """As GitHub makes it of a heading."""
    return "".join(c for c in heading.lower().replace(" ", "-") if c.isalnum() or c in "-_")


def wrapped(text: str, indent: str = "  ", columns: int = 120) -> list[str]:
    """Lines of a paragraph; `indent` before all but the first."""
    lines, line = [], ""
    for word in text.split():
        if line and len(line) + 1 + len(word) > columns:
            lines.append(line)
            line = indent[:-1] if indent else ""
        line += (" " if line else "") + word
    return lines + [line]


def main(arguments: list[str]) -> int:
    """Exit status."""
    with open(SCHEMA, encoding="utf-8") as file:
        page = Page(json.load(file)).text()
    if arguments == ["--check"]:
        with open(PAGE, encoding="utf-8") as file:
            there = file.read()
        if there == page:
            return 0
        pairs = zip(there.split("\n") + [""], page.split("\n") + [""])
        line = next((i for i, (old, new) in enumerate(pairs, 1) if old != new), 0)
        print(f"docs/scenario.md:{line}: out of date; run scripts/scenario_docs.py")
        return 1
    if arguments:
        print(__doc__)
        return 2
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(page)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
