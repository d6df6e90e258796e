"""What went wrong for users of other tools, in small: epochs, rests, raw staleness, seeds, evaluation, divergence.

Usage: accounting_test.py RUBATO
"""

from case import Case, main

PROTOCOLS = ({"name": "hardsync"}, {"name": "n-softsync", "n": 1}, {"name": "n-softsync", "n": 2}, {"name": "async"})


class Accounting(Case):
    """Epochs, rests, staleness, seeds: each test runs the program on scenarios of its own."""

    @staticmethod
    def timing(samples: int, batch_size: int, workers: int, protocol: dict, **more: object) -> dict:
        return {"data": {"samples": samples}, "cost": {"push_bytes": 1000, "pull_bytes": 1000},
                "workers": {"count": workers, "batch_size": batch_size}, "protocol": protocol,
                "cluster": {"devices": {"default": {"a": 0.001, "b": 0.0001}},
                            "noise": {"lognormal_cv": 0.3}}, **more}

    @staticmethod
    def learning(workers: int, protocol: dict, **more: object) -> dict:
        return {"data": {"dataset": "synthetic", "samples": 200, "test_samples": 50, "shape": [4, 4, 1], "classes": 3},
                "workers": {"count": workers, "batch_size": 10}, "protocol": protocol,
                "cluster": {"devices": {"default": {"seconds": {"10": 0.01}}}, "noise": {"lognormal_cv": 0.3}},
                **{"model": {"name": "softmax"}, **more}}

    def test_an_epoch_that_does_not_divide_ends_with_each_sample_once(self) -> None:
        for sampling in ("shared-epoch", "strided", "sharded"):
            for protocol in PROTOCOLS:
                if sampling != "shared-epoch" and protocol["name"] != "hardsync":
                    continue
                scenario = self.timing(121, 10, 3, protocol, stop={"epochs": 2})
                scenario["data"]["sampling"] = sampling
                run = self.run_scenario(scenario)
                seen = []
                for row in self.rows(run):
                    owner = row["worker"] if sampling == "sharded" else ""
                    seen += [(owner, row["data_epoch"], int(row["data_first"]) + i) for i in range(int(row["samples"]))]
                self.assertEqual(len(seen), 242)
                self.assertEqual(len(set(seen)), 242)
                self.assertEqual(self.summary(run)["epochs"], 2)

    def test_an_odd_number_of_gradients_leaves_one_over(self) -> None:
        run = self.run_scenario(self.timing(1000, 10, 4, {"name": "n-softsync", "n": 2}, stop={"gradients": 13}))
        summary = self.summary(run)
        self.assertEqual(summary["gradients"]["applied"], 12)
        self.assertEqual(summary["samples"], 130)
        accepted = [row for row in self.rows(run) if int(row["seq"]) >= 0]
        self.assertEqual([row["outcome"] for row in accepted].count("leftover"), 1)
        self.assertEqual(sum(summary["gradients"].values()), len(self.rows(run)))

    def test_a_run_in_which_nothing_is_learnt_says_so(self) -> None:
        path = self.write(self.timing(17, 100, 4, {"name": "rennala"}, stop={"epochs": 3}))
        done = self.call("run", path, "--out", self.work / "vain")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("without an update", done.stderr)
        self.assertEqual(self.summary(self.work / "vain")["updates"], 0)
        self.assertIn("up to 3 are left over", self.call("check", path).stdout)

    def test_staleness_is_raw_and_excludes_the_own_update(self) -> None:
        rule = {"optimizer": {"learning_rate": 0.1, "staleness_rule": "inverse-staleness"}}
        alone = self.run_scenario(self.timing(1000, 10, 1, {"name": "async"}, stop={"epochs": 3}, **rule))
        self.assertEqual({(row["staleness"], float(row["scale"])) for row in self.rows(alone)}, {("0", 1.0)})
        four = self.timing(1000, 10, 4, {"name": "async"}, stop={"epochs": 30}, **rule)
        run = self.run_scenario(four)
        self.assertAlmostEqual(self.summary(run)["staleness"]["steady_mean"], 3, delta=0.09)
        for row in self.rows(run):
            if row["outcome"] == "applied":
                self.assertEqual(float(row["scale"]), 1 / max(1, int(row["staleness"])))

    def test_epochs_are_samples_whatever_the_batch(self) -> None:
        for samples, batch_size, workers, epochs in ((60000, 2048, 16, 20), (1000, 64, 3, 7), (10, 64, 3, 2)):
            for protocol in PROTOCOLS:
                run = self.run_scenario(self.timing(samples, batch_size, workers, protocol, stop={"epochs": epochs}))
                summary = self.summary(run)
                self.assertEqual(summary["samples"], samples * epochs)
                self.assertEqual(summary["epochs"], epochs)
                last = max((float(row["epoch"]) for row in self.rows(run, "updates.csv")), default=0)
                self.assertLessEqual(last, epochs)

    def test_no_epoch_is_labelled_beyond_the_request(self) -> None:
        for sampling in ("shared-epoch", "strided", "random", "sharded"):
            for protocol in PROTOCOLS:
                with self.subTest(sampling, **protocol):
                    scenario = self.learning(3, protocol, stop={"epochs": 2.5}, evaluate={"every_epochs": 0.5})
                    scenario["data"]["sampling"] = sampling
                    run = self.run_scenario(scenario)
                    labels = [float(row["epoch"]) for table in ("updates.csv", "evals.csv")
                              for row in self.rows(run, table)]
                    self.assertLessEqual(max(labels), self.summary(run)["epochs"])
                    # Where batches are not cut to an epoch, the last of each worker may lie beyond.
                    slack = 0 if sampling == "shared-epoch" else 3 * 10 / 200
                    self.assertLessEqual(self.summary(run)["epochs"], 2.5 + slack)
                    self.assertGreaterEqual(self.summary(run)["epochs"], 2.5)

    def test_workers_get_batches_of_their_own(self) -> None:
        """At version 0 all read the same weights, so that equal losses would be equal batches."""
        for sampling in ("shared-epoch", "strided", "random", "sharded"):
            scenario = self.learning(4, {"name": "hardsync"}, stop={"epochs": 1})
            scenario["data"]["sampling"] = sampling
            first = [row["loss"] for row in self.rows(self.run_scenario(scenario)) if row["read_version"] == "0"]
            self.assertEqual(len(set(first)), 4)

    def test_the_seed_of_the_data_changes_batches_and_no_times(self) -> None:
        runs = [self.rows(self.run_scenario(self.learning(4, {"name": "async"}, stop={"epochs": 2},
                                                          seeds={"data": seed}))) for seed in (1, 2)]
        times = [[(row["worker"], row["begin_ns"], row["applied_ns"]) for row in run] for run in runs]
        self.assertEqual(*times)
        self.assertNotEqual(*([row["loss"] for row in run] for run in runs))

    def test_equal_seeds_are_equal_runs_and_others_differ(self) -> None:
        def bytes_of(seed: int) -> bytes:
            run = self.run_scenario(self.learning(4, {"name": "async"}, stop={"epochs": 2}, seed=seed))
            return (run / "gradients.csv").read_bytes()

        self.assertEqual(bytes_of(1), bytes_of(1))
        self.assertNotEqual(bytes_of(1), bytes_of(2))

    def test_evaluating_takes_no_virtual_time(self) -> None:
        runs = [self.run_scenario(self.learning(4, {"name": "n-softsync", "n": 2}, stop={"epochs": 10},
                                                evaluate={"every_epochs": every})) for every in (1, 10)]
        self.assertEqual(*((run / "gradients.csv").read_bytes() for run in runs))
        self.assertEqual(*(self.summary(run)["time_s"] for run in runs))
        self.assertEqual([len(self.rows(run, "evals.csv")) for run in runs], [11, 2])
        never = self.run_scenario(self.learning(4, {"name": "n-softsync", "n": 2}, stop={"epochs": 10},
                                                evaluate={"at_end": False}))
        for table in ("gradients.csv", "updates.csv", "workers.csv"):
            self.assertEqual((never / table).read_bytes(), (runs[0] / table).read_bytes())
        hashes = {self.summary(run)["weights_hash"] for run in (*runs, never)}
        self.assertEqual(len(hashes), 1)

    def test_years_of_virtual_time_end_and_centuries_are_refused(self) -> None:
        scenario = self.timing(1000, 10, 4, {"name": "async"}, stop={"gradients": 400})
        scenario["cluster"]["devices"]["default"] = {"seconds": {"10": 1e6}}
        self.assertGreater(self.summary(self.run_scenario(scenario))["time_s"], 3e7)
        scenario["cluster"]["devices"]["default"] = {"seconds": {"10": 1e9}}
        self.run_scenario(scenario, status=2)

    def test_divergence_is_an_ending_with_its_first_bad_step(self) -> None:
        wild = {"optimizer": {"learning_rate": 1e30}, "stop": {"epochs": 5}, "model": {"name": "mlp", "hidden": [8]}}
        run = self.run_scenario(self.learning(8, {"name": "async"}, **wild), status=3)
        summary = self.summary(run)
        self.assertEqual(summary["status"], "diverged")
        self.assertRegex(summary["status_detail"], r"gradient \d+ of worker \d+")
        wild["stop"]["diverged"] = "continue"
        onward = self.summary(self.run_scenario(self.learning(8, {"name": "async"}, **wild), status=3))
        self.assertEqual((onward["status"], onward["epochs"]), ("diverged", 5))


if __name__ == "__main__":
    main()
