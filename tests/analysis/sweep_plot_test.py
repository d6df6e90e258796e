"""Figures of sweeps: drawn, with their data and what their captions say; refusals in one line."""

import contextlib
import io
import os
import tempfile
import unittest
import warnings

import matplotlib.image
import numpy as np
import pandas as pd
import rubato_analysis
from PIL import Image
from rubato_analysis.cli import main
from rubato_analysis.tradeoff import pareto_front
from synthetic import write_run
from synthetic_sweep import write_sweep

WORKERS = (1, 2, 4, 30)


class SweepPlotTest(unittest.TestCase):
    """All figures over one set of sweeps."""

    @classmethod
    def setUpClass(cls) -> None:
        # pylint: disable-next=consider-using-with
        cls.root = tempfile.TemporaryDirectory()
        at = cls.root.name
        cls.grid = write_sweep(f"{at}/grid", ("hardsync", "1-softsync"), WORKERS, (4, 128), lost={
            ("hardsync", 30, 128, 2): "diverged", ("1-softsync", 2, 4, 1): "failed"})
        cls.tuned = write_sweep(f"{at}/tuned", ("hardsync", "ours"), (4,), (16,), (0.001, 0.01, 0.1), tune=True)
        cls.kept = write_sweep(f"{at}/kept", ("hardsync", "async"), (4,), (16,), keep=True,
                               lost={("async", 4, 16, 2): "diverged"})

    @classmethod
    def tearDownClass(cls) -> None:
        cls.root.cleanup()

    def draw(self, kind: str, *words: str) -> tuple[str, pd.DataFrame]:
        """Draws with the command line: (path of the figure, its data)."""
        output = os.path.join(self.root.name, f"{kind}.png")
        with contextlib.redirect_stdout(io.StringIO()):
            self.assertEqual(main(["plot", kind, *words, "-o", output]), 0)
        pixels = matplotlib.image.imread(output)[..., :3]
        for quarter in np.array_split(pixels, 4):
            self.assertGreater(float(quarter.var()), 1e-4, kind)
        self.assertIn(f"plot {kind} ", Image.open(output).text["Command"])
        return output, pd.read_csv(output.replace(".png", ".csv"))

    def caption(self, kind: str, *inputs: object, **options: object) -> str:
        """Title and caption of a figure, in one line."""
        drawing = rubato_analysis.plot(kind, *inputs, **options)
        self.assertEqual(drawing._repr_png_()[:4], b"\x89PNG")  # pylint: disable=protected-access
        return " ".join(drawing.figure._suptitle.get_text().split())  # pylint: disable=protected-access

    def refused(self, *words: str) -> str:
        """The one line of a refusal."""
        err = io.StringIO()
        with contextlib.redirect_stderr(err), contextlib.redirect_stdout(io.StringIO()):
            self.assertEqual(main(list(words)), 2)
        self.assertEqual(err.getvalue().count("\n"), 1, err.getvalue())
        return err.getvalue()

    def test_curves(self) -> None:
        _, data = self.draw("curves", self.kept)
        mean = data[(data.panel == "test_error") & (data.series == "async") & (data.status == "finished")]
        self.assertEqual(set(mean.n), {2})
        self.assertTrue((mean.low <= mean.y).all() and (mean.y <= mean.high).all())
        lost = data[(data.panel == "test_error") & (data.status == "diverged")]
        self.assertEqual(lost.run.nunique(), 1)
        text = self.caption("curves", self.kept)
        for part in ("n = 2 to 3", "95 % confidence interval (Student's t)", "1 of 6 runs diverged", "in no mean"):
            self.assertIn(part, text)
        self.assertIn("band: range", self.caption("curves", self.kept, band="minmax", x="updates"))
        self.assertIn("deviation", self.caption("curves", self.kept, band="std", x="samples", metric=["test_error"]))
        self.assertIn("rubato sweep SWEEP --keep", self.refused("plot", "curves", self.grid))
        self.assertIn("no gradient_norm", self.refused("plot", "curves", self.kept, "--metric", "gradient_norm"))

    def test_curves_of_runs_with_seeds(self) -> None:
        runs = [write_run(f"{self.root.name}/s{seed}", "async", updates=30, seed=seed) for seed in (1, 2, 3)]
        _, data = self.draw("curves", *runs, "--x", "epochs", "--metric", "test_error")
        self.assertEqual((set(data.series), set(data.n)), ({"async"}, {3}))
        first = rubato_analysis.load(runs[0]).evals
        tables = [rubato_analysis.load(run).evals for run in runs]
        by_hand = np.mean([np.interp(first.epoch, t.epoch, t.test_error) for t in tables], axis=0)
        np.testing.assert_allclose(np.interp(first.epoch, data.x, data.y), by_hand, atol=0.01)
        _, data = self.draw("curves", *runs, "--each")
        self.assertEqual(data.series.nunique(), 3)

    def test_tradeoff(self) -> None:
        _, data = self.draw("tradeoff", self.grid)
        self.assertEqual(len(data), 16)
        front = data[data.pareto].sort_values("x")
        self.assertTrue(front.y.is_monotonic_decreasing)
        for row in data[~data.pareto].itertuples():
            self.assertTrue(((data.x <= row.x) & (data.y <= row.y) & ((data.x < row.x) | (data.y < row.y))).any())
        sweep = rubato_analysis.load_sweep(self.grid)
        expected = sweep.aggregate.set_index(["label", "workers.count", "workers.batch_size"])
        for row in data.itertuples():
            one = expected.loc[(row.series, row.workers, row.batch_size)]
            self.assertAlmostEqual(row.x, one["time_s.mean"])
            self.assertAlmostEqual(row.high - row.y, one["test_error.ci95"])
            self.assertEqual((row.n, row.diverged, row.failed), (one.n, one.diverged, one.failed))
        text = self.caption("tradeoff", sweep, metric="valid_error", x="staleness.mean", linear=True)
        for part in ("n = 2 to 3", "1 of 48 runs diverged", "1 of 48 runs did not end (failed)", "Pareto front"):
            self.assertIn(part, text)
        self.draw("tradeoff", self.tuned)
        self.assertIn("loss is no column", self.refused("plot", "tradeoff", self.grid, "--metric", "loss"))

    def test_save(self) -> None:
        drawing = rubato_analysis.plot("tradeoff", self.grid, band="std")
        path = os.path.join(self.root.name, "saved.png")
        self.assertEqual(drawing.save(path), path.replace(".png", ".csv"))
        self.assertEqual(Image.open(path).text["Command"],
                         f"rubato_analysis.plot('tradeoff', '{self.grid}', band='std')")
        written = pd.read_csv(path.replace(".png", ".csv"))
        pd.testing.assert_frame_equal(written.drop(columns="run"), drawing.data.drop(columns="run"), check_dtype=False)
        with self.assertRaisesRegex(rubato_analysis.AnalysisError, "no such kind of figure"):
            rubato_analysis.plot("nonsense", self.grid)

    def test_pareto_front(self) -> None:
        points = [(3.0, 1.0), (1.0, 5.0), (2.0, 5.0), (2.0, 2.0), (2.0, 2.0), (4.0, 1.0), (1.0, 6.0)]
        self.assertEqual([points[i] for i in pareto_front(points)], [(1.0, 5.0), (2.0, 2.0), (2.0, 2.0), (3.0, 1.0)])
        self.assertEqual(pareto_front([]), [])

    def test_speedup(self) -> None:
        _, data = self.draw("speedup", self.grid)
        base = data[data.x == 1]
        np.testing.assert_allclose(base.y, 1.0)
        results = rubato_analysis.load_sweep(self.grid).results.set_index(
            ["label", "workers.count", "workers.batch_size", "seed"]).time_s
        by_hand = np.mean([results["hardsync", 1, 4, seed] / results["hardsync", 30, 4, seed] for seed in (1, 2, 3)])
        row = data[(data.series == "hardsync") & (data.panel == "batch 4") & (data.x == 30)].iloc[0]
        self.assertAlmostEqual(row.y, by_hand)
        text = self.caption("speedup", self.grid)
        for part in ("Reference: the same series with λ = 1 at the same batch size.", "Held: batch size of a worker",
                     "cost cifar10-full, 140 epochs", "paired by seed", "1 of 48 runs diverged"):
            self.assertIn(part, text)
        text = self.caption("speedup", self.grid, reference="hardsync", base=2, metric="throughput.samples_per_s")
        self.assertIn("Reference: “hardsync” with λ = 2", text)
        _, data = self.draw("speedup", self.grid, "--metric", "throughput.samples_per_s")
        rate = data[(data.series == "hardsync") & (data.panel == "batch 4") & (data.x == 30)].iloc[0]
        self.assertAlmostEqual(rate.y, by_hand)  # the same work, so the same speed-up
        self.assertIn("no series soft", self.refused("plot", "speedup", self.grid, "--reference", "soft"))
        self.assertIn("no finished run with 3 workers", self.refused("plot", "speedup", self.grid, "--base", "3"))

    def test_target(self) -> None:
        _, data = self.draw("target", self.grid)
        row = data[data.series == "hardsync, 30 workers, batch 128"].iloc[0]
        self.assertEqual((row.n, row.points, row.diverged), (0, 3, 1))
        self.assertEqual(data.n.max(), 3)
        self.draw("target", self.grid, "--x", "workers.count", "--log", "--by", "updates")
        self.assertIn("hollow: not all did", self.caption("target", self.grid))
        figure = rubato_analysis.plot("target", self.grid).figure
        marks = [line for line in figure.axes[0].lines if line.get_marker() in ("s", "o")]
        fills = {line.get_ydata()[0]: line.get_fillstyle() for line in marks}
        table = data.set_index("y")
        expected = {row: "none" if table.n[row] < table.points[row] else "full" for row in table.index[table.n > 0]}
        self.assertEqual(fills, expected)
        self.assertEqual(set(expected.values()), {"none", "full"})
        self.assertIn("not a number", self.refused("plot", "target", self.grid, "--x", "label"))
        runs = [write_run(f"{self.root.name}/t", "async", updates=30)]
        self.assertIn("no run reached a target", self.refused("plot", "target", *runs))

    def test_sensitivity(self) -> None:
        _, data = self.draw("sensitivity", self.tuned)
        self.assertEqual((set(data.series), sorted(set(data.x))), ({"hardsync", "ours"}, [0.001, 0.01, 0.1]))
        self.assertTrue((data[data.x == 0.1].diverged == 2).all() and data[data.x == 0.1].y.isna().all())
        text = self.caption("sensitivity", self.tuned)
        self.assertIn("Runs of the tuning", text)
        self.assertIn("4 of 12 runs diverged", text)
        self.draw("sensitivity", self.grid, "--x", "workers.batch_size", "--metric", "time_s")
        by_loss = write_sweep(f"{self.root.name}/loss", ("ours",), (4,), (16,), (0.001, 0.01), tune=True,
                              tune_by="train_loss")
        self.assertIn("Sensitivity of training loss to", self.caption("sensitivity", by_loss))
        self.assertIn("Sensitivity of test error to", self.caption("sensitivity", by_loss, metric="test_error"))
        # Two that tune by different figures decide nothing.
        self.assertIn("Sensitivity of validation error to", self.caption("sensitivity", by_loss, self.tuned))
        self.assertIn("is not among the columns", self.refused("plot", "sensitivity", self.grid))

    def test_logarithmic_y(self) -> None:
        for kind, path, column in (("curves", self.kept, "train_loss"), ("tradeoff", self.grid, "test_error"),
                                   ("sensitivity", self.tuned, "valid_error")):
            self.draw(kind, path, "--log-y")
            metric: object = [column] if kind == "curves" else column
            for log_y in (True, False):
                axes = rubato_analysis.plot(kind, path, metric=metric, log_y=log_y).figure.axes
                self.assertEqual({ax.get_yscale() for ax in axes}, {"log" if log_y else "linear"})
                ticks = [one.get_text() for one in axes[0].get_yticklabels()]
                self.assertGreater(len(ticks), 1)
                self.assertEqual(kind != "curves", any("%" in one for one in ticks), ticks)
        # What is not above 0 is told, or refused where it is all.
        evals = os.path.join(write_run(f"{self.root.name}/zero", "async", updates=20, seed=1), "evals.csv")
        table = pd.read_csv(evals)
        table.loc[table.index[-2:], "test_error"] = 0.0
        table["train_loss"] = -1.0
        table.to_csv(evals, index=False)
        run = os.path.dirname(evals)
        self.assertIn("2 values of 0 or less are not on the logarithmic axis",
                      self.caption("curves", run, metric=["test_error"], log_y=True))
        self.assertIn("training loss: no value is above 0",
                      self.refused("plot", "curves", run, "--metric", "train_loss", "--log-y"))

    def test_staleness(self) -> None:
        _, data = self.draw("staleness", self.grid)
        self.assertEqual(len(data), 16)
        self.draw("staleness", self.grid, "--x", "workers.count")
        _, data = self.draw("staleness", self.kept)
        np.testing.assert_allclose(data.groupby("series").y.sum(), 1.0)
        self.assertEqual(data.groupby("series").n.first().to_dict(), {"hardsync": 3, "async": 2})
        self.draw("staleness", self.kept, "--by", "means")
        self.assertIn("--keep", self.refused("plot", "staleness", self.grid, "--by", "histograms"))

    def test_figures_of_points_take_runs(self) -> None:
        runs = [write_run(f"{self.root.name}/w{workers}", "n-softsync", 2, workers, updates=40, rule="none")
                for workers in (2, 4)]
        _, data = self.draw("tradeoff", *runs)
        self.assertEqual(data.workers.tolist(), [2, 4])
        _, data = self.draw("speedup", *runs)
        self.assertEqual(data.y.tolist()[0], 1.0)
        self.draw("tradeoff", self.grid, *runs)

    def test_a_sweep_without_a_finished_point(self) -> None:
        path = os.path.join(self.root.name, "empty")
        os.makedirs(path, exist_ok=True)
        with open(os.path.join(path, "results.csv"), "w", encoding="utf-8") as file:
            file.write("point,phase,label,seed,status,status_detail,time_s,test_error\n")
        for kind in ("tradeoff", "speedup", "target", "curves", "staleness", "sensitivity"):
            self.assertIn("has ended", self.refused("plot", kind, path), kind)
        lost = {("hardsync", 2, 4, seed): "diverged" for seed in (1, 2, 3)}
        path = write_sweep(os.path.join(self.root.name, "lost"), ("hardsync",), (2,), (4,), lost=lost)
        for kind, what in (("tradeoff", "test_error is empty"), ("speedup", "no finished run"),
                           ("target", "no run reached")):
            self.assertIn(what, self.refused("plot", kind, path), kind)

    def test_no_warnings_and_same_bytes(self) -> None:
        for kind, path in (("tradeoff", self.grid), ("curves", self.kept), ("sensitivity", self.tuned)):
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                with open(self.draw(kind, path)[0], "rb") as file:
                    first = file.read()
            with open(self.draw(kind, path)[0], "rb") as file:
                self.assertEqual(file.read(), first, kind)

    def test_refusals(self) -> None:
        self.assertIn("is a sweep; this figure is made of runs", self.refused("plot", "timeline", self.grid))
        self.assertIn("expected KEY=VALUE", self.refused("plot", "tradeoff", self.grid, "--where", "label"))
        self.assertIn("no point has label=x", self.refused("plot", "tradeoff", self.grid, "--where", "label=x"))
        many = write_sweep(os.path.join(self.root.name, "many"), tuple(f"v{i}" for i in range(41)), seeds=(1,))
        self.assertIn("down with --where", self.refused("plot", "sensitivity", many, "--x", "workers.count"))


if __name__ == "__main__":
    unittest.main()
