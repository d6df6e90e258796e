"""Warm starts through the whole program: the weights of a hardsync run until the change, on every backend.

Usage: warm_start_test.py RUBATO
"""

from case import Case, main

PROTOCOLS = ({"name": "hardsync"}, {"name": "n-softsync", "n": 2}, {"name": "async"}, {"name": "bsp"},
             {"name": "bsp", "update": "per-gradient"}, {"name": "asp"}, {"name": "ssp", "bound": 1}, {"name": "dssp"},
             {"name": "bounded-delay", "k": 2}, {"name": "backup-workers"}, {"name": "rennala"},
             {"name": "ringmaster", "cancel": True}, {"name": "admission", "bound": 1})


class WarmStart(Case):
    """Each test runs the program on scenarios of its own."""

    @staticmethod
    def learning(protocol: dict, warm: float = 1, epochs: float = 1, **more: object) -> dict:
        """121 samples in batches of 10 for 3 workers: 5 rounds an epoch, the last of them of one batch."""
        return {"data": {"samples": 121, "test_samples": 30, "shape": [4, 4, 1], "classes": 3},
                "model": {"name": "mlp", "hidden": [6]}, "workers": {"count": 3, "batch_size": 10},
                "protocol": {**protocol, **({"warm_start": {"epochs": warm}} if warm else {})},
                "optimizer": {"name": "momentum", "momentum": 0.9, "learning_rate": 0.05,
                              "staleness_rule": "inverse-n"},
                "cluster": {"network": {"model": "flow"}, "devices": {"default": {"seconds": {"10": 0.01}}},
                            "noise": {"lognormal_cv": 0.5}}, "stop": {"epochs": epochs}, **more}

    def test_weights_are_those_of_hardsync_until_the_change(self) -> None:
        hard = self.summary(self.run_scenario(self.learning({"name": "hardsync"}, warm=0)))["weights_hash"]
        for protocol in PROTOCOLS:
            for backend in ("sim", "local"):
                with self.subTest(protocol=protocol, backend=backend):
                    run = self.summary(self.run_scenario(self.learning(protocol), "--backend", backend))
                    self.assertEqual((run["weights_hash"], run["warm_start_updates"]), (hard, 5))

    def test_the_protocol_goes_on_with_its_own_updates(self) -> None:
        for protocol in PROTOCOLS:
            for backend in ("sim", "local"):
                with self.subTest(protocol=protocol, backend=backend):
                    run = self.run_scenario(self.learning(protocol, epochs=3), "--events", "--backend", backend)
                    summary, updates = self.summary(run), self.rows(run, "updates.csv")
                    self.assertEqual((summary["samples"], summary["warm_start_updates"]), (363, 5))
                    self.assertEqual(summary["warm_start_s"], int(updates[4]["time_ns"]) / 1e9)
                    self.assertEqual([row["contributors"] for row in updates[:5]], ["3", "3", "3", "3", "1"])
                    if protocol["name"] in ("async", "asp", "ssp", "dssp"):
                        self.assertEqual({row["contributors"] for row in updates[5:]}, {"1"})
                    self.assertEqual({row["mean_staleness"] for row in updates[:5]}, {"0"})
                    replay = self.call("replay", run, "--weights")
                    self.assertEqual(replay.returncode, 0, replay.stdout + replay.stderr)

    def test_a_run_is_resumed_within_either_part(self) -> None:
        for protocol in PROTOCOLS:
            for stop in (2, 5, 7):
                with self.subTest(protocol=protocol, stop=stop):
                    scenario = self.learning(protocol, epochs=3, execution={"checkpoint": {"every_updates": 1}})
                    path, out = self.write(scenario), self.work / f"part{self.count}"
                    for more in (("--set", f"stop.updates={stop}"), ("--resume",)):
                        done = self.call("run", path, "--out", out, "--quiet", *more)
                        self.assertEqual(done.returncode, 0, done.stderr)
                    summary = self.summary(out)
                    self.assertEqual((summary["samples"], summary["warm_start_updates"]), (363, 5))
                    if protocol["name"] == "hardsync":
                        whole = self.summary(self.run_scenario(scenario))
                        self.assertEqual(summary["weights_hash"], whole["weights_hash"])

    def test_what_is_said_of_it(self) -> None:
        told = self.call("check", self.write(self.learning({"name": "async"}, epochs=3))).stdout
        self.assertIn("warm start  until 1 epoch of samples are applied: hardsync", told)
        self.assertIn("at most 39 gradients and 31 updates", told)  # 5 of three batches or one, and 26 of one
        self.assertIn("epochs", self.refused(self.learning({"name": "async", "warm_start": {}}, warm=0)))
        nothing = {"name": "async", "warm_start": {"epochs": 0}}
        self.assertIn("expected a number above 0", self.refused(self.learning(nothing, warm=0)))


if __name__ == "__main__":
    main()
