"""Wrong input: one line on stderr and exit status 2, nothing written."""

import contextlib
import io
import os
import re
import subprocess
import sys
import tempfile
import unittest

from rubato_analysis.cli import main
from rubato_analysis.kinds import KINDS
from synthetic import write_run

HERE = os.path.dirname(os.path.abspath(__file__))


class CliTest(unittest.TestCase):
    """The command line within this process, from a folder that holds a run."""

    def setUp(self) -> None:
        self.root = tempfile.TemporaryDirectory()
        self.home = os.getcwd()
        os.chdir(self.root.name)
        self.run_path = write_run(os.path.join(self.root.name, "run"), updates=20)

    def tearDown(self) -> None:
        os.chdir(self.home)
        self.root.cleanup()

    def call(self, *words: str) -> tuple[int, list[str], list[str]]:
        """(exit status, lines of stdout, lines of stderr)."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                status = main(list(words))
            except SystemExit as end:
                status = int(end.code or 0)
        return status, out.getvalue().splitlines(), err.getvalue().splitlines()

    def refused(self, text: str, *words: str) -> None:
        """Exit status 2 and one line that says `text`."""
        before = sorted(os.listdir(self.root.name))
        status, out, err = self.call(*words)
        self.assertEqual((status, out, len(err)), (2, [], 1), err)
        self.assertIn(text, err[0])
        self.assertEqual(sorted(os.listdir(self.root.name)), before)

    def remove(self, leaf: str) -> None:
        os.remove(os.path.join(self.run_path, leaf))

    def test_as_a_process_of_its_own(self) -> None:
        command = [sys.executable, "-m", "rubato_analysis", "plot", "staleness", "nowhere"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertEqual(done.stderr, "rubato_analysis: nowhere: no such directory\n")

    def test_arguments(self) -> None:
        self.refused("invalid choice", "plot", "nonsense", "run")
        self.refused("RUN", "plot", "staleness")
        self.refused("required", "plot")
        self.refused("invalid choice", "plot", "curves", "run", "--x", "days")

    def test_every_kind_is_documented(self) -> None:
        with open(os.path.join(HERE, "..", "..", "docs", "plots.md"), encoding="utf-8") as file:
            headings = re.findall(r"(?m)^## (.+)$", file.read())
        told = [kind for heading in headings for kind in heading.split(", ")]
        self.assertEqual(sorted(kind for kind in told if kind in KINDS), sorted(KINDS))

    def test_runs(self) -> None:
        self.refused("nowhere: no such directory", "plot", "staleness", "nowhere")
        self.refused(".: not a run directory", "plot", "staleness", ".")

    def test_tables(self) -> None:
        with open(os.path.join(self.run_path, "evals.csv"), "w", encoding="utf-8") as file:
            file.write("time_ns,version\n1,1\n")
        self.refused("run/evals.csv:1: columns epoch, samples,", "plot", "curves", "run")
        self.remove("evals.csv")
        self.refused("run/evals.csv: no such file", "plot", "curves", "run")
        self.remove("timeline.csv")
        self.refused("run/timeline.csv: no such file", "plot", "timeline", "run")

    def test_output(self) -> None:
        self.refused("expected a name that ends in", "plot", "curves", "run", "-o", "figure.gif")
        self.refused("run/evals.csv/figure.png: ", "plot", "curves", "run", "-o", "run/evals.csv/figure.png")

    def test_figures_of_the_paper_ask_for_their_runs(self) -> None:
        write_run(os.path.join(self.root.name, "hard"), "hardsync", updates=5)
        self.refused("hard: protocol hardsync, expected n-softsync", "figure4", "hard")
        write_run(os.path.join(self.root.name, "other"), updates=5, rule="polynomial")
        self.refused("expected none or inverse-n", "figure5", "other")

    def test_window(self) -> None:
        self.refused("nothing happens between", "plot", "timeline", "run", "--from", "1e6", "--to", "2e6")
        self.refused("nothing happens between", "plot", "timeline", "run", "--from", "2", "--to", "1")
        self.refused("--chrome takes one run", "plot", "timeline", "run", "run/../run", "--chrome", "x.json")

    def test_default_output_and_what_is_printed(self) -> None:
        self.assertEqual(self.call("plot", "curves", "run"), (0, ["curves.png", "curves.csv"], []))
        self.assertTrue(os.path.exists(os.path.join(self.root.name, "curves.png")))

    def test_a_cut_run_is_drawn_with_a_warning(self) -> None:
        self.remove("summary.json")
        with open(os.path.join(self.run_path, "updates.csv"), "a", encoding="utf-8") as file:
            file.write("123,4")
        status, out, err = self.call("plot", "staleness", "run")
        self.assertEqual((status, len(out)), (0, 2), err)
        self.assertEqual([line.split(":")[0] for line in err], ["warning", "warning"], err)


if __name__ == "__main__":
    unittest.main()
