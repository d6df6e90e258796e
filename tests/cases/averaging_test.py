"""Averaging of models, as users meet it.

Usage: averaging_test.py RUBATO
"""

import math
from collections import Counter

from case import Case, main

# What is set beside sparknet, the key that the refusal names, and a part of why.
REFUSALS: tuple[tuple[dict, str, str], ...] = (
    ({"topology": {"name": "tree"}}, "topology.name", 'expected "star"'),
    ({"topology": {"name": "sharded", "shards": 2}}, "topology.name", 'expected "star"'),
    ({"data": {"sampling": "shared-epoch"}}, "data.sampling", "nobody deals them slices"),
    ({"workers": {"count": 3, "batch_size": 10, "pipeline": "overlap"}}, "workers.pipeline", 'expected "blocking"'),
    ({"workers": {"count": 3, "batch_size": 10, "communication": {"push_every": 2}}},
     "workers.communication.push_every", "expected 1"),
    ({"optimizer": {"staleness_rule": "inverse-n"}}, "optimizer.staleness_rule", 'expected "none"'),
    ({"optimizer": {"name": "momentum", "momentum_rule": "decoupled"}}, "optimizer.momentum_rule", "configured"),
    ({"protocol": {"name": "sparknet", "warm_start": {"epochs": 1}}}, "protocol.warm_start", "not yet built"),
    ({"protocol": {"name": "sparknet", "n": 2}}, "protocol.n", "goes with"),
    ({"protocol": {"name": "sparknet", "outer_momentum": 0.5}}, "protocol.outer_momentum", "goes with"),
    ({"protocol": {"name": "sparknet", "exchange": "gradients", "tau": 2}}, "protocol.tau", "expected 1"),
    ({"protocol": {"name": "local-sgd", "tau": 0}}, "protocol.tau", "from 1 to 1000000"),
    ({"protocol": {"name": "gadei"}}, "protocol.name", "not yet built"),
    ({"protocol": {"name": "easgd", "alpha": 2}}, "protocol.alpha", "from 0 to 1"),
    ({"protocol": {"name": "easgd", "alpha": {"from": 1, "to": 0.5, "over": 5}}}, "protocol.alpha", "a number above 0"),
    ({"protocol": {"name": "easgd", "dylu": True}}, "protocol.dylu", "goes with"),
    ({"protocol": {"name": "diloco", "delayed_nesterov": 2}}, "protocol.delayed_nesterov", "goes with"),
    ({"protocol": {"name": "async-diloco", "delayed_nesterov": 0}}, "protocol.delayed_nesterov", "from 1 to"),
    ({"protocol": {"name": "async-diloco", "alpha": 0.1}}, "protocol.alpha", "goes with"),
    ({"protocol": {"name": "gosgd", "outer_momentum": 0.5}}, "protocol.outer_momentum", "goes with"),
    ({"protocol": {"name": "gosgd"}, "stop": {"updates": 5}}, "stop.updates", "expected stop.epochs"),
    ({"protocol": {"name": "diloco", "fragments": 2}}, "protocol.fragments", "goes with"),
    ({"protocol": {"name": "streaming-diloco", "tau": 5}}, "protocol.tau", "a multiple of"),
    ({"protocol": {"name": "streaming-diloco", "tau": 6, "overlap": 3}}, "protocol.overlap",
     "less than tau / fragments = 3"),
    ({"protocol": {"name": "streaming-diloco", "fragments": 3, "tau": 6}}, "protocol.split", "3 fragments"),
    ({"protocol": {"name": "streaming-diloco", "keep": 2}}, "protocol.keep", "from 0 to 1"),
    ({"protocol": {"name": "mpca", "phases": 1, "shards": 2}}, "protocol.shards", "expected 1"),
    ({"protocol": {"name": "mpca", "shards": 2}}, "protocol.shards", "at least protocol.phases = 3"),
    ({"protocol": {"name": "mpca"}}, "protocol.split", "2 layers"),
    ({"protocol": {"name": "mpca", "sizes": [1, 2, 3], "split": "bytes"}}, "protocol.s", "cannot stand beside s"),
    ({"cluster": {"exchange": {"send": 1}}}, "cluster.exchange.send", 'did you mean "send_s"?'),
    ({"protocol": {"name": "mpca", "sizes": [1, 2]}}, "protocol.sizes", "as many as protocol.shards = 3"),
    ({"protocol": {"name": "mpca", "sizes": [1e12, 1e-6, 1]}}, "protocol.sizes", "would be empty"),
    ({"protocol": {"name": "mpca"}, "model": {"name": "softmax"}}, "protocol.split", "1 layer,"),
    ({"protocol": {"name": "sparknet", "chunks": 4}}, "protocol.chunks", "goes with"),
    ({"evaluate": {"mode": "pause", "every_epochs": 1}}, "evaluate.mode", "not yet built"),
)


