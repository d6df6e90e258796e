"""Optimizers, rates and rules that look at weights, through the whole program.

Usage: optimizers_test.py RUBATO
"""

import csv
import json
import math
from pathlib import Path

from case import Case, main

RULES = ({"name": "delay-compensation", "strength": 0.5}, {"name": "delay-compensation", "mean_square": "worker"},
         {"name": "delay-compensation", "mean_square": "server", "decay": 0.5}, "gap-aware")
OPTIMIZERS = (
    {"name": "sgd", "weight_decay": 1e-3, "decoupled_weight_decay": True},
    {"name": "momentum", "momentum": 0.8, "momentum_rule": "decoupled"},
    {"name": "nesterov", "weight_decay": 1e-3, "schedule": {"name": "cosine", "final_factor": 0.1}},
    {"name": "adagrad", "warm_up": {"epochs": 0.5, "from": 0.2}},
    {"name": "adam", "learning_rate": 0.005, "weight_decay": 1e-2, "decoupled_weight_decay": True},
    *({"name": "momentum", "staleness_rule": rule} for rule in RULES),
    {"name": "adam", "learning_rate": 0.005, "staleness_rule": "gap-aware"})


def learning(protocol: dict, optimizer: dict, workers: int = 4, **more: object) -> dict:
    """A small network, workers that scatter."""
    return {"data": {"samples": 300, "test_samples": 40, "shape": [4, 4, 1], "classes": 3},
            "workers": {"count": workers, "batch_size": 10}, "protocol": protocol,
            "model": {"name": "mlp", "hidden": [6]}, "stop": {"epochs": 2},
            "optimizer": {"learning_rate": 0.02, **optimizer},
            "cluster": {"network": {"model": "flow"}, "devices": {"default": {"seconds": {"10": 0.01}}},
                        "noise": {"lognormal_cv": 0.3}}, **more}


PROTOCOLS = ({"name": "hardsync"}, {"name": "n-softsync", "n": 2}, {"name": "async"})


