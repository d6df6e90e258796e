"""Runs that are computed again: bit for bit, under another update rule, and from recorded delays alone.

Usage: replay_test.py RUBATO ANALYSIS
"""

import csv
import fcntl
import json
import os
import shutil
import sys
from pathlib import Path

from case import Case, main
from replays import ReplayCase

PROTOCOLS = ("hardsync", "n-softsync", "async")


def resealed(lines: list[str]) -> str:
    """The lines of an event log with the checksums that they should have."""
    state = 0xCBF29CE484222325
    out = []
    for line in lines:
        kind, _, body = line.split(" ", 2)
        for byte in f"{kind} {body}\n".encode():
            state = (state ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
        out.append(f"{kind} {state:016x} {body}\n")
    return "".join(out)


def merged_by_bad_clocks(log: str, late_ns: int) -> str:
    """The same log where the server's clock is ahead: its deliveries stand before they are sent."""
    lines = log.splitlines()
    steps: list[list[str]] = []
    for line in lines[1:-1]:
        if line.startswith("E "):
            steps.append([])
        steps[-1].append(line)

    def time(step: list[str]) -> int:
        _, _, at, role, _ = step[0].split(" ", 4)
        return int(at) - (late_ns if role == "0" else 0)

    steps.sort(key=time)  # stable: the order within a role stays
    return resealed([lines[0], *(line for step in steps for line in step), lines[-1]])


class Replay(ReplayCase):
    """Runs leave their events; replays compute."""

    def log(self, run: Path) -> str:
        return (run / "events.log").read_text()

    def test_what_was_computed_is_computed_again(self) -> None:
        for backend in ("sim", "local"):
            for protocol in PROTOCOLS:
                with self.subTest(backend=backend, protocol=protocol):
                    run = self.run_scenario(self.scenario(protocol), "--events", "--backend", backend)
                    said = self.replayed(run, "--weights", "--evaluate")
                    summary = self.summary(run)
                    self.assertIn(f"the same final weights {summary['weights_hash']}", said)
                    computed = sum(1 for row in self.rows(run) if row["end_ns"])
                    self.assertIn(f"the same losses of {computed} gradients", said)
                    self.assertIn(f"of {len(self.rows(run, 'evals.csv'))} evaluations", said)

    def test_logs_that_are_merged_by_clocks_that_disagree(self) -> None:
        for protocol in PROTOCOLS:
            run = self.run_scenario(self.scenario(protocol), "--events")
            log = self.log(run)
            for late_ns in (1_000_000, 50_000_000):
                merged = merged_by_bad_clocks(log, late_ns)
                self.assertNotEqual(merged, log)
                (run / "events.log").write_text(merged)
                self.assertIn("the same final weights", self.replayed(run, "--weights"))

    def test_what_differs_is_named_with_both_values(self) -> None:
        run = self.run_scenario(self.scenario(), "--events")
        recorded = self.summary(run)["weights_hash"]
        text = (run / "summary.json").read_text()
        (run / "summary.json").write_text(text.replace(recorded, "0123456789abcdef"))
        said = self.replayed(run, "--weights", status=1)
        self.assertIn(f"differs: the final weights are {recorded}, recorded is 0123456789abcdef", said)
        (run / "summary.json").write_text(text)
        saved = json.loads((run / "scenario.json").read_text())
        saved["seeds"] = {"init": 2}
        (run / "scenario.json").write_text(json.dumps(saved))
        said = self.replayed(run, "--weights", status=1)
        self.assertRegex(said, r"differs: the loss of gradient 0 of worker \d is [\d.]+, recorded is [\d.]+\n")
        self.assertIn(f"recorded is {recorded}", said)
        self.replayed(run)  # the actions depend on no weight
        # One push that nobody sent.
        lines = self.log(run).splitlines()
        at = next(i for i, line in enumerate(lines) if "message{push" in line and line.startswith("E "))
        lines[at] = lines[at].replace("worker_seq=0", "worker_seq=7")
        (run / "events.log").write_text(resealed(lines))
        self.replayed(run, "--weights", status=1)

    def test_what_is_no_log_is_wrong_input(self) -> None:
        run = self.run_scenario(self.scenario(), "--events")
        log = (run / "events.log").read_bytes()
        for content in (b"", b"\n", bytes(range(256)) * 40, log[log.index(b"\n") + 1:]):
            told = "is no event log" if content else "is empty"
            (run / "events.log").write_bytes(content)
            for options in ((), ("--weights",), ("--set", "optimizer.learning_rate=0.01")):
                said = self.replayed(run, *options, status=2)
                self.assertRegex(said, rf"\Arubato: [^\n]*events.log: {told}; expected the file [^\n]+\n\Z")
        # One that was altered is a log that differs.
        (run / "events.log").write_bytes(log.replace(b"samples=", b"samples=1", 1))
        self.assertIn("differs: events.log, line 1: the header was altered", self.replayed(run, status=1))

    def test_a_log_that_breaks_off_is_computed_as_far_as_it_goes(self) -> None:
        run = self.run_scenario(self.scenario(), "--events")
        log = self.log(run)
        (run / "events.log").write_text(log[: len(log) // 2])
        self.assertIn("breaks off", self.replayed(run, "--weights", status=1))
        (run / "summary.json").unlink()
        self.assertRegex(self.replayed(run, "--weights"), "left no hash to compare|no weights at the end to compare")
        again = self.work / "again"
        self.replayed(run, "--set", "optimizer.learning_rate=0.01", "--out", again, "--quiet")
        rows = self.rows(again)
        self.assertGreater(len(rows), 20)
        self.assertEqual(sum(self.summary(again)["gradients"].values()), len(rows))
        self.assertEqual(len({(row["worker"], row["worker_seq"]) for row in rows}), len(rows))

    def test_what_cannot_be_computed_is_refused(self) -> None:
        timing = self.scenario()
        del timing["evaluate"]
        timing["model"]["gradients"] = "none"
        run = self.run_scenario(timing, "--events")
        for arguments in (("--weights",), ("--set", "optimizer.learning_rate=1")):
            self.assertIn("timing only", self.replayed(run, *arguments, status=2))
        silent = self.run_scenario(self.scenario())
        self.assertIn("a run leaves it with --events", self.replayed(silent, "--weights", status=2))
        self.assertIn("--evaluate goes with --weights", self.replayed(run, "--evaluate", status=2))
        self.assertIn("go with --set", self.replayed(run, "--out", "x", status=2))
        self.assertIn("cannot stand beside --set", self.replayed(run, "--weights", "--set", "a=b", status=2))

    def test_another_rule_is_what_a_run_with_that_rule_would_have_been(self) -> None:
        other = ("--set", "optimizer.learning_rate=0.02", "--set", "optimizer.staleness_rule=inverse-staleness")
        for protocol in PROTOCOLS:
            with self.subTest(protocol):
                run = self.run_scenario(self.scenario(protocol), "--events")
                wanted = self.run_scenario(self.scenario(protocol), *other)
                out = self.work / f"other-{protocol}"
                self.replayed(run, *other, "--out", out, "--quiet")
                for table in ("gradients.csv", "updates.csv", "evals.csv", "workers.csv"):
                    self.assertEqual((out / table).read_bytes(), (wanted / table).read_bytes(), table)
                told, expected = self.summary(out), self.summary(wanted)
                schedule = told.pop("schedule")
                self.assertIsNone(expected.pop("schedule"))
                for summary in (told, expected):
                    del summary["engine"], summary["environment"]
                self.assertEqual(told, expected)
                self.assertEqual(schedule, {"run": str(run.resolve()), "backend": "sim", "status": "finished",
                                            "weights_hash": self.summary(run)["weights_hash"],
                                            "set": list(other[1::2])})
                # What stands in command.txt does the same again.
                command = (out / "command.txt").read_text().split()
                done = self.call(*command[1:])
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(self.summary(self.work / "again")["weights_hash"], told["weights_hash"])
                shutil.rmtree(self.work / "again")

    def test_another_rule_keeps_the_order_and_times_of_a_real_run(self) -> None:
        run = self.run_scenario(self.scenario("n-softsync"), "--events", "--backend", "local")
        out = self.work / "other"
        self.replayed(run, "--set", "optimizer.momentum=0", "--out", out, "--quiet")
        changed = 0
        for before, after in zip(self.rows(run), self.rows(out), strict=True):
            changed += before["loss"] != after["loss"]
            self.assertEqual({**before, "loss": "", "scale": ""}, {**after, "loss": "", "scale": ""})
        self.assertGreater(changed, 20)
        self.assertEqual([row["version"] for row in self.rows(run, "evals.csv")],
                         [row["version"] for row in self.rows(out, "evals.csv")])
        self.assertEqual(self.summary(out)["clock"], "wall")
        # The recorded rule gives what was recorded.
        same = self.work / "same"
        self.replayed(run, "--set", "optimizer.momentum=0.9", "--out", same, "--quiet")
        self.assertEqual(self.summary(same)["weights_hash"], self.summary(run)["weights_hash"])
        self.assertEqual((same / "evals.csv").read_bytes(), (run / "evals.csv").read_bytes())
        sys.path.insert(0, ANALYSIS)
        import rubato_analysis  # pylint: disable=import-outside-toplevel

        self.assertEqual(len(rubato_analysis.load(out).gradients), len(self.rows(run)))
        drawn = self.call("plot", "curves", run, out, "-o", "c.png")
        self.assertEqual(drawn.returncode, 0, drawn.stderr)

    def test_divergence_is_told_and_ends_where_it_is_to(self) -> None:
        for backend in ("sim", "local"):
            run = self.run_scenario(self.scenario(), "--events", "--backend", backend)
            out = self.work / f"diverged-{backend}"
            done = self.call("replay", run, "--set", "optimizer.learning_rate=1e30", "--out", out)
            self.assertEqual(done.returncode, 3)
            self.assertRegex(done.stderr, r"ended as diverged: the loss of gradient \d+ of worker \d, computed on ")
            summary = self.summary(out)
            self.assertEqual(summary["status"], "diverged")
            self.assertLess(summary["updates"], self.summary(run)["updates"])
            rows = self.rows(out)
            self.assertEqual(sum(summary["gradients"].values()), len(rows))
            self.assertEqual(len({(row["worker"], row["worker_seq"]) for row in rows}), len(rows))
            whole = self.work / f"whole-{backend}"
            done = self.call("replay", run, "--set", "optimizer.learning_rate=1e30", "--set", "stop.diverged=continue",
                             "--out", whole, "--quiet")
            self.assertEqual(done.returncode, 3)
            self.assertEqual(self.summary(whole)["status"], "diverged")
            self.assertEqual(self.summary(whole)["updates"], self.summary(run)["updates"])

    def test_ends_that_depended_on_the_weights_stay_where_they_were(self) -> None:
        wild = self.scenario()
        wild["optimizer"]["learning_rate"] = 1e30
        run = self.run_scenario(wild, "--events", status=3)
        self.assertIn("the same losses", self.replayed(run, "--weights"))
        out = self.work / "tamed"
        self.replayed(run, "--set", "optimizer.learning_rate=0.01", "--out", out, "--quiet")
        summary = self.summary(out)
        self.assertEqual((summary["status"], summary["schedule"]["status"]), ("finished", "diverged"))
        self.assertEqual(summary["updates"], self.summary(run)["updates"])

        aimed = self.scenario(stop={"epochs": 50, "target": {"metric": "train_loss", "at_most": 0.7}})
        run = self.run_scenario(aimed, "--events")
        self.assertIsNotNone(self.summary(run)["time_to_target_s"])
        out = self.work / "slow"
        self.replayed(run, "--set", "optimizer.learning_rate=0.0001", "--out", out, "--quiet")
        summary = self.summary(out)
        self.assertEqual(summary["updates"], self.summary(run)["updates"])
        self.assertIsNone(summary["time_to_target_s"])

    def test_keys_that_make_another_schedule_are_refused_with_the_reason(self) -> None:
        run = self.run_scenario(self.scenario(), "--events")
        for setting, reason in (("protocol.n=2", "another schedule"), ("evaluate.every_epochs=1", "recorded versions"),
                                ("stop.epochs=1", "an end of its own"), ("seeds.init=3", "another problem"),
                                ("model.hidden=[3]", "another problem"), ("cluster.noise.lognormal_cv=0", "rubato run"),
                                ("optimizer.momentun=0", "did you mean"), ("optimizer", "KEY=VALUE")):
            with self.subTest(setting):
                out = self.work / "refused"
                self.assertIn(reason, self.replayed(run, "--set", setting, "--out", out, status=2))
                self.assertFalse(out.exists())
        out = self.work / "full"
        out.mkdir()
        (out / "x").write_text("x")
        rate = ("--set", "optimizer.learning_rate=0.01")
        self.assertIn("is not empty", self.replayed(run, *rate, "--out", out, status=2))
        # What another one is writing there it looks at only when that is done.
        descriptor = os.open(out, os.O_RDONLY)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        self.assertIn("another run is writing there", self.replayed(run, *rate, "--out", out, status=2))
        os.close(descriptor)
        self.replayed(run, *rate, "--out", out, "--force", "--quiet")
        self.assertIn("the recorded run itself", self.replayed(run, *rate, "--out", run, "--force", status=2))


class Schedule(Case):
    """Scenarios whose order of updates is a trace."""

    scenario = staticmethod(Replay.scenario)

    def uneven(self, protocol: str) -> dict:
        """Workers near and far, so that they do not ask in the order in which they push."""
        hosts = [{"name": "server", "latency": "1us"},
                 *({"name": f"h{i}", "latency": f"{1 + 700 * (i % 3)}us"} for i in range(6))]
        platform = {"kind": "star", "bandwidth": "10Gbps", "hosts": hosts}
        (self.work / "p.json").write_text(json.dumps(platform))
        scenario = self.scenario(protocol)
        scenario["workers"]["count"] = 6
        scenario["cluster"] |= {"platform": "p.json", "devices": {"default": {"seconds": {"10": 0.002}}}}
        return scenario

    def follow(self, scenario: dict, trace: Path, *arguments: str) -> Path:
        more = {key: value for key, value in scenario.items() if key != "cluster"}
        return self.run_scenario({**more, "schedule": {"trace": str(trace)}}, *arguments)

    def test_a_run_as_its_own_trace(self) -> None:
        for protocol in PROTOCOLS:
            scenario = self.uneven(protocol)
            run = self.run_scenario(scenario)
            again = self.follow(scenario, run / "gradients.csv", "--events")
            self.assertEqual(self.summary(again)["weights_hash"], self.summary(run)["weights_hash"], protocol)
            self.assertEqual(self.summary(again)["gradients"], self.summary(run)["gradients"])
            for before, after in zip(self.rows(run, "updates.csv"), self.rows(again, "updates.csv"), strict=True):
                self.assertEqual({**before, "time_ns": ""}, {**after, "time_ns": ""})
            self.assertEqual(self.summary(again)["schedule"], {"trace": str(run / "gradients.csv")})
            self.assertEqual(self.call("replay", again).returncode, 0)
            self.assertIn("rubato run", self.call("replay", again, "--weights").stderr)
            # The two columns alone do not tell who was dealt what where workers are not alike.
            narrow = self.work / "narrow.csv"
            with open(narrow, "w", newline="") as file:
                writer = csv.writer(file)
                writer.writerow(["worker", "read_version"])
                writer.writerows([row["worker"], row["read_version"]] for row in self.rows(run) if int(row["seq"]) >= 0)
            other = self.follow(scenario, narrow)
            keys = ("worker", "read_version", "apply_version")
            self.assertEqual(*([[row[key] for key in keys] for row in self.rows(which) if int(row["seq"]) >= 0]
                               for which in (again, other)))
            same = self.summary(other)["weights_hash"] == self.summary(run)["weights_hash"]
            self.assertEqual(same, protocol == "hardsync")

    def test_times_are_updates(self) -> None:
        trace = self.work / "d.csv"
        trace.write_text("worker,read_version\n" + "".join(f"{k % 4},{max(0, k - 3)}\n" for k in range(40)))
        scenario = self.scenario()
        del scenario["stop"]
        run = self.follow(scenario, trace)
        summary = self.summary(run)
        self.assertEqual((summary["time_s"], summary["updates"], summary["clock"]), (40, 40, "virtual"))
        self.assertEqual(summary["staleness"]["histogram"][3], 37)
        for row in self.rows(run):
            self.assertEqual(int(row["applied_ns"]), (int(row["apply_version"]) + 1) * 10**9)
            self.assertEqual(int(row["begin_ns"]), int(row["read_version"]) * 10**9)
        self.assertEqual(self.summary(self.follow(scenario, trace, "--set", "stop.seconds=10"))["updates"], 10)
        checked = self.call("check", run / "scenario.json")
        self.assertIn("no cluster, an update a second", checked.stdout)
        self.assertIn("at most 40 gradients and 40 updates", checked.stdout)

    def test_a_trace_that_has_changed_is_told(self) -> None:
        trace = self.work / "d.csv"
        trace.write_text("worker,read_version\n0,0\n1,0\n")
        scenario = self.scenario()
        run = self.follow(scenario, trace)
        again = self.call("run", run / "scenario.json", "--out", "again", "--quiet")
        self.assertEqual(again.returncode, 0, again.stderr)
        trace.write_text("worker,read_version\n0,0\n1,1\n")
        done = self.call("run", run / "scenario.json", "--out", "third")
        self.assertEqual(done.returncode, 2)
        self.assertIn("schedule.checksum: expected", done.stderr)
        self.assertFalse((self.work / "third").exists())
        done = self.call("run", run / "scenario.json", "--set", f"schedule.trace={trace}", "--out", "third", "--quiet")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_wrong_traces_are_refused_with_the_line(self) -> None:
        trace = self.work / "d.csv"
        head = "worker,read_version\n"
        for protocol, text, expected in (
                ("async", head + "0,0\n4,0\n", "d.csv:3: worker: expected 0 to 3"),
                ("async", head + "0,0\n1,2\n", "d.csv:3: read_version: gradient 1 cannot have read version 2"),
                ("n-softsync", head + "0,0\n1,1\n", "n-softsync has made 0 updates by then"),
                ("hardsync", head + "0,0\n1,0\n2,0\n3,0\n0,0\n", "d.csv:6: read_version: gradient 4 has staleness 1"),
                ("hardsync", head + "0,0\n0,0\n", "d.csv:3: worker: hardsync has no batch for worker 0"),
                ("async", "worker;read_version\n0;0\n", "d.csv:1: the header has no column worker"),
                ("async", "", "d.csv:1: the file is empty")):
            trace.write_text(text)
            scenario = self.scenario(protocol, schedule={"trace": str(trace)})
            for command in ("run", "check"):
                self.assertIn(expected, self.refused(scenario, command))
        trace.unlink()
        self.assertIn("there is no such file", self.refused(self.scenario(schedule={"trace": "d.csv"})))
        self.assertIn("unknown key", self.refused(self.scenario(schedule={"trace": "d.csv", "cluster": 3})))
        trace.write_text(head + "0,0\n")
        path = self.write(self.scenario(schedule={"trace": "d.csv"}))
        done = self.call("run", path, "--backend", "local", "--out", "x")
        self.assertEqual(done.returncode, 2)
        self.assertIn("only backend sim follows a schedule", done.stderr)

    def test_sweeps_of_rules_over_one_schedule(self) -> None:
        run = self.run_scenario(self.scenario())
        scenario = self.scenario(schedule={"trace": str(run / "gradients.csv")})
        base = self.write(scenario)
        sweep = self.work / "sweep.json"
        sweep.write_text(json.dumps({"base": base.name, "seeds": [1],
                                     "axes": {"optimizer.staleness_rule": ["none", "inverse-staleness"]}}))
        done = self.call("sweep", sweep, "--out", "swept", "--quiet", "-j", "1")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = self.rows(self.work / "swept", "results.csv")
        self.assertEqual(len({row["weights_hash"] for row in rows}), 2)
        self.assertEqual({row["staleness.mean"] for row in rows}, {rows[0]["staleness.mean"]})
        self.assertIn(self.summary(run)["weights_hash"], {row["weights_hash"] for row in rows})


if __name__ == "__main__":
    ANALYSIS = os.path.abspath(sys.argv.pop())
    main()
