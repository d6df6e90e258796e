"""Tuning: the right value is picked on seeds of its own, with the same budget for all.

Usage: sweep_tune_test.py RUBATO.
"""

import statistics

import case
from sweeps import SweepCase

RATE = "optimizer.learning_rate"
# A bowl with curvature 1 and noise: rates that are too small do not arrive, and beyond 2 the run diverges.
BOWL = {
    "name": "bowl", "data": {"samples": 400}, "model": {"name": "quadratic", "dimension": 4, "noise": 0.05},
    "workers": {"count": 1, "batch_size": 10}, "protocol": {"name": "async"}, "stop": {"epochs": 2},
    "evaluate": {"every_epochs": 1}, "cluster": {"devices": {"default": {"a": 0.001}}},
}
LEARNS = {
    "name": "softmax", "data": {"samples": 300, "shape": [4, 4, 1], "classes": 3, "validation": 0.2},
    "model": {"name": "softmax"}, "workers": {"count": 2, "batch_size": 10}, "protocol": {"name": "async"},
    "stop": {"epochs": 2}, "cluster": {"devices": {"default": {"a": 0.001}}},
}


def tune(*rates: float, by: str = "train_loss", seeds: tuple = (101, 102)) -> dict:
    return {"axes": {RATE: list(rates)}, "by": by, "seeds": list(seeds)}


