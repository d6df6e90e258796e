"""Runs over MPI: their books, exactness, agreement with the other backends, and what they record.

Usage: runs_test.py RUBATO.
"""

import json
import os
import subprocess
import unittest

from launch import MPIRUN, PROGRAM, LaunchTest, weights_hash

POLICIES = [{"name": "hardsync"}, {"name": "n-softsync", "n": 1}, {"name": "n-softsync", "n": 2}, {"name": "async"}]


NOTE_BYTES = 3072  # longer payloads do not ride in a note


def learning(policy: dict, count: int, batch_size: int = 16, samples: int = 203, hidden: int = 12) -> dict:
    """A small network on small data; payloads are longer than a note from 20 hidden units on."""
    return {
        "data": {"samples": samples, "shape": [6, 6, 1], "test_samples": 50, "classes": 4},
        "model": {"name": "mlp", "hidden": [hidden]},
        "workers": {"count": count, "batch_size": batch_size},
        "protocol": policy,
        "optimizer": {"name": "momentum", "learning_rate": 0.05},
        "stop": {"epochs": 3},
        "evaluate": {"every_epochs": 1},
        "trace": {"events": True, "timeline": True},
    }


class RunsTest(LaunchTest):
    """Each policy, from start to end."""

    def test_every_policy_keeps_its_books_and_replays(self) -> None:
        for number, policy in enumerate(POLICIES):
            with self.subTest(policy):
                out = f"run{number}"
                summary = self.run_on("mpi", learning(policy, 4), out)
                self.assertEqual((summary["backend"], summary["clock"], summary["status"]), ("mpi", "wall", "finished"))
                self.assertEqual(summary["samples"], 3 * 203)
                self.assertEqual(summary["engine"]["ranks"], 5)
                self.assertLess(summary["engine"]["clock_residual_s"], 0.05)
                self.assert_books(out)
                self.assert_replays(out, "--weights", "--evaluate")
                self.assertEqual(len(self.rows(out, "evals.csv")), 4)
                # Each sample is handed out once an epoch, whoever computes on it; leftovers count.
                for epoch in range(3):
                    seen = []
                    for row in self.rows(out, "gradients.csv"):
                        if int(row["data_epoch"]) == epoch:
                            seen += range(int(row["data_first"]), int(row["data_first"]) + int(row["samples"]))
                    self.assertEqual(sorted(seen), list(range(203)))

    def test_a_tree_keeps_its_books_and_replays(self) -> None:
        weights = {}
        for number, policy in enumerate(POLICIES + [{"name": "bsp"}, {"name": "ssp", "bound": 1}]):
            with self.subTest(policy):
                out = f"tree{number}"
                scenario = learning(policy, 4, hidden=30) | {"topology": {"name": "tree", "fan_out": 3}}
                summary = self.run_on("mpi", scenario, out, ranks=7)
                self.assertEqual((summary["backend"], summary["status"]), ("mpi", "finished"))
                self.assertEqual(summary["engine"]["ranks"], 7)
                self.assert_books(out)
                self.assert_replays(out, "--weights")
                servers = self.rows(out, "servers.csv")
                self.assertEqual([row["role"] for row in servers], ["0", "5", "6"])
                self.assertTrue(all(int(row["bytes_in"]) > 0 and int(row["bytes_out"]) > 0 for row in servers))
                self.assertIn(("5", "relay"), {(row["role"], row["kind"]) for row in self.rows(out, "timeline.csv")})
                weights[policy["name"]] = summary["weights_hash"]
        simulated = self.run_on("sim", learning({"name": "hardsync"}, 4, hidden=30) |
                                {"topology": {"name": "tree", "fan_out": 3}}, "tree-sim")
        self.assertEqual(weights["hardsync"], simulated["weights_hash"])
        self.assertEqual(weights["bsp"], simulated["weights_hash"])

    def test_weights_that_go_from_worker_to_worker(self) -> None:
        scenario = learning({"name": "n-softsync", "n": 1}, 4, hidden=30)
        scenario |= {"topology": {"name": "tree-downcast", "fan_out": 3, "weights_fan_out": 1}}
        scenario["workers"] |= {"pipeline": "overlap"}
        summary = self.run_on("mpi", scenario, "downcast", ranks=7)
        self.assertEqual((summary["backend"], summary["status"]), ("mpi", "finished"))
        self.assert_books("downcast")
        self.assert_replays("downcast", "--weights")
        workers = self.rows("downcast", "workers.csv")
        self.assertEqual({row["inquiries"] for row in workers}, {"0"})
        # The root sends each version at most once to worker 0 alone, and nothing to relays.
        passed = {(row["role"], row["peer"]) for row in self.rows("downcast", "timeline.csv")
                  if row["kind"] in ("pull", "relay") and int(row["peer"]) in range(1, 5)}
        self.assertEqual(passed, {("0", "1"), ("1", "2"), ("2", "3"), ("3", "4")})

    def test_policies_that_hold_or_drop_keep_their_books_and_replay(self) -> None:
        # What each promises of the staleness of what is applied; None: nothing.
        policies = [({"name": "bsp"}, 0), ({"name": "bsp", "update": "per-gradient"}, 3), ({"name": "asp"}, None),
                    ({"name": "ssp", "bound": 1}, 9), ({"name": "ssp", "bound": 0}, 3),
                    ({"name": "dssp", "lower_bound": 0, "r_max": 2}, 15),
                    ({"name": "dssp", "mode": "literal_next", "lower_bound": 0}, None),
                    ({"name": "bounded-delay", "k": 3}, 4), ({"name": "backup-workers"}, 0), ({"name": "rennala"}, 0),
                    ({"name": "ringmaster", "delay_threshold": 2, "cancel": True}, 1),
                    ({"name": "admission", "bound": 1, "admit": "pace"}, 1),
                    ({"name": "admission", "bound": 1, "admit": "discard"}, 1),
                    ({"name": "admission", "bound": 1, "admit": "withhold"}, 1)]
        for number, (policy, limit) in enumerate(policies):
            with self.subTest(policy):
                out = f"kin{number}"
                summary = self.run_on("mpi", learning(policy, 4), out)
                self.assertEqual((summary["backend"], summary["status"]), ("mpi", "finished"))
                self.assert_books(out)
                self.assert_replays(out)
                rows = self.rows(out, "gradients.csv")
                applied = [row for row in rows if row["outcome"] == "applied"]
                if limit is not None:
                    self.assertLessEqual(max(int(row["staleness"]) for row in applied), limit)
                # Each sample is applied once an epoch, or left over at the end; dropped batches were dealt again.
                seen = [(row["data_epoch"], int(row["data_first"]) + i) for row in rows
                        if row["outcome"] in ("applied", "leftover") for i in range(int(row["samples"]))]
                self.assertEqual(len(seen), 3 * 203)
                self.assertEqual(len(set(seen)), 3 * 203)
                workers = self.rows(out, "workers.csv")
                for outcome in ("dropped", "cancelled"):
                    self.assertEqual(sum(int(row[outcome]) for row in workers), summary["gradients"][outcome])
                self.assertEqual(os.path.exists(self.path(out, "controller.csv")), policy["name"] == "dssp")

    def test_overlapping_workers_keep_their_books_and_replay(self) -> None:
        for hidden in (12, 40):  # payloads in notes and beside them
            for pull in ("prefetch", "latest"):
                with self.subTest(pull=pull, hidden=hidden):
                    scenario = learning({"name": "async"}, 4, hidden=hidden)
                    scenario["workers"] |= {"pipeline": "overlap", "pull": pull}
                    out = f"overlap-{pull}-{hidden}"
                    summary = self.run_on("mpi", scenario, out)
                    self.assertEqual(summary["status"], "finished")
                    if pull == "prefetch":
                        self.assertEqual(summary["samples"], 3 * 203)
                    self.assertGreater(summary["communication_hidden_fraction"], 0)
                    self.assert_books(out)
                    self.assert_replays(out, "--weights")

    def test_hardsync_has_the_same_weights_as_the_other_backends(self) -> None:
        for count, batch_size in ((1, 32), (2, 7), (4, 16)):
            with self.subTest(count=count):
                hashes = {
                    self.run_on(backend, learning({"name": name}, count, batch_size), f"{name}-{backend}{count}")[
                        "weights_hash"]
                    for backend in ("sim", "local", "mpi") for name in ("hardsync", "bsp")
                }
                self.assertEqual(len(hashes), 1)

    def test_steps_of_the_workers_own_lead_to_the_same_weights_as_elsewhere(self) -> None:
        some = {"push_every": 2}, {"pull_every": 2}, {"push_every": 3, "pull_every": 2}
        for number, communication in enumerate(some):
            with self.subTest(communication):
                scenario = learning({"name": "hardsync"}, 3)
                scenario["workers"]["communication"] = communication
                hashes = set()
                for backend in ("sim", "local", "mpi"):
                    out = f"own-{backend}{number}"
                    hashes.add(self.run_on(backend, scenario, out)["weights_hash"])
                    self.assert_replays(out, "--weights")
                    told = self.summary(out)["gradients"]
                    rows = self.rows(out, "gradients.csv")
                    self.assertEqual(sum(int(row.get("count", 1)) for row in rows), told["applied"])
                    self.assertEqual(sum(told.values()), told["applied"])
                self.assertEqual(len(hashes), 1, hashes)

    def test_a_warm_start_has_the_same_weights_as_elsewhere(self) -> None:
        # What follows the first epoch is a barrier, too, so that weights do not depend on who is fast.
        for number, policy in enumerate(({"name": "hardsync"}, {"name": "bsp"})):
            with self.subTest(policy):
                scenario = learning({**policy, "warm_start": {"epochs": 1}}, 3)
                hashes = {self.run_on("sim", learning(policy, 3), f"cold{number}")["weights_hash"]}
                for backend in ("sim", "local", "mpi"):
                    out = f"warm-{backend}{number}"
                    summary = self.run_on(backend, scenario, out)
                    hashes.add(summary["weights_hash"])
                    # 13 slices an epoch, in rounds of three.
                    self.assertEqual((summary["samples"], summary["warm_start_updates"]), (3 * 203, 5))
                    self.assertEqual(summary["updates"], 15)
                    self.assert_books(out)
                    self.assert_replays(out, "--weights", "--evaluate")
                self.assertEqual(len(hashes), 1, hashes)

    def test_a_warm_start_hands_over_to_a_protocol_that_waits_for_nobody(self) -> None:
        policies = {"name": "async"}, {"name": "n-softsync", "n": 2}, {"name": "ssp", "bound": 1}
        for number, policy in enumerate(policies):
            with self.subTest(policy):
                scenario, out = learning({**policy, "warm_start": {"epochs": 1}}, 3), f"over{number}"
                summary = self.run_on("mpi", scenario, out)
                self.assertEqual((summary["samples"], summary["warm_start_updates"]), (3 * 203, 5))
                updates = self.rows(out, "updates.csv")
                self.assertEqual([row["contributors"] for row in updates[:5]], ["3", "3", "3", "3", "1"])
                self.assertEqual({row["mean_staleness"] for row in updates[:5]}, {"0"})
                self.assertEqual({row["contributors"] for row in updates[5:]}, {"1"})
                self.assert_books(out)
                self.assert_replays(out, "--weights", "--evaluate")
                # Until the change it is the run over every other backend: one that ends there has the same weights.
                short = scenario | {"stop": {"epochs": 1}}
                hashes = {self.run_on(it, short, f"{out}-{it}")["weights_hash"] for it in ("sim", "local", "mpi")}
                self.assertEqual(len(hashes), 1, hashes)

    def test_payloads_beside_the_note_are_those_that_were_sent(self) -> None:
        """Each policy computed again from its events; hardsync has the weights of the other backends as well."""
        for number, policy in enumerate(POLICIES):
            with self.subTest(policy):
                out, scenario = f"run{number}", learning(policy, 3, hidden=64)
                summary = self.run_on("mpi", scenario, out)
                self.assertGreater(summary["traffic"]["bytes"], 3 * NOTE_BYTES * summary["traffic"]["messages"])
                self.assert_replays(out, "--weights", "--evaluate")
                if policy["name"] == "hardsync":
                    others = {self.run_on(it, scenario, it)["weights_hash"] for it in ("sim", "local")}
                    self.assertEqual(others, {summary["weights_hash"]})

    def test_optimizers_and_rules_on_weights(self) -> None:
        optimizers = ({"name": "nesterov", "schedule": {"name": "cosine"}, "warm_up": {"epochs": 1}},
                      {"name": "adam", "learning_rate": 0.005, "weight_decay": 0.01, "decoupled_weight_decay": True},
                      {"name": "momentum", "momentum_rule": "decoupled"},
                      {"name": "sgd", "staleness_rule": {"name": "delay-compensation", "strength": 0.5}},
                      {"name": "momentum", "staleness_rule": {"name": "delay-compensation", "mean_square": "worker"}},
                      {"name": "adagrad", "staleness_rule": "gap-aware"})
        for number, optimizer in enumerate(optimizers):
            with self.subTest(optimizer):
                more = {"optimizer": {"learning_rate": 0.02, **optimizer}}
                one = learning({"name": "hardsync"}, 2) | more
                hashes = {
                    self.run_on(backend, one, f"{backend}-{number}")["weights_hash"]
                    for backend in ("sim", "mpi")
                }
                self.assertEqual(len(hashes), 1)
                for policy in ({"name": "async"}, {"name": "n-softsync", "n": 2}):
                    out = f"{policy['name']}-{number}"
                    summary = self.run_on("mpi", learning(policy, 4) | more, out)
                    self.assert_books(out)
                    again = subprocess.run([PROGRAM, "replay", self.path(out), "--weights"], capture_output=True,
                                           text=True, timeout=120, check=False)
                    self.assertEqual(again.returncode, 0, again.stdout + again.stderr)
                    self.assertIn(f"the same final weights {summary['weights_hash']}", again.stdout)

    def test_every_gradient_counts_once(self) -> None:
        # Every gradient is the constant 1, the rate is 1, so the weight is minus the number of updates.
        exact = {
            "model": {"name": "constant", "dimension": 1, "value": 1},
            "data": {"samples": 1000},
            "workers": {"count": 6, "batch_size": 1},
            "optimizer": {"name": "sgd", "learning_rate": 1},
            "stop": {"gradients": 4800},
        }
        expected = {"async": 4800, 6: 4800, 3: 2400, 2: 1600, 1: 800, "hardsync": None}
        for key, updates in expected.items():
            with self.subTest(key):
                policy = {"name": key} if isinstance(key, str) else {"name": "n-softsync", "n": key}
                out = f"exact-{key}"
                summary = self.run_on("mpi", exact | {"protocol": policy}, out)
                if updates is not None:
                    self.assertEqual(summary["updates"], updates)
                self.assertEqual(summary["weights_hash"], weights_hash([-summary["updates"]]))
                told = summary["gradients"]
                contributors = sum(int(row["contributors"]) for row in self.rows(out, "updates.csv"))
                pushed = sum(row["push_ns"] != "" for row in self.rows(out, "gradients.csv"))
                self.assertEqual(told["applied"], contributors)
                self.assertEqual(pushed, contributors + told["leftover"] + told["dropped"])
                self.assert_books(out)

    def test_pieces_of_a_payload_come_together(self) -> None:
        scenario = learning({"name": "hardsync"}, 3)
        scenario["data"]["shape"] = [28, 28, 1]  # too much for a note
        scenario["model"]["hidden"] = [32]
        whole = self.run_on("mpi", scenario, "whole")
        cut = self.run_on("mpi", scenario, "cut", environment={"RUBATO_CHUNK_BYTES": "1000"})
        self.assertEqual(whole["weights_hash"], cut["weights_hash"])
        self.assertEqual(whole["traffic"], cut["traffic"])

    def test_no_rank_loads_simgrid(self) -> None:
        log = self.path("loader")
        account = {"LD_DEBUG": "libs", "LD_DEBUG_OUTPUT": log}
        self.run_on("mpi", learning({"name": "async"}, 1), "run", environment=account)
        told = ""
        for name in os.listdir(self.scratch.name):
            if name.startswith("loader."):
                with open(self.path(name), encoding="utf-8", errors="replace") as file:
                    told += file.read()
        self.assertIn("libmpi", told)
        self.assertNotIn("libsimgrid", told)

    def test_ranks_measure_together(self) -> None:
        # The launcher's ranks compute at once, and their messages are those of the profile.
        scenario = learning({"name": "async"}, 2)
        command = self.command(3, scenario, "scenario")
        program = command.index(PROGRAM)
        told = self.path("profile.json")
        calibrate = [*command[:program + 1], "calibrate", self.path("scenario.json"), "--seconds", "3", "--out", told]
        subprocess.run(calibrate, check=True, capture_output=True, timeout=100)
        with open(told, encoding="utf-8") as file:
            profile = json.load(file)
        device = profile["compute"]["default"]
        self.assertIn("2", device["host_sharing"])
        self.assertGreater(device["batches"]["16"]["n"], 20)
        self.assertGreater(profile["network"]["latency_s"], 0)
        self.assertFalse([text for text in profile.get("notes", []) if "thread to thread" in text])
        scenario["cluster"] = {"profile": told}
        self.assertEqual(self.run_on("sim", scenario, "predicted")["status"], "finished")

    def test_copies_of_other_calibrations_are_refused(self) -> None:
        self.run_on("sim", learning({"name": "async"}, 1), "run")
        command = [*MPIRUN, "-n", "2", PROGRAM, "calibrate", "--run", self.path("run"), "--out", self.path("p.json")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stderr.count("rubato: "), 1, done.stderr)
        self.assertFalse(os.path.exists(self.path("p.json")))

    def test_several_workers_of_a_rank(self) -> None:
        scenario = learning({"name": "hardsync"}, 5)
        scenario["execution"] = {"workers_per_rank": 2}
        packed = self.run_on("mpi", scenario, "packed", ranks=4)
        self.assertEqual(packed["weights_hash"], self.run_on("local", scenario, "local")["weights_hash"])
        self.assert_books("packed")
        self.assert_replays("packed", "--weights")

    def test_the_timeline_has_the_spans_of_every_role(self) -> None:
        self.run_on("mpi", learning({"name": "async"}, 2), "run")
        spans = self.rows("run", "timeline.csv")
        kinds = {(row["role"], row["kind"]) for row in spans}
        for expected in (("0", "apply"), ("0", "pull"), ("1", "compute"), ("1", "push"), ("2", "compute"),
                         ("2", "push"), ("0", "evaluate")):
            self.assertIn(expected, kinds)
        for row in spans:
            self.assertLessEqual(int(row["begin_ns"]), int(row["end_ns"]))

    def test_an_emulated_machine_takes_its_time_and_its_bytes(self) -> None:
        scenario = learning({"name": "async"}, 2) | {
            "cost": {"push_bytes": "300kB", "pull_bytes": "200kB"},
            "cluster": {"devices": {"default": {"a": 0.02}}, "server": {"update_s": 0.001}},
            "execution": {"emulate": {"compute": True, "messages": True, "slow": {"1": 2}}},
        }
        summary = self.run_on("mpi", scenario, "emulated")
        rows = self.rows("emulated", "gradients.csv")
        for worker, least in (("0", 0.02), ("1", 0.04)):
            seconds = [(int(row["end_ns"]) - int(row["begin_ns"])) * 1e-9 for row in rows if row["worker"] == worker]
            self.assertGreaterEqual(min(seconds), least)
        pushes = sum(row["push_ns"] != "" for row in rows)
        pulls = summary["traffic"]["messages"] - pushes
        self.assertEqual(summary["traffic"]["bytes"], 300_000 * pushes + 200_000 * pulls)
        server = self.rows("emulated", "servers.csv")[0]
        self.assertGreaterEqual(float(server["update_s"]), 0.001 * summary["updates"])

    def test_an_emulated_network_takes_its_time(self) -> None:
        scenario = learning({"name": "async"}, 2, samples=600) | {
            "cost": {"push_bytes": "300kB", "pull_bytes": "200kB"},
            "cluster": {"network": {"star": {"bandwidth": "10MBps", "latency": "1ms", "server_bandwidth": "1GBps"}}},
            "execution": {"emulate": {"messages": True, "network": True}},
        }
        self.run_on("mpi", scenario, "emulated")
        self.assert_books("emulated")
        self.assert_replays("emulated")
        # Two links' latency, and the bytes over the worker's own one.
        least = {"push": 0.032, "pull": 0.022}
        for row in self.rows("emulated", "timeline.csv"):
            if row["kind"] in least:
                self.assertGreaterEqual((int(row["end_ns"]) - int(row["begin_ns"])) * 1e-9, least[row["kind"]] - 1e-4)
                self.assertEqual(int(row["bytes"]), 300_000 if row["kind"] == "push" else 200_000)
        profile = self.path("profile.json")
        subprocess.run([PROGRAM, "calibrate", "--run", self.path("emulated"), "--out", profile], check=True,
                       capture_output=True, timeout=60)
        with open(profile, encoding="utf-8") as file:
            network = json.load(file)["network"]
        # The workers share this host, and no link.
        self.assertAlmostEqual(network["server_bandwidth"] / network["bandwidth"], 2)
        told = {message["bytes"]: message["seconds"] for message in network["messages"]}
        for size, seconds in ((300_000, least["push"]), (200_000, least["pull"])):
            self.assertGreaterEqual(told[size], seconds - 1e-4)
            self.assertLess(told[size], seconds + 0.02)

    def test_evaluations_beside_and_in_pauses(self) -> None:
        for mode in ("rank", "pause", "deferred"):
            with self.subTest(mode):
                scenario = learning({"name": "async"}, 3)
                scenario["evaluate"]["mode"] = mode
                self.run_on("mpi", scenario, mode)
                self.assertEqual(len(self.rows(mode, "evals.csv")), 4)
                self.assert_books(mode)
                self.assert_replays(mode)
        for row in self.rows("pause", "evals.csv"):
            at = int(row["time_ns"])
            for gradient in self.rows("pause", "gradients.csv"):
                self.assertFalse(int(gradient["begin_ns"]) < at < int(gradient["end_ns"]))


if __name__ == "__main__":
    unittest.main()
