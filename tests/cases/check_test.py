"""rubato check: what it says of every kind of platform, and figures that are hardly meant.

Usage: check_test.py RUBATO.
"""

import json
from pathlib import Path

from case import Case, main

ROOT = Path(__file__).resolve().parents[2]
KINDS = {
    "star": {"kind": "star", "count": 5, "bandwidth": "10Gbps", "latency": "5us"},
    "full": {"kind": "full", "count": 5, "bandwidth": "10Gbps", "latency": "10us"},
    "fat-tree": {"kind": "fat-tree", "down": [5], "up": [1], "bandwidth": "10Gbps", "latency": "5us"},
    "torus": {"kind": "torus", "dimensions": [5], "bandwidth": "10Gbps", "latency": "10us"},
}


def scenario(**more: object) -> dict:
    """Nothing odd about it."""
    return {"cost": {"push_bytes": "1MB", "flops_per_sample": 1e8}, "data": {"samples": 10000},
            "workers": {"count": 4, "batch_size": 32}, "protocol": {"name": "async"}, **more}


def star(**figures: object) -> dict:
    return {"cluster": {"network": {"star": figures}}}


class Check(Case):
    """Each oddity is one warning, and what is not odd has none."""

    def check(self, more: dict) -> tuple[str, list[str]]:
        done = self.call("check", self.write(scenario(**more)))
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stderr.splitlines()
        for line in lines:
            self.assertRegex(line, r"^rubato: (warning|note): ")
        return done.stdout, [line.removeprefix("rubato: warning: ") for line in lines if "warning: " in line]

    def assert_odd(self, more: dict, *pieces: str) -> None:
        _, warnings = self.check(more)
        self.assertEqual(len(warnings), 1, warnings)
        for piece in pieces:
            self.assertIn(piece, warnings[0])

    def test_every_kind_of_platform_is_explained(self) -> None:
        for name, platform in KINDS.items():
            with self.subTest(name):
                path = self.work / "platform.json"
                path.write_text(json.dumps(platform))
                text, warnings = self.check({"cluster": {"platform": str(path)}})
                self.assertEqual(warnings, [])
                self.assertRegex(text, r"(?m)^server +on host-0$")
                self.assertIn("workers 0-3 on host-1 to host-4 (1 a host), device default: 3.2 s a gradient", text)
                # On a ring of five, hosts 1 and 4 are one link away and hosts 2 and 3 two.
                far = "worker 0 to server: " if name == "torus" else "workers 0-3 to server: "
                self.assertIn(far + "1.25 GB/s (10 Gbps), 10 us; alone a gradient takes 810 us, weights back 810", text)
                if name == "torus":
                    self.assertIn("workers 1-2 to server: 1.25 GB/s (10 Gbps), 20 us; alone a gradient takes 820", text)
                self.assertRegex(text, r"estimate +at most 313 gradients and 313 updates \(by epochs\), 939 messages")
                self.assertRegex(text, r"at least .* s of virtual time; roughly .* to simulate here; about .* on disk")

    def test_workers_that_crash_before_they_are_done(self) -> None:
        spell = {"every_s": 3.5, "for_s": 1}
        slow = {"cluster": {"devices": {"default": {"seconds": {"32": 3.2}}}}}
        self.assert_odd(slow | {"faults": [{"workers": [2], "every_s": 3.1, "for_s": 1}]},
                        "worker 2 crashes after 3.1 s on average and takes 3.2 s for a gradient: few come to their end")
        self.assert_odd(slow | {"faults": [{"workers": [1, 2], **spell}, {"hosts": ["host-3"], **spell}]},
                        "worker 2 crashes after 1.75 s on average")
        self.assert_odd(slow | {"faults": [{"workers": [1, 2, 3], "every_s": 1, "for_s": 1}]},
                        "worker 1, as 2 more, crashes")
        pushes = {"workers": {"count": 4, "batch_size": 32, "communication": {"push_every": 2}}}
        self.assert_odd(slow | {"faults": [{"workers": [1], **spell}], **pushes},
                        "takes 6.4 s for the 2 gradients of a push")
        for fault in ({"workers": [1], **spell}, {"workers": [1], "at_s": 0.1, "until_s": 0.2},
                      {"hosts": ["host-0"], "every_s": 1, "for_s": 1}):
            self.assertEqual(self.check(slow | {"faults": [fault]})[1], [])

    def test_what_ships_is_not_odd(self) -> None:
        for path in sorted(ROOT.glob("scenarios/**/*.json")):
            if "base" in json.loads(path.read_text()):
                continue  # a sweep
            if path.parent.name == "models":
                continue  # a layer table
            with self.subTest(path.name):
                done = self.call("check", path)
                self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_the_estimate_is_a_lower_bound(self) -> None:
        """In a torus the server has several links: no one of them carries all pushes."""
        for name in ("torus", "fat-tree", "five-sites", "two-racks", "mixed-star", "quadratic"):
            with self.subTest(name):
                path = ROOT / "scenarios" / f"{name}.json"
                said = self.call("check", path).stdout
                bound = float(said.split("at least ")[1].split(" s of virtual time")[0])
                done = self.call("run", path, "--quiet", "--json", "--out", name)
                # The noise of few gradients may beat its mean a little.
                self.assertLessEqual(0.97 * bound, json.loads(done.stdout)["time_s"])

    def test_figures_of_the_network(self) -> None:
        self.assert_odd(star(latency=20), "latency of 40 s", 'a number without unit is seconds; "40us"')
        self.assert_odd(star(bandwidth=10000), "10 kB/s (80 kbps): below 1 Mbps", "a number without unit is bytes/s")
        self.assert_odd(star(bandwidth="200Tbps"), "25 TB/s (200 Tbps): above 100 Tbps", "Gbps is bits and GBps bytes")
        self.assertEqual(self.check(star(bandwidth="1Mbps", latency="400ms"))[1], [])
        self.assertEqual(self.check(star(bandwidth="100Tbps"))[1], [])

    def test_figures_of_computing(self) -> None:
        _, warnings = self.check(star(host_speed=100))
        self.assertEqual(len(warnings), 2)
        self.assertIn('host "host-1" computes 100 flop/s: a prefix such as M or G may be missing', warnings[0])
        self.assertIn("1e+08 flops a sample on a host of 100 flop/s", warnings[1])
        seconds = {"cluster": {"devices": {"default": {"seconds": {"32": 5000}}}}}
        self.assert_odd(seconds, 'device "default" takes 5000 s for a gradient of 32 samples', "milliseconds meant?")
        seconds = {"cluster": {"devices": {"default": {"seconds": {"8": 0.9, "32": 0.09}}}}}
        self.assert_odd(seconds, "8 samples take 900 ms but 32 take only 90 ms")
        self.assert_odd({"cluster": {"noise": {"lognormal_cv": 10}}}, "it is a ratio, and 0.1 is 10 %")
        self.assert_odd({"cluster": {"server": {"push_s": 200}}}, "cluster.server.push_s is 200 s")

    def test_figures_of_learning(self) -> None:
        model = {"model": {"name": "quadratic", "dimension": 5}}
        self.assertEqual(self.check(model)[1], [])
        self.assert_odd({**model, "optimizer": {"learning_rate": 101}}, "learning_rate is 101")
        self.assert_odd({**model, "optimizer": {"learning_rate": 0}}, "nothing is learned")
        large = {"workers": {"count": 4, "batch_size": 20000}}
        self.assert_odd(large, "workers.batch_size is 20000, more than the 10,000")
        self.assert_odd({**model, "evaluate": {"every_epochs": 5}, "stop": {"epochs": 2}}, "beyond the end of the run")

    def test_sizes(self) -> None:
        self.assert_odd({"cost": {"push_bytes": "1PB", "flops_per_sample": 1e8}, "stop": {"gradients": 1}},
                        "a message of 1 PB is larger than this machine's memory", "sizes without unit are bytes")
        self.assert_odd({"stop": {"gradients": 10**11}, "trace": {"gradients": False, "updates": False}},
                        "the simulation would take roughly", "d: 100,000,000,000 gradients")
        _, warnings = self.check({"stop": {"gradients": 10**14}})
        self.assertEqual(len(warnings), 2)
        self.assertRegex(warnings[1], r"the run would write about 15 PB, and .* are free")

    def faults(self, faults: list, protocol: dict | None = None) -> list[str]:
        """The lines about faults."""
        text, warnings = self.check({"faults": faults, **({"protocol": protocol} if protocol else {})})
        self.assertEqual(warnings, [])
        lines = text.splitlines()
        labels = [number for number, line in enumerate(lines) if not line.startswith(" ")]
        first = next((number for number in labels if lines[number].startswith("faults ")), None)
        if first is None:
            return []
        return [line[12:] for line in lines[first:next(number for number in labels if number > first)]]

    def test_faults_are_told_as_what_when_and_who(self) -> None:
        self.assertEqual(self.faults([]), [])
        told = [
            ({"workers": [3], "at_s": 100, "until_s": 160}, "worker 3 crashes at 100 s, back at 160 s"),
            ({"workers": [0, 2], "at_s": "2ms"}, "workers 0, 2 crash at 2 ms, for good"),
            ({"workers": [1], "every_s": 600, "for_s": 30},
             "worker 1 crashes at random: up 600 s and down 30 s, means of exponential times"),
            ({"hosts": ["host-2"], "at_s": 5}, "host host-2 crashes with all that runs on it at 5 s, for good"),
            ({"hosts": ["host-1", "host-2"], "every_s": 600, "for_s": 30},
             "hosts host-1, host-2 crash with all that runs on them at random: each up 600 s and down 30 s, means of "
             "exponential times"),
            ({"links": ["host-1"], "at_s": 50, "until_s": 55, "bandwidth_factor": 0.1, "latency_factor": 10},
             "link host-1, from 50 s until 55 s: bandwidth times 0.1, latency times 10"),
            ({"links": ["host-1", "host-2"], "every_s": 600, "for_s": 30, "latency_factor": 2},
             "links host-1, host-2, at random each, for 30 s after every 600 s, means of exponential times: latency "
             "times 2")]
        self.assertEqual(self.faults([fault for fault, _ in told]), [line for _, line in told])

    def test_faults_that_end_the_run_and_those_that_are_too_many_to_list(self) -> None:
        crash, link = {"workers": [3], "at_s": 1}, {"links": ["host-1"], "at_s": 1, "bandwidth_factor": 0.5}
        ends = "a round waits for all: the first crash ends the run as peer_lost"
        self.assertIn(ends, self.faults([crash], {"name": "hardsync"}))
        self.assertNotIn(ends, self.faults([link], {"name": "hardsync"}))
        self.assertEqual(self.faults([crash], {"name": "backup-workers"}), ["worker 3 crashes at 1 s, for good"])
        warm = self.faults([crash], {"name": "async", "warm_start": {"epochs": 0.5}})
        self.assertEqual(warm[1:], ["a round waits for all: a crash within the warm start ends the run as peer_lost"])
        many = self.faults([crash] * 15, {"name": "hardsync"})
        self.assertEqual((len(many), many[12:]), (14, ["... and 3 more", ends]))
        listed = scenario(workers={"count": 20, "batch_size": 32}, faults=[{"workers": list(range(11)), "at_s": 1}])
        done = self.call("check", self.write(listed))
        self.assertIn("workers 0, 1, 2, 3, 4, 5, 6, 7 and 3 more crash at 1 s, for good", done.stdout, done.stderr)

    def test_virtual_time_that_nothing_can_hold_is_refused_before_anything_is_printed(self) -> None:
        done = self.call("check", self.write(scenario(**{**star(bandwidth=1e-9)})))
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("virtual time would pass 285 years", done.stderr)


if __name__ == "__main__":
    main()
