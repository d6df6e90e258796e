"""Case 15: servers that each own a part of the model, evenly or not, or nothing at all.

Usage: shards_test.py RUBATO.
"""

import json
from pathlib import Path

from case import Case, main

ROOT = Path(__file__).resolve().parents[2]
ALEXNET = [34944, 307456, 885120, 663936, 442624, 37752832, 16781312, 4097000]
REFUSED = (
    ({"protocol": {"name": "backup-workers"}}, "protocol.name", "shards would not agree on which"),
    ({"protocol": {"name": "ringmaster"}}, "protocol.name", "shards would not agree on which"),
    ({"protocol": {"name": "async", "warm_start": {"epochs": 1}}}, "protocol.warm_start", "not yet built"),
    ({"optimizer": {"staleness_rule": "delay-compensation"}}, "optimizer.staleness_rule", "of which shards have"),
    ({"execution": {"checkpoint": {"every_updates": 5}}}, "execution.checkpoint", "not yet built"),
    ({"faults": [{"workers": [0], "at_s": 1}]}, "faults[0].workers", "links may carry less"),
    ({"evaluate": {"mode": "pause", "every_epochs": 1}}, "evaluate.mode", 'expected "deferred" or "rank"'),
    ({"workers": {"count": 3, "batch_size": 10, "communication": {"push_every": 2}}},
     "workers.communication.push_every", "expected 1"),
    ({"protocol": {"name": "ssp"}, "workers": {"count": 3, "batch_size": 10, "pipeline": "overlap"}},
     "workers.pipeline", 'expected "blocking"'),
    ({"topology": {"name": "sharded", "shards": 5, "servers_on": "workers"}}, "", "there are 3; topology.servers_on"),
    ({"topology": {"name": "sharded", "shards": 0}}, "topology.shards", "found the number 0"),
    ({"topology": {"name": "sharded", "split": "layer"}}, "topology.split", 'did you mean "layers"?'),
    ({"topology": {"name": "star", "shards": 3}}, "topology.shards", "name"),
    ({"cost": {"push_bytes": 10, "layers": [{"bytes": 10}]}}, "cost.layers", "has layers of its own"),
    ({"model": None, "cost": {"push_bytes": 10, "layers": [{"bytes": 4}, {"bytes": 5}]}}, "cost.layers",
     "have 9 bytes together, and push_bytes says 10"),
    ({"model": None, "cost": {"push_bytes": 0}, "topology": {"name": "sharded"}}, "cost.push_bytes",
     "nothing to divide: expected 1 byte or more"),
    ({"model": None, "cost": {"push_bytes": 10}, "topology": {"name": "sharded", "split": "layers"}},
     "topology.split", 'give cost.layers, or a cost.model that has them (rubato list models), or split by "bytes"'),
    ({"topology": {"name": "sharded", "servers_on": "workers"},
      "cluster": {"network": {"star": {"server_bandwidth": "1Gbps"}}}}, "cluster.network.star.server_bandwidth",
     "no links of their own"),
)


def learning(shards: int = 3, **more: object) -> dict:
    scenario = {"data": {"samples": 200, "shape": [4, 4, 1]}, "model": {"name": "mlp", "hidden": [5]},
                "workers": {"count": 3, "batch_size": 10}, "protocol": {"name": "async"},
                "topology": {"name": "sharded", "shards": shards, "split": "layers"}, **more}
    return {key: value for key, value in scenario.items() if value is not None}


