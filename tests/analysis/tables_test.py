"""Tables: numbers, counts, and LaTeX that compiles (where LaTeX is installed)."""

import contextlib
import csv
import io
import os
import shutil
import subprocess
import tempfile
import unittest

import pandas as pd
import rubato_analysis
from rubato_analysis.cells import cell_text, numbers
from rubato_analysis.cli import main
from rubato_analysis.metrics import measure
from rubato_analysis.points import collect
from rubato_analysis.tables import best_cells, latex, latex_cell, settings_table
from synthetic_sweep import write_sweep

NASTY = r"50 % of $x_1$ & {y}^2 ~ #3 \ <fast> | λ"


class TablesTest(unittest.TestCase):
    """One sweep with a label that LaTeX would stumble over."""

    @classmethod
    def setUpClass(cls) -> None:
        # pylint: disable-next=consider-using-with
        cls.root = tempfile.TemporaryDirectory()
        cls.sweep = write_sweep(f"{cls.root.name}/sweep_1", ("hardsync", NASTY), (1, 4), (4, 16), lost={
            ("hardsync", 4, 16, 2): "diverged", (NASTY, 1, 4, 1): "failed",
            **{("hardsync", 1, 4, seed): "diverged" for seed in (1, 2, 3)}})

    @classmethod
    def tearDownClass(cls) -> None:
        cls.root.cleanup()

    def table(self, *words: str, status: int = 0) -> str:
        """What is printed."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            self.assertEqual(main(["table", self.sweep, *words]), status, err.getvalue())
        self.assertLessEqual(err.getvalue().count("\n"), 1)
        return out.getvalue() + err.getvalue()

    def test_numbers(self) -> None:
        told = {(12.3456, 0.4321): "12.35 ± 0.43", (1234.5, 87.0): "1234 ± 87", (22512.0, 1312.0): "22500 ± 1300",
                (0.00123, 0.00045): "0.00123 ± 0.00045", (3.0, 0.0): "3 ± 0", (1.23456, float("nan")): "1.235",
                (0.0, float("nan")): "0.000", (-5.0, 1.0): "-5.0 ± 1.0"}
        # Four digits at most, and powers of ten where plain numbers would be long.
        told |= {(1234567890.0, 1234.0): "1.235e9 ± 1200", (1.25e9, 1.2e8): "1.25e9 ± 1.2e8",
                 (12345.678, 0.012): "12350 ± 0.012", (2.5e7, float("nan")): "2.500e7",
                 (2.5e7, 0.0): "2.5e7 ± 0", (-3.2e-7, 4e-9): "-3.200e-7 ± 4.0e-9", (999999.7, 0.5): "1.000e6 ± 0.50",
                 (9.99997, float("nan")): "10.00", (0.001, 30.0): "0 ± 30", (26.0, 30.0): "26 ± 30",
                 (4e5, 3e6): "400000 ± 3.0e6"}
        for (mean, width), text in told.items():
            self.assertEqual(numbers(mean, width), text)
        # Counts stay whole.
        nan = float("nan")
        told = {(7_000_000.0, 0.0): "7000000 ± 0", (123456789012.0, nan): "123456789012", (12345.7, 3.2): "12346 ± 3",
                (22512.0, 1312.0): "22500 ± 1300", (2.333, 1.21): "2.3 ± 1.2", (1234567890.5, 1234.0): "1.235e9 ± 1200",
                (2.5, nan): "2.500", (2000.5, 0.3): "2000 ± 0.30"}
        for (mean, width), text in told.items():
            self.assertEqual(numbers(mean, width, count=True), text)

    def test_large_figures(self) -> None:
        rows = pd.DataFrame({"status": ["finished"] * 3, "throughput.samples_per_s": [1.1e7, 1.2e7, 1.3e7],
                             "samples": [7_000_000] * 3})
        told = [cell_text(measure(rows, name), name) for name in ("throughput.samples_per_s", "samples")]
        self.assertEqual(told, ["1.20e7 ± 2.5e6 (3)", "7000000 ± 0 (3)"])
        self.assertEqual(latex_cell("-1.20e7 ± 2.5e-6 (3, 1 failed)"),
                         r"$-1.20\times10^{7}$ $\pm$ $2.5\times10^{-6}$ (3, 1 failed)")

    def test_text(self) -> None:
        text = self.table("--value", "test_error", "--value", "time_s", "--best", "min")
        lines = text.splitlines()
        self.assertIn("95 % confidence interval", lines[0])
        self.assertIn("test error (%)", lines[2])
        self.assertEqual(len(lines), 4 + 8)
        row = next(line for line in lines if line.startswith("hardsync, 4 workers, batch 16"))
        self.assertIn("(2, 1 diverged)", row)
        self.assertIn("– (3 diverged)", next(line for line in lines if line.startswith("hardsync, 1 worker, batch 4")))
        self.assertIn("(2, 1 failed)", text)
        sweep = rubato_analysis.load_sweep(self.sweep)
        one = sweep.aggregate.iloc[3]
        self.assertIn(numbers(100 * one["test_error.mean"], 100 * one["test_error.ci95"]), row)
        stars = [line for line in lines if "*" in line]
        self.assertEqual(sum(line.count("*") for line in stars), 4)

    def test_best_leaves_out_what_lost_runs(self) -> None:
        """A mean over survivors wins no comparison, however low."""
        sweep = write_sweep(f"{self.root.name}/best", ("hardsync", "async"), (4, 30), (16,), lost={
            ("async", 30, 16, 1): "diverged", ("hardsync", 30, 16, 1): "failed"})
        table = settings_table(collect([rubato_analysis.load_sweep(sweep)]), ["time_s"])
        self.assertEqual(table.rows, ["hardsync, 4 workers", "hardsync, 30 workers", "async, 4 workers",
                                      "async, 30 workers"])
        self.assertEqual((best_cells(table, "min"), best_cells(table, "max")), ({(2, 0)}, {(0, 0)}))

    def test_pivot(self) -> None:
        text = self.table("--rows", "workers.count", "--columns", "workers.batch_size", "--where", "label=hardsync")
        self.assertEqual(len(text.splitlines()), 6)
        self.assertRegex(text, r"(?m)^workers \(λ\) +batch 4 +batch 16$")
        text = self.table("--rows", "label", "--columns", "workers.count", "--value", "time_s", "--where",
                          "workers.batch_size=16")
        self.assertRegex(text, r"(?m)^hardsync +\d+ ± \d+ \(3\) ")
        self.assertIn("they differ in label", self.table("--rows", "workers.count", "--columns", "workers.batch_size",
                                                         status=2))

    def test_refusals(self) -> None:
        self.assertIn("go together", self.table("--rows", "label", status=2))
        self.assertIn("same key", self.table("--rows", "label", "--columns", "label", status=2))
        self.assertIn("is not among the columns", self.table("--rows", "label", "--columns", "x", status=2))
        self.assertIn("is no column of the results", self.table("--value", "loss", status=2))

    def test_csv(self) -> None:
        rows = list(csv.DictReader(io.StringIO(self.table("--csv", "--value", "test_error"))))
        self.assertEqual(len(rows), 8)
        one = rubato_analysis.load_sweep(self.sweep).aggregate.iloc[3]
        self.assertEqual(float(rows[3]["mean"]), one["test_error.mean"])
        self.assertAlmostEqual(float(rows[3]["ci95"]), one["test_error.ci95"])
        self.assertEqual((rows[3]["n"], rows[3]["diverged"], rows[0]["mean"]), ("2", "1", ""))

    def test_latex_escapes(self) -> None:
        self.assertEqual(latex(r"a_b & 5 % {x} \y $ # ~ ^"), r"a\_b \& 5 \% \{x\} \textbackslash{}y \$ \# "
                         r"\textasciitilde{} \textasciicircum{}")
        text = self.table("--latex", "--best", "min", "--value", "test_error")
        self.assertIn(r"\caption{sweep\_1. test error (\%): mean $\pm$ 95 \% confidence", text)
        self.assertIn(r"50 \% of \$x\_1\$ \& \{y\}\textasciicircum{}2", text)
        self.assertEqual(text.count(r"\textbf{"), 1)
        for rule in (r"\toprule", r"\midrule", r"\bottomrule"):
            self.assertEqual(text.count(rule), 1)

    def test_output(self) -> None:
        path = os.path.join(self.root.name, "tables", "one.tex")
        self.assertEqual(self.table("--latex", "-o", path), path + "\n")
        with open(path, encoding="utf-8") as file:
            self.assertEqual(file.read(), self.table("--latex"))
        self.assertIn("one.tex/x: ", self.table("-o", path + "/x", status=2))

    @unittest.skipIf(shutil.which("pdflatex") is None, "LaTeX is not installed")
    def test_latex_compiles(self) -> None:
        path = os.path.join(self.root.name, "main.tex")
        with open(path, "w", encoding="utf-8") as file:
            file.write("\\documentclass{article}\n\\usepackage[T1]{fontenc}\n\\usepackage{booktabs}\n"
                       "\\begin{document}\n" + self.table("--latex", "--best", "min") + "\\end{document}\n")
        done = subprocess.run(["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "main.tex"],
                              cwd=self.root.name, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout[-2000:])


if __name__ == "__main__":
    unittest.main()
