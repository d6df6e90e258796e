"""rubato calibrate from outside: a run's profile predicts the run, tables become profiles, mistakes are one line.

Usage: calibrate_test.py RUBATO.
"""

import csv
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

PROGRAM = ""
STAR = {"bandwidth": "1GBps", "latency": "50us"}
BASE = {
    "cost": {"push_bytes": "1MB"},
    "data": {"samples": 64000},
    "workers": {"count": 8, "batch_size": 32},
    "protocol": {"name": "async"},
    "stop": {"gradients": 6000},
    "cluster": {
        "network": {"model": "flow", "star": STAR},
        "devices": {"default": {"seconds": {"32": 0.02}}},
        "noise": {"lognormal_cv": 0.4},
        "server": {"push_s": 1e-4, "pull_s": 2e-4, "update_s": 3e-4},
    },
}
LOCAL = {
    "model": {"name": "mlp", "hidden": [64]},
    "data": {"samples": 2000, "shape": [12, 12, 1]},
    "workers": {"count": 2, "batch_size": 25},
    "protocol": {"name": "async"},
    "stop": {"epochs": 3},
    "evaluate": {"at_end": False},
}


def distance(one: list[float], other: list[float]) -> float:
    """Of Kolmogorov and Smirnov."""
    one, other = sorted(one), sorted(other)
    i = j = 0
    most = 0.0
    while i < len(one) and j < len(other):
        value = min(one[i], other[j])
        while i < len(one) and one[i] <= value:
            i += 1
        while j < len(other) and other[j] <= value:
            j += 1
        most = max(most, abs(i / len(one) - j / len(other)))
    return most


