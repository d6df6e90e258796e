"""Figures are drawn, show something, and come out the same bytes each time."""

import contextlib
import io
import json
import os
import tempfile
import unittest

import matplotlib.image
import numpy as np
import pandas as pd
from PIL import Image
from rubato_analysis.cli import main
from rubato_analysis.curves import abscissa
from rubato_analysis.figure import whole
from rubato_analysis.run_directory import load
from rubato_analysis.staleness import distribution, mean_staleness
from rubato_analysis.timeline import chrome_trace, role_name, unit_of, waits_of
from synthetic import write_run


class PlotTest(unittest.TestCase):
    """All figures over one set of runs."""

    @classmethod
    def setUpClass(cls) -> None:
        cls.root = tempfile.TemporaryDirectory()
        at = cls.root.name
        cls.hard = write_run(f"{at}/hard", "hardsync", updates=30, rule="none")
        cls.soft = write_run(f"{at}/soft", "n-softsync", 2, workers=6, updates=500)
        cls.wide = write_run(f"{at}/wide", "n-softsync", 6, workers=6, updates=900)
        cls.undivided = write_run(f"{at}/undivided", "n-softsync", 6, workers=6, updates=900, rule="none",
                                  status="diverged")

    @classmethod
    def tearDownClass(cls) -> None:
        cls.root.cleanup()

    def draw(self, *words: str, leaf: str = "figure.png") -> str:
        """Draws with the command line; the path of the figure."""
        output = os.path.join(self.root.name, leaf)
        with contextlib.redirect_stdout(io.StringIO()):
            self.assertEqual(main([*words, "-o", output]), 0)
        return output

    def shows_something(self, path: str) -> None:
        """Not blank, in each quarter of its height."""
        pixels = matplotlib.image.imread(path)[..., :3]
        self.assertGreater(min(pixels.shape[:2]), 300)
        for quarter in np.array_split(pixels, 4):
            self.assertGreater(float(quarter.var()), 1e-4)

    def test_every_kind(self) -> None:
        for words in (("plot", "staleness", self.hard, self.soft), ("plot", "staleness", self.wide),
                      ("plot", "curves", self.hard, self.soft, self.undivided),
                      ("plot", "curves", "--x", "epochs", self.hard),
                      ("plot", "timeline", self.hard), ("plot", "timeline", self.hard, self.soft, "--to", "0.5"),
                      ("plot", "controller", self.soft),
                      ("plot", "phases", self.soft),
                      ("figure4", self.soft, self.wide), ("figure5", self.wide, self.undivided)):
            with self.subTest(words=words[:2]):
                self.shows_something(self.draw(*words))

    def test_a_figure_is_whole_or_not_there(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            old = os.path.join(folder, "figure.png")

            def fill(part: str) -> None:
                with open(part, "w", encoding="utf-8") as file:
                    file.write("half")
                raise OSError("no space left")

            for before in (None, "as it was"):
                if before:
                    with open(old, "w", encoding="utf-8") as file:
                        file.write(before)
                with self.assertRaises(OSError):
                    whole(old, fill)
                self.assertEqual(os.listdir(folder), ["figure.png"] if before else [])
            with open(old, encoding="utf-8") as file:
                self.assertEqual(file.read(), "as it was")

    def test_same_bytes(self) -> None:
        for kind in ("staleness", "curves", "timeline", "controller", "phases"):
            with open(self.draw("plot", kind, self.hard), "rb") as file:
                first = file.read()
            with open(self.draw("plot", kind, self.hard), "rb") as file:
                self.assertEqual(file.read(), first, kind)

    def test_other_formats(self) -> None:
        for leaf in ("figure.pdf", "figure.svg"):
            with open(self.draw("plot", "curves", self.hard, leaf=leaf), "rb") as file:
                first = file.read()
            with open(self.draw("plot", "curves", self.hard, leaf=leaf), "rb") as file:
                self.assertEqual(file.read(), first, leaf)

    def test_a_figure_bears_its_command(self) -> None:
        output = self.draw("plot", "curves", self.hard, "--x", "updates")
        expected = f"python3 -m rubato_analysis plot curves {self.hard} --x updates -o {output}"
        self.assertEqual(Image.open(output).text["Command"], expected)
        self.assertEqual(Image.open(output).text["Title"], "curves: synthetic")

    def test_data_lie_beside_a_figure(self) -> None:
        data = pd.read_csv(self.draw("plot", "staleness", self.hard, self.soft).replace(".png", ".csv"))
        self.assertEqual(list(data.columns), ["panel", "series", "run", "x", "y"])
        shares = data[data.panel == "distribution"].groupby("run").y.sum()
        np.testing.assert_allclose(shares, 1.0)
        self.assertEqual(len(data[(data.panel == "mean of an update") & (data.run == self.soft)]), 100)

    def test_histogram_and_rows_agree(self) -> None:
        run = load(self.soft)
        rows = run.gradients[run.gradients.outcome == "applied"].staleness
        self.assertAlmostEqual(mean_staleness(distribution(run)), rows.mean())
        np.testing.assert_allclose(distribution(run), distribution(type(run)(run.path, run.scenario, {})))

    def test_axes(self) -> None:
        run = load(self.hard)
        self.assertTrue((abscissa(run, "time") == run.evals.time_ns / 1e9).all())
        self.assertTrue((abscissa(run, "updates") == run.evals.version).all())
        self.assertEqual([unit_of(t)[1] for t in (5_000_000_000, 1_000_000_000, 3_000_000, 5_000, 7)],
                         ["s", "ms", "ms", "µs", "ns"])

    def test_chrome_trace(self) -> None:
        output = os.path.join(self.root.name, "trace.json")
        self.draw("plot", "timeline", self.hard, "--chrome", output)
        with open(output, encoding="utf-8") as file:
            trace = json.load(file)
        run = load(self.hard)
        self.assertEqual(trace, chrome_trace(run))
        spans = [event for event in trace["traceEvents"] if event["ph"] == "X"]
        waits = waits_of(run.timeline)
        self.assertEqual(len(spans), len(run.timeline) + len(waits))
        told = [span for span in spans if span["name"] != "wait"]
        self.assertAlmostEqual(sum(span["dur"] for span in told) * 1e3,
                               float((run.timeline.end_ns - run.timeline.begin_ns).sum()), delta=1)
        # Viewers need spans of one thread not to overlap.
        for key in {(span["pid"], span["tid"]) for span in spans}:
            mine = sorted((span["ts"], span["dur"]) for span in spans if (span["pid"], span["tid"]) == key)
            for (begin, length), (following, _) in zip(mine, mine[1:]):
                self.assertLessEqual(begin + length, following + 1e-6)

    def test_waits_and_names_of_a_timeline(self) -> None:
        spans = pd.DataFrame([(0, "apply", 5, 6), (1, "compute", 2, 5), (1, "push", 5, 7), (1, "compute", 9, 12),
                              (1, "compute", 12, 13), (2, "compute", 0, 4), (2, "down", 4, 6), (2, "compute", 7, 8),
                              (3, "compute", 5, 6)], columns=["role", "kind", "begin_ns", "end_ns"])
        waits = waits_of(spans, workers=2)  # role 3 is a relay
        self.assertEqual(waits[["role", "begin_ns", "end_ns"]].values.tolist(), [[1, 0, 2], [1, 5, 9], [2, 6, 7]])
        self.assertEqual(set(waits.kind), {"wait"})
        self.assertEqual([role_name(role, 2) for role in range(5)],
                         ["server", "worker 0", "worker 1", "relay 0", "relay 1"])
        self.assertEqual(role_name(3, 2, sharded=True), "server 1")
        self.assertEqual(role_name(3), "worker 2")


if __name__ == "__main__":
    unittest.main()
