"""Overlapping workers, as users meet them.

Usage: pipeline_test.py RUBATO
"""

from case import Case, main


def learning(pull: str = "prefetch", **more: object) -> dict:
    return {"data": {"samples": 500}, "model": {"name": "softmax"},
            "workers": {"count": 3, "batch_size": 16, "pipeline": "overlap", "pull": pull},
            "protocol": {"name": "async"}, "optimizer": {"learning_rate": 0.05}, "stop": {"epochs": 2},
            "cluster": {"network": {"model": "flow"}}, "trace": {"events": True}, **more}


def timing(**workers: object) -> dict:
    """Messages take half as long as computations."""
    return {"cost": {"push_bytes": "10 MB"}, "data": {"samples": 100000},
            "workers": {"count": 4, "batch_size": 10, **workers}, "protocol": {"name": "async"},
            "stop": {"gradients": 400},
            "cluster": {"network": {"model": "flow", "star": {"bandwidth": "1 GBps", "server_bandwidth": "100 GBps"}},
                        "devices": {"default": {"seconds": {"10": 0.02}}}}}


class PipelineCase(Case):
    """Each test runs the program on scenarios of its own."""

    def test_every_backend_runs_it_and_a_replay_finds_the_same(self) -> None:
        for pull in ("prefetch", "latest"):
            for backend in ("sim", "local"):
                run = self.run_scenario(learning(pull), "--backend", backend)
                summary = self.summary(run)
                gradients = summary["gradients"]
                self.assertEqual(len(self.rows(run)), sum(gradients.values()))
                if pull == "prefetch":
                    self.assertEqual((summary["samples"], gradients["applied"]), (1000, 64))
                done = self.call("replay", run, "--weights")
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertIn(summary["weights_hash"], done.stdout)
                done = self.call("replay", run, "--set", "optimizer.learning_rate=0.1", "--out",
                                 self.work / f"{pull}-{backend}")
                self.assertEqual(done.returncode, 0, done.stderr)

    def test_messages_hide_behind_computation(self) -> None:
        plain, hidden = (self.summary(self.run_scenario(timing(pipeline=it))) for it in ("blocking", "overlap"))
        self.assertAlmostEqual(plain["compute_utilization"], 0.5, delta=0.02)
        self.assertEqual(plain["communication_hidden_fraction"], 0)
        self.assertGreater(hidden["compute_utilization"], 0.99)
        self.assertGreater(hidden["communication_hidden_fraction"], 0.99)
        self.assertLess(hidden["time_s"], 0.52 * plain["time_s"])

    def test_workers_that_draw_their_own_batches_draw_the_same_in_every_backend(self) -> None:
        batches = []
        for backend in ("sim", "local"):
            run = self.run_scenario(learning("latest"), "--backend", backend)
            batches.append({(row["worker"], row["worker_seq"]): (row["data_epoch"], row["data_first"], row["samples"])
                            for row in self.rows(run)})
        common = batches[0].keys() & batches[1].keys()
        self.assertGreater(len(common), 30)
        for key in common:
            self.assertEqual(batches[0][key], batches[1][key])

    def test_a_stopped_run_goes_on_with_whole_books(self) -> None:
        for pull in ("prefetch", "latest"):
            scenario = learning(pull, execution={"checkpoint": {"every_updates": 5}})
            part = self.run_scenario({**scenario, "stop": {"updates": 23}})
            done = self.call("run", self.write(scenario), "--out", part, "--resume", "--quiet")
            self.assertEqual(done.returncode, 0, done.stderr)
            summary = self.summary(part)
            self.assertEqual(len(self.rows(part)), sum(summary["gradients"].values()))
            keys = [(row["worker"], row["worker_seq"]) for row in self.rows(part)]
            self.assertEqual(len(keys), len(set(keys)))
            if pull == "prefetch":
                self.assertEqual((summary["samples"], summary["gradients"]["applied"]), (1000, 64))

    def test_what_has_no_meaning_is_refused(self) -> None:
        for protocol, why in (("hardsync", "nothing to overlap"), ("ssp", "has not pushed yet"),
                              ("admission", "has not pushed yet"), ("rennala", "stale by one or two")):
            self.assertIn(why, self.refused(learning(protocol={"name": protocol})))
        self.assertIn("workers.pipeline: protocol.warm_start",
                      self.refused(learning(protocol={"name": "async", "warm_start": {"epochs": 1}})))
        interval = learning()
        interval["workers"]["communication"] = {"push_every": 2}
        self.assertIn("workers.pipeline: a worker that takes steps of its own", self.refused(interval))
        self.assertIn("data.sampling: \"latest\" workers wait for nobody",
                      self.refused(learning("latest", data={"samples": 500, "sampling": "shared-epoch"})))
        self.assertIn("evaluate.mode: \"pause\" holds workers back", self.refused(learning("latest", evaluate={
            "mode": "pause", "every_epochs": 1})))
        self.assertIn("optimizer.staleness_rule: looks at", self.refused(learning("latest", optimizer={
            "learning_rate": 0.1, "staleness_rule": "gap-aware"})))
        self.assertIn("did you mean \"latest\"", self.refused(learning("latst")))

    def test_weights_that_come_unasked(self) -> None:
        scenario = learning(topology={"name": "tree-downcast", "fan_out": 2})
        del scenario["workers"]["pull"]
        for backend in ("sim", "local"):
            run = self.run_scenario(scenario, "--backend", backend)
            summary = self.summary(run)
            self.assertEqual(len(self.rows(run)), sum(summary["gradients"].values()))
            self.assertEqual({row["inquiries"] for row in self.rows(run, "workers.csv")}, {"0"})
            self.assertGreater(summary["staleness"]["mean"], 0)
            done = self.call("replay", run, "--weights")
            self.assertIn(summary["weights_hash"], done.stdout, done.stderr)
        scenario["workers"]["pull"] = "prefetch"
        self.assertIn("workers.pull: with topology \"tree-downcast\" weights come unasked", self.refused(scenario))
        scenario["workers"] = {"count": 3, "batch_size": 16, "pipeline": "blocking"}
        self.assertIn("workers.pipeline: with topology \"tree-downcast\"", self.refused(scenario))
        scenario["workers"]["pipeline"] = "overlap"
        for protocol in ("hardsync", "ssp"):
            told = self.refused(scenario | {"protocol": {"name": protocol}})
            self.assertIn("workers.pipeline", told)
            self.assertNotIn("expected \"blocking\"", told)
        scenario["topology"]["weights"] = "broadcast"
        self.assertIn("topology.weights", self.refused(scenario))

    def test_check_promises_no_more_than_holds(self) -> None:
        alone = learning()
        alone["workers"]["count"] = 1
        text = self.call("check", self.write(alone)).stdout
        self.assertIn("overlap, prefetch", text)
        self.assertNotIn("sequential SGD", text)
        text = self.call("check", self.write(timing(pipeline="overlap"))).stdout
        bound = float(text.split("at least ")[1].split(" s of virtual")[0])
        self.assertLessEqual(bound, self.summary(self.run_scenario(timing(pipeline="overlap")))["time_s"])


if __name__ == "__main__":
    main()
