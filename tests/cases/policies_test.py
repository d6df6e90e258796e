"""Policies from scenario files: clocks, own updates, epochs, equalities, resumes, and what cannot go together.

Usage: policies_test.py RUBATO
"""

import json

from case import Case, main

# Every policy that holds or drops, in each of its kinds.
KIN = ({"name": "bsp"}, {"name": "bsp", "update": "per-gradient"}, {"name": "asp"}, {"name": "ssp", "bound": 0},
       {"name": "ssp", "bound": 2}, {"name": "ssp", "bound": None}, {"name": "dssp", "lower_bound": 1, "r_max": 3},
       {"name": "dssp", "mode": "literal_next"}, {"name": "dssp", "mode": "literal_full", "lower_bound": 0},
       {"name": "bounded-delay"}, {"name": "bounded-delay", "k": 2, "dependency": "single"},
       {"name": "backup-workers"}, {"name": "rennala"}, {"name": "ringmaster", "delay_threshold": 2},
       {"name": "ringmaster", "delay_threshold": 2, "cancel": True}, {"name": "admission", "bound": 1},
       {"name": "admission", "bound": 1, "admit": "discard"}, {"name": "admission", "bound": 1, "admit": "withhold"})


class Policies(Case):
    """Each test runs the program on scenarios of its own."""

    @staticmethod
    def timing(samples: int, batch_size: int, workers: int, protocol: dict, **more: object) -> dict:
        return {"data": {"samples": samples}, "cost": {"push_bytes": 1000, "pull_bytes": 1000},
                "workers": {"count": workers, "batch_size": batch_size}, "protocol": protocol,
                "cluster": {"devices": {"default": {"a": 0.001, "b": 0.0001}},
                            "noise": {"lognormal_cv": 0.5}}, **more}

    @staticmethod
    def uneven(protocol: dict, **more: object) -> dict:
        """Three workers, the last of them ten times slower."""
        return {"data": {"samples": 10000}, "cost": {"push_bytes": 1000, "pull_bytes": 1000}, "protocol": protocol,
                "workers": {"batch_size": 10,
                            "groups": [{"count": 2, "device": "fast"}, {"count": 1, "device": "slow"}]},
                "cluster": {"devices": {"fast": {"a": 0.001}, "slow": {"a": 0.01}}, "noise": {"lognormal_cv": 0.1}},
                "stop": {"gradients": 300}, **more}

    def test_an_epoch_that_does_not_divide_applies_each_sample_once(self) -> None:
        for protocol in KIN:
            barrier = protocol["name"] == "bsp" or protocol.get("bound") == 0
            for sampling in ("shared-epoch", "strided") if barrier else ("shared-epoch",):
                with self.subTest(protocol=protocol, sampling=sampling):
                    scenario = self.timing(121, 10, 3, protocol, stop={"epochs": 2})
                    scenario["data"]["sampling"] = sampling
                    run = self.run_scenario(scenario)
                    seen = [(row["data_epoch"], int(row["data_first"]) + i) for row in self.rows(run)
                            if row["outcome"] in ("applied", "leftover") for i in range(int(row["samples"]))]
                    self.assertEqual((len(seen), len(set(seen))), (242, 242))
                    self.assertEqual(self.summary(run)["epochs"], 2)

    def test_clocks_of_ssp_lead_by_the_bound_and_no_more(self) -> None:
        for bound in (0, 1, 3):
            run = self.run_scenario(self.uneven({"name": "ssp", "bound": bound}))
            rows = [row for row in self.rows(run) if row["outcome"] != "cancelled"]
            applied = {w: sorted(int(row["applied_ns"]) for row in rows if row["worker"] == w and row["applied_ns"])
                       for w in "012"}
            leads = [int(row["worker_seq"]) - min(sum(at <= int(row["pull_ns"]) for at in times)
                                                  for times in applied.values()) for row in rows]
            self.assertEqual(max(leads), bound)
            # A worker reads its own update.
            last: dict[str, int] = {}
            for row in sorted(rows, key=lambda row: int(row["worker_seq"])):
                self.assertGreater(int(row["read_version"]), last.get(row["worker"], -1))
                last[row["worker"]] = int(row["apply_version"] or -1)

    def test_equal_policies_leave_equal_tables(self) -> None:
        pairs = (({"name": "ssp", "bound": 0}, {"name": "bsp", "update": "per-gradient"}),
                 ({"name": "ssp", "bound": None}, {"name": "asp"}),
                 ({"name": "dssp", "lower_bound": 2, "r_max": 0}, {"name": "ssp", "bound": 2}),
                 ({"name": "dssp", "lower_bound": 2, "r_max": 0, "mode": "literal_full"}, {"name": "ssp", "bound": 2}))
        for network in ("simgrid", "flow"):
            for one, other in pairs:
                more = {"network": {"model": network}}
                runs = []
                for protocol in (one, other):
                    scenario = self.uneven(protocol)
                    scenario["cluster"] |= more
                    runs.append(self.run_scenario(scenario))
                for table in ("gradients.csv", "updates.csv", "workers.csv"):
                    self.assertEqual((runs[0] / table).read_text(), (runs[1] / table).read_text(), (one, table))

    def test_one_worker_is_sequential_under_every_policy(self) -> None:
        hashes = set()
        for protocol in ({"name": "async"}, *KIN):
            scenario = {"data": {"dataset": "synthetic", "samples": 50, "test_samples": 10, "shape": [3, 3, 1],
                                 "classes": 3}, "model": {"name": "softmax"}, "protocol": protocol,
                        "workers": {"count": 1, "batch_size": 7}, "stop": {"epochs": 2}}
            hashes.add(self.summary(self.run_scenario(scenario))["weights_hash"])
        self.assertEqual(len(hashes), 1)

    def test_a_run_goes_on_with_its_controller_and_its_bounds(self) -> None:
        for protocol in KIN:
            with self.subTest(protocol=protocol):
                scenario = self.uneven(protocol, stop={"updates": 30},
                                       execution={"checkpoint": {"every_updates": 7}}, trace={"events": True})
                path = self.write(scenario)
                out = self.work / f"on{self.count}"
                self.assertEqual(self.call("run", path, "--out", out, "--quiet").returncode, 0)
                path.write_text(json.dumps({"name": "case", **scenario, "stop": {"updates": 80}}))
                done = self.call("run", path, "--out", out, "--quiet", "--resume")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(self.summary(out)["updates"], 80)
                rows = self.rows(out)
                self.assertEqual(len(rows), sum(self.summary(out)["gradients"].values()))
                self.assertEqual(len({(row["worker"], row["worker_seq"]) for row in rows}), len(rows))
                if protocol["name"] in ("admission", "ringmaster"):
                    self.assertLessEqual(max(int(row["staleness"]) for row in rows if row["outcome"] == "applied"), 1)
                if protocol["name"] == "dssp":
                    times = [int(row["time_ns"]) for row in self.rows(out, "controller.csv")]
                    self.assertEqual(times, sorted(times))
                self.assertEqual(self.call("replay", out).returncode, 0)

    def test_what_cannot_go_together_is_refused(self) -> None:
        workers = {"count": 3, "batch_size": 10}
        for protocol, told in (({"name": "dssp", "reexamine": "slowest"}, "protocol.reexamine"),
                               ({"name": "backup-workers", "backups": 3}, "fewer than the number of workers, 3, found"),
                               ({"name": "admission", "bound": None}, "protocol.bound"),
                               ({"name": "ssp", "bound": -1}, "protocol.bound"),
                               ({"name": "asp", "bound": 1}, "protocol.bound"),
                               ({"name": "dssp", "mode": "literal-next"}, "did you mean \"literal_next\"?")):
            line = self.refused({"cost": {"model": "resnet50"}, "workers": workers, "protocol": protocol})
            self.assertIn(told, line)

    def test_check_tells_what_holds(self) -> None:
        for protocol, told in (({"name": "ssp", "bound": 2}, "at most 2 ahead of the slowest worker"),
                               ({"name": "dssp", "lower_bound": 1, "r_max": 2}, "at most 3 ahead"),
                               ({"name": "dssp", "mode": "literal_full"}, "has no bound"),
                               ({"name": "bounded-delay", "k": 4}, "staleness is at most 2(4 - 1) = 6"),
                               ({"name": "rennala"}, "dealt again"), ({"name": "bsp"}, "bit for bit, on every")):
            done = self.call("check", self.write(self.timing(1000, 10, 3, protocol)))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(told, done.stdout)


if __name__ == "__main__":
    main()