class SweepTune(SweepCase):
    """On an analytic model, whose best rate is known."""

    def setUp(self) -> None:
        super().setUp()
        self.base(BOWL)

    def test_the_right_value(self) -> None:
        sweep = {"seeds": [1, 2, 3], "variants": [
            {"label": "alone"}, {"label": "five", "set": {"workers.count": 5}}],
            "tune": tune(1e-5, 0.001, 0.1, 1.5, 5)}
        counts = self.sweep(sweep)
        self.assertEqual((counts["points"], counts["finished"] + counts["diverged"]), (2 * (10 + 3), 26))
        rows = self.each_once(26)
        for label in ("alone", "five"):
            own = [row for row in rows if row["label"] == label]
            tuned = [row for row in own if row["phase"] == "tune"]
            self.assertEqual({row["seed"] for row in tuned}, {"101", "102"})
            self.assertEqual(len(tuned), 10)
            means = {rate: statistics.fmean(float(row["train_loss"]) for row in tuned if row[RATE] == rate)
                     for rate in {row[RATE] for row in tuned}
                     if all(row["status"] == "finished" for row in tuned if row[RATE] == rate)}
            best = min(means, key=means.get)
            self.assertEqual(best, "0.1")
            self.assertEqual({(row[RATE], row["seed"]) for row in own if row["phase"] == "report"},
                             {("0.1", seed) for seed in "123"})
        self.assertEqual({line[RATE] for line in self.table("aggregate.csv")}, {"0.1"})
        self.assertNotIn("edge", self.said)
        self.assertEqual(self.sweep(sweep)["skipped"], 26)

    def test_each_setting_is_tuned_and_the_budget_is_printed(self) -> None:
        path = self.sweep_file({"seeds": [1], "axes": {"workers.count": [1, 40]}, "tune": tune(0.01, 0.05, 0.5, 1.9)})
        done = self.call("sweep", path, "--out", self.out)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("budget: 4 values x 2 seeds = 8 tuning runs for each of 2 settings", done.stdout)
        self.assertEqual(done.stdout.count("\ntuned variant"), 2)
        rates = {row["workers.count"]: float(row[RATE]) for row in self.table() if row["phase"] == "report"}
        # Stale gradients bear a smaller rate only.
        self.assertLess(rates["40"], rates["1"])
        self.assertRegex(self.call("sweep", path, "--dry-run", "--out", self.work / "x").stdout, r"points +18, of")

    def test_the_edge_of_the_grid_is_a_warning(self) -> None:
        self.sweep({"seeds": [1], "tune": tune(1e-5, 0.001, 0.1)})
        self.assertIn(f"the best value lies at the edge of its grid: {RATE} for variant \"base\"", self.said)
        self.sweep({"seeds": [1], "tune": tune(1e-5, 0.001, 0.1)}, "--status")
        self.assertIn("edge of its grid", self.said)

    def test_keys_that_do_not_go_with_a_variant_have_no_edge(self) -> None:
        rates = {**tune(0.001, 0.1, 0.3, 5)["axes"], "protocol.n": [1, 2]}
        sweep = {"seeds": [1], "axes": {"workers.count": [2]}, "tune": {**tune(0.1), "axes": rates}, "variants": [
            {"label": "async", "set": {"protocol.name": "async"}},
            {"label": "soft", "set": {"protocol.name": "n-softsync"}}]}
        path = self.sweep_file(sweep)
        done = self.call("sweep", path, "--out", self.out)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f'tuned variant "async", workers.count = 2: {RATE} = 0.1 (mean', done.stdout)
        self.assertRegex(done.stdout, r'tuned variant "soft", workers.count = 2: .*protocol.n = \d \(mean')
        self.assertIn('grid: protocol.n for variant "soft", workers.count = 2; a better one', done.stderr)
        self.assertEqual({row["protocol.n"] for row in self.table() if row["label"] == "async"}, {""})
        # An axis that is not tuned is named for the variants that have it.
        sweep = {**sweep, "axes": {"protocol.n": [1, 2], "workers.count": [2]}, "tune": tune(1e-5, 0.001)}
        done = self.call("sweep", self.sweep_file(sweep), "--out", self.work / "other")
        self.assertIn('tuned variant "async", workers.count = 2: ', done.stdout)
        self.assertIn('tuned variant "soft", workers.count = 2, protocol.n = 2: ', done.stdout)
        self.assertIn(f'grid: {RATE} for variant "async", workers.count = 2 and 2 more', done.stderr)

    def test_the_edge_is_of_what_was_tried(self) -> None:
        sweep = {"seeds": [1], "tune": tune(0.01, 0.1, 5), "where": f"{RATE} < 1"}
        self.sweep(sweep)
        self.assertIn(f"edge of its grid: {RATE} for variant", self.said)
        self.sweep({**sweep, "where": f"{RATE} == 0.1"}, "--status")
        self.assertNotIn("edge of its grid", self.said)

    def test_where_everything_diverges(self) -> None:
        self.base({**BOWL, "stop": {"epochs": 60}})
        sweep = {"seeds": [1, 2], "variants": [{"label": "bad", "set": {"optimizer.weight_decay": 50}},
                                               {"label": "good"}], "tune": tune(0.1, 0.2)}
        counts = self.sweep(sweep, status=1)
        self.assertEqual((counts["failed"], counts["diverged"]), (2, 4))
        for row in self.table():
            if row["label"] == "bad" and row["phase"] == "report":
                self.assertEqual((row["status"], row["status_detail"]),
                                 ("failed", "no value could be tuned: every tuning run diverged or failed"))
                self.assertEqual(row[RATE], "")
        self.assertIn('warning: tune: no value is best, since every tuning run diverged or failed: variant "bad"; its',
                      self.said)
        self.assertEqual([(line["label"], line[RATE]) for line in self.table("aggregate.csv")],
                         [("bad", ""), ("good", "0.1")])
        done = self.call("sweep", self.work / "sweep.json", "--out", self.out, "--status")
        self.assertIn('tuned variant "bad": none is best', done.stdout)
        self.assertIn("warning: tune: no value is best", done.stderr)
        self.sweep(sweep, status=1)
        self.each_once(12)

    def test_by_validation(self) -> None:
        self.base(LEARNS)
        for by in ("valid_error", "valid_loss"):
            self.sweep({"seeds": [1, 2], "tune": tune(1e-6, 0.1, by=by)})
            self.assertEqual({row[RATE] for row in self.table() if row["phase"] == "report"}, {"0.1"})

    def test_shards_and_kills(self) -> None:
        sweep = {"seeds": [1, 2], "axes": {"workers.count": [1, 2, 3]}, "tune": tune(0.01, 0.1)}
        for i in (1, 2):
            self.sweep(sweep, "--shard", f"{i}/2")
        whole = self.each_once(3 * (4 + 2))
        self.assertEqual(len(self.table("aggregate.csv")), 3)
        # Rows may go at any place: what is missing comes back, and nothing else.
        lines = self.lines()
        for gone in (slice(1, 4), slice(5, 9), slice(12, 18)):
            (self.out / "results.csv").write_text("\n".join(lines[:gone.start] + lines[gone.stop:]))
            self.sweep(sweep)
            self.assertEqual({(row["point"], row["weights_hash"]) for row in self.each_once(18)},
                             {(row["point"], row["weights_hash"]) for row in whole})


if __name__ == "__main__":
    case.main()
