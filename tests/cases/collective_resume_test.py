"""Runs without a server which are killed, or told to end, and go on from the replica of worker 0.

Usage: collective_resume_test.py RUBATO
"""

import signal
import subprocess
import time
from pathlib import Path

import case
from case import main
from resumes import Resumes

# Exact: what `rubato check` promises of a run that goes on.
PROTOCOLS = {
    "allreduce": ({"name": "allreduce", "algorithm": "rabenseifner"}, True),
    "layer-wise": ({"name": "layer-wise", "apply": "completion-order"}, True),
    "delayed-0": ({"name": "delayed", "delay": 0}, True),
    "delayed-2": ({"name": "delayed", "delay": 2}, False),
    "adaptive": ({"name": "adaptive-delay", "adapt_every": 3}, False),
}


def learning(protocol: dict, mode: str = "deferred") -> dict:
    """Half a second or so, with an optimizer whose state is saved, too."""
    return {"data": {"samples": 500, "shape": [8, 8, 1], "test_samples": 60, "classes": 4, "sampling": "strided"},
            "model": {"name": "mlp", "hidden": [16]}, "workers": {"count": 3, "batch_size": 7},
            "protocol": protocol,
            "optimizer": {"name": "adam", "learning_rate": 0.005, "schedule": [{"epoch": 1.5, "factor": 0.5}]},
            "cluster": {"devices": {"default": {"a": 0.003, "b": 0}}},
            "stop": {"updates": 140}, "evaluate": {"every_epochs": 0.25, "mode": mode}, "trace": {"layers": True},
            "execution": {"checkpoint": {"every_updates": 3}, "emulate": {"compute": True}}}


class CollectiveResumes(Resumes):
    """Each test runs the program on scenarios of its own."""

    def assert_one_run(self, out: Path, updates: int = 140) -> None:
        """The tables read as those of one run."""
        summary = self.summary(out)
        self.assertEqual((summary["status"], summary["updates"]), ("finished", updates))
        rows = self.rows(out)
        self.assertEqual({row["outcome"] for row in rows}, {"applied"})
        self.assertEqual(summary["gradients"]["applied"], len(rows))
        for worker in self.rows(out, "workers.csv"):
            mine = sorted(int(row["worker_seq"]) for row in rows if row["worker"] == worker["worker"])
            self.assertEqual(mine, list(range(len(mine))))
            seconds = sum(float(value) for name, value in worker.items() if name.endswith("_s") and name != "hidden_s")
            self.assertAlmostEqual(seconds, summary["time_s"], delta=0.05 * summary["time_s"])
        self.assertEqual([int(row["version"]) for row in self.rows(out, "updates.csv")], list(range(1, updates + 1)))
        told = [(int(row["iteration"]), int(row["worker"])) for row in self.rows(out, "iterations.csv")]
        self.assertEqual(told, [(i, worker) for i in range(updates) for worker in range(3)])
        layers = {(row["iteration"], row["worker"], row["bucket"]) for row in self.rows(out, "layers.csv")}
        self.assertEqual(len(layers), len(self.rows(out, "layers.csv")))
        self.assertEqual(len(layers) % len(told), 0)
        evaluated = [int(row["version"]) for row in self.rows(out, "evals.csv")]
        self.assertEqual(evaluated, sorted(set(evaluated)))
        self.assertGreater(len(evaluated), 20)

    def test_killed_runs_go_on_as_one_run(self) -> None:
        for backend in ("sim", "local"):
            for name, (protocol, exact) in PROTOCOLS.items():
                for mode in ("deferred", "pause") if name in ("allreduce", "delayed-2") else ("deferred",):
                    with self.subTest(backend=backend, protocol=name, mode=mode):
                        options = ("--backend", backend, "--set", "trace.events=true")
                        scenario = learning(protocol, mode)
                        out = self.work / f"killed-{backend}-{name}-{mode}"
                        self.killed(scenario, out, "2", *options)
                        path = self.killed(scenario, out, "4", *options, "--resume")
                        self.assertIn("goes on from version", self.resume(path, out, *options))
                        self.assert_one_run(out)
                        self.assertEqual(self.call("replay", out).returncode, 0)
                        computed = self.call("replay", out, "--weights", "--evaluate")
                        self.assertEqual(computed.returncode, 0, computed.stdout + computed.stderr)
                        self.assertIn(f"the same final weights {self.summary(out)['weights_hash']}", computed.stdout)
                        self.assertRegex(self.call("check", path).stdout,
                                         f"(?m)^resume +{'exact' if exact else 'legal'}")
                        if exact:
                            whole = self.run_scenario(scenario, "--backend", backend)
                            self.assertEqual(self.summary(out)["weights_hash"], self.summary(whole)["weights_hash"])

    def test_a_signal_saves_once_more(self) -> None:
        for name, (protocol, _) in PROTOCOLS.items():
            with self.subTest(protocol=name):
                scenario = learning(protocol)
                scenario["execution"]["checkpoint"] = {"every_epochs": 100}
                path, out = self.write(scenario), self.work / f"signal-{name}"
                command = [case.PROGRAM, "run", str(path), "--out", str(out), "--backend", "local", "--quiet"]
                with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
                    while not (out / "updates.csv").exists():
                        time.sleep(0.001)
                    time.sleep(0.2)
                    process.send_signal(signal.SIGTERM)
                self.assertEqual(process.returncode, 3)
                summary = self.summary(out)
                self.assertEqual(summary["status"], "interrupted")
                saved = list(out.glob("checkpoints/*.ckpt"))
                # All that was in flight is in the last version, and that is what is saved.
                self.assertEqual([int(it.stem) for it in saved], [summary["updates"]])
                self.resume(path, out, "--backend", "local")
                self.assert_one_run(out)

    def test_replicas_that_are_not_alike_are_not_saved(self) -> None:
        line = self.refused(learning({"name": "no-comm"}))
        self.assertIn("execution.checkpoint", line)
        self.assertIn("another model in each worker", line)


if __name__ == "__main__":
    main()