class CalibrateTest(unittest.TestCase):
    """Every test has a folder of its own."""

    def setUp(self) -> None:
        # pylint: disable-next=consider-using-with
        self.scratch = tempfile.TemporaryDirectory(prefix="rubato-")
        self.addCleanup(self.scratch.cleanup)
        self.work = Path(self.scratch.name)

    def call(self, *arguments: object, status: int = 0) -> subprocess.CompletedProcess:
        answer = subprocess.run([PROGRAM, *map(str, arguments)], cwd=self.work, capture_output=True, text=True,
                                check=False, timeout=300)
        self.assertEqual(answer.returncode, status, answer)
        return answer

    def refused(self, *arguments: object) -> str:
        """Exit status 2, exactly one line, and nothing written."""
        before = sorted(os.listdir(self.work))
        answer = self.call(*arguments, status=2)
        self.assertEqual(answer.stdout, "")
        self.assertRegex(answer.stderr, r"\Arubato: [^\n]+\n\Z")
        self.assertEqual(sorted(os.listdir(self.work)), before)
        return answer.stderr.strip().removeprefix("rubato: ")

    def write(self, name: str, content: object) -> str:
        (self.work / name).write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return name

    def read(self, name: str) -> dict:
        return json.loads((self.work / name).read_text(encoding="utf-8"))

    def run_scenario(self, name: str, scenario: dict, *arguments: str) -> tuple[dict, list[float]]:
        """Its summary, and the seconds of its gradients."""
        self.call("run", self.write(name + ".json", scenario), "--out", name, "--quiet", *arguments)
        with open(self.work / name / "gradients.csv", newline="", encoding="utf-8") as file:
            rows = [row for row in csv.DictReader(file) if row["outcome"] == "applied"]
        return self.read(name + "/summary.json"), [1e-9 * (int(row["end_ns"]) - int(row["begin_ns"])) for row in rows]

    def round_trip(self, name: str, scenario: dict, *arguments: str) -> dict:
        """Simulates, calibrates from it, simulates with nothing but the profile, and compares; gives the profile."""
        summary, seconds = self.run_scenario(name, scenario, *arguments)
        self.call("calibrate", "--run", name, "--out", name + ".profile.json")
        network = {"model": "flow",
                   "concurrent_transfers": scenario["cluster"]["network"].get("concurrent_transfers", 8)}
        again = {**scenario, "seed": 99, "cluster": {"profile": name + ".profile.json", "network": network}}
        predicted, drawn = self.run_scenario(name + "-again", again)
        rate, expected = (one["throughput"]["samples_per_s"] for one in (predicted, summary))
        self.assertLess(abs(rate / expected - 1), 0.02, (name, rate, expected))
        self.assertLess(abs(sum(drawn) / len(drawn) / (sum(seconds) / len(seconds)) - 1), 0.02, name)
        self.assertLess(distance(drawn, seconds), 0.03, name)
        self.assertLess(abs(predicted["staleness"]["mean"] - summary["staleness"]["mean"]), 0.05, name)
        return self.read(name + ".profile.json")

    def test_a_profile_of_a_run_predicts_it(self) -> None:
        for protocol in ("async", "hardsync", "n-softsync"):
            for timeline in ((), ("--timeline",)):
                name = protocol + "".join(timeline)
                profile = self.round_trip(name, {**BASE, "protocol": {"name": protocol}}, *timeline)
                device = profile["compute"]["default"]
                self.assertEqual(device["source"], "run")
                self.assertAlmostEqual(device["batches"]["32"]["mean"], 0.02, delta=0.02 * 0.03)
                self.assertEqual(device["host_sharing"], {"1": 1})
                for key, cost in (("push", 1e-4), ("pull", 2e-4), ("update", 3e-4)):
                    self.assertAlmostEqual(profile["server"][key]["fixed_s"], cost, delta=1e-6)
                network = profile["network"]
                if protocol == "hardsync":  # a broadcast asks for nothing: messages of one size are left
                    self.assertEqual(network["latency_s"], 0)
                    self.assertIn("do not tell latency and bandwidth apart", " ".join(profile["notes"]))
                    self.assertTrue(1e6 / 1.1e-3 < network["bandwidth"] < 1e9, network)
                else:
                    self.assertAlmostEqual(network["latency_s"], 1e-4, delta=1e-5)
                    self.assertAlmostEqual(network["bandwidth"], 1e9, delta=2e7)
                self.assertTrue(profile["date"].endswith("Z"))

    def test_classes_hosts_and_links_are_told_apart(self) -> None:
        groups = [{"count": 4, "device": "fast"}, {"count": 6, "device": "slow", "per_host": 3},
                  {"count": 2, "device": "slow", "per_host": 1}]
        cluster = {"network": {"model": "flow", "concurrent_transfers": 4,
                               "star": {**STAR, "server_bandwidth": "2.5GBps"}},
                   "devices": {"fast": {"a": 0.01, "b": 0.002}, "slow": {"a": 0.02, "b": 0.001, "host_sharing": 0.2}},
                   "noise": {"lognormal_cv": 0.2}, "server": BASE["cluster"]["server"]}
        scenario = {**BASE, "cost": {"push_bytes": "10MB"}, "workers": {"groups": groups, "batch_size": 32},
                    "cluster": cluster}
        profile = self.round_trip("mixed", scenario, "--timeline")
        self.assertAlmostEqual(profile["compute"]["fast"]["batches"]["32"]["mean"], 0.074, delta=0.002)
        sharing = profile["compute"]["slow"]["host_sharing"]
        self.assertAlmostEqual(sharing["1"] / sharing["3"], 1 / 1.4, delta=0.02)
        self.assertAlmostEqual(profile["network"]["server_bandwidth"], 2.5e9, delta=2e8)

    def test_slow_moments_of_a_host_are_found_and_not_made_up(self) -> None:
        workers = {**BASE["workers"], "per_host": 4}
        for common in (None, {"share": 0.8, "time_s": "50ms"}):
            noise = {"lognormal_cv": 0.4, **({"common": common} if common else {})}
            scenario = {**BASE, "workers": workers, "cluster": {**BASE["cluster"], "noise": noise},
                        "stop": {"gradients": 60000}}  # slow moments are few
            name = "moments" if common else "plain"
            profile = self.round_trip(name, scenario)
            if common is None:
                self.assertNotIn("common", profile)
                continue
            self.assertAlmostEqual(profile["common"]["share"], 0.8, delta=0.1)
            self.assertAlmostEqual(profile["common"]["time_s"], 0.05, delta=0.015)
            # A barrier of the simulated run waits as long as that of the run it was calibrated from.
            times = {}
            for name, cluster in (("true", scenario["cluster"]), ("fitted", {"profile": "moments.profile.json",
                                                                             "network": BASE["cluster"]["network"]}),
                                  ("apart", {**scenario["cluster"], "noise": {"lognormal_cv": 0.4}})):
                summary, _ = self.run_scenario(f"barrier-{name}", {**scenario, "protocol": {"name": "hardsync"},
                                                                   "cluster": cluster})
                times[name] = summary["time_s"]
            self.assertAlmostEqual(times["fitted"] / times["true"], 1, delta=0.03)
            self.assertGreater(times["apart"] / times["true"], 1.06)

    def test_a_real_run_gives_a_profile(self) -> None:
        self.run_scenario("local", LOCAL, "--backend", "local")
        answer = self.call("calibrate", "--run", "local", "--out", "local.profile.json")
        self.assertRegex(answer.stdout, r"compute +default, batch size 25: .* \(2\d\d gradients; 10 to 90 %: ")
        profile = self.read("local.profile.json")
        self.assertEqual(profile["compute"]["default"]["host_sharing"], {"2": 1})
        self.assertGreater(profile["server"]["update"]["fixed_s"], 0)
        self.assertNotIn("took turns", answer.stderr)
        summary = self.read("local/summary.json")
        summary["engine"]["oversubscribed"] = True
        self.write("local/summary.json", summary)
        self.assertIn("processes that took turns", self.call("calibrate", "--run", "local", "--out", "x.json").stderr)
        scenario = {**LOCAL, "model": {**LOCAL["model"], "gradients": "none"},
                    "cluster": {"profile": "local.profile.json", "network": {"model": "flow"}}}
        self.write("sim.json", {**scenario, "workers": {**LOCAL["workers"], "per_host": 2}})
        self.assertNotIn("warning", self.call("check", "sim.json").stderr)
        self.write("sim.json", scenario)
        self.assertIn("1 worker a host lie outside the table of host_sharing, 2 workers",
                      self.call("check", "sim.json", "--set", "workers.per_host=1").stderr)

    def test_a_run_of_unlike_workers_says_so(self) -> None:
        groups = [{"count": 3, "device": "a"}, {"count": 1, "device": "b"}]
        devices = {"a": {"seconds": {"32": 0.02}}, "b": {"seconds": {"32": 0.026}}}
        scenario = {**BASE, "workers": {"groups": groups, "batch_size": 32},
                    "cluster": {**BASE["cluster"], "devices": devices}}
        self.run_scenario("unlike", scenario)
        saved = self.read("unlike/scenario.json")
        for group in saved["workers"]["groups"]:
            group["device"] = "a"
        self.write("unlike/scenario.json", saved)
        self.assertRegex(self.call("calibrate", "--run", "unlike").stderr,
                         r'note: compute: worker 3 takes \+2\d\.\d % of the mean of class "a"')
        self.assertTrue((self.work / "unlike.profile.json").exists())

    def test_tables_become_a_profile_that_check_measures_scenarios_by(self) -> None:
        self.write("t.csv", "device,batch,seconds\r\n" + "".join(
            f"gpu,{batch},{0.01 + 0.001 * batch + 0.0001 * i}\r\n" for batch in (8, 32) for i in range(30)))
        self.write("n.csv", "bytes,seconds\n" + "".join(f"{b},{2e-5 + b / 5e8}\n" for b in (1000, 10**5, 10**7)))
        self.call("calibrate", "--timings", "t.csv", "--network", "n.csv", "--out", "gpu.json")
        profile = self.read("gpu.json")
        self.assertEqual(profile["compute"]["gpu"]["batches"]["8"]["n"], 30)
        self.assertAlmostEqual(profile["network"]["latency_s"], 2e-5, delta=1e-7)
        self.assertAlmostEqual(profile["network"]["bandwidth"], 5e8, delta=1e6)
        scenario = {**BASE, "cluster": {"profile": "gpu.json", "network": {"model": "flow"}}}
        answer = self.call("check", self.write("s.json", scenario))
        self.assertNotIn("warning", answer.stderr)
        self.assertIn("device default: 43.45 ms a gradient", answer.stdout)
        self.assertIn("500 MB/s (4 Gbps), 20 us", answer.stdout)
        warnings = self.call("check", "s.json", "--set", "workers.batch_size=64", "--set", "cost.push_bytes=1GB").stderr
        self.assertIn("batch size 64 lies outside the table of seconds", warnings)
        self.assertIn("messages of 1000000000 bytes lie outside the 1000 to 10000000 bytes", warnings)
        # A table beside a run replaces what the run says.
        self.run_scenario("one", BASE)
        self.call("calibrate", "--run", "one", "--network", "n.csv", "--out", "both.json")
        both = self.read("both.json")
        self.assertEqual((both["network"]["source"], both["server"]["source"]), ("network", "run"))
        self.assertFalse([text for text in both["notes"] if text.startswith("network")])

    def test_a_mean_that_few_times_make_is_told(self) -> None:
        """As where more threads compute than there are cores: most get through at once, some wait for their turn."""
        for long, told in ((5, True), (50, False)):
            self.write("t.csv", "device,batch,seconds\n" + "gpu,32,0.001\n" * (200 - long) + "gpu,32,0.5\n" * long)
            answer = self.call("calibrate", "--timings", "t.csv", "--out", "gpu.json", "--force")
            self.assertEqual("; the mean is that of a few long ones: under 4 % take longer than it)" in answer.stdout,
                             told, answer.stdout)
            times = self.read("gpu.json")["compute"]["gpu"]["batches"]["32"]
            self.assertAlmostEqual(times["mean"], 0.001 + 0.499 * long / 200)
            self.assertEqual((times["quantiles"][0], times["quantiles"][-1]), (0.001, 0.5))

    def test_a_mean_in_another_unit_is_refused(self) -> None:
        self.write("t.csv", "device,batch,seconds\n" + "".join(f"gpu,32,{0.01 + 0.0001 * i}\n" for i in range(30)))
        self.call("calibrate", "--timings", "t.csv", "--out", "gpu.json")
        profile = self.read("gpu.json")
        times = profile["compute"]["gpu"]["batches"]["32"]
        scenario = self.write("s.json", {**BASE, "cluster": {"profile": "gpu.json", "network": {"model": "flow"}}})
        for factor in (1000, 0.001):
            self.write("gpu.json", {**profile, "compute": {"gpu": {**profile["compute"]["gpu"], "batches": {
                "32": {**times, "mean": factor * times["mean"]}}}}})
            self.assertRegex(self.refused("check", scenario), r"gpu.json:\d+: compute.gpu.batches.32.mean: expected a "
                             r"mean between the shortest and the longest time, 0.01 and 0.0129 s, found .*unit")

    def test_this_machine_is_measured(self) -> None:
        # The scenario may name the profile that is yet to be written.
        self.write("local.json", {**LOCAL, "cluster": {"profile": "local.profile.json"}})
        answer = self.call("calibrate", "local.json", "--seconds", "2", "--set", "workers.batch_size=20")
        self.assertRegex(answer.stdout, r"compute +default, batch size 5: ")
        profile = self.read("local.profile.json")
        self.assertEqual(sorted(profile["compute"]["default"]["batches"], key=int), ["5", "10", "20", "40", "80"])
        self.assertEqual(profile["compute"]["default"]["source"], "measured")
        self.assertEqual(profile["compute"]["default"]["host_sharing"]["2"], 1)
        self.assertGreater(profile["cores"], 0)
        scenario = {**LOCAL, "workers": {"count": 2, "batch_size": 20, "per_host": 2},
                    "cluster": {"profile": "local.profile.json", "network": {"model": "flow"}}}
        summary, _ = self.run_scenario("predicted", scenario)
        self.assertEqual(summary["status"], "finished")
        answer = self.call("check", "predicted.json")
        self.assertNotIn("extrapolated", answer.stderr)
        value, prefix = re.search(r"device default: ([0-9.]+) (u|m|)s a gradient of 20", answer.stdout).groups()
        device = profile["compute"]["default"]
        expected = device["batches"]["20"]["mean"] + device["dispatch_s"]
        self.assertAlmostEqual(float(value) * {"u": 1e-6, "m": 1e-3, "": 1}[prefix] / expected, 1, delta=0.001)

    def test_a_measurement_that_is_interrupted_leaves_nothing(self) -> None:
        self.write("local.json", LOCAL)
        with subprocess.Popen([PROGRAM, "calibrate", "local.json", "--seconds", "600"], cwd=self.work,
                              stderr=subprocess.PIPE, text=True) as process:
            time.sleep(1)
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=60)
        self.assertEqual((process.returncode, os.listdir(self.work)), (3, ["local.json"]), errors)
        self.assertIn("interrupted; no profile is written", errors)

    def test_profiles_are_an_axis_of_sweeps(self) -> None:
        self.write("t.csv", "device,batch,seconds\na,32,0.01\n")
        self.write("u.csv", "device,batch,seconds\na,32,0.02\n")
        for name in ("t", "u"):
            self.call("calibrate", "--timings", name + ".csv", "--out", name + ".json")
        self.write("base.json", {**BASE, "stop": {"gradients": 100}, "cluster": {"network": {"model": "flow"}}})
        self.write("sweep.json", {"base": "base.json", "axes": {"cluster.profile": ["t.json", "u.json"]}})
        self.call("sweep", "sweep.json", "--out", "sweep", "-j", "1", "--quiet")
        with open(self.work / "sweep" / "results.csv", newline="", encoding="utf-8") as file:
            times = {row["cluster.profile"]: float(row["time_s"]) for row in csv.DictReader(file)}
        self.assertEqual(sorted(times), ["t.json", "u.json"])
        self.assertGreater(times["u.json"], 1.3 * times["t.json"])

    def test_mistakes(self) -> None:
        self.assertIn("expected something to calibrate from", self.refused("calibrate"))
        self.assertEqual(self.refused("calibrate", "--run", "none"), "none: there is no such run directory")
        self.assertIn("none.csv: there is no such file", self.refused("calibrate", "--timings", "none.csv"))
        self.write("n.csv", "bytes,seconds\n1000,x\n")
        self.assertEqual(self.refused("calibrate", "--network", "n.csv", "--out", "p.json"),
                         'n.csv:2: seconds: expected a number, found "x"')
        self.write("n.csv", "bytes,seconds\n1000,1\n10000,2\n")
        self.write("p.json", "mine")
        self.assertEqual(self.refused("calibrate", "--network", "n.csv", "--out", "p.json"),
                         "p.json: exists already; --force replaces it, --out names another file")
        self.assertEqual((self.work / "p.json").read_text(encoding="utf-8"), "mine")
        self.call("calibrate", "--network", "n.csv", "--out", "p.json", "--force")
        self.assertIn("there is no folder no", self.refused("calibrate", "--network", "n.csv", "--out", "no/p.json"))
        self.assertIn("did you mean --timings?", self.refused("calibrate", "--timing", "n.csv"))
        self.write("timing.json", BASE)
        self.assertIn("is timing only and has no gradients to measure", self.refused("calibrate", "timing.json"))
        self.assertIn("exclude each other", self.refused("calibrate", "timing.json", "--run", "x"))
        self.assertIn("--set is about a scenario", self.refused("calibrate", "--run", "x", "--set", "seed=2"))
        for seconds in ("0", "-1", "nan", "inf", "-inf", "1e9"):
            self.assertIn("--seconds", self.refused("calibrate", "timing.json", f"--seconds={seconds}"))
        for table, header in (("timings", "device,batch,seconds,device"), ("network", "bytes,bytes,seconds")):
            self.write("twice.csv", header + "\n1,32,0.5,gpu\n")
            self.assertIn(f'twice.csv:1: column "{header.split(",")[0]}" stands there twice',
                          self.refused("calibrate", f"--{table}", "twice.csv"))
        os.mkdir(self.work / "empty")
        self.assertEqual(self.refused("calibrate", "--run", "empty"),
                         "empty: is no run directory, it has no scenario.json")

    def test_a_crowded_link_is_told_from_a_slow_one(self) -> None:
        """Two messages at once, of thirty that want to: what waits is no latency."""
        network = {"model": "flow", "concurrent_transfers": 2, "star": STAR}
        scenario = {**BASE, "cost": {"push_bytes": "2MB"}, "workers": {"count": 30, "batch_size": 32},
                    "cluster": {**BASE["cluster"], "network": network}}
        profile = self.round_trip("crowded", scenario)
        self.assertAlmostEqual(profile["network"]["bandwidth"], 1e9, delta=1.5e8)

    def test_a_tenth_of_the_rows_tells_the_same_network(self) -> None:
        scenario = {**BASE, "workers": {"count": 1, "batch_size": 32}, "stop": {"gradients": 1000},
                    "trace": {"gradients": {"every": 10}}}
        self.run_scenario("some", scenario)
        self.call("calibrate", "--run", "some")
        network = self.read("some.profile.json")["network"]
        self.assertAlmostEqual(network["bandwidth"], 1e9, delta=2e7)
        self.assertLess(network["largest_error"], 0.01)

    def test_runs_in_which_nothing_takes_time(self) -> None:
        star = {"bandwidth": "1GBps", "latency": 0}
        scenario = {**BASE, "cost": {"push_bytes": 0}, "cluster": {
            "network": {"model": "flow", "star": star}, "devices": {"default": {"seconds": {"32": 0.02}}}}}
        self.run_scenario("free", {**scenario, "stop": {"gradients": 200}}, "--timeline")
        answer = self.call("calibrate", "--run", "free")
        self.assertIn("no message of the run took any time", answer.stderr)
        profile = self.read("free.profile.json")
        self.assertNotIn("network", profile)
        self.assertEqual(profile["server"]["update"], {"n": 200, "fixed_s": 0, "per_byte_s": 0})

    def test_broken_runs(self) -> None:
        self.run_scenario("one", {**BASE, "stop": {"gradients": 500}})
        gradients = self.work / "one" / "gradients.csv"
        whole = gradients.read_text(encoding="utf-8")
        lines = whole.split("\n")
        gradients.write_text("\n".join(lines[:3] + ["1,2"] + lines[4:]), encoding="utf-8")
        self.assertEqual(self.refused("calibrate", "--run", "one"),
                         "one/gradients.csv:4: expected 17 cells as in the first line, found 2")
        # Of two rows the books of all the others would be told.
        for rows in (1, 3):
            gradients.write_text("\n".join(lines[:rows]) + "\n", encoding="utf-8")
            self.assertRegex(self.refused("calibrate", "--run", "one"), r"one/gradients.csv: has [01] rows of worker "
                             r"0, which has begun \d+ gradients by workers.csv: expected the whole table")
        # A killed run leaves a cut line, and no summary.
        gradients.write_text(whole[:-20], encoding="utf-8")
        for name in ("summary.json", "workers.csv", "servers.csv"):
            os.remove(self.work / "one" / name)
        answer = self.call("calibrate", "--run", "one", "--out", "killed.json")
        self.assertIn("the run did not come to its end", answer.stderr)
        gradients.write_text(lines[0] + "\n", encoding="utf-8")
        self.assertIn("no gradient was computed to its end", self.refused("calibrate", "--run", "one"))
        self.assertEqual(sorted(self.read("killed.json")),
                         ["compute", "cores", "date", "host", "levels", "notes", "profile_version"])
        os.remove(gradients)
        self.assertIn("trace.gradients is false", self.refused("calibrate", "--run", "one"))


if __name__ == "__main__":
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    unittest.main()
