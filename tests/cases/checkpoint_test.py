"""Runs that are killed and go on: sample counts, weights, clocks, and what is refused.

Usage: checkpoint_test.py RUBATO
"""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import case
from case import main
from resumes import Resumes

PROTOCOLS = ({"name": "hardsync"}, {"name": "n-softsync", "n": 1}, {"name": "n-softsync", "n": 2}, {"name": "async"})
SAMPLES = 1003


def learning(protocol: dict, workers: int = 3, **more: object) -> dict:
    """Half a second or more of momentum SGD with a schedule; slices that do not divide an epoch."""
    return {"data": {"samples": SAMPLES, "shape": [8, 8, 1], "test_samples": 60, "classes": 4},
            "model": {"name": "mlp", "hidden": [16]}, "workers": {"count": workers, "batch_size": 7},
            "protocol": protocol,
            "optimizer": {"name": "momentum", "learning_rate": 0.02, "schedule": [{"epoch": 1.5, "factor": 0.5}]},
            "cluster": {"devices": {"default": {"a": 0.003, "b": 0}}},
            "stop": {"epochs": 3}, "evaluate": {"every_epochs": 0.5},
            "execution": {"checkpoint": {"every_updates": 15}, "emulate": {"compute": True}}, **more}


class Checkpoints(Resumes):
    """Each test runs the program on scenarios of its own."""

    def killed_at_once(self, path: Path, out: Path, *options: str) -> None:
        """Starts a run of a scenario that is not saved for long, and kills it soon."""
        command = [case.PROGRAM, "run", str(path), "--out", str(out), "--quiet", *options]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
            limit = time.monotonic() + 60
            while not (out / "updates.csv").exists():
                self.assertIsNone(process.poll(), "the run ended before it was killed")
                self.assertLess(time.monotonic(), limit)
                time.sleep(0.001)
            time.sleep(0.02)
            process.send_signal(signal.SIGKILL)
        self.assertFalse((out / "summary.json").exists())
        self.assertEqual([it.name for it in out.glob("checkpoints/*.ckpt")], [])

    def assert_one_run(self, out: Path, epochs: int = 3) -> None:
        """The tables read as those of one run."""
        summary = self.summary(out)
        rows, updates = self.rows(out), self.rows(out, "updates.csv")
        for outcome, count in summary["gradients"].items():
            self.assertEqual(sum(row["outcome"] == outcome for row in rows), count, outcome)
        for worker in self.rows(out, "workers.csv"):
            mine = sorted(int(row["worker_seq"]) for row in rows if row["worker"] == worker["worker"])
            self.assertEqual(mine, list(range(len(mine))))
            self.assertEqual(sum(int(worker[it]) for it in summary["gradients"]), len(mine))
            seconds = sum(float(value) for name, value in worker.items() if name.endswith("_s"))
            self.assertAlmostEqual(seconds, summary["time_s"], delta=0.02 * summary["time_s"])
        for epoch in range(epochs):
            seen: list[int] = []
            for row in rows:
                if int(row["data_epoch"]) == epoch:
                    seen += range(int(row["data_first"]), int(row["data_first"]) + int(row["samples"]))
            self.assertEqual(sorted(seen), list(range(SAMPLES)))
        self.assertEqual([int(row["version"]) for row in updates], list(range(1, summary["updates"] + 1)))
        times = [int(row["time_ns"]) for row in updates]
        self.assertEqual(times, sorted(times))
        histogram = [0] * len(summary["staleness"]["histogram"])
        for row in rows:
            if row["outcome"] == "applied":
                histogram[int(row["staleness"])] += 1
        self.assertEqual(histogram, summary["staleness"]["histogram"])
        versions = [int(row["version"]) for row in self.rows(out, "evals.csv")]
        self.assertEqual(versions, sorted(set(versions)))
        self.assertEqual(len(versions), 2 * epochs + 1)

    def test_killed_runs_go_on_as_one_run(self) -> None:
        for backend in ("sim", "local"):
            for protocol in PROTOCOLS:
                with self.subTest(backend=backend, protocol=protocol):
                    options = ("--backend", backend, "--set", "trace.events=true", "--set", "trace.timeline=true")
                    scenario = learning(protocol)
                    whole = self.run_scenario(scenario, "--backend", backend)
                    out = self.work / f"killed-{backend}-{protocol['name']}-{protocol.get('n', 0)}"
                    self.killed(scenario, out, "30", *options)
                    path = self.killed(scenario, out, "75", *options, "--resume")
                    told = self.resume(path, out, *options)
                    self.assertIn("goes on from version", told)
                    self.assertNotIn("warning", told)
                    self.assert_one_run(out)
                    self.assertEqual(self.call("replay", out).returncode, 0)
                    with open(out / "events.log", encoding="utf-8") as log:
                        self.assertEqual([next(log)[:2], next(log)[:2]], ["H ", "S "])
                    mine, other = self.summary(out), self.summary(whole)
                    self.assertEqual(sum(mine["gradients"].values()), sum(other["gradients"].values()))
                    self.assertEqual(mine["samples"], other["samples"])
                    if protocol["name"] == "hardsync":
                        self.assertEqual(mine["weights_hash"], other["weights_hash"])
                        check = self.call("check", path)
                        self.assertRegex(check.stdout, r"(?m)^resume +exact")
                    else:
                        self.assertRegex(self.call("check", path).stdout, r"(?m)^resume +legal")

    def test_a_simulated_hardsync_run_is_the_same_to_the_last_byte(self) -> None:
        scenario = learning({"name": "hardsync"}, trace={"gradients": {"every": 10}})
        whole = self.run_scenario(scenario)
        out = self.work / "killed"
        self.resume(self.killed(scenario, out, "60"), out)
        for name in ("updates.csv", "evals.csv"):
            self.assertEqual((out / name).read_bytes(), (whole / name).read_bytes(), name)
        mine, other = self.summary(out), self.summary(whole)
        for key in ("time_s", "samples", "gradients", "updates", "staleness", "throughput", "train_loss", "test_error",
                    "weights_hash"):
            self.assertEqual(mine[key], other[key], key)

    def test_what_check_calls_exact_is_exact(self) -> None:
        """Each run stops early and goes on to the full length."""
        kinds = [({"name": "hardsync"}, 3, sampling) for sampling in ("shared-epoch", "strided", "random", "sharded")]
        kinds += [({"name": "async"}, 1, "random"), ({"name": "n-softsync", "gradients_per_update": 3}, 1, "sharded"),
                  ({"name": "hardsync"}, 2, "shared-epoch")]
        rule = {"expression": "1/(1+staleness+100*age)"}
        for number, (protocol, workers, sampling) in enumerate(kinds):
            with self.subTest(protocol=protocol, workers=workers, sampling=sampling):
                scenario = learning(protocol, workers)
                scenario["data"]["sampling"] = sampling
                path = self.write(scenario)
                self.assertRegex(self.call("check", path).stdout, r"(?m)^resume +exact")
                out = self.work / f"part{number}"
                done = self.call("run", path, "--out", out, "--quiet", "--set", "stop.epochs=2")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.resume(path, out)
                whole = self.run_scenario(scenario)
                mine, other = self.summary(out), self.summary(whole)
                for key in ("weights_hash", "samples", "gradients", "updates", "test_error"):
                    self.assertEqual(mine[key], other[key], key)
                scenario["optimizer"]["staleness_rule"] = rule
                self.assertRegex(self.call("check", self.write(scenario)).stdout, r"(?m)^resume +legal: .* age")

    def test_timing_only_runs_go_on_too(self) -> None:
        scenario = {"data": {"samples": SAMPLES}, "cost": {"push_bytes": 1000, "pull_bytes": 1000},
                    "workers": {"count": 5, "batch_size": 7}, "protocol": {"name": "n-softsync", "n": 2},
                    "cluster": {"devices": {"default": {"a": 0.001, "b": 0}}, "noise": {"lognormal_cv": 0.3}},
                    "execution": {"checkpoint": {"every_s": "50ms"}}, "stop": {"epochs": 2}}
        out = self.run_scenario(scenario)
        self.resume(self.write(scenario | {"stop": {"epochs": 20}}), out)
        summary, whole = self.summary(out), self.summary(self.run_scenario(scenario | {"stop": {"epochs": 20}}))
        self.assertEqual(summary["samples"], 20 * SAMPLES)
        self.assertEqual(sum(summary["gradients"].values()), sum(whole["gradients"].values()))
        # A restart costs the gradients that were in flight, no more.
        self.assertAlmostEqual(summary["time_s"], whole["time_s"], delta=0.01 * whole["time_s"])

    def test_a_signal_saves_once_more(self) -> None:
        for backend in ("sim", "local"):
            for protocol in PROTOCOLS:
                with self.subTest(backend=backend, protocol=protocol):
                    scenario = learning(protocol)
                    scenario["execution"]["checkpoint"] = {"every_epochs": 100}
                    path = self.write(scenario)
                    out = self.work / f"signal-{backend}-{protocol['name']}-{protocol.get('n', 0)}"
                    command = [case.PROGRAM, "run", str(path), "--out", str(out), "--backend", backend, "--quiet"]
                    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
                        while not (out / "updates.csv").exists():
                            time.sleep(0.001)
                        time.sleep(0.1 if backend == "local" else 0.02)
                        process.send_signal(signal.SIGTERM)
                    if process.returncode == 0:
                        continue  # the simulation was quicker
                    self.assertEqual(process.returncode, 3)
                    self.assertEqual(self.summary(out)["status"], "interrupted")
                    self.resume(path, out, "--backend", backend)
                    self.assert_one_run(out)

    def test_a_longer_stop_goes_on_and_another_scenario_is_refused(self) -> None:
        scenario = learning({"name": "hardsync"}, stop={"epochs": 2})
        out = self.run_scenario(scenario)
        again = self.call("run", self.work / "s1.json", "--out", out, "--resume")
        self.assertIn("holds this run already (finished)", again.stderr)
        # Nor is there anything left to do with more threads, another period or a log of events.
        before = {path: path.read_bytes() for path in out.glob("*.*")}
        for more in (("--set", "execution.pool_threads=3"), ("--set", "execution.checkpoint.every_updates=7"),
                     ("--events",)):
            again = self.call("run", self.work / "s1.json", "--out", out, "--resume", *more)
            self.assertEqual(again.returncode, 0, again.stderr)
            self.assertIn("holds this run already (finished)", again.stderr)
        self.assertEqual(before, {path: path.read_bytes() for path in out.glob("*.*")})
        longer = self.write(scenario | {"stop": {"epochs": 3}})
        # Nothing depends on the number of threads, and another machine may have other cores.
        self.resume(longer, out, "--set", "execution.checkpoint.every_updates=40", "--set", "execution.pool_threads=3")
        self.assert_one_run(out)
        whole = self.run_scenario(scenario | {"stop": {"epochs": 3}})
        self.assertEqual(self.summary(out)["weights_hash"], self.summary(whole)["weights_hash"])

        other = learning({"name": "hardsync"}, stop={"epochs": 4})
        other["optimizer"]["learning_rate"] = 0.5
        other["seed"] = 3
        told = self.resume(self.write(other), out, status=2)
        self.assertRegex(told, r"differs in seed, optimizer.learning_rate; only stop")
        told = self.resume(self.write(scenario | {"stop": {"epochs": 1}}), out, status=2)
        self.assertIn("is beyond stop.epochs = 1", told)
        told = self.resume(self.write(scenario | {"stop": {"epochs": 4}}), out, "--backend", "local", status=2)
        self.assertIn("on backend sim", told)
        told = self.resume(longer, out, "--force", status=2)
        self.assertIn("expected one of them", told)

    def test_a_truncated_or_altered_checkpoint_is_refused_by_name(self) -> None:
        scenario = learning({"name": "hardsync"})
        out = self.work / "killed"
        path = self.killed(scenario, out, "60")
        told = self.call("run", path, "--out", out)
        self.assertEqual(told.returncode, 2)
        self.assertIn("--resume goes on from its checkpoint", told.stderr)
        newest, before = sorted(out.glob("checkpoints/*.ckpt"), key=lambda it: -int(it.stem))[:2]
        os.truncate(newest, newest.stat().st_size - 100)
        keep = {it: it.read_bytes() for it in (newest, before)}
        told = self.resume(path, out)
        self.assertIn(f"{newest.name}: is cut off", told)
        self.assertIn(f"goes on from version {before.stem},", told)
        self.assert_one_run(out)
        whole = self.run_scenario(scenario)
        self.assertEqual(self.summary(out)["weights_hash"], self.summary(whole)["weights_hash"])

        # None that can be read: one clear error, and nothing is begun again.
        (out / "summary.json").unlink()
        for it in out.glob("checkpoints/*.ckpt*"):
            it.unlink()
        for name, content in keep.items():
            name.write_bytes(content[:500])
        table = (out / "gradients.csv").read_bytes()
        for options in ((), ("--quiet",)):
            told = self.resume(path, out, *options, status=2)
            self.assertEqual(told.count("checkpoints can be read"), 1, told)
            self.assertEqual(told.count("\n"), 1 if options else 2, told)
            self.assertIn("none of 2 checkpoints can be read", told)
            for name in keep:
                self.assertIn(f"{name.name}: is cut off", told)
        self.assertEqual((out / "gradients.csv").read_bytes(), table)

    def test_a_refused_checkpoint_is_told_however_quiet_the_run_is(self) -> None:
        out = self.work / "killed"
        path = self.killed(learning({"name": "async"}), out, "60")
        newest = max(out.glob("checkpoints/*.ckpt"), key=lambda it: int(it.stem))
        os.truncate(newest, newest.stat().st_size - 100)
        told = self.resume(path, out, "--quiet")
        self.assertEqual(told.count("\n"), 1, told)
        self.assertIn(f"{newest.name}: is cut off", told)

    def test_a_run_that_was_killed_before_its_first_checkpoint_begins_anew(self) -> None:
        for backend in ("sim", "local"):
            with self.subTest(backend=backend):
                epochs = 250 if backend == "sim" else 3  # a simulation is quick
                scenario = learning({"name": "hardsync"}, stop={"epochs": epochs})
                scenario["execution"]["checkpoint"] = {"every_epochs": 1000}
                path, out = self.write(scenario), self.work / f"early-{backend}"
                line = ("--backend", backend)
                self.killed_at_once(path, out, *line, "--resume")
                # A kill in the middle of the first save leaves no checkpoint either.
                (out / "checkpoints").mkdir()
                (out / "checkpoints" / "15.ckpt.part").write_bytes(b"rubato")
                told = self.resume(path, out, *line)
                self.assertIn("unfinished run of this scenario, which has left no checkpoint: the run begins anew",
                              told)
                self.assert_one_run(out, epochs)
                self.assertFalse(list(out.glob("checkpoints/*.part")))
                whole = self.run_scenario(scenario, *line)
                self.assertEqual(self.summary(out)["weights_hash"], self.summary(whole)["weights_hash"])

    def test_what_else_lies_in_the_folder_is_never_begun_anew(self) -> None:
        scenario = learning({"name": "hardsync"})
        scenario["execution"]["checkpoint"] = {"every_epochs": 100}
        path, out = self.write(scenario), self.work / "early"
        self.killed_at_once(path, out, "--backend", "local")
        kept = {it: it.read_bytes() for it in out.iterdir()}
        told = self.resume(path, out, "--set", "seed=5", "--backend", "local", status=2)
        self.assertIn("is of another scenario, which differs in seed;", told)
        self.assertIn("expected --backend local", self.resume(path, out, status=2))
        self.assertEqual({it: it.read_bytes() for it in out.iterdir()}, kept)
        # The result of a whole run, and a run that was never to be saved, are not thrown away.
        for checkpoint in ({"every_epochs": 100}, None):
            scenario["execution"] = {"checkpoint": checkpoint} if checkpoint else {}
            whole = self.run_scenario(scenario)
            if not checkpoint:
                (whole / "summary.json").unlink()
            told = self.resume(self.write(scenario | {"stop": {"epochs": 4}}), whole, status=2)
            self.assertIn("and no checkpoint to resume from", told)
        strange = self.work / "strange"
        strange.mkdir()
        (strange / "thesis.tex").write_text("x")
        self.assertIn("it has no scenario.json", self.resume(path, strange, status=2))

    def test_tables_go_on_as_they_were_begun(self) -> None:
        scenario = learning({"name": "async"}, stop={"epochs": 1}, trace={"gradients": False})
        out = self.run_scenario(scenario)
        kept = {it: it.read_bytes() for it in out.iterdir() if it.is_file()}
        longer = self.write(scenario | {"stop": {"epochs": 3}})
        for change, keys in (({"gradients": True}, "trace.gradients"), ({"gradients": {"every": 10}, "updates": False},
                             "trace.gradients, trace.updates"), ({"gradients": False, "timeline": True},
                             "trace.timeline")):
            told = self.resume(longer, out, "--set", f"trace={json.dumps(change)}", status=2)
            self.assertIn(f"was recorded with another {keys}: ", told)
            self.assertEqual({it: it.read_bytes() for it in out.iterdir() if it.is_file()}, kept)
        self.resume(longer, out, "--events")
        self.assertEqual(len(self.rows(out, "updates.csv")), self.summary(out)["updates"])
        self.assertEqual(self.call("replay", out).returncode, 0)

        scenario["trace"] = {"gradients": {"every": 1}}
        out = self.run_scenario(scenario)
        self.resume(self.write(scenario | {"stop": {"epochs": 3}, "trace": {}}), out)
        self.assert_one_run(out)

    def test_a_table_that_lost_rows_is_refused(self) -> None:
        scenario = learning({"name": "async"})
        out = self.work / "killed"
        path = self.killed(scenario, out, "60")
        os.truncate(out / "updates.csv", 100)
        told = self.resume(path, out, status=2)
        self.assertRegex(told, r"updates.csv: has 100 bytes, but the checkpoint was made when it had")

    def test_a_folder_without_a_run_begins_and_force_leaves_no_old_checkpoint(self) -> None:
        scenario = learning({"name": "hardsync"})
        path, out = self.write(scenario), self.work / "new"
        self.assertIn("there is nothing to resume: the run begins", self.resume(path, out))
        self.assertTrue(list(out.glob("checkpoints/*.ckpt")))
        del scenario["execution"]["checkpoint"]
        done = self.call("run", self.write(scenario), "--out", out, "--force", "--quiet")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertFalse((out / "checkpoints").exists())

    def test_checkpoints_and_evaluations_take_no_virtual_time(self) -> None:
        for protocol in PROTOCOLS:
            kinds = []
            for every in (1, 10):
                for checkpoint in (None, {"every_epochs": 0.3}, {"every_updates": 1}, {"every_s": 0.01}):
                    scenario = learning(protocol, stop={"epochs": 10}, evaluate={"every_epochs": every})
                    scenario["data"]["samples"] = 101
                    scenario["execution"] = {"checkpoint": checkpoint} if checkpoint else {}
                    run = self.run_scenario(scenario)
                    self.assertEqual((run / "checkpoints").exists(), checkpoint is not None)
                    summary = self.summary(run)
                    kinds.append((summary["time_s"], summary["weights_hash"], summary["seconds"],
                                  (run / "gradients.csv").read_bytes(), (run / "updates.csv").read_bytes()))
            self.assertEqual(kinds, [kinds[0]] * len(kinds))

    def test_periods_that_mean_nothing_are_refused(self) -> None:
        for checkpoint, told in (({}, "checkpoint"), ({"every_updates": 0}, "every_updates"),
                                 ({"every_epochs": -1}, "every_epochs"), ({"every_s": 0}, "every_s"),
                                 ({"every_updates": 5, "every_s": 1}, "every_"), ({"comment": "x"}, "expected one of")):
            scenario = learning({"name": "async"})
            scenario["execution"] = {"checkpoint": checkpoint}
            self.assertIn(told, self.refused(scenario), json.dumps(checkpoint))


if __name__ == "__main__":
    main()