class Shards(Case):
    """As a user meets them."""

    def each(self, run: Path, key: str) -> list:
        return [shard[key] for shard in self.summary(run)["shards"]["each"]]

    def test_a_shard_without_parameters_keeps_nobody_waiting(self) -> None:
        for protocol in ({"name": "hardsync"}, {"name": "async"}, {"name": "ssp", "bound": 0}, {"name": "bsp"}):
            with self.subTest(protocol):
                path = self.write(learning(8, protocol=protocol))
                self.assertIn("6 shards without parameters, as there are only 2 layers: they take part in nothing",
                              self.call("check", path).stdout)
                run = self.run_scenario(learning(8, protocol=protocol))
                self.assertEqual(self.summary(run)["status"], "finished")
                self.assertEqual(self.each(run, "bytes_in")[2:], [0] * 6)
                self.assertTrue(all(bytes_in > 0 for bytes_in in self.each(run, "bytes_in")[:2]))
                self.assertEqual({row["shard"] for row in self.rows(run, "shards.csv")}, {"0", "1"})

    def test_traffic_of_alexnet(self) -> None:
        path = ROOT / "scenarios/papers/alexnet-shards.json"
        times = {}
        for split, shards, parts in (("layers", 4, [sum(ALEXNET[:5])] + ALEXNET[5:]), ("layers", 8, ALEXNET),
                                     ("bytes", 4, [sum(ALEXNET) // 4] * 4), ("bytes", 8, [sum(ALEXNET) // 8] * 8)):
            with self.subTest(split=split, shards=shards):
                out = self.work / f"{split}{shards}"
                done = self.call("run", path, "--out", out, "--quiet", "--set", f"topology.shards={shards}", "--set",
                                 f"topology.split={split}")
                self.assertEqual(done.returncode, 0, done.stderr)
                summary = self.summary(out)
                self.assertEqual(self.each(out, "parameters"), parts)
                pushes = summary["gradients"]["applied"] + summary["gradients"]["leftover"]
                self.assertEqual(self.each(out, "bytes_in"), [4 * part * pushes for part in parts])
                servers = self.rows(out, "servers.csv")
                self.assertEqual([int(row["bytes_in"]) for row in servers], self.each(out, "bytes_in"))
                for shard in summary["shards"]["each"]:
                    self.assertEqual(sum(shard["staleness_histogram"]), shard["applied"])
                mean = sum(part * shard["staleness_mean"] for part, shard in zip(parts, summary["shards"]["each"]))
                self.assertAlmostEqual(summary["shards"]["staleness_mean"], mean / sum(parts), places=9)
                # Where one shard has most of the model, the others are ahead of it.
                self.assertEqual(summary["shards"]["mixed_gradients"] > 100, split == "layers")
                times[split, shards] = summary["time_s"]
        # fc6 is 62 % of the model: more shards by layers help nobody, by bytes they do.
        self.assertLess(times["bytes", 4], 0.5 * times["layers", 4])
        self.assertLess(times["bytes", 8], times["bytes", 4])
        self.assertGreater(times["layers", 8], 0.95 * times["layers", 4])

    def test_rows_of_shards_are_those_of_gradients(self) -> None:
        run = self.run_scenario(learning(protocol={"name": "n-softsync", "n": 1}))
        gradients = {(row["worker"], row["worker_seq"]): row for row in self.rows(run)}
        rows = self.rows(run, "shards.csv")
        self.assertEqual(len(rows), 2 * len(gradients))
        for row in rows:
            if row["shard"] == "0":
                gradient = gradients[row["worker"], row["worker_seq"]]
                self.assertEqual(row, {"shard": "0"} | {key: gradient[key] for key in row if key != "shard"})
        thin = self.run_scenario(learning(trace={"gradients": {"every": 4}}))
        kept = {int(row["worker_seq"]) % 4 for row in self.rows(thin, "shards.csv") if row["outcome"] == "applied"}
        self.assertEqual(kept, {0})
        self.assertEqual(self.summary(thin)["shards"]["each"][1]["applied"], 20)

    def test_barriers_train_as_one_server(self) -> None:
        one = self.summary(self.run_scenario(learning(topology={"name": "star"}, protocol={"name": "hardsync"})))
        for protocol in ("hardsync", "bsp"):
            for shards in (1, 2, 5):
                for backend in ("sim", "local"):
                    run = self.run_scenario(learning(shards, protocol={"name": protocol}), "--backend", backend)
                    summary = self.summary(run)
                    self.assertEqual(summary["weights_hash"], one["weights_hash"])
                    self.assertEqual(summary["shards"]["mixed_gradients"], 0)

    def test_workers_overlap_and_a_replay_finds_the_same(self) -> None:
        for pull in ("prefetch", "latest"):
            for backend in ("sim", "local"):
                with self.subTest(pull=pull, backend=backend):
                    workers = {"count": 3, "batch_size": 10, "pipeline": "overlap", "pull": pull}
                    run = self.run_scenario(learning(workers=workers, data={
                        "samples": 200, "shape": [4, 4, 1], "sampling": "strided"}), "--backend", backend, "--events")
                    summary = self.summary(run)
                    started = sum(summary["gradients"].values())
                    for shard in summary["shards"]["each"][:2]:
                        told = sum(shard[key] for key in ("applied", "dropped", "cancelled", "leftover"))
                        self.assertEqual(told, started)
                    if pull == "prefetch":
                        self.assertEqual((summary["samples"], started), (200, 20))
                    done = self.call("replay", run, "--weights")
                    self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                    self.assertIn(summary["weights_hash"], done.stdout)

    def test_parts_move_behind_computation(self) -> None:
        """Both parts of a gradient take 10 ms, one after the other on the worker's link, as a computation takes."""
        def timed(network: str, **workers: object) -> dict:
            return self.summary(self.run_scenario({
                "cost": {"push_bytes": "10 MB"}, "data": {"samples": 100000},
                "workers": {"count": 2, "batch_size": 10, **workers}, "protocol": {"name": "async"},
                "topology": {"name": "sharded", "shards": 2, "split": "bytes"}, "stop": {"gradients": 300},
                "cluster": {"network": {"model": network, "star": {"bandwidth": "1 GBps"}},
                            "devices": {"default": {"seconds": {"10": 0.03}}}}}))
        for network in ("flow", "simgrid"):
            with self.subTest(network):
                plain, hidden = timed(network), timed(network, pipeline="overlap")
                self.assertLess(plain["compute_utilization"], 0.65)
                self.assertGreater(hidden["compute_utilization"], 0.97)
                self.assertGreater(hidden["communication_hidden_fraction"], 0.97)
                self.assertLess(hidden["time_s"], 0.67 * plain["time_s"])

    def test_a_rehearsal_takes_the_time_of_parts(self) -> None:
        """Parts of a worker share its link, so that a model takes what it would take as one message."""
        scenario = learning(
            2, topology={"name": "sharded", "shards": 2, "split": "bytes"}, stop={"epochs": 1},
            cost={"push_bytes": "300kB", "pull_bytes": "200kB"},
            cluster={"network": {"star": {"bandwidth": "10MBps", "latency": "1ms", "server_bandwidth": "1GBps"}},
                     "devices": {"default": {"a": 0.02}}, "server": {"update_s": 0.002}},
            execution={"emulate": {"compute": True, "messages": True, "network": True}})
        run = self.run_scenario(scenario, "--backend", "local", "--events")
        self.assertEqual(self.call("replay", run).returncode, 0)
        gradients = self.rows(run)
        pushes = sum(row["push_ns"] != "" for row in gradients)
        self.assertEqual(sum(self.each(run, "bytes_in")), 300_000 * pushes)
        for shard, row in zip(self.summary(run)["shards"]["each"], self.rows(run, "servers.csv")):
            self.assertAlmostEqual(shard["bytes_in"], 150_000 * pushes, delta=2000 * pushes)
            self.assertGreaterEqual(float(row["update_s"]), 0.002 * shard["updates"])
        for row in gradients:
            if row["end_ns"]:
                self.assertGreaterEqual(int(row["end_ns"]) - int(row["begin_ns"]), 20_000_000)
        for row in self.rows(run, "workers.csv"):
            moved = float(row["push_queued_s"]) + float(row["push_moving_s"])
            self.assertGreaterEqual(moved, 0.032 * (int(row["gradients"]) - 1))
            self.assertLess(moved, 0.064 * int(row["gradients"]))
        scenario["workers"]["pipeline"] = "overlap"
        hidden = self.summary(self.run_scenario(scenario, "--backend", "local"))
        self.assertGreater(hidden["compute_utilization"], self.summary(run)["compute_utilization"] + 0.1)

    def test_what_cannot_go_together_is_refused(self) -> None:
        for more, key, told in REFUSED:
            with self.subTest(more):
                line = self.refused(learning(**more))
                self.assertIn(key, line)
                self.assertIn(told, line)

    def test_another_rule_on_a_recorded_schedule_is_not_yet_built(self) -> None:
        run = self.run_scenario(learning(), "--events")
        self.assertEqual(self.call("replay", run, "--weights").returncode, 0)
        done = self.call("replay", run, "--set", "optimizer.learning_rate=0.1", "--out", self.work / "again")
        self.assertEqual(done.returncode, 2)
        self.assertIn("not yet built", done.stderr)

    def test_signals_and_time_end_all_shards(self) -> None:
        run = self.run_scenario(learning(stop={"seconds": 0.3}, protocol={"name": "ssp", "bound": 1},
                                         cost={"push_bytes": "10MB", "flops_per_sample": 1e8}))
        summary = self.summary(run)
        self.assertEqual(summary["status"], "finished")
        started = sum(summary["gradients"].values())
        for shard in summary["shards"]["each"][:2]:
            self.assertEqual(sum(shard[key] for key in ("applied", "dropped", "cancelled", "leftover")), started)
        self.assertEqual(json.loads((run / "scenario.json").read_text())["topology"]["servers_on"], "own")


if __name__ == "__main__":
    main()
