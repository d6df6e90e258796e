"""Trees of servers and shards over MPI: books, replays, and the weights of other backends.

Usage: topologies_test.py RUBATO.
"""

import unittest

from launch import LaunchTest
from learning import POLICIES, learning


def unhurried(protocol: dict) -> dict:
    """A run of 0.1 s or more, in which all workers take part on a busy machine, too, though nobody waits for them."""
    return learning(protocol, 4, hidden=30) | {
        "execution": {"emulate": {"compute": True}},
        "cluster": {"devices": {"default": {"seconds": {"16": 0.01}}}},
    }


class TopologiesTest(LaunchTest):
    """Each topology but the star, from start to end."""

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

    def test_means_of_models_are_those_of_a_simulation(self) -> None:
        for number, protocol in enumerate(({"name": "sparknet", "tau": 3}, {"name": "diloco", "tau": 2},
                                           {"name": "sparknet", "tau": 3, "broadcast": "swarm", "chunks": 7},
                                           {"name": "streaming-diloco", "tau": 6, "overlap": 2},
                                           {"name": "streaming-diloco", "tau": 6, "fragments": 3, "split": "bytes",
                                            "overlap": 0, "keep": 0.25},
                                           {"name": "sparknet", "exchange": "gradients"})):
            with self.subTest(protocol):
                out = f"averaging{number}"
                scenario = learning(protocol, 4, hidden=30)
                summary = self.run_on("mpi", scenario, out, ranks=5)
                self.assertEqual((summary["backend"], summary["status"]), ("mpi", "finished"))
                self.assert_books(out)
                self.assert_replays(out, "--weights")
                self.assertEqual(len(self.rows(out, "rounds.csv")), summary["updates"])
                simulated = self.run_on("sim", scenario, out + "-sim")
                self.assertEqual(summary["weights_hash"], simulated["weights_hash"])
        summary = self.run_on("mpi", learning({"name": "easgd", "tau": 3}, 4, hidden=30), "elastic", ranks=5)
        self.assertEqual((summary["backend"], summary["status"]), ("mpi", "finished"))
        self.assert_books("elastic")
        self.assert_replays("elastic", "--weights")

    def test_gradients_are_summed_among_the_workers(self) -> None:
        """As many ranks as workers: nobody serves."""
        for number, protocol in enumerate(({"name": "allreduce", "algorithm": "ordered"}, {"name": "no-comm"},
                                           {"name": "allreduce", "algorithm": "rabenseifner"},
                                           {"name": "layer-wise", "apply": "completion-order"},
                                           {"name": "delayed", "delay": 2}, {"name": "delayed", "algorithm": "tree"})):
            with self.subTest(protocol):
                out = f"collective{number}"
                scenario = learning(protocol, 4, hidden=30)
                summary = self.run_on("mpi", scenario, out, ranks=4)
                self.assertEqual((summary["backend"], summary["status"]), ("mpi", "finished"))
                self.assert_books(out)
                self.assert_replays(out, "--weights")
                self.assertEqual(len(self.rows(out, "iterations.csv")), 4 * summary["updates"])
                simulated = self.run_on("sim", scenario, out + "-sim")
                self.assertEqual(summary["weights_hash"], simulated["weights_hash"])
        summary = self.run_on("mpi", learning({"name": "adaptive-delay", "adapt_every": 5}, 4, hidden=30), "adapts",
                              ranks=4)
        self.assertEqual(summary["status"], "finished")
        self.assert_replays("adapts", "--weights")

    def test_deltas_are_pushed_alone(self) -> None:
        protocol = {"name": "async-diloco", "tau": 3, "delayed_nesterov": 2, "dylu": True}
        summary = self.run_on("mpi", unhurried(protocol), "delayed", ranks=5)
        self.assertEqual((summary["backend"], summary["status"]), ("mpi", "finished"))
        self.assert_books("delayed")
        self.assert_replays("delayed", "--weights")
        rounds = self.rows("delayed", "rounds.csv")
        self.assertEqual(len(rounds), summary["updates"])
        self.assertEqual({row["worker"] for row in rounds}, set("0123"))

    def test_models_are_handed_on(self) -> None:
        scenario = learning({"name": "gosgd", "tau": 2}, 4, hidden=30) | {"evaluate": {"every_epochs": 0.5}}
        summary = self.run_on("mpi", scenario, "gossip", ranks=5)
        self.assertEqual((summary["backend"], summary["status"]), ("mpi", "finished"))
        self.assert_books("gossip")
        self.assert_replays("gossip", "--weights")
        rounds = self.rows("gossip", "rounds.csv")
        self.assertEqual(len(rounds), summary["updates"])
        self.assertTrue(all(float(row["policy_wait_s"]) == 0 for row in self.rows("gossip", "workers.csv")))

    def test_models_are_averaged_in_phases(self) -> None:
        for phases in (1, 2, 3):
            with self.subTest(phases):
                out = f"phases{phases}"
                scenario = unhurried({"name": "mpca", "phases": phases, "split": "bytes", "alpha": 0.1})
                summary = self.run_on("mpi", scenario, out, ranks=5)
                self.assertEqual((summary["backend"], summary["status"]), ("mpi", "finished"))
                self.assert_books(out)
                self.assert_replays(out, "--weights")
                rounds, exchanges = self.rows(out, "rounds.csv"), self.rows(out, "exchanges.csv")
                self.assertEqual(len(rounds), summary["updates"])
                # Shards take turns; how many come in is a matter of time, since nobody waits for them.
                turn = {1: lambda _: 0, 2: lambda version: version % 2, 3: lambda version: (1 - version) % 3}[phases]
                for row in rounds:
                    self.assertEqual(int(row["shard"]), turn(int(row["version"])))
                self.assertEqual({row["worker"] for row in exchanges}, set("0123"))
                self.assertTrue(all(float(row["policy_wait_s"]) == 0 for row in self.rows(out, "workers.csv")))

    def test_shards_keep_their_books_and_replay(self) -> None:
        weights = {}
        for number, policy in enumerate(POLICIES + [{"name": "bsp"}, {"name": "ssp", "bound": 1}]):
            with self.subTest(policy):
                out = f"shards{number}"
                scenario = learning(policy, 4, hidden=30) | {
                    "topology": {"name": "sharded", "shards": 3, "split": "layers"}, "evaluate": {"every_epochs": 0.5}}
                summary = self.run_on("mpi", scenario, out, ranks=7)
                self.assertEqual((summary["backend"], summary["status"]), ("mpi", "finished"))
                self.assert_replays(out, "--weights")
                rows, each = self.rows(out, "shards.csv"), summary["shards"]["each"]
                started = sum(summary["gradients"].values())
                self.assertEqual([it["role"] for it in each], [0, 5, 6])
                for shard, it in enumerate(each):
                    mine = [row for row in rows if int(row["shard"]) == shard]
                    told = sum(it[outcome] for outcome in ("applied", "dropped", "cancelled", "leftover"))
                    # The model has two layers.
                    self.assertEqual((len(mine), told), (started, started) if shard < 2 else (0, 0))
                    versions = [row["version"] for row in self.rows(out, "updates.csv") if int(row["shard"]) == shard]
                    self.assertEqual(versions, [str(1 + i) for i in range(it["updates"])])
                    self.assertEqual(it["bytes_in"] > 0, shard < 2)
                weights[policy["name"]] = summary["weights_hash"]
        simulated = self.run_on("sim", learning({"name": "hardsync"}, 4, hidden=30), "one-server")
        self.assertEqual(weights["hardsync"], simulated["weights_hash"])
        self.assertEqual(weights["bsp"], simulated["weights_hash"])

    def test_a_rehearsal_with_shards_pads_parts(self) -> None:
        scenario = learning({"name": "async"}, 2, hidden=30) | {
            "topology": {"name": "sharded", "shards": 2, "split": "bytes"},
            "cost": {"push_bytes": "300kB", "pull_bytes": "200kB"},
            "cluster": {"network": {"star": {"bandwidth": "10MBps", "latency": "1ms", "server_bandwidth": "1GBps"}}},
            "execution": {"emulate": {"messages": True, "network": True}}}
        summary = self.run_on("mpi", scenario, "rehearsal", ranks=4)
        self.assertEqual(summary["status"], "finished")
        self.assert_replays("rehearsal")
        least = {"push": (150_000, 0.017), "pull": (100_000, 0.012)}
        spans = [row for row in self.rows("rehearsal", "timeline.csv") if row["kind"] in least]
        # What shards hand over to the first one for an evaluation is not held back.
        spans = [row for row in spans if {row["role"], row["peer"]} & {"1", "2"}]
        self.assertEqual({row["peer"] for row in spans if row["kind"] == "push"}, {"0", "3"})
        for row in spans:
            size, seconds = least[row["kind"]]
            self.assertAlmostEqual(int(row["bytes"]), size, delta=1000)
            self.assertGreaterEqual((int(row["end_ns"]) - int(row["begin_ns"])) * 1e-9, seconds - 1e-4)

    def test_workers_of_shards_overlap(self) -> None:
        for pull in ("prefetch", "latest"):
            with self.subTest(pull):
                out = f"overlapping-{pull}"
                scenario = learning({"name": "async"}, 3, hidden=30) | {
                    "topology": {"name": "sharded", "shards": 2, "split": "layers"}}
                scenario["workers"] |= {"pipeline": "overlap", "pull": pull}
                scenario["data"]["sampling"] = "strided"
                summary = self.run_on("mpi", scenario, out, ranks=5)
                self.assertEqual((summary["backend"], summary["status"]), ("mpi", "finished"))
                self.assert_replays(out, "--weights")
                started = sum(summary["gradients"].values())
                for each in summary["shards"]["each"]:
                    told = sum(each[outcome] for outcome in ("applied", "dropped", "cancelled", "leftover"))
                    self.assertEqual(told, started)


if __name__ == "__main__":
    unittest.main()
