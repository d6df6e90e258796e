"""Workers and hosts that crash and return, links that carry less, platforms that change: what each protocol does then.

Usage: faults_test.py RUBATO DATA, the folder of platform files. The case with files of shared/cases is left out where
they are missing.
"""

import re
import sys
import unittest
from pathlib import Path

from case import main, shared_cases
from fault_case import FaultCase, timing

DATA = Path()
PROTOCOLS = [
    {"name": "hardsync"}, {"name": "bsp"}, {"name": "bsp", "update": "per-gradient"}, {"name": "n-softsync", "n": 2},
    {"name": "async"}, {"name": "asp"}, {"name": "ssp", "bound": 1}, {"name": "ssp", "bound": None},
    {"name": "dssp", "lower_bound": 1, "r_max": 2}, {"name": "dssp", "lower_bound": 1, "r_max": 2, "mode": "strict"},
    {"name": "bounded-delay", "k": 4}, {"name": "backup-workers", "backups": 1},
    {"name": "backup-workers", "backups": 0}, {"name": "rennala", "gradients_per_update": 3},
    {"name": "ringmaster", "delay_threshold": 3}, {"name": "ringmaster", "delay_threshold": 2, "cancel": True},
    {"name": "admission", "bound": 2, "admit": "discard"}, {"name": "admission", "bound": 2, "admit": "pace"},
    {"name": "admission", "bound": 2, "admit": "withhold"}]
BARRIERS = ("hardsync", "bsp")


def on_hosts(hosts: list[str], platform: object = None, seconds: float = 4, **more: object) -> dict:
    """A worker on each of the hosts of a platform."""
    return timing([], count=len(hosts), **{"cluster": {
        "platform": str(platform or DATA / "changing.xml"), "hosts": hosts,
        "devices": {"default": {"seconds": {"10": seconds}}}}, **more})


