"""Rates and batches that went wrong for users of other tools: one worker, many workers, staleness 0 and 1.

Usage: rates_test.py RUBATO
"""

import math

from case import Case, main

EVERY = ({"name": "hardsync"}, {"name": "n-softsync"}, {"name": "async"}, {"name": "bsp"},
         {"name": "bsp", "update": "per-gradient"}, {"name": "asp"}, {"name": "ssp", "bound": 1}, {"name": "dssp"},
         {"name": "bounded-delay"}, {"name": "backup-workers"}, {"name": "rennala"}, {"name": "ringmaster"},
         {"name": "admission", "bound": 1})


class Rates(Case):
    """Each test runs the program on scenarios of its own."""

    @staticmethod
    def learning(workers: int, batch_size: int, protocol: dict, **more: object) -> dict:
        return {"data": {"dataset": "synthetic", "samples": 1280, "test_samples": 100, "shape": [4, 4, 1],
                         "classes": 4}, "model": {"name": "mlp", "hidden": [8]}, "protocol": protocol,
                "workers": {"count": workers, "batch_size": batch_size},
                "cluster": {"network": {"model": "flow"}, "devices": {"default": {"a": 0.001}},
                            "noise": {"lognormal_cv": 0.2}}, "stop": {"epochs": 2}, **more}

    @staticmethod
    def bowl(workers: int, rate: float, protocol: dict, gradients: int, **more: object) -> dict:
        """f(w) = w^2 / 2 from w = 1, workers of equal speed."""
        return {"model": {"name": "quadratic"}, "workers": {"count": workers, "batch_size": 1}, "protocol": protocol,
                "optimizer": {"learning_rate": rate}, "data": {"samples": gradients},
                "cluster": {"network": {"model": "flow"}, "devices": {"default": {"a": 0.001}}},
                "stop": {"gradients": gradients, **more}}

    def test_one_worker_is_plain_gradient_descent_under_every_protocol(self) -> None:
        for protocol in EVERY:
            with self.subTest(protocol=protocol):
                rows = self.rows(self.run_scenario(self.bowl(1, 0.25, protocol, 20)))
                # Powers of 3/4 are exact in the weights' float32 up to here.
                self.assertEqual([float(row["loss"]) for row in rows[:8]], [0.75 ** (2 * k) / 2 for k in range(8)])
                self.assertEqual({(row["staleness"], float(row["scale"])) for row in rows}, {("0", 1.0)})

    def test_one_worker_ends_with_the_same_weights_on_every_backend(self) -> None:
        hashes = {self.summary(self.run_scenario(self.learning(1, 32, protocol), "--backend", backend))["weights_hash"]
                  for protocol in EVERY for backend in ("sim", "local")}
        self.assertEqual(len(hashes), 1)

    def test_four_workers_under_hardsync_are_one_with_four_times_the_batch(self) -> None:
        four = self.run_scenario(self.learning(4, 32, {"name": "hardsync"}))
        one = self.run_scenario(self.learning(1, 128, {"name": "hardsync"}))
        self.assertEqual([row["samples"] for row in self.rows(four, "updates.csv")],
                         [row["samples"] for row in self.rows(one, "updates.csv")])
        for key in ("train_loss", "test_error"):
            self.assertAlmostEqual(self.summary(four)[key], self.summary(one)[key], delta=1e-5)
        other = self.run_scenario(self.learning(1, 32, {"name": "hardsync"}))
        self.assertGreater(abs(self.summary(other)["train_loss"] - self.summary(one)["train_loss"]), 1e-3)
        self.assertEqual((self.summary(four)["setting"]["batch_size"], self.summary(four)["setting"]["global_batch"]),
                         (32, 128))
        told = self.call("check", self.write(self.learning(4, 32, {"name": "hardsync"}))).stdout
        self.assertIn("global batch 128", told)

    def test_rates_by_staleness_tell_0_from_1_and_never_divide_by_it(self) -> None:
        for protocol in ({"name": "async"}, *({"name": "n-softsync", "n": n} for n in (1, 2, 4))):
            for rule in ("inverse-staleness", "inverse-mean-staleness", "inverse-n",
                         {"expression": "1 / (1 + staleness)"}):
                with self.subTest(protocol=protocol, rule=rule):
                    run = self.run_scenario(self.learning(4, 16, protocol, optimizer={"staleness_rule": rule}))
                    stale = {int(row["staleness"]) for row in self.rows(run) if row["outcome"] == "applied"}
                    self.assertLessEqual({0, 1}, stale)
                    self.check_scales(run, protocol.get("n", 4), rule)

    def check_scales(self, run, n: int, rule: object) -> None:
        """Against the raw staleness of the rows."""
        mean = {0: 0.0} | {int(row["version"]): float(row["mean_staleness"]) for row in self.rows(run, "updates.csv")}
        for row in self.rows(run):
            if row["outcome"] != "applied":
                continue
            staleness = int(row["staleness"])
            self.assertEqual(staleness, int(row["apply_version"]) - int(row["read_version"]))
            expected = {"inverse-staleness": 1 / max(1, staleness), "inverse-n": 1 / n,
                        "inverse-mean-staleness": 1 / max(1.0, mean[int(row["apply_version"])]),
                        }.get(str(rule), 1 / (1 + staleness))
            self.assertAlmostEqual(float(row["scale"]), expected)

    def test_a_rate_for_one_diverges_with_thirty_and_says_so(self) -> None:
        rate = 0.5
        self.assertLess(rate / 30, 2 * math.cos(29 * math.pi / 59))
        alone = self.summary(self.run_scenario(self.bowl(1, rate, {"name": "async"}, 3000)))
        self.assertEqual((alone["status"], alone["updates"]), ("finished", 3000))
        wild = self.run_scenario(self.bowl(30, rate, {"name": "async"}, 20000), status=3)
        summary = self.summary(wild)
        self.assertEqual(summary["status"], "diverged")
        first = next(row for row in self.rows(wild) if not math.isfinite(float(row["loss"])))
        self.assertIn(f"gradient {first['worker_seq']} of worker {first['worker']}, computed on version "
                      f"{first['read_version']}", summary["status_detail"])
        self.assertLess(summary["updates"], 20000)
        onward = self.summary(self.run_scenario(self.bowl(30, rate, {"name": "async"}, 20000, diverged="continue"),
                                                status=3))
        self.assertEqual((onward["status"], onward["updates"]), ("diverged", 20000))
        tame = self.run_scenario(self.bowl(30, rate / 30, {"name": "async"}, 20000))
        self.assertEqual(self.summary(tame)["status"], "finished")
        self.assertLess(float(self.rows(tame)[-1]["loss"]), 1e-6)

    def test_what_diverged_gets_every_sample_wrong(self) -> None:
        scenario = self.learning(30, 32, {"name": "async"}, optimizer={"learning_rate": 1e30})
        summary = self.summary(self.run_scenario(scenario, status=3))
        self.assertEqual((summary["status"], summary["test_error"]), ("diverged", 1))


if __name__ == "__main__":
    main()
