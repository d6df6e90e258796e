"""The test of the test: each rule finds its violation, and leaves the tidy neighbour alone."""

import os
import subprocess
import sys
import tempfile
import unittest

from rules import check, long_files

HERE = os.path.dirname(os.path.abspath(__file__))
LEFT = "TO" + "DO"


def rules_of(files: dict[str, str]) -> list[str]:
    """Names of the rules that found something."""
    return [finding.rule for finding in check(files)]


class RulesTest(unittest.TestCase):
    """One case a rule."""

    def finds(self, rule: str, path: str, text: str) -> None:
        """Exactly one finding, of this rule."""
        self.assertEqual(rules_of({path: text}), [rule], (path, text))

    def accepts(self, path: str, text: str) -> None:
        """No finding."""
        self.assertEqual([str(finding) for finding in check({path: text})], [], (path, text))

    def test_core_sees_no_clock_thread_device_or_stream(self) -> None:
        for header in ("thread", "mutex", "chrono", "random", "iostream", "fstream", "cstdio", "ctime", "atomic",
                       "future", "unordered_map", "condition_variable", "cstdlib", "sys/time.h", "fmt/core.h"):
            self.finds("core", "src/core/x.hpp", f"#include <{header}>\n")
            self.finds("core", "src/core/x.cpp", f"  #  include <{header}>\n")
        for header in ("vector", "variant", "cmath", "memory", "string_view"):
            self.accepts("src/core/x.hpp", f"#include <{header}>\n")

    def test_core_sees_core_alone(self) -> None:
        self.accepts("src/core/x.hpp", '#include "core/types.hpp"\n')
        self.assertIn("core", rules_of({"src/core/x.hpp": '#include "trace/recorder.hpp"\n'}))
        self.assertIn("core", rules_of({"src/core/x.hpp": '#include "types.hpp"\n'}))

    def test_rooms(self) -> None:
        self.accepts("src/sim/x.cpp", '#include "learn/task.hpp"\n#include "sim/x.hpp"\n#include <chrono>\n')
        self.finds("rooms", "src/sim/x.cpp", '#include "exec/local.hpp"\n')
        self.finds("rooms", "src/learn/x.cpp", '#include "trace/recorder.hpp"\n')
        self.finds("rooms", "src/trace/x.cpp", '#include "sim/driver.hpp"\n')
        self.finds("rooms", "src/exec/x.cpp", '#include "sim/driver.hpp"\n')
        self.finds("rooms", "src/exec/x.cpp", '#include "local.hpp"\n')
        self.accepts("src/cli/x.cpp", '#include "sim/driver.hpp"\n#include "exec/local.hpp"\n')

    def test_libraries_stay_in_their_room(self) -> None:
        self.accepts("src/sim/x.cpp", "#include <simgrid/s4u.hpp>\n")
        self.finds("rooms", "src/cli/x.cpp", "#include <simgrid/s4u.hpp>\n")
        self.finds("rooms", "src/trace/x.cpp", "#include <Eigen/Core>\n")
        self.finds("rooms", "src/sim/x.cpp", "#include <mpi.h>\n")

    def test_heavy_headers(self) -> None:
        include = "#include <nlohmann/json.hpp>\n"
        self.accepts("src/cli/a.cpp", include)
        self.accepts("src/cli/a.hpp", "#include <nlohmann/json_fwd.hpp>\n")
        self.finds("heavy", "src/cli/a.hpp", include)
        self.assertEqual(rules_of({"src/cli/a.cpp": include, "src/trace/b.cpp": include}), [])
        self.assertEqual(rules_of({"src/cli/a.cpp": include, "src/cli/b.cpp": include}), ["heavy"])
        self.assertEqual(rules_of({"src/cli/a.cpp": include, "src/cli/b.cpp": "#include <CLI/CLI.hpp>\n"}), [])

    def test_length(self) -> None:
        self.accepts("src/sim/x.cpp", "/" * 120 + "\n")
        self.finds("line-length", "src/sim/x.cpp", "/" * 121 + "\n")
        self.finds("line-length", "docs/x.md", "word " * 25 + "end\n")
        self.accepts("docs/x.md", "| " + "cell " * 25 + "|\n")
        self.accepts("src/cli/x.json", '{"description": "' + "word " * 25 + '"}\n')
        self.accepts("src/sim/x.cpp", "//\n" * 399)
        self.finds("file-length", "src/sim/x.cpp", "//\n" * 400)
        self.assertEqual(long_files({"src/sim/x.cpp": "//\n" * 250}), [])
        self.assertEqual(len(long_files({"src/sim/x.cpp": "//\n" * 251})), 1)

    def test_whitespace(self) -> None:
        for text in ("\tint x;\n", "int x; \n", "int x;\r\n", "int x;", "int x;\n\n"):
            self.finds("whitespace", "src/sim/x.cpp", text)

    def test_leftovers(self) -> None:
        self.finds("leftover", "src/sim/x.cpp", f"// {LEFT}: later\n")
        self.accepts("src/sim/x.cpp", f"// {LEFT}S are other words\n")

    def test_json(self) -> None:
        self.accepts("scenarios/x.json", '{"name": "x"}\n')
        self.finds("json", "scenarios/x.json", '{"name": "x",}\n')
        self.finds("json", "scenarios/x.json", '{"name": "x", "name": "y"}\n')


    def test_scenarios_are_tests(self) -> None:
        listed = {"tests/scenarios/meson.build": "files = ['papers/a.json']\n"}
        self.assertEqual(rules_of({**listed, "scenarios/papers/a.json": "{}\n"}), [])
        self.assertEqual(rules_of({**listed, "scenarios/papers/a.json": "{}\n", "scenarios/b.json": "{}\n"}),
                         ["scenario-test"])
        self.assertEqual(rules_of(listed), ["scenario-test"])


class WholeTreeTest(unittest.TestCase):
    """The script as the build runs it."""

    def run_tidy(self, files: dict[str, str]) -> tuple[int, str]:
        """(exit status, output) over a tree of its own."""
        with tempfile.TemporaryDirectory() as root:
            for path, text in files.items():
                os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
                with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                    file.write(text)
            done = subprocess.run([sys.executable, os.path.join(HERE, "tidy_test.py"), root], capture_output=True,
                                  text=True, check=False)
            return done.returncode, done.stdout

    def test_status(self) -> None:
        self.assertEqual(self.run_tidy({"src/core/x.hpp": "#include <vector>\n"})[0], 0)
        status, output = self.run_tidy({"src/core/x.hpp": "#include <vector>\n#include <thread>\n"})
        self.assertEqual(status, 1)
        self.assertIn("src/core/x.hpp:2: <thread>", output)

    def test_an_empty_tree_is_no_success(self) -> None:
        self.assertEqual(self.run_tidy({"README.md": "x\n"})[0], 1)

    def test_builds_runs_and_test_data_are_left_alone(self) -> None:
        untidy = "#include <thread> \n\tx"
        files = {"src/core/x.hpp": "#include <vector>\n", "build-asan/src/core/y.hpp": untidy, "runs/a/x.json": untidy,
                 "tests/sim/data/crlf.xml": "a\r\n"}
        self.assertEqual(self.run_tidy(files)[0], 0)


if __name__ == "__main__":
    unittest.main()