def learning(protocol: dict | None = None, **more: object) -> dict:
    return {"data": {"samples": 480, "shape": [4, 4, 1]}, "model": {"name": "mlp", "hidden": [5]},
            "workers": {"count": 3, "batch_size": 10}, "protocol": protocol or {"name": "sparknet", "tau": 4},
            "optimizer": {"name": "adam", "learning_rate": 0.01}, "stop": {"epochs": 3},
            "evaluate": {"every_epochs": 1}, "trace": {"events": True}, **more}


def unhurried(protocol: dict) -> dict:
    """A run of 0.1 s or more, in which all workers take part on a busy machine, too, though nobody waits for them."""
    return learning(protocol, execution={"emulate": {"compute": True}},
                    cluster={"devices": {"default": {"seconds": {"10": 0.004}}}})


class Averaging(Case):
    """Each test runs the program on scenarios of its own."""

    def test_what_has_no_meaning_is_refused(self) -> None:
        for more, key, why in REFUSALS:
            with self.subTest(more):
                line = self.refused({**learning(), **more})
                self.assertRegex(line, r"^\S+\.json(:\d+)?: ")
                self.assertIn(key, line)
                self.assertIn(why, line)

    def test_backends_and_networks_agree_on_the_weights_and_replay(self) -> None:
        for protocol in ({"name": "sparknet", "tau": 4}, {"name": "diloco", "tau": 5},
                         {"name": "streaming-diloco", "tau": 6, "overlap": 2},
                         {"name": "streaming-diloco", "fragments": 5, "split": "bytes", "tau": 5, "keep": 0.25},
                         {"name": "sparknet", "exchange": "gradients"}):
            hashes, times = set(), set()
            for backend, network in (("sim", "simgrid"), ("sim", "flow"), ("local", "flow")):
                run = self.run_scenario(learning(protocol, cluster={"network": {"model": network}}), "--backend",
                                        backend)
                hashes.add(self.summary(run)["weights_hash"])
                if backend == "sim":
                    times.add(self.summary(run)["time_s"])
                replay = self.call("replay", run, "--weights")
                self.assertEqual(replay.returncode, 0, replay.stderr)
                self.assertIn("the same final weights", replay.stdout)
            self.assertEqual(len(hashes), 1, protocol)
            self.assertLess(max(times) - min(times), 1e-5 * max(times))

    def test_deltas_are_pushed_and_runs_replay(self) -> None:
        for backend in ("sim", "local"):
            for more in ({}, {"delayed_nesterov": 1, "push_counts": "whole", "dylu": True, "outer_learning_rate": 0.3}):
                run = self.run_scenario(unhurried({"name": "async-diloco", "tau": 4, **more}), "--backend", backend)
                self.assertIn("the same final weights", self.call("replay", run, "--weights").stdout)
                summary, rounds = self.summary(run), self.rows(run, "rounds.csv")
                self.assertEqual(len(rounds), summary["updates"])
                self.assertEqual({int(row["worker"]) for row in rounds}, {0, 1, 2})
                self.assertEqual(summary["gradients"]["applied"], sum(int(row["steps"]) for row in rounds))
                if not more:
                    self.assert_as_many_steps_as_are_left(rounds, total=3 * 480 // 10, waits=True)
                    if backend == "sim":
                        self.assertEqual({row["steps"] for row in rounds[:-3]}, {"4"})

    def assert_as_many_steps_as_are_left(self, rounds: list[dict], total: int, waits: bool) -> None:
        """tau = 4 of them, and in the end a worker's third of what is left when it is given the model. What it knew
        then: its own rounds up to the one before, or, where it does not wait for an answer, the one before that; at
        most all that came before this round, and what the two others had begun: a round each, or two."""
        taken, known = 0, {row["worker"]: [0] * (1 if waits else 2) for row in rounds}
        for row in rounds:
            least, most = (min(4, max(1, -(-(total - then) // 3)))
                           for then in (taken + 8 * (1 if waits else 2), known[row["worker"]][0]))
            self.assertTrue(least <= int(row["steps"]) <= most, (row, least, most))
            taken += int(row["steps"])
            known[row["worker"]] = [*known[row["worker"]][1:], taken]

    def test_models_are_handed_on_and_runs_replay(self) -> None:
        for backend in ("sim", "local"):
            slow = {"devices": {"default": {"seconds": {"10": 0.01}}}}  # beside a mean of all
            run = self.run_scenario(learning({"name": "gosgd", "tau": 4}, cluster=slow), "--backend", backend)
            self.assertIn("the same final weights", self.call("replay", run, "--weights").stdout)
            summary, rounds = self.summary(run), self.rows(run, "rounds.csv")
            self.assertEqual(len(rounds), summary["updates"])
            self.assertEqual(summary["gradients"]["applied"], sum(int(row["steps"]) for row in rounds))
            self.assertEqual(summary["gradients"]["leftover"], 0)
            if backend == "local":  # may be over before a mean is
                continue
            self.assertEqual(len(rounds), 3)
            losses = [float(row["train_loss"]) for row in self.rows(run, "evals.csv") if row["train_loss"]]
            self.assertLess(losses[-1], losses[0])

    def test_elastic_runs_replay_and_have_a_row_an_exchange(self) -> None:
        for backend in ("sim", "local"):
            run = self.run_scenario(unhurried({"name": "easgd", "tau": 4}), "--backend", backend)
            self.assertIn("the same final weights", self.call("replay", run, "--weights").stdout)
            summary, rounds = self.summary(run), self.rows(run, "rounds.csv")
            self.assertEqual(len(rounds), summary["updates"])
            self.assertEqual({row["workers"] for row in rounds}, {"1"})
            self.assertEqual({int(row["worker"]) for row in rounds}, {0, 1, 2})
            self.assertEqual(summary["gradients"]["applied"], sum(int(row["steps"]) for row in rounds))
            self.assert_as_many_steps_as_are_left(rounds, total=3 * 480 // 10, waits=False)
            if backend == "sim":
                self.assertEqual({row["steps"] for row in rounds}, {"4"})

    def test_books_count_steps_and_rounds_versions(self) -> None:
        run = self.run_scenario(learning())
        summary, rows, rounds = self.summary(run), self.rows(run), self.rows(run, "rounds.csv")
        # 1440 samples are 48 steps of 3 workers: 12 rounds.
        self.assertEqual(summary["gradients"], {"applied": 144, "dropped": 0, "cancelled": 0, "leftover": 0})
        self.assertEqual((summary["updates"], summary["samples"], summary["staleness"]["max"]), (12, 1440, 0))
        self.assertEqual(len(rows), 144)
        self.assertEqual([int(row["seq"]) for row in rows], list(range(144)))
        self.assertEqual([int(row["version"]) for row in rounds], list(range(1, 13)))
        self.assertEqual({(row["steps"], row["workers"], row["samples"]) for row in rounds}, {("12", "3", "120")})
        for row in self.rows(run, "workers.csv"):
            parts = sum(float(row[key]) for key in row if key.endswith("_s"))
            self.assertAlmostEqual(parts, summary["time_s"], delta=0.01 * summary["time_s"])

    def test_a_round_that_is_cut_short_is_left_over(self) -> None:
        scenario = learning(stop={"seconds": 0.35}, cluster={"devices": {"default": {"seconds": {"10": 0.02}}}})
        summary = self.summary(self.run_scenario(scenario))
        gradients = summary["gradients"]
        self.assertEqual((summary["status"], summary["updates"], gradients["applied"]), ("finished", 4, 48))
        self.assertTrue(0 < gradients["leftover"] < 12)
        self.assertEqual(gradients["cancelled"], 3)

    def test_utilization_is_that_of_the_formula(self) -> None:
        for tau in (5, 20, 80):
            scenario = {"cost": {"push_bytes": 10_000_000}, "data": {"samples": 10_000_000},
                        "workers": {"count": 8, "batch_size": 32}, "protocol": {"name": "sparknet", "tau": tau},
                        "stop": {"updates": 60},
                        "cluster": {"network": {"model": "flow", "star": {"bandwidth": "1Gbps", "latency": "0us"}},
                                    "devices": {"default": {"seconds": {"32": 0.05}}}}}
            summary = self.summary(self.run_scenario(scenario))
            hops = math.ceil(math.log2(8)) + 1 + math.ceil(math.log2(9))
            compute, exchange = tau * 0.05, hops * 10e6 / 125e6
            self.assertAlmostEqual(summary["compute_utilization"], compute / (compute + exchange), delta=0.03)

    def test_a_swarm_needs_about_half_the_time_of_four_hops(self) -> None:
        transfers = {}
        for how in ({}, {"broadcast": "swarm", "chunks": 32}):
            scenario = {"cost": {"push_bytes": 100_000_000}, "data": {"samples": 10_000_000},
                        "workers": {"count": 8, "batch_size": 32}, "protocol": {"name": "sparknet", "tau": 1, **how},
                        "stop": {"updates": 4},
                        "cluster": {"network": {"model": "flow", "star": {"bandwidth": "1Gbps", "latency": "0us"}},
                                    "devices": {"default": {"seconds": {"32": 0.05}}}}}
            run = self.run_scenario(scenario)
            row = self.rows(run, "rounds.csv")[-1]
            transfers[len(how)] = (int(row["broadcast_end_ns"]) - int(row["broadcast_begin_ns"])) / 0.8e9
        self.assertAlmostEqual(transfers[0], 4, delta=0.01)
        self.assertLess(transfers[2], 2)  # each link carries the model once, and what is behind the driver a little

    def test_what_the_driver_takes_to_send_is_in_its_books_and_nothing_is_negative(self) -> None:
        scenario = {"cost": {"push_bytes": 10_000_000}, "data": {"samples": 10_000_000},
                    "workers": {"count": 4, "batch_size": 32}, "protocol": {"name": "mpca", "phases": 3},
                    "stop": {"updates": 20},
                    "cluster": {"network": {"model": "flow", "star": {"bandwidth": "1Gbps", "latency": "0us"}},
                                "exchange": {"send_s": 0.05}, "devices": {"default": {"seconds": {"32": 0.05}}}}}
        row = self.rows(self.run_scenario(scenario), "servers.csv")[0]
        seconds = {name: float(value) for name, value in row.items() if name.endswith("_s")}
        self.assertTrue(all(value >= 0 for value in seconds.values()), seconds)
        self.assertGreaterEqual(seconds["pull_s"], 20 * 0.05)

    def test_ignored_costs_are_pointed_out(self) -> None:
        path = self.write({**learning({"name": "async"}), "cluster": {"exchange": {"send_s": 1}}})
        self.assertIn("cluster.exchange", self.call("check", path).stderr)

    def test_a_round_that_nobody_was_left_for_is_over_when_the_run_is(self) -> None:
        # Worker 1 has no data, and waits for chunks that worker 0 took with it.
        scenario = {"seed": 364, "data": {"samples": 1}, "workers": {"count": 2, "batch_size": 3},
                    "model": {"name": "quadratic", "dimension": 8}, "stop": {"seconds": 0.3},
                    "protocol": {"name": "sparknet", "tau": 2, "broadcast": "swarm"},
                    "cluster": {"network": {"model": "flow", "star": {"bandwidth": "1Gbps", "latency": "10ms"}},
                                "devices": {"default": {"seconds": {"3": 0.01}}}},
                    "faults": [{"workers": [0], "at_s": 0.104287721, "until_s": 0.233507154},
                               {"workers": [0], "at_s": 0.259326051, "until_s": 0.836718154}]}
        self.run_scenario(scenario)
        self.run_scenario({**scenario, "workers": {"count": 7, "batch_size": 3},
                           "protocol": {"name": "local-sgd", "tau": 2, "broadcast": "swarm"},
                           "faults": [{"workers": [0], "every_s": 0.1, "for_s": 0.1}]})

    def test_who_is_back_before_a_round_begins_waits_for_no_model_of_the_last_one(self) -> None:
        # Worker 0 alone has data, and crashes while a version is made; the stop finds worker 1 back, and no round.
        base = {"data": {"samples": 1, "sampling": "strided"}, "workers": {"count": 2, "batch_size": 1},
                "cost": {"push_bytes": 1000, "pull_bytes": 1000}, "stop": {"seconds": 0.7},
                "cluster": {"network": {"model": "flow", "star": {"bandwidth": "1Gbps", "latency": "1ms"}},
                            "devices": {"default": {"seconds": {"1": 0.01}}}, "server": {"update_s": 0.1}}}
        for name in ("sparknet", "streaming-diloco"):
            protocol = {"name": name, "tau": 1}
            if name == "streaming-diloco":
                protocol |= {"fragments": 1, "overlap": 0, "split": "bytes"}
            for spell in ((0.4, 0.5), (0.15, 0.16)):
                faults = [{"workers": [0], "at_s": 0.2, "until_s": 1.0},
                          {"workers": [1], "at_s": spell[0], "until_s": spell[1]}]
                with self.subTest(name=name, spell=spell):
                    self.run_scenario({**base, "protocol": protocol, "faults": faults})

    def test_a_round_that_is_given_up_leaves_no_steps_to_the_next(self) -> None:
        slow = {"model": "flow", "star": {"bandwidth": "1kbps", "latency": "1us"}}  # so that crashes find it at sending
        base = {"data": {"samples": 1000, "sampling": "strided"}, "cost": {"push_bytes": 10, "pull_bytes": 10},
                "stop": {"updates": 3}}
        alone = {"workers": {"count": 1, "batch_size": 2}, "protocol": {"name": "local-sgd", "tau": 3},
                 "cluster": {"network": slow, "devices": {"default": {"seconds": {"2": 0.01}}}},
                 "faults": [{"workers": [0], "at_s": 1.04, "until_s": 1.3}]}
        groups = [{"count": 1, "device": "fast"}, {"count": 1, "device": "slow"}]
        both = {"workers": {"batch_size": 2, "groups": groups},
                "protocol": {"name": "mpca", "phases": 1},
                "cluster": {"network": slow, "devices": {"fast": {"seconds": {"2": 0.05}},
                                                         "slow": {"seconds": {"2": 0.7}}}},
                "faults": [{"workers": [0], "at_s": 3.5, "until_s": 4.5},
                           {"workers": [1], "at_s": 3.6, "until_s": 4.5}]}
        for scenario in (alone, both):
            with self.subTest(scenario["protocol"]["name"]):
                out = self.run_scenario({**base, **scenario})
                applied = Counter(int(row["apply_version"]) + 1 for row in self.rows(out, "gradients.csv")
                                  if row["outcome"] == "applied")
                rounds = {int(row["version"]): int(row["steps"]) for row in self.rows(out, "rounds.csv")}
                self.assertEqual(applied, rounds)
                self.assertGreater(self.summary(out)["gradients"]["dropped"], 0)

    def test_means_of_no_steps_are_no_sign_that_a_run_gets_on(self) -> None:
        # Those who have a part of the data crash before a step is done, time and again; two others have none.
        scenario = {"seed": 963, "data": {"samples": 10, "sampling": "strided"}, "stop": {"epochs": 9.8},
                    "workers": {"count": 7, "batch_size": 2}, "cost": {"push_bytes": 1000000, "pull_bytes": 1000000},
                    "protocol": {"name": "mpca", "phases": 3, "split": "bytes", "alpha": 0, "gamma": 0},
                    "cluster": {"network": {"model": "flow", "star": {"bandwidth": "10Mbps", "latency": "1us"}},
                                "devices": {"default": {"seconds": {"2": 0.001}}}},
                    "faults": [{"workers": [0, 1, 2, 3, 4], "every_s": 0.003, "for_s": 0.0001}]}
        out = self.run_scenario(scenario, status=3)
        self.assertEqual(self.summary(out)["status"], "deadlock")

    def test_check_and_replay_say_what_there_is_to_say(self) -> None:
        path = self.write(learning({"name": "diloco", "tau": 7}))
        text = self.call("check", path).stdout
        for part in ("7 steps of their own", "Nesterov momentum 0.9", "binomial broadcast, binary-tree reduce",
                     "staleness is 0", "bit for bit, on every backend", "optimizers is not saved"):
            self.assertIn(part, text)
        run = self.run_scenario(learning())
        refused = self.call("replay", run, "--set", "optimizer.learning_rate=0.1", "--out", self.work / "other")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("take steps of their own", refused.stderr)


if __name__ == "__main__":
    main()
