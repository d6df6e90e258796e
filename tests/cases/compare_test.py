"""Predicted beside measured: pairs of simulations that differ in one thing, which compare must name.

Usage: compare_test.py RUBATO
"""

import json
import shutil

from case import Case, main

PROTOCOLS = {"hardsync": {"name": "hardsync"}, "1-softsync": {"name": "n-softsync", "n": 1},
             "lambda-softsync": {"name": "n-softsync", "n": 4}, "async": {"name": "async"}}
SECONDS = {"a": 0.002, "b": 0.0005}
NETWORK = ("push moving", "pull moving")


class Compare(Case):
    """The sides are simulations of other seeds, with noise."""

    @staticmethod
    def scenario(protocol: dict, seed: int = 1, **more: object) -> dict:
        return {"seed": seed, "data": {"samples": 32000}, "cost": {"push_bytes": 1000000, "pull_bytes": 1000000},
                "workers": {"groups": [{"count": 4, "device": "even"}], "batch_size": 16}, "protocol": protocol,
                "stop": {"gradients": 2000},
                "cluster": {"network": {"star": {"bandwidth": "10Gbps", "latency": "20us"}},
                            "devices": {"even": dict(SECONDS), "slow": {k: 1.3 * v for k, v in SECONDS.items()}},
                            "noise": {"lognormal_cv": 0.1},
                            "server": {"push_s": 2e-4, "pull_s": 1e-4, "update_s": 5e-4}}, **more}

    def injected(self, protocol: dict, what: str, seed: int = 2) -> dict:
        """The scenario with one thing that differs."""
        scenario = self.scenario(protocol, seed)
        cluster = scenario["cluster"]
        if what == "slow worker":
            scenario["workers"]["groups"] = [{"count": 3, "device": "even"}, {"count": 1, "device": "slow"}]
        elif what == "half the link":
            cluster["network"]["star"]["bandwidth"] = "5Gbps"
        elif what == "dear update":
            cluster["server"]["update_s"] += 0.002
        return scenario

    def compared(self, predicted: object, measured: object, *options: object, status: int = 0) -> dict:
        done = self.call("compare", predicted, "--", measured, "--json", *options)
        self.assertEqual(done.returncode, status, done.stderr)
        return json.loads(done.stdout)

    def refused_call(self, *arguments: object) -> str:
        done = self.call("compare", *arguments)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done)
        self.assertRegex(done.stderr, r"\Arubato: [^\n]+\n\Z")
        return done.stderr.strip().removeprefix("rubato: ")

    def check_sums(self, explanation: dict) -> None:
        """Every second is somewhere, once."""
        for kind in ("causes", "by_cause"):
            for column, whole in (("predicted", "predicted"), ("measured", "measured"), ("total", "gap")):
                self.assertAlmostEqual(sum(line[column] for line in explanation[kind]), explanation[whole], delta=1e-9)
        for kind in ("causes", "by_cause", "by_worker"):
            self.assertAlmostEqual(sum(line["share"] for line in explanation[kind]), 1, delta=1e-6)

    def check_top(self, explanation: dict, what: str) -> None:
        top = explanation["causes"][0]
        if what == "slow worker":
            self.assertEqual(top["label"], "compute of worker 3")
            self.assertGreater(top["share"], 0.85)
        elif what == "half the link":
            self.assertIn(top["cause"], NETWORK)
            self.assertEqual(top["who"], "all")
            self.assertGreater(sum(line["share"] for line in explanation["causes"] if line["cause"] in NETWORK), 0.9)
        else:
            self.assertEqual((top["cause"], top["who"]), ("apply wait", "all"))
            self.assertGreater(top["share"], 0.85)
        self.assertIn(top["label"], explanation["reading"])

    def test_the_injected_cause_comes_first(self) -> None:
        for name, protocol in PROTOCOLS.items():
            even = self.run_scenario(self.scenario(protocol))
            for what in ("slow worker", "half the link", "dear update"):
                other = self.run_scenario(self.injected(protocol, what))
                for predicted, measured, sign in ((even, other, 1), (other, even, -1)):
                    with self.subTest(protocol=name, injected=what, sign=sign):
                        explanation = self.compared(predicted, measured, "--explain")["explanation"]
                        self.assertGreater(sign * explanation["gap"], 0.02 * explanation["predicted"])
                        self.check_top(explanation, what)
                        self.check_sums(explanation)

    def test_links_that_nobody_shares(self) -> None:
        """Transfers are as long whoever else moves: dividing instants among them would tell of meetings only."""
        def own_links(protocol: dict, seed: int, bandwidth: str) -> dict:
            scenario = self.scenario(protocol, seed)
            scenario["cluster"]["network"]["star"] = {"bandwidth": bandwidth, "latency": "20us",
                                                      "server_bandwidth": "1000Gbps"}
            return scenario

        for name, protocol in PROTOCOLS.items():
            runs = [self.run_scenario(own_links(protocol, seed, bandwidth)) for seed, bandwidth in
                    ((1, "1Gbps"), (2, "0.5Gbps"))]
            for predicted, measured in (runs, runs[::-1]):
                with self.subTest(protocol=name):
                    self.check_top(self.compared(predicted, measured, "--explain")["explanation"], "half the link")

    def test_a_network_that_all_wait_in_does_not_hide_the_cause(self) -> None:
        """Here a dearer update costs more on the link, where it makes the pulls meet, than at the server."""
        def slow_link(seed: int, update_s: float) -> dict:
            scenario = self.scenario(PROTOCOLS["1-softsync"], seed)
            scenario["cluster"]["network"]["star"]["bandwidth"] = "1.5Gbps"
            scenario["cluster"]["server"]["update_s"] = update_s
            return scenario

        runs = [self.run_scenario(slow_link(seed, update_s)) for seed, update_s in ((1, 5e-4), (2, 2.5e-3))]
        explanation = self.compared(*runs, "--explain")["explanation"]
        spent = {line["cause"]: line["share"] for line in explanation["by_cause"]}
        self.assertGreater(spent["pull moving"], spent["apply wait"])
        self.check_top(explanation, "dear update")

    def test_the_wait_for_a_slow_worker_is_its_own(self) -> None:
        """As spent the others wait; followed, they do not."""
        runs = [self.run_scenario(self.scenario(PROTOCOLS["hardsync"])),
                self.run_scenario(self.injected(PROTOCOLS["hardsync"], "slow worker"))]
        explanation = self.compared(*runs, "--explain")["explanation"]
        spent = {line["cause"]: line for line in explanation["by_cause"]}
        self.assertGreater(spent["policy wait"]["share"], 0.5)
        waits = [line for line in explanation["causes"] if line["cause"] == "policy wait"]
        self.assertLess(sum(line["measured"] for line in waits), 0.05 * spent["policy wait"]["measured"])

    def test_equal_clusters_agree(self) -> None:
        runs = [self.run_scenario(self.scenario(PROTOCOLS["async"], seed)) for seed in (1, 2)]
        answer = self.compared(*runs, "--explain", "--max", "throughput=0.02", "--max", "ks=0.05")
        self.assertTrue(answer["within_limits"])
        self.assertIn("agree", answer["explanation"]["reading"])
        itself = self.compared(runs[0], runs[0], "--max", "throughput=0", "--max", "ks=0", "--explain")
        self.assertEqual((itself["ks"], itself["explanation"]["gap"]), (0, 0))
        self.assertEqual({figure["error"] for figure in itself["figures"].values()}, {0})

    def test_figures_are_those_of_the_summaries(self) -> None:
        runs = [self.run_scenario(self.scenario(PROTOCOLS["async"], seed)) for seed in (1, 2, 3)]
        first, second, third = map(self.summary, runs)
        done = self.call("compare", runs[0], runs[1], "--", runs[2], "--json")
        figures = json.loads(done.stdout)["figures"]
        steady = [one["throughput"]["steady_samples_per_s"] for one in (first, second, third)]
        mean = (steady[0] + steady[1]) / 2
        self.assertAlmostEqual(figures["throughput"]["predicted"]["mean"], mean)
        self.assertAlmostEqual(figures["throughput"]["predicted"]["std"], abs(steady[0] - steady[1]) / 2 ** 0.5)
        self.assertEqual(figures["throughput"]["predicted"]["n"], 2)
        self.assertEqual(figures["throughput"]["measured"], {"mean": steady[2], "std": None, "n": 1})
        self.assertAlmostEqual(figures["throughput"]["error"], (mean - steady[2]) / steady[2])
        self.assertEqual(figures["staleness"]["measured"]["mean"], third["staleness"]["steady_mean"])
        self.assertEqual(figures["staleness_p99"]["measured"]["mean"], third["staleness"]["p99"])
        self.assertAlmostEqual(figures["gradients"]["measured"]["mean"] * 16, steady[2])
        # All workers are always somewhere, so that seconds per gradient are the inverse of the rate.
        self.assertAlmostEqual(figures["seconds"]["measured"]["mean"] * steady[2] / 16 / 4, 1, delta=0.01)

    def test_limits_decide_the_exit_status(self) -> None:
        runs = [self.run_scenario(self.scenario(PROTOCOLS["async"])),
                self.run_scenario(self.injected(PROTOCOLS["async"], "half the link"))]
        answer = self.compared(*runs, "--max", "throughput=0.05", "--max", "staleness=0.05", status=1)
        self.assertFalse(answer["within_limits"])
        self.assertEqual([limit["kept"] for limit in answer["limits"]], [False, True])
        done = self.call("compare", *runs[:1], "--", *runs[1:], "--max", "throughput=0.05")
        self.assertEqual(done.returncode, 1)
        self.assertIn("verdict: beyond the limits", done.stdout)
        self.assertLessEqual(max(map(len, done.stdout.splitlines())), 120)
        self.compared(*runs, "--max", "throughput=0.5")

    def test_substitution_closes_the_gap(self) -> None:
        parts = {"slow worker": "compute", "half the link": "network", "dear update": "server"}
        options = [word for part in parts.values() for word in ("--substitute", part)]
        for name in ("hardsync", "async"):
            even = self.run_scenario(self.scenario(PROTOCOLS[name]))
            for what, part in parts.items():
                with self.subTest(protocol=name, injected=what):
                    other = self.run_scenario(self.injected(PROTOCOLS[name], what))
                    found = {one["part"]: one["closed"]
                             for one in self.compared(even, other, *options)["substitutions"]}
                    self.assertEqual(list(found), [*parts.values(), "together"])
                    self.assertAlmostEqual(found[part], 1, delta=0.1)
                    self.assertAlmostEqual(found["together"], 1, delta=0.1)
                    for another in set(parts.values()) - {part}:
                        self.assertAlmostEqual(found[another], 0, delta=0.15)

    def test_a_real_run_is_compared_with_its_simulation(self) -> None:
        scenario = {"data": {"dataset": "synthetic", "samples": 640, "test_samples": 50, "shape": [4, 4, 1],
                             "classes": 3},
                    "model": {"name": "softmax"}, "workers": {"count": 3, "batch_size": 8},
                    "protocol": {"name": "hardsync"}, "stop": {"epochs": 5},
                    "cluster": {"devices": {"default": {"seconds": {"8": 0.001}}}}}
        simulated = self.run_scenario(scenario, "--timeline")
        real = self.run_scenario(scenario, "--timeline", "--backend", "local")
        answer = self.compared(simulated, real, "--explain", "--timeline", self.work / "both.json", "--substitute",
                               "compute")
        self.assertEqual((answer["predicted"]["backend"], answer["measured"]["backend"]), ("sim", "local"))
        self.check_sums(answer["explanation"])
        events = json.loads((self.work / "both.json").read_text())["traceEvents"]
        names = {event["args"]["name"]: event["pid"] for event in events if event["name"] == "process_name"}
        self.assertEqual(names, {"predicted": 1, "measured": 2})
        threads = {(event["pid"], event["tid"]) for event in events if event["name"] == "thread_name"}
        self.assertEqual(threads, {(event["pid"], event["tid"]) for event in events if event["ph"] == "X"})
        rows = sum(len(self.rows(run, "timeline.csv")) for run in (simulated, real))
        self.assertEqual(sum(event["ph"] == "X" for event in events), rows)

    def test_spans_of_a_thread_do_not_overlap(self) -> None:
        run = self.run_scenario(self.scenario(PROTOCOLS["hardsync"], stop={"gradients": 80}), "--timeline")
        self.compared(run, run, "--timeline", self.work / "both.json")
        ends: dict[tuple[int, int], float] = {}
        for event in json.loads((self.work / "both.json").read_text())["traceEvents"]:
            if event["ph"] == "X":
                thread = event["pid"], event["tid"]
                self.assertGreaterEqual(event["ts"], ends.get(thread, 0) - 1e-6)
                ends[thread] = event["ts"] + event["dur"]

    def test_the_figure_shows_what_is_said(self) -> None:
        """Its data are those of the comparison; Python draws the same."""
        runs = [self.run_scenario(self.scenario(PROTOCOLS["hardsync"])),
                self.run_scenario(self.injected(PROTOCOLS["hardsync"], "slow worker"))]
        explanation = self.compared(*runs, "--explain")["explanation"]
        done = self.call("plot", "compare", runs[0], "--", runs[1], "-o", self.work / "figure.png")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue((self.work / "figure.png").read_bytes().startswith(b"\x89PNG"))
        points = self.rows(self.work, "figure.csv")
        drawn = {(point["series"], point["x"]): float(point["y"]) for point in points
                 if point["panel"] == "seconds per gradient"}
        for line in explanation["by_cause"]:
            for side in ("predicted", "measured"):
                if line["predicted"] or line["measured"]:
                    self.assertAlmostEqual(drawn[side, line["cause"]], line[side])
        due = [point for point in points if point["panel"] == "due to"]
        self.assertEqual(due[0]["x"], "compute of worker 3")
        self.assertAlmostEqual(float(due[0]["y"]), explanation["causes"][0]["total"])
        done = self.call("plot", "compare", runs[0], "-o", self.work / "none.png")
        self.assertEqual(done.returncode, 2)
        self.assertIn("SIM... -- REAL...", done.stderr)

    def test_runs_that_do_not_belong_together(self) -> None:
        first = self.run_scenario(self.scenario(PROTOCOLS["async"]))
        other = self.run_scenario(self.scenario(PROTOCOLS["hardsync"]))
        self.assertIn('protocol.name ("async", "hardsync")', self.refused_call(first, "--", other))
        scenario = self.scenario(PROTOCOLS["async"])
        scenario["workers"] = {"groups": [{"count": 5, "device": "even"}], "batch_size": 16}
        self.assertIn("4 and 5 workers", self.refused_call(first, "--", self.run_scenario(scenario)))
        scenario["workers"] = {"groups": [{"count": 4, "device": "even"}], "batch_size": 8}
        self.assertIn("workers.batch_size (16, 8)", self.refused_call(first, "--", self.run_scenario(scenario)))
        scenario = self.scenario(PROTOCOLS["async"], cost={"push_bytes": 2000000, "pull_bytes": 1000000})
        done = self.call("compare", first, "--", self.run_scenario(scenario))
        self.assertEqual(done.returncode, 0)
        self.assertIn("differ in cost.push_bytes (1000000, 2000000)", done.stderr)

    def test_what_a_kill_leaves(self) -> None:
        run = self.run_scenario(self.scenario(PROTOCOLS["async"]))
        cut = self.work / "cut"
        shutil.copytree(run, cut)
        text = (cut / "gradients.csv").read_bytes()
        (cut / "gradients.csv").write_bytes(text[:-7])
        done = self.call("compare", run, "--", cut)
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stderr, r"gradients.csv:\d+: the last line is cut off and was skipped")
        lines = text.split(b"\n")
        (cut / "gradients.csv").write_bytes(b"\n".join([*lines[:3], b"1,2,3", *lines[4:]]))
        self.assertRegex(self.refused_call(run, "--", cut), r"gradients.csv:4: expected 17 cells")
        cells = lines[3].split(b",")
        for column, value, reason in ((1, b"9", "worker 9 is not in workers.csv"),
                                      (3, b"9999999999", "is beyond the 2000 updates"),
                                      (11, b"lost", "expected an integer"), (12, b"lost", "expected applied, ")):
            changed = b",".join([*cells[:column], value, *cells[column + 1:]])
            (cut / "gradients.csv").write_bytes(b"\n".join([*lines[:3], changed, *lines[4:]]))
            self.assertIn(reason, self.refused_call(run, "--", cut))
        (cut / "summary.json").unlink()
        self.assertIn("has no summary.json", self.refused_call(run, "--", cut))

    def test_a_summary_that_is_none_is_told_with_its_line(self) -> None:
        run = self.run_scenario(self.scenario(PROTOCOLS["async"], stop={"gradients": 80}))
        summary = run / "summary.json"
        text = summary.read_text()
        for broken, told in ((text.rstrip()[:-1], r"summary.json:\d+: the file ends too early"),
                             (text.replace('"updates": ', '"updates": x'), r'summary.json:\d+: "x80" is not a JSON'),
                             (text.replace('"throughput"', '"troughput"'), r"not a summary: .*'throughput' not found"),
                             (text.replace('"updates": 80', '"updates": "80"'), r"not a summary: .*must be number"),
                             ("[]", r"summary.json: not a summary: ")):
            summary.write_text(broken)
            told_here = self.refused_call(run, "--", run)
            self.assertRegex(told_here, told)
            self.assertNotIn("exception", told_here)
        # A run that is there already is told from its summary, too.
        summary.write_text(text.replace('"throughput"', '"troughput"'))
        done = self.call("run", self.work / "s1.json", "--out", run, "--quiet")
        self.assertEqual((done.returncode, done.stdout), (0, ""), done)
        done = self.call("run", self.work / "s1.json", "--out", run)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done)
        self.assertRegex(done.stderr, r"summary.json: not a summary: .*--force repeats the run\n\Z")

    def test_some_rows_are_not_taken_for_all(self) -> None:
        run = self.run_scenario(self.scenario(PROTOCOLS["async"]))
        for name, count in (("gradients.csv", 2003), ("updates.csv", 2000)):
            cut = self.work / f"cut-{name}"
            shutil.copytree(run, cut)
            lines = (run / name).read_bytes().split(b"\n")
            for rows in (0, 2, None):
                if rows is None:
                    (cut / name).unlink()
                else:
                    (cut / name).write_bytes(b"\n".join([*lines[:rows + 1], b""]))
                done = self.call("compare", cut, "--", run, "--explain")
                self.assertEqual(done.returncode, 0)
                warned = f"{name}: has {rows or 0} rows, but summary.json counts {count}: the table is not used"
                self.assertEqual(done.stderr.count(warned), 1, done.stderr)
        self.assertNotIn("warning", self.call("compare", run, "--", run).stderr)

    def test_tables_may_be_missing(self) -> None:
        """Without rows the books of the workers tell causes, over the whole run and without following waits."""
        runs = [self.run_scenario({**self.scenario(PROTOCOLS["hardsync"], seed), "trace": trace})
                for seed, trace in ((1, {"gradients": False}), (2, {"gradients": {"every": 10}, "updates": False}))]
        explanation = self.compared(*runs, "--explain")["explanation"]
        self.assertEqual((explanation["followed"], explanation["steady"]), (False, False))
        self.check_sums(explanation)

    def test_mistakes_on_the_command_line(self) -> None:
        run = self.run_scenario(self.scenario(PROTOCOLS["async"], stop={"gradients": 80}))
        self.assertIn("expected SIM... -- REAL...", self.refused_call(run))
        self.assertIn("expected SIM... -- REAL...", self.refused_call("--", run))
        self.assertIn("no such run directory", self.refused_call(run, "--", "nowhere"))
        self.assertIn("did you mean throughput?", self.refused_call(run, "--", run, "--max", "troughput=0.1"))
        self.assertIn("expected FIGURE=LIMIT", self.refused_call(run, "--", run, "--max", "throughput"))
        self.assertIn("at least 0", self.refused_call(run, "--", run, "--max", "throughput=-1"))
        self.assertIn("given twice", self.refused_call(run, "--", run, "--max", "ks=1", "--max", "ks=2"))
        self.assertIn("no such figure", self.refused_call(run, "--", run, "--max", "test_error=1"))
        self.assertIn("did you mean server?", self.refused_call(run, "--", run, "--substitute", "servr"))
        self.assertIn("did you mean --explain?", self.refused_call(run, "--", run, "--explane"))
        self.assertIn("--timeline", self.refused_call(run, "--", run, "--timeline", self.work / "t.json"))
        self.assertFalse((self.work / "t.json").exists())
        done = self.call("compare", run, "--", run, "-o", self.work / "report.txt")
        self.assertEqual((done.returncode, done.stdout), (0, ""))
        self.assertIn("throughput", (self.work / "report.txt").read_text())


if __name__ == "__main__":
    main()
