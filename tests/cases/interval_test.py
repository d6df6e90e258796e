"""Exchanges that are rarer than gradients, and workers with several devices, as users meet them.

Usage: interval_test.py RUBATO
"""

import math
import statistics
from pathlib import Path

from case import Case, main


def learning(communication: dict | None = None, **more: object) -> dict:
    """A small run with a last slice that is cut."""
    workers = {"count": 3, "batch_size": 16, **({"communication": communication} if communication else {})}
    return {"data": {"samples": 500}, "model": {"name": "softmax"}, "workers": workers,
            "protocol": {"name": "hardsync"}, "optimizer": {"learning_rate": 0.05}, "stop": {"epochs": 2},
            "cluster": {"network": {"model": "flow"}}, "trace": {"events": True}, **more}


def timing(workers: dict, noise: float = 0) -> dict:
    """Timing only, over links that cost nothing to speak of; a second for 12 samples."""
    return {"cost": {"push_bytes": 100}, "data": {"samples": 100000}, "workers": {"batch_size": 48, **workers},
            "protocol": {"name": "async"}, "stop": {"gradients": 400},
            "cluster": {"network": {"model": "flow"}, "devices": {"default": {"seconds": {"12": 1.0}}},
                        "noise": {"lognormal_cv": noise}}}


class Interval(Case):
    """Each test runs the program on scenarios of its own."""

    def test_one_and_one_is_no_interval_at_all(self) -> None:
        plain, same = self.run_scenario(learning()), self.run_scenario(learning({"push_every": 1, "pull_every": 1}))
        for table in ("gradients.csv", "updates.csv", "evals.csv", "workers.csv", "events.log"):
            self.assertEqual((plain / table).read_bytes(), (same / table).read_bytes(), table)
        self.assertNotIn("count", self.rows(plain)[0])

    def test_books_count_gradients_and_each_sample_is_used_once_an_epoch(self) -> None:
        for protocol in ("hardsync", "async", "ssp"):
            run = self.run_scenario(learning({"push_every": 3, "pull_every": 2}, protocol={"name": protocol}))
            summary, rows = self.summary(run), self.rows(run)
            self.assertEqual(summary["gradients"]["applied"], sum(int(row["count"]) for row in rows))
            self.assertEqual(summary["gradients"]["applied"], 2 * math.ceil(500 / 16))
            self.assertEqual(sum(int(row["contributors"]) for row in self.rows(run, "updates.csv")), 64)
            self.assertEqual(sum(summary["staleness"]["histogram"]), 64)
            for epoch in ("0", "1"):
                seen = []
                for row in rows:
                    if row["data_epoch"] == epoch:
                        seen += range(int(row["data_first"]), int(row["data_first"]) + int(row["samples"]))
                self.assertEqual(sorted(seen), list(range(500)))
            for row in rows:
                self.assertEqual(int(row["count"]), math.ceil(int(row["samples"]) / 16))

    def test_a_run_of_the_middle_of_a_sum_is_resumed_with_whole_books(self) -> None:
        scenario = learning({"push_every": 3}, execution={"checkpoint": {"every_updates": 1}})
        whole = self.summary(self.run_scenario(learning({"push_every": 3})))
        part = self.run_scenario({**scenario, "stop": {"updates": 4}})
        path = self.write(scenario)
        done = self.call("run", path, "--out", part, "--resume", "--quiet")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.summary(part)["weights_hash"], whole["weights_hash"])
        self.assertEqual(self.summary(part)["gradients"], whole["gradients"])

    def test_what_has_no_meaning_is_refused(self) -> None:
        def line(communication: dict, **more: object) -> str:
            return self.refused(learning(communication, **more))

        admissions = ({"name": "admission", "bound": 1, "admit": admit} for admit in ("pace", "discard", "withhold"))
        for protocol in ({"name": "backup-workers"}, {"name": "rennala"}, {"name": "ringmaster"}, *admissions):
            with self.subTest(protocol):
                told = line({"pull_every": 2}, protocol=protocol)
                self.assertIn(f"workers.communication.pull_every: \"{protocol['name']}\" minds how old", told)
        rule = {"learning_rate": 0.1, "staleness_rule": "gap-aware"}
        self.assertIn("push_every: staleness_rule \"gap-aware\" looks at", line({"push_every": 2}, optimizer=rule))
        warm = {"name": "async", "warm_start": {"epochs": 1}}
        self.assertIn("push_every: protocol.warm_start is", line({"push_every": 2}, protocol=warm))
        self.assertIn("push_every: expected an integer from 1 to", line({"push_every": 0}))
        self.assertIn("did you mean", line({"push_evry": 2}))
        self.assertIn("samples at once", self.refused(learning(workers={
            "count": 1, "batch_size": 1000000, "communication": {"push_every": 1000000}})))
        self.assertIn("devices", self.refused(learning(workers={"groups": [{"count": 2}], "devices": 2})))

    def test_other_commands_know_it(self) -> None:
        run = self.run_scenario(learning({"push_every": 2}))
        done = self.call("replay", run, "--weights")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        done = self.call("replay", run, "--set", "optimizer.learning_rate=0.1", "--out", self.work / "other")
        self.assertEqual(done.returncode, 2)
        self.assertIn("take steps of their own", done.stderr)
        done = self.call("calibrate", "--run", run, "--out", self.work / "profile.json")
        self.assertEqual(done.returncode, 2)
        self.assertIn("push_every above 1", done.stderr)
        text = self.call("check", self.write(learning({"push_every": 2, "pull_every": 3}))).stdout
        self.assertIn("sum of 2 gradients", text)
        self.assertIn("at most 64 gradients", text)
        self.assertNotIn("staleness is 0", text)
        done = self.call("compare", run, "--", self.run_scenario(learning({"push_every": 2}), "--backend", "local"))
        self.assertNotIn("the table is not used", done.stdout + done.stderr)
        self.assertIn(done.returncode, (0, 1), done.stderr)

    def seconds(self, run: Path) -> list[float]:
        return [1e-9 * (int(row["end_ns"]) - int(row["begin_ns"])) for row in self.rows(run)
                if row["outcome"] != "cancelled"]

    def test_devices_share_a_batch_and_the_slowest_counts(self) -> None:
        for value in self.seconds(self.run_scenario(timing({"count": 2}))):
            self.assertAlmostEqual(value, 4, places=6)
        for value in self.seconds(self.run_scenario(timing({"count": 2, "devices": 4, "sum_s": "250ms"}))):
            self.assertAlmostEqual(value, 1.25, places=6)
        groups = {"groups": [{"count": 1}, {"count": 1, "devices": 5}]}
        self.assertEqual({round(value, 6) for value in self.seconds(self.run_scenario(timing(groups)))},
                         {4, round(10 / 12, 6)})
        one = statistics.fmean(self.seconds(self.run_scenario(timing({"count": 1}, 0.3)))) / 4
        four = statistics.fmean(self.seconds(self.run_scenario(timing({"count": 1, "devices": 4}, 0.3))))
        self.assertAlmostEqual(one, 1, delta=0.06)
        self.assertAlmostEqual(four, 1.33, delta=0.06)  # mean of the largest of four: 1 + 1.03 * 0.3 and the tail


if __name__ == "__main__":
    main()
