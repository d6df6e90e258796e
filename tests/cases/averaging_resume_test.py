"""Runs of protocols that average models which are killed, or told to end, and go on from the joint model.

Usage: averaging_resume_test.py RUBATO
"""

import signal
import subprocess
import time
from pathlib import Path

import case
from case import main
from resumes import Resumes

SAMPLES = 500
# Exact: what `rubato check` promises of a run that goes on.
PROTOCOLS = {
    "sparknet": ({"name": "sparknet", "tau": 4}, True),
    "firecaffe": ({"name": "sparknet", "exchange": "gradients"}, True),
    "diloco": ({"name": "diloco", "tau": 4}, True),
    "swarm": ({"name": "sparknet", "tau": 4, "broadcast": "swarm"}, True),
    "mpca": ({"name": "mpca", "phases": 3, "split": "bytes"}, False),
    "easgd": ({"name": "easgd", "tau": 4}, False),
    "async-diloco": ({"name": "async-diloco", "tau": 4}, False),
    "gosgd": ({"name": "gosgd", "tau": 2}, False),
    "streaming-diloco": ({"name": "streaming-diloco", "tau": 6, "fragments": 2, "overlap": 1, "split": "bytes"}, False),
}


def learning(protocol: dict) -> dict:
    """Half a second or so of SGD, or of momentum at the driver, whose state is saved."""
    return {"data": {"samples": SAMPLES, "shape": [8, 8, 1], "test_samples": 60, "classes": 4, "sampling": "strided"},
            "model": {"name": "mlp", "hidden": [16]}, "workers": {"count": 3, "batch_size": 7},
            "protocol": protocol,
            "optimizer": {"name": "momentum" if "exchange" in protocol else "sgd", "learning_rate": 0.02,
                          "schedule": [{"epoch": 1.5, "factor": 0.5}]},
            "cluster": {"devices": {"default": {"a": 0.003, "b": 0}}},
            "stop": {"gradients": 400}, "evaluate": {"every_epochs": 0.25},
            "execution": {"checkpoint": {"every_updates": 3}, "emulate": {"compute": True}}}


class AveragingResumes(Resumes):
    """Each test runs the program on scenarios of its own."""

    def assert_one_run(self, out: Path) -> None:
        """The tables read as those of one run."""
        summary = self.summary(out)
        self.assertEqual(summary["status"], "finished")
        rows, updates = self.rows(out), self.rows(out, "updates.csv")
        self.assertGreaterEqual(summary["gradients"]["applied"], 400)
        for outcome, count in summary["gradients"].items():
            self.assertEqual(sum(row["outcome"] == outcome for row in rows), count, outcome)
        for worker in self.rows(out, "workers.csv"):
            mine = sorted(int(row["worker_seq"]) for row in rows if row["worker"] == worker["worker"])
            self.assertEqual(mine, list(range(len(mine))))
            seconds = sum(float(value) for name, value in worker.items() if name.endswith("_s") and name != "hidden_s")
            self.assertAlmostEqual(seconds, summary["time_s"], delta=0.05 * summary["time_s"])
        made = [int(row["version"]) for row in updates]
        self.assertEqual(made, list(range(1, summary["updates"] + 1)))
        self.assertEqual(sorted(int(row["version"]) for row in self.rows(out, "rounds.csv")), made)
        evaluated = [int(row["version"]) for row in self.rows(out, "evals.csv")]
        self.assertEqual(evaluated, sorted(set(evaluated)))

    def test_killed_runs_go_on_as_one_run(self) -> None:
        for backend in ("sim", "local"):
            for name, (protocol, exact) in PROTOCOLS.items():
                with self.subTest(backend=backend, protocol=name):
                    options = ("--backend", backend, "--set", "trace.events=true")
                    scenario = learning(protocol)
                    if name == "gosgd":
                        scenario["execution"]["checkpoint"]["every_updates"] = 1
                    out = self.work / f"killed-{backend}-{name}"
                    self.killed(scenario, out, "2", *options)
                    path = self.killed(scenario, out, "4", *options, "--resume")
                    self.assertIn("goes on from version", self.resume(path, out, *options))
                    self.assert_one_run(out)
                    self.assertEqual(self.call("replay", out).returncode, 0)
                    computed = self.call("replay", out, "--weights", "--evaluate")
                    self.assertEqual(computed.returncode, 0, computed.stdout + computed.stderr)
                    self.assertIn(f"the same final weights {self.summary(out)['weights_hash']}", computed.stdout)
                    self.assertRegex(self.call("check", path).stdout, f"(?m)^resume +{'exact' if exact else 'legal'}")
                    if exact:
                        whole = self.run_scenario(scenario, "--backend", backend)
                        self.assertEqual(self.summary(out)["weights_hash"], self.summary(whole)["weights_hash"])

    def test_a_signal_saves_once_more(self) -> None:
        for name, (protocol, _) in PROTOCOLS.items():
            if name == "gosgd":
                continue  # its joint model is made where it is evaluated
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
                self.assertEqual(self.summary(out)["status"], "interrupted")
                self.assertEqual(len(list(out.glob("checkpoints/*.ckpt"))), 1)
                self.resume(path, out, "--backend", "local")
                self.assert_one_run(out)

    def test_optimizers_of_workers_are_not_saved_and_check_says_so(self) -> None:
        scenario = learning({"name": "sparknet", "tau": 4})
        scenario["optimizer"]["name"] = "momentum"
        self.assertRegex(self.call("check", self.write(scenario)).stdout, r"(?m)^resume +legal: .* optimizers")


if __name__ == "__main__":
    main()