class Optimizers(Case):
    """Each test runs the program on scenarios of its own."""

    def bowl(self, delay: int, steps: int, optimizer: dict) -> dict:
        """f(w) = w^2 / 2 from w = 1, where every gradient is `delay` updates old."""
        self.count += 1
        trace = self.work / f"delays{self.count}.csv"
        with open(trace, "w", newline="") as file:
            out = csv.writer(file)
            out.writerow(["worker", "read_version"])
            out.writerows([k % (delay + 1), max(0, k - delay)] for k in range(steps))
        return {"model": {"name": "quadratic"}, "workers": {"count": delay + 1, "batch_size": 1},
                "protocol": {"name": "async"}, "optimizer": optimizer, "schedule": {"trace": str(trace)},
                "stop": {"gradients": steps, "diverged": "continue"}}

    def losses(self, run: Path) -> list[float]:
        return [float(row["loss"]) for row in self.rows(run)]

    def test_a_fixed_delay_is_stable_up_to_its_bound(self) -> None:
        for delay, steps in ((0, 2000), (1, 5000), (2, 5000), (5, 8000)):
            bound = 2 * math.cos(delay * math.pi / (2 * delay + 1))
            for factor, shrinks in ((0.5, True), (0.99, True), (1.01, False)):
                with self.subTest(delay=delay, factor=factor):
                    run = self.run_scenario(self.bowl(delay, steps, {"learning_rate": factor * bound}))
                    last = max(self.losses(run)[-3 * (delay + 1):])
                    self.assertTrue(last < 1e-3 if shrinks else last > 1e3, last)

    def test_a_compensation_follows_the_recursion(self) -> None:
        rate, strength, delay, steps = 0.2, 0.5, 2, 60
        plain = self.losses(self.run_scenario(self.bowl(delay, steps, {"learning_rate": rate})))
        rule = {"name": "delay-compensation", "strength": strength}
        found = self.losses(self.run_scenario(self.bowl(delay, steps, {"learning_rate": rate, "staleness_rule": rule})))
        weights = [1.0]
        for k in range(steps):
            then = weights[max(0, k - delay)]
            weights.append(weights[k] - rate * (then + strength * then * then * (weights[k] - then)))
        for k, loss in enumerate(found):
            self.assertAlmostEqual(loss, weights[max(0, k - delay)] ** 2 / 2, delta=1e-6)
        self.assertNotEqual(found, plain)
        none = self.bowl(0, steps, {"learning_rate": rate})
        ruled = self.bowl(0, steps, {"learning_rate": rate, "staleness_rule": rule})
        self.assertEqual(self.losses(self.run_scenario(none)), self.losses(self.run_scenario(ruled)))

    def test_one_worker_is_the_same_under_every_policy(self) -> None:
        for optimizer in OPTIMIZERS:
            with self.subTest(optimizer=optimizer):
                hashes = {self.summary(self.run_scenario(learning(protocol, optimizer, workers=1), "--backend",
                                                         backend))["weights_hash"]
                          for protocol in ({"name": "hardsync"}, {"name": "async"}) for backend in ("sim", "local")}
                self.assertEqual(len(hashes), 1)

    def test_hardsync_is_the_same_on_every_backend_and_after_a_resume(self) -> None:
        for optimizer in OPTIMIZERS:
            with self.subTest(optimizer=optimizer):
                scenario = learning({"name": "hardsync"}, optimizer,
                                    execution={"checkpoint": {"every_updates": 5}})
                path = self.write(scenario)
                found = set()
                for backend in ("sim", "local"):
                    whole, part = self.work / f"{backend}{self.count}-a", self.work / f"{backend}{self.count}-b"
                    for out, more in ((whole, ()), (part, ("--set", "stop.updates=9")), (part, ("--resume",))):
                        done = self.call("run", path, "--out", out, "--quiet", "--backend", backend, *more)
                        self.assertEqual(done.returncode, 0, done.stderr)
                        if out == part and "--resume" not in more:
                            (part / "summary.json").unlink()
                    found |= {self.summary(whole)["weights_hash"], self.summary(part)["weights_hash"]}
                self.assertEqual(len(found), 1)

    def test_what_was_computed_is_computed_again(self) -> None:
        for optimizer in OPTIMIZERS:
            for backend, protocol in (("local", {"name": "async"}), ("local", {"name": "n-softsync", "n": 2}),
                                      ("sim", {"name": "async"})):
                with self.subTest(optimizer=optimizer, backend=backend, protocol=protocol):
                    run = self.run_scenario(learning(protocol, optimizer), "--events", "--backend", backend)
                    done = self.call("replay", run, "--weights")
                    self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                    self.assertIn(f"the same final weights {self.summary(run)['weights_hash']}", done.stdout)

    def test_a_schedule_under_another_optimizer_is_a_run_with_it(self) -> None:
        for protocol in PROTOCOLS:
            run = self.run_scenario(learning(protocol, {"name": "momentum"}), "--events")
            for optimizer in OPTIMIZERS:
                with self.subTest(optimizer=optimizer, protocol=protocol):
                    wanted = self.run_scenario(learning(protocol, optimizer))
                    out = self.work / f"again{self.count}"
                    value = json.dumps({"learning_rate": 0.02, **optimizer})
                    done = self.call("replay", run, "--set", f"optimizer={value}", "--out", out, "--quiet")
                    self.assertEqual(done.returncode, 0, done.stderr)
                    for table in ("gradients.csv", "updates.csv"):
                        self.assertEqual((out / table).read_text(), (wanted / table).read_text(), table)
                    self.assertEqual(self.summary(out)["weights_hash"], self.summary(wanted)["weights_hash"])

    def test_rates_go_by_samples(self) -> None:
        optimizer = {"name": "sgd", "learning_rate": 0.1, "warm_up": {"epochs": 1, "from": 0.5},
                     "schedule": {"name": "cosine", "epochs": 3, "final_factor": 0.2}}

        def rates(workers: int, protocol: dict) -> dict[int, float]:
            run = self.run_scenario(learning(protocol, optimizer, workers, stop={"epochs": 4}))
            out, done = {}, 0
            for row in self.rows(run, "updates.csv"):
                out[done] = float(row["learning_rate"])
                done += int(row["samples"])
            return out

        one = rates(1, {"name": "async"})
        self.assertEqual(one, rates(6, {"name": "async"}))
        for samples, rate in rates(6, {"name": "hardsync"}).items():
            self.assertEqual(one[samples], rate)
        self.assertAlmostEqual(one[0], 0.05)
        self.assertAlmostEqual(one[150], 0.075)
        self.assertAlmostEqual(one[300], 0.1)
        self.assertAlmostEqual(one[600], 0.06)
        self.assertAlmostEqual(one[900], 0.02)
        self.assertAlmostEqual(one[1190], 0.02)

    def test_check_states_what_is_kept(self) -> None:
        def said(protocol: dict, optimizer: dict) -> str:
            done = self.call("check", self.write(learning(protocol, optimizer)))
            self.assertEqual(done.returncode, 0, done.stderr)
            return done.stdout

        parameters = 16 * 6 + 6 + 6 * 3 + 3
        adam = said({"name": "async"}, {"name": "adam", "staleness_rule": "gap-aware"})
        self.assertIn("adam, beta 0.9 and 0.999", adam)
        self.assertIn(f"3 arrays of state as long as the weights, {3 * 4 * parameters / 1000} kB", adam)
        self.assertIn("up to 4 versions of the weights kept for the rule", adam)
        self.assertIn("no version is kept", said({"name": "hardsync"}, {"name": "sgd", "staleness_rule": "gap-aware"}))
        worker = said({"name": "async"}, {"staleness_rule": RULES[1]})
        self.assertIn("4 arrays of state", worker)
        self.assertIn("delay-compensation of strength 2 over the root mean square of its worker's gradients", worker)
        self.assertNotIn("memory", said({"name": "async"}, {"name": "sgd"}))
        cosine = said({"name": "async"}, {"schedule": {"name": "cosine"}, "warm_up": {"epochs": 1}})
        self.assertIn("from 0.1 of it to the whole in 1 epochs, by a cosine to 0 of it after 2 epochs", cosine)
        less = said({"name": "async"}, {"name": "nesterov", "momentum_rule": "decoupled", "weight_decay": 0.1})
        self.assertIn("nesterov 0.9, less what staleness adds by itself, weight decay 0.1 in the direction", less)

    def test_bad_values_are_one_clear_line(self) -> None:
        at_least, below = "expected a number of at least 0", "expected a number of at least 0 and below 1"
        square = {"name": "delay-compensation", "mean_square": "all"}
        for optimizer, said in (
                ({"learning_rate": -1}, f"optimizer.learning_rate: {at_least}, found the number -1"),
                ({"name": "momentum", "momentum": 1}, f"optimizer.momentum: {below}"),
                ({"name": "adam", "beta1": 1}, f"optimizer.beta1: {below}, found the number 1"),
                ({"name": "adam", "beta2": -0.1}, f"optimizer.beta2: {below}"),
                ({"name": "adam", "beta3": 0.1}, "optimizer.beta3: unknown key"),
                ({"name": "adam", "epsilon": 0}, "optimizer.epsilon: expected a number above 0, found the number 0"),
                ({"name": "sgd", "beta1": 0.5}, "optimizer.beta1"),
                ({"name": "adams"}, "did you mean \"adam\"?"),
                ({"name": "adam", "momentum_rule": "decoupled"}, "optimizer.momentum_rule"),
                ({"weight_decay": -1}, f"optimizer.weight_decay: {at_least}, found the number -1"),
                ({"decoupled_weight_decay": 1}, "optimizer.decoupled_weight_decay: expected"),
                ({"warm_up": {"epochs": 0}}, "optimizer.warm_up.epochs: expected a number above 0, found the number 0"),
                ({"warm_up": {"epochs": 1, "from": 2}}, "optimizer.warm_up.from: expected a number from 0 to 1"),
                ({"warm_up": {"from": 0.5}}, "\"epochs\" is missing"),
                ({"warm_up": {"epochs": 2}, "schedule": {"name": "cosine"}}, "less than the 2 epochs of the cosine"),
                ({"schedule": {"name": "linear"}},
                 "optimizer.schedule.name: expected \"cosine\", found the string \"linear\""),
                ({"schedule": {"name": "cosine", "epochs": 0}},
                 "optimizer.schedule.epochs: expected a number above 0"),
                ({"schedule": {"epochs": 5}}, "optimizer.schedule: expected"),
                ({"schedule": [{"epoch": 2, "factor": 0.5}, {"epoch": 1, "factor": 0.5}]}, "ascending order"),
                ({"staleness_rule": {"name": "delay-compensation", "strength": -1}}, f"strength: {at_least}"),
                ({"staleness_rule": {"name": "gap-aware", "strength": 1}}, "optimizer.staleness_rule.strength"),
                ({"staleness_rule": {"name": "gap-aware", "decay": 1}}, f"decay: {below}"),
                ({"staleness_rule": {"name": "polynomial", "decay": 0.5}}, "optimizer.staleness_rule.decay"),
                ({"staleness_rule": square}, "mean_square: expected one of"),
        ):
            with self.subTest(optimizer=optimizer):
                self.assertIn(said, self.refused(learning({"name": "async"}, optimizer)))
        no_end = learning({"name": "async"}, {"schedule": {"name": "cosine"}}, stop={"gradients": 10})
        self.assertIn("optimizer.schedule: \"epochs\" is missing", self.refused(no_end))


if __name__ == "__main__":
    main()
