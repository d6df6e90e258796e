"""Protocols without a server: what is refused, what backends agree on, and the tables that runs leave.

Usage: collective_test.py RUBATO
"""

from case import Case, main

REFUSALS = (
    ({"topology": {"name": "tree"}}, "topology.name", 'expected "star"'),
    ({"data": {"sampling": "shared-epoch"}}, "data.sampling", "nobody who deals"),
    ({"workers": {"count": 3, "batch_size": 10, "pipeline": "overlap"}}, "workers.pipeline", 'expected "blocking"'),
    ({"workers": {"count": 3, "batch_size": 10, "communication": {"push_every": 2}}}, "push_every", "no server"),
    ({"optimizer": {"name": "sgd", "learning_rate": 0.1, "staleness_rule": "inverse-staleness"}},
     "optimizer.staleness_rule", 'expected "none"'),
    ({"faults": [{"workers": [0], "at_s": 1}]}, "faults[0]", "another sum"),
    ({"protocol": {"name": "allreduce", "algorithm": "native"}}, "protocol.algorithm", "expected --backend mpi"),
    ({"protocol": {"name": "allreduce", "algorithm": "native"}, "execution": {"workers_per_rank": 3}},
     "execution.workers_per_rank", "of a worker each"),
    ({"protocol": {"name": "allreduce", "delay": 1}}, "protocol.delay", "goes with"),
    ({"protocol": {"name": "delayed", "delay": -1}}, "protocol.delay", "expected"),
    ({"protocol": {"name": "delayed", "algorithm": "rings"}}, "protocol.algorithm", 'did you mean "ring"'),
    ({"protocol": {"name": "no-comm", "algorithm": "ring"}}, "protocol.algorithm", "goes with"),
    ({"protocol": {"name": "allreduce", "small_bytes": "1MB"}}, "protocol.small_bytes", "goes with"),
    ({"protocol": {"name": "layer-wise", "bucket_bytes": "1 spoon"}}, "protocol.bucket_bytes", "spoon"),
)

PROTOCOLS = (
    {"name": "allreduce", "algorithm": "ordered"},
    {"name": "allreduce", "algorithm": "rabenseifner"},
    {"name": "no-comm"},
    {"name": "layer-wise", "algorithm": "ordered", "apply": "wait-all"},
    {"name": "layer-wise", "algorithm": "ordered", "apply": "completion-order"},
    {"name": "delayed", "algorithm": "ordered", "delay": 2},
    {"name": "agd", "algorithm": "tree"},
    {"name": "delayed", "algorithm": "by-size", "small_bytes": 100},
)


def learning(protocol: dict | None = None, **more: object) -> dict:
    scenario = {"data": {"samples": 470, "shape": [4, 4, 1]}, "model": {"name": "mlp", "hidden": [7, 5]},
                "workers": {"count": 3, "batch_size": 10}, "protocol": protocol or {"name": "allreduce"},
                "optimizer": {"name": "momentum", "learning_rate": 0.01}, "stop": {"epochs": 3},
                "evaluate": {"every_epochs": 1}, "trace": {"events": True, "layers": True}}
    return {**scenario, **more}


class Collective(Case):
    """Each test runs the program on scenarios of its own."""

    def test_what_has_no_meaning_is_refused(self) -> None:
        for more, key, why in REFUSALS:
            with self.subTest(more):
                scenario = learning()
                for section, value in more.items():
                    keep = section == "data"
                    scenario[section] = {**scenario[section], **value} if keep else value
                line = self.refused(scenario)
                self.assertIn(key, line)
                self.assertIn(why, line)

    def test_backends_agree_on_the_weights_and_replay(self) -> None:
        hashes: dict[str, set[str]] = {}
        for protocol in PROTOCOLS:
            for backend in ("sim", "local"):
                with self.subTest(protocol=protocol, backend=backend):
                    run = self.run_scenario(learning(protocol), "--backend", backend)
                    summary = self.summary(run)
                    self.assertEqual(summary["status"], "finished")
                    self.assertEqual(summary["samples"], 3 * 470)
                    self.assertEqual(self.call("replay", run).returncode, 0)
                    computed = self.call("replay", run, "--weights", "--evaluate")
                    self.assertEqual(computed.returncode, 0, computed.stdout + computed.stderr)
                    self.assertIn(f"the same final weights {summary['weights_hash']}", computed.stdout)
                    hashes.setdefault(str(protocol), set()).add(summary["weights_hash"])
        for protocol, found in hashes.items():
            self.assertEqual(len(found), 1, protocol)
        ordered = [next(iter(hashes[str(PROTOCOLS[at])])) for at in (0, 3, 4)]
        hardsync = learning({"name": "hardsync"})
        hardsync["data"]["sampling"] = "strided"
        del hardsync["trace"]["layers"]
        ordered.append(self.summary(self.run_scenario(hardsync))["weights_hash"])
        self.assertEqual(len(set(ordered)), 1)

    def test_tables_tell_of_iterations_and_layers(self) -> None:
        run = self.run_scenario(learning({"name": "layer-wise"}))
        summary, rows = self.summary(run), self.rows(run)
        iterations, layers = self.rows(run, "iterations.csv"), self.rows(run, "layers.csv")
        self.assertEqual(len(iterations), 3 * summary["updates"])
        self.assertEqual(len(layers), 9 * summary["updates"])
        self.assertEqual({row["bucket"] for row in layers}, {"0", "1", "2"})
        self.assertEqual(sum(int(row["samples"]) for row in rows), 3 * 470)
        for row in layers:
            times = [int(row[key]) for key in ("gradient_begin_ns", "gradient_end_ns", "reduce_begin_ns",
                                               "reduce_end_ns", "apply_begin_ns", "apply_end_ns")]
            self.assertEqual(times, sorted(times))
        exposed = sum(int(row["waited_ns"]) for row in iterations) / 3
        waited = sum(float(row["push_moving_s"]) for row in self.rows(run, "workers.csv")) / 3
        self.assertAlmostEqual(exposed * 1e-9, waited, delta=1e-6 + 0.01 * waited)

    def test_check_says_what_there_is_to_say(self) -> None:
        text = self.call("check", self.write(learning({"name": "delayed", "delay": 2}))).stdout
        for part in ("beside the next 2, and applied then", "staleness is 2 from gradient 2 on",
                     "each sample is used exactly once an epoch", "mpirun -n 3"):
            self.assertIn(part, text)
        rows = self.rows(self.run_scenario(learning({"name": "delayed", "delay": 2})))
        self.assertEqual({row["staleness"] for row in rows if int(row["worker_seq"]) >= 2}, {"2"})


if __name__ == "__main__":
    main()
