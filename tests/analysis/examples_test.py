"""The notebook and the Optuna loop run as they are: examples_test.py SOURCE_ROOT RUBATO."""

import contextlib
import importlib.util
import io
import json
import os
import subprocess
import sys
import tempfile
import unittest

from synthetic_sweep import write_sweep

ROOT = ""
PROGRAM = ""
SCENARIO = {"data": {"samples": 200, "shape": [4, 4, 1], "validation": 0.2}, "model": {"name": "softmax"},
            "workers": {"count": 4, "batch_size": 10}, "protocol": {"name": "async"}, "stop": {"epochs": 1}}


def installed(*names: str) -> bool:
    """Whether the packages are there."""
    return all(importlib.util.find_spec(name) is not None for name in names)


class Trial:
    """As much of a trial of Optuna as the objective asks for."""

    def suggest_float(self, _name: str, low: float, _high: float, log: bool) -> float:
        """The upper third of a decade."""
        return 5.0 * low if log else low

    def suggest_int(self, _name: str, _low: int, high: int) -> int:
        """The largest."""
        return high


class ExamplesTest(unittest.TestCase):
    """Each in a directory of its own."""

    def setUp(self) -> None:
        # pylint: disable-next=consider-using-with
        self.root = tempfile.TemporaryDirectory()
        self.home = os.getcwd()
        os.chdir(self.root.name)
        self.notebook = os.path.join(ROOT, "analysis", "notebooks", "sweep.ipynb")
        self.loop = os.path.join(ROOT, "analysis", "examples", "optuna_loop.py")
        with open("scenario.json", "w", encoding="utf-8") as file:
            json.dump(SCENARIO, file)

    def tearDown(self) -> None:
        os.chdir(self.home)
        self.root.cleanup()

    def cells(self) -> list[str]:
        """Code of the notebook."""
        with open(self.notebook, encoding="utf-8") as file:
            book = json.load(file)
        self.assertEqual((book["nbformat"], book["nbformat_minor"]), (4, 5))
        identities = [cell["id"] for cell in book["cells"]]
        self.assertEqual(len(set(identities)), len(identities))
        for cell in book["cells"]:
            self.assertIn(cell["cell_type"], ("markdown", "code"))
            if cell["cell_type"] == "code":
                self.assertEqual((cell["outputs"], cell["execution_count"]), ([], None))
        return ["".join(cell["source"]) for cell in book["cells"] if cell["cell_type"] == "code"]

    def run_cells(self, sweep: str) -> str:
        """What the cells print when they run as a script."""
        before = {name: os.environ.get(name) for name in ("RUBATO", "RUBATO_SWEEP")}
        os.environ.update({"RUBATO": PROGRAM, "RUBATO_SWEEP": sweep})
        out, space = io.StringIO(), {"__name__": "__main__"}
        try:
            with contextlib.redirect_stdout(out):
                for number, cell in enumerate(self.cells()):
                    exec(compile(cell, f"cell {number}", "exec"), space)  # pylint: disable=exec-used
        finally:
            for name, value in before.items():
                os.environ.pop(name) if value is None else os.environ.update({name: value})
        return out.getvalue()

    def test_notebook_as_a_script(self) -> None:
        sweep = write_sweep(os.path.join(self.root.name, "sweep"))
        text = self.run_cells(sweep)
        self.assertIn("24 points; swept: workers.count, workers.batch_size", text)
        self.assertEqual(text.count(" finished "), 6)
        self.assertTrue(os.path.exists("runs/notebook/tradeoff.csv"))
        self.assertIn("no sweep there", self.run_cells("nowhere"))

    @unittest.skipUnless(installed("nbformat", "nbconvert", "ipykernel"), "Jupyter is not installed")
    def test_notebook_in_jupyter(self) -> None:
        import nbformat  # pylint: disable=import-outside-toplevel,import-error
        from nbconvert.preprocessors import ExecutePreprocessor  # pylint: disable=import-outside-toplevel,import-error

        book = nbformat.read(self.notebook, as_version=4)
        nbformat.validate(book)
        os.environ.update({"RUBATO": PROGRAM, "RUBATO_SWEEP": write_sweep(os.path.join(self.root.name, "sweep"))})
        ExecutePreprocessor(timeout=120).preprocess(book, {"metadata": {"path": self.root.name}})
        pictures = [out for cell in book.cells if cell.cell_type == "code" for out in cell.outputs
                    if "image/png" in out.get("data", {})]
        self.assertEqual(len(pictures), 3)

    def test_objective(self) -> None:
        spec = importlib.util.spec_from_file_location("optuna_loop", self.loop)
        loop = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(loop)
        error = loop.objective(Trial(), "scenario.json", PROGRAM)
        self.assertTrue(0.0 < error < 1.0, error)
        with open(self.loop, encoding="utf-8") as file:
            lines = [line for line in file.read().split("\n") if line.strip()]
        self.assertLessEqual(len(lines), 16)

    @unittest.skipUnless(installed("optuna"), "Optuna is not installed")
    def test_loop(self) -> None:
        command = [sys.executable, self.loop, "scenario.json", "3", PROGRAM]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("learning_rate", done.stdout)


if __name__ == "__main__":
    PROGRAM = os.path.abspath(sys.argv.pop())
    ROOT = os.path.abspath(sys.argv.pop())
    unittest.main()