class Faults(FaultCase):
    """Each test runs the program on scenarios of its own."""

    def test_one_that_is_back_when_nobody_else_was_left_does_not_wait(self) -> None:
        # The other two have no part of the data.
        for worker in range(3):
            scenario = {"data": {"samples": 4, "sampling": "strided"}, "model": {"name": "quadratic"},
                        "workers": {"count": 3, "batch_size": 4}, "protocol": {"name": "bounded-delay", "k": 1},
                        "cluster": {"devices": {"default": {"seconds": {"4": 0.1}}}}, "stop": {"epochs": 3},
                        "faults": [{"workers": [worker], "at_s": 0, "until_s": 0.001}]}
            summary = self.summary(self.run_scenario(scenario))
            self.assertEqual((summary["status"], summary["gradients"]["applied"]), ("finished", 3), worker)

    def test_every_protocol(self) -> None:
        spell = [{"workers": [1], "at_s": 5.5, "until_s": 9.5}]
        for protocol in PROTOCOLS:
            with self.subTest(protocol):
                if protocol["name"] in BARRIERS:
                    detail, run = self.ended(timing(spell, protocol), "peer_lost")
                    self.assertEqual(detail, 'at 5.5 s worker 1 on host "host-2" crashed, and a barrier '
                                             'does not go on without any of its workers')
                    self.assertLess(self.summary(run)["time_s"], 5.5)
                    continue
                run = self.run_scenario(timing(spell, protocol), "--events", "--timeline")
                self.assert_balanced(run)
                self.assertEqual(self.faults(run), [(5.5, "crash", "2", "host-2", ""),
                                                    (9.5, "return", "2", "host-2", "")])
                self.assertEqual(self.summary(run)["faults"], {"crashes": 1, "returns": 1, "links": 0})
                down = [row for row in self.rows(run, "timeline.csv") if row["kind"] == "down"]
                self.assertEqual([(row["role"], row["begin_ns"], row["end_ns"]) for row in down],
                                 [("2", "5500000000", "9500000000")])
                begins = [int(row["begin_ns"]) / 1e9 for row in self.of(run, 1)]
                self.assertFalse([begin for begin in begins if 5.5 < begin < 9.5])
                self.assertTrue([begin for begin in begins if begin >= 9.5], "it does not go on")
                # Nobody waits for it longer than for the gradients that it had under way.
                for worker in (0, 2):
                    meanwhile = [row for row in self.of(run, worker) if 6 < int(row["begin_ns"]) / 1e9 < 9.4]
                    self.assertGreaterEqual(len(meanwhile), 3, f"worker {worker} waits")
                # Nor it for them, nor they for what it has missed.
                for worker in range(3):
                    late = [row for row in self.of(run, worker) if int(row["begin_ns"]) / 1e9 > 10]
                    self.assertGreaterEqual(len(late), 17, f"worker {worker} waits afterwards")
                replay = self.call("replay", run)
                self.assertEqual(replay.returncode, 0, replay.stderr + replay.stdout)

    def test_what_it_was_doing_does_not_matter(self) -> None:
        # A gradient takes 1 s, its push and the pull 2 s each: all of them, and the moments between, are met.
        for protocol in ({"name": "async"}, {"name": "asp"}, {"name": "ssp", "bound": 1}, {"name": "hardsync"}):
            for at_s in (0, 0.5, 1, 1.5, 2.9, 3, 3.1, 4.9, 5, 5.000001, 5.5, 6, 7.5):
                for until in ({}, {"until_s": at_s + 1}):
                    with self.subTest(protocol=protocol, at_s=at_s, **until):
                        scenario = timing([{"workers": [0], "at_s": at_s, **until}], protocol, 2,
                                          cost={"push_bytes": 2e6, "pull_bytes": 2e6})
                        scenario["cluster"]["network"]["star"] = {"bandwidth": "1MBps", "server_bandwidth": "9MBps",
                                                                  "latency": "1us"}
                        if protocol["name"] == "hardsync":
                            detail, _ = self.ended(scenario, "peer_lost")
                            self.assertIn(f's worker 0 on host "host-1" crashed', detail)
                            continue
                        run = self.run_scenario(scenario)
                        self.assert_balanced(run)
                        lost = [row for row in self.of(run, 0) if row["outcome"] == "cancelled"]
                        self.assertLessEqual(len(lost), 1 + bool(until))
                        # The other goes on at its own speed: 5 s a gradient.
                        applied = [row for row in self.of(run, 1) if row["outcome"] == "applied"]
                        self.assertGreaterEqual(len(applied), 5)
                        mine = [row for row in self.of(run, 0) if int(row["begin_ns"]) >= at_s * 1e9]
                        self.assertEqual(bool(mine), bool(until))

    def test_leads_of_those_who_come_back_one_after_the_other(self) -> None:
        """Worker 0 is far ahead of worker 1, which came back while nobody else was there: it waits until it is near."""
        faults = [{"workers": [1], "at_s": 5.5, "until_s": 55.5}, {"workers": [0], "at_s": 50.5, "until_s": 60.5}]
        for protocol in ({"name": "ssp", "bound": 1}, {"name": "dssp", "lower_bound": 1, "r_max": 0}):
            with self.subTest(protocol):
                run = self.run_scenario(timing(faults, protocol, 2, stop={"seconds": 120}))
                begins = {worker: [int(row["begin_ns"]) / 1e9 for row in self.of(run, worker)
                                   if int(row["begin_ns"]) > 60e9] for worker in (0, 1)}
                # Worker 0 has 50 pushes; worker 1 comes back with 5, and has 49 about 44 s later.
                self.assertAlmostEqual(begins[0][0], 55.5 + 44, delta=2)
                self.assertGreater(len(begins[1]), 55)
                self.assertGreater(len(begins[0]), 18)

    def test_in_the_very_nanosecond_in_which_a_gradient_ends(self) -> None:
        """The step of its own that the worker takes then is lost with it, and with all that it holds."""
        star = {"model": "flow", "star": {"bandwidth": 1e15, "latency": 0}}
        for communication in ({"push_every": 3}, {"pull_every": 2}, {"push_every": 2, "pull_every": 2}):
            for at_s in (0.001, 0.002, 0.003, 0.004):
                with self.subTest(at_s=at_s, **communication):
                    scenario = {"data": {"dataset": "synthetic", "samples": 61, "test_samples": 20,
                                         "shape": [4, 4, 1], "classes": 3}, "model": {"name": "softmax"},
                                "workers": {"count": 2, "batch_size": 1, "communication": communication},
                                "protocol": {"name": "async"}, "stop": {"epochs": 2},
                                "cluster": {"network": star, "devices": {"default": {"b": 0.001}}},
                                "faults": [{"workers": [1], "at_s": at_s, "until_s": 0.0085},
                                           {"workers": [0], "at_s": 2 * at_s, "until_s": 0.0205}]}
                    run = self.run_scenario(scenario, "--events")
                    counts = self.summary(run)["gradients"]
                    self.assertEqual({kind: sum(int(row.get("count") or 1) for row in self.rows(run)
                                                if row["outcome"] == kind) for kind in counts}, counts)
                    done = self.call("replay", run, "--weights")
                    self.assertEqual(done.returncode, 0, done.stderr + done.stdout)

    def test_the_server_s_host(self) -> None:
        for protocol in ("hardsync", "async", "ssp"):
            detail, _ = self.ended(timing([{"hosts": ["host-0"], "at_s": 3.5, "until_s": 4}], protocol), "peer_lost")
            self.assertEqual(detail, 'at 3.5 s server on host "host-0" crashed, and no run goes on without its server')

    def test_a_host_takes_all_its_workers(self) -> None:
        scenario = timing([{"hosts": ["host-1"], "at_s": 3.5, "until_s": 6}], "asp", 4)
        scenario["workers"]["per_host"] = 2
        run = self.run_scenario(scenario)
        self.assertEqual([row[1:4] for row in self.faults(run)],
                         [("crash", "1", "host-1"), ("crash", "2", "host-1"),
                          ("return", "1", "host-1"), ("return", "2", "host-1")])
        self.assert_balanced(run)

    def test_all_at_once_come_back(self) -> None:
        for protocol in PROTOCOLS:
            if protocol["name"] in BARRIERS:
                continue
            with self.subTest(protocol):
                run = self.run_scenario(timing([{"workers": [0, 1, 2], "at_s": 3.25, "until_s": 8}], protocol))
                self.assert_balanced(run)
                self.assertGreater(len([row for row in self.rows(run) if int(row["begin_ns"]) >= 8e9]), 50)

    def test_spells_at_random_are_those_of_the_seed(self) -> None:
        faults = [{"workers": [0, 2], "every_s": 20, "for_s": 5}, {"hosts": ["host-2"], "every_s": 50, "for_s": 10}]
        seen = {}
        for protocol in ("async", "asp", "ssp", "rennala"):
            run = self.run_scenario(timing(faults, protocol, stop={"seconds": 1000}))
            self.assert_balanced(run)
            seen[protocol] = self.faults(run)
        self.assertGreater(len(seen["async"]), 100)
        for rows in seen.values():
            self.assertEqual(rows, seen["async"])
        other = self.run_scenario(timing(faults, stop={"seconds": 1000}, seeds={"timing": 77}))
        self.assertNotEqual(self.faults(other), seen["async"])
        # 20 s between, 5 s long; 40 spells of each of the two workers know the means to a quarter.
        times = [[row[0] for row in seen["async"] if row[2] == role] for role in ("1", "3")]
        down = sum(sum(one[1::2]) - sum(one[:2 * (len(one) // 2):2]) for one in times)
        self.assertAlmostEqual(down / sum(len(one) // 2 for one in times), 5, delta=1.7)
        self.assertAlmostEqual(sum(len(one) / 2 for one in times), 2 * 1000 / 25, delta=22)

    def degraded(self, model: str, fault: dict) -> list[float]:
        """Seconds of the pushes of one worker: 1 s of computation, then 1 MB at 1 MB/s."""
        scenario = timing([{"links": ["host-1"], **fault}], "async", 1, cost={"push_bytes": 1e6, "pull_bytes": 1},
                          stop={"gradients": 4})
        scenario["cluster"]["network"] = {"model": model, "star": {"bandwidth": "1MBps", "server_bandwidth": "1GBps",
                                                                   "latency": "1us"}}
        run = self.run_scenario(scenario)
        return [(int(row["applied_ns"]) - int(row["push_ns"])) / 1e9 for row in self.of(run, 0)
                if row["outcome"] == "applied"]

    def test_links_that_carry_less(self) -> None:
        for model in ("flow", "simgrid"):
            with self.subTest(model):
                # The first push, from 1 s on, has a quarter of a second at full speed, half a second at a tenth, then
                # 0.7 s at full speed; the third begins at 5.45 s and is cut likewise.
                for seconds, expected in zip(
                        self.degraded(model, {"at_s": 1.25, "until_s": 1.75, "bandwidth_factor": 0.1}),
                        [1.45, 1, 1, 1], strict=True):
                    self.assertAlmostEqual(seconds, expected, delta=1e-4)
                for seconds, expected in zip(self.degraded(model, {"at_s": 0, "bandwidth_factor": 0.5}),
                                             [2, 2, 2, 2], strict=True):
                    self.assertAlmostEqual(seconds, expected, delta=1e-4)
        for seconds in self.degraded("simgrid", {"at_s": 0, "latency_factor": 100000}):
            self.assertAlmostEqual(seconds, 1.1, delta=1e-4)
        path = self.write(timing([{"links": ["host-1"], "at_s": 0, "latency_factor": 2}]))
        done = self.call("run", path, "--out", self.work / "latency")
        self.assertEqual(done.returncode, 2)
        self.assertIn('"flow" cannot change the latency of a link ("host-1") in a run; "simgrid" can', done.stderr)

    def test_spells_of_one_link_multiply(self) -> None:
        scenario = timing([{"links": ["host-1"], "at_s": 1, "until_s": 9, "bandwidth_factor": 0.5},
                           {"links": ["host-1"], "at_s": 2, "until_s": 4, "bandwidth_factor": 0.5}])
        rows = self.rows(self.run_scenario(scenario), "faults.csv")
        self.assertEqual([(int(row["time_ns"]) / 1e9, float(row["bandwidth_factor"])) for row in rows],
                         [(1, 0.5), (2, 0.25), (4, 0.5), (9, 1)])

    def test_speeds_that_a_platform_changes(self) -> None:
        run = self.run_scenario(on_hosts(["tired", "steady"], stop={"seconds": 40}))
        seconds = [[(int(row["end_ns"]) - int(row["begin_ns"])) / 1e9 for row in self.of(run, worker)
                    if row["outcome"] == "applied"] for worker in (0, 1)]
        # 4 s of work: two until 8 s; 2 s of the third, and the rest by 14 s; the fourth has 3 s of work done by 20 s,
        # stands still until 30 s and ends at 31 s.
        for measured, expected in zip(seconds[0], [4, 4, 6, 17, 4, 4], strict=True):
            self.assertAlmostEqual(measured, expected, delta=1e-3)
        for measured in seconds[1]:
            self.assertAlmostEqual(measured, 4, delta=1e-3)
        alone = self.run_scenario(on_hosts(["tired"], stop={"seconds": 40}))
        self.assertEqual([(row["begin_ns"], row["end_ns"]) for row in self.of(alone, 0)][:4],
                         [(row["begin_ns"], row["end_ns"]) for row in self.of(run, 0)][:4])
        done = self.call("run", self.write(on_hosts(["tired", "steady"])), "--out", self.work / "said")
        self.assertNotIn("warning", done.stderr)

    def test_bandwidth_that_a_platform_changes(self) -> None:
        # From 4.5 s on half a second at 1 MB/s, then 0.5 MB at half of it.
        run = self.run_scenario(on_hosts(["far"], seconds=4.5, cost={"push_bytes": 1e6, "pull_bytes": 1},
                                         stop={"gradients": 2}))
        pushes = [(int(row["applied_ns"]) - int(row["push_ns"])) / 1e9 for row in self.of(run, 0)]
        self.assertAlmostEqual(pushes[0], 1.5, delta=1e-4)
        self.assertAlmostEqual(pushes[1], 2, delta=1e-4)

    def test_hosts_that_a_platform_turns_off(self) -> None:
        for hosts in (["leaving", "steady"], ["leaving"]):
            run = self.run_scenario(on_hosts(hosts, stop={"seconds": 40}))
            self.assert_balanced(run)
            self.assertEqual(self.faults(run), [(10, "crash", "1", "leaving", ""), (20, "return", "1", "leaving", "")])
            begins = [round(int(row["begin_ns"]) / 1e9, 3) for row in self.of(run, 0)]
            self.assertEqual(begins, [0, 4, 8, 20, 24, 28, 32, 36])
        detail, _ = self.ended(on_hosts(["steady", "leaving"], protocol={"name": "hardsync"}), "peer_lost")
        self.assertEqual(detail, 'at 10 s worker 1 on host "leaving" crashed, and a barrier does not go on '
                                 'without any of its workers')

    @unittest.skipUnless((shared_cases() / "platforms").is_dir(), "shared/cases is not here")
    def test_a_failing_platform_of_the_simgrid_distribution(self) -> None:
        folder = shared_cases() / "platforms"
        text = re.sub(r' state_file="profiles/(\w+)_state.profile"',
                      lambda found: ' state_file="faulty_host.profile"'
                      if found[1] == "jupiter" else "", (folder / "small_platform_failures.xml").read_text())
        learner = self.work / "learner.xml"
        (self.work / "faulty_host.profile").write_text((folder / "profiles" / "faulty_host.profile").read_text())
        learner.write_text(text)
        # Off from 10 to 11 s, 60 to 61 s and 100 to 101 s: when it computes, sends, receives, or does all by turns.
        doing = {"computes": (9, 1e3, 1e3), "sends": (0.5, 2e7, 1e3), "receives": (0.5, 1e3, 2e7),
                 "by turns": (0.2, 3e4, 3e4)}
        for name, (seconds, push, pull) in doing.items():
            for protocol in ("async", "hardsync"):
                with self.subTest(worker=name, protocol=protocol):
                    scenario = on_hosts(["Jupiter", "Fafard", "Bourassa"], learner, seconds, stop={"seconds": 150},
                                        cost={"push_bytes": push, "pull_bytes": pull}, protocol={"name": protocol})
                    if protocol == "hardsync":
                        detail, _ = self.ended(scenario, "peer_lost")
                        self.assertTrue(detail.startswith('at 10 s worker 0 on host "Jupiter" crashed'), detail)
                        continue
                    run = self.run_scenario(scenario)
                    self.assert_balanced(run)
                    self.assertEqual([row[:2] for row in self.faults(run)],
                                     [(at_s + back, "return" if back else "crash")
                                      for at_s in (10, 60, 100) for back in (0, 1)])
                    self.assertTrue(any(int(row["begin_ns"]) >= 101e9 for row in self.of(run, 0)))
        for protocol in ("async", "hardsync"):
            scenario = on_hosts(["Tremblay", "Fafard"], learner, 0.7, protocol={"name": protocol})
            scenario["cluster"]["server_host"] = "Jupiter"
            detail, _ = self.ended(scenario, "peer_lost")
            self.assertTrue(detail.startswith('at 10 s server on host "Jupiter" crashed'), detail)

    def test_a_learning_run_is_replayed(self) -> None:
        scenario = timing([{"workers": [0, 2], "every_s": 6, "for_s": 2}], {"name": "ssp", "bound": 1},
                          data={"dataset": "synthetic", "samples": 300, "test_samples": 50},
                          model={"name": "softmax"}, optimizer={"learning_rate": 0.05})
        del scenario["cost"]
        run = self.run_scenario(scenario, "--events")
        self.assertGreater(self.summary(run)["faults"]["crashes"], 3)
        again = self.run_scenario(scenario)
        self.assertEqual((run / "gradients.csv").read_bytes(), (again / "gradients.csv").read_bytes())
        done = self.call("replay", run, "--weights")
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)

    def test_a_run_that_goes_on(self) -> None:
        faults = [{"workers": [0, 2], "every_s": 6, "for_s": 3}, {"workers": [1], "at_s": 14.5, "until_s": 40}]
        whole = timing(faults, stop={"seconds": 60}, execution={"checkpoint": {"every_updates": 20}})
        first = self.run_scenario({**whole, "stop": {"seconds": 20}})
        done = self.call("run", self.write(whole), "--out", first, "--resume", "--quiet")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assert_balanced(first)
        spells = self.faults(self.run_scenario(whole))
        self.assertEqual([row for row in self.faults(first) if row[0] > 25], [row for row in spells if row[0] > 25])

    def test_what_is_refused(self) -> None:
        for fault, said in (
                ({"at_s": 1}, "faults[0]: expected one of: workers, hosts or links"),
                ({"workers": [0], "hosts": ["host-1"], "at_s": 1}, "expected one of: workers, hosts or links"),
                ({"workers": [3], "at_s": 1}, "faults[0].workers[0]: there is no such worker: they are 0 to 2"),
                ({"workers": [1, 1], "at_s": 1}, "faults[0].workers[1]: stands there twice"),
                ({"workers": [0]}, "expected one of: at_s (and until_s), or every_s with for_s"),
                ({"workers": [0], "at_s": 1, "every_s": 2, "for_s": 1}, "expected one of: at_s"),
                ({"workers": [0], "every_s": 2}, "for_s"),
                ({"workers": [0], "at_s": 3, "until_s": 3}, "faults[0].until_s: expected an end after the begin"),
                ({"workers": [0], "at_s": 3, "bandwidth_factor": 0.5}, "faults[0].bandwidth_factor: goes with links"),
                ({"links": ["host-1"], "at_s": 3}, "expected bandwidth_factor or latency_factor with links"),
                ({"hosts": ["host-4"], "at_s": 3},
                 'json:1: faults[0].hosts[0]: the platform has no host "host-4"; did you mean "host-'),
                ({"links": ["hoast-1"], "at_s": 3, "bandwidth_factor": 0.5},
                 'json:1: faults[0].links[0]: the platform has no link "hoast-1"; did you mean "host-1'),
                ({"worker": [0], "at_s": 3}, "workers")):
            with self.subTest(fault):
                self.assertIn(said, self.refused(timing([fault])))
                scenario = timing([fault])
                scenario["cluster"]["network"]["model"] = "simgrid"
                self.assertIn(said, self.refused(scenario))


if __name__ == "__main__":
    DATA = Path(sys.argv.pop(2)).resolve()
    main()
