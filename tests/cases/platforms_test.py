"""SimGrid platform files, wrong, old, ambiguous and right, from the command line; and the figures that they stand for.

Usage: platforms_test.py RUBATO DATA, the folder of the files.
"""

import json
import sys
from pathlib import Path

from case import Case, main

DATA = Path()
HEAD = "expected a SimGrid platform:"
# File: the line that the message names, and what it says.
REFUSED = {
    "v3.xml": (3, "version 3.0 of the platform format is too old; expected 4.1; simgrid_update_xml converts"),
    "v5.xml": (3, "version 5.0 of the platform format is from the future; expected 4.1, to which simgrid_update_xml"),
    "oldpower.xml": (2, "Bad attribute `power' in `host' element start tag. Attributes of older formats are converted "
                        "by simgrid_update_xml"),
    "slash.xml": (3, 'unknown unit "Gb/s"; did you mean Gbps (bits)?'),
    "lower.xml": (3, 'unknown unit "gbps"; did you mean GBps (bytes) or Gbps (bits)?'),
    "GFlops.xml": (3, 'unknown unit "GFlops"; did you mean Gf?'),
    "Us.xml": (3, 'unknown unit "Us"; did you mean us?'),
    "negspeed.xml": (3, 'speed of host "A" is -1e+09 flop/s; expected above zero'),
    "zerobw.xml": (3, 'bandwidth of link "l" is 0 bytes/s; expected above zero'),
    "unknownhost.xml": (3, 'route to or from "C", which is no host of the zone'),
    "unknownlink.xml": (3, 'link "zz" is used by a route but not defined'),
    "duphost.xml": (3, 'a second host named "A"'),
    "mix116.xml": (2, "Starting tag <cluster> is not allowed here"),
    "nodoctype.xml": (1, "the DOCTYPE line is missing; " + HEAD),
    "bom.xml": (1, "begins with a byte order mark"),
    "empty.xml": (1, "the file is empty; " + HEAD),
    "trunc.xml": (3, "the file ends in the middle"),
    "notxml.xml": (1, "not an XML file; " + HEAD),
}
WARNED = {
    "nounit_bw.xml": "value 125000000 for bandwidth of link l has no unit; Bps (bytes) is assumed",
    "nounit_lat.xml": "value 0.00005 for latency of link l has no unit; s (seconds) is assumed",
    "nounit_speed.xml": "value 1000000000 for speed of host A has no unit; f (flop/s) is assumed",
}
ACCEPTED = ("ok.xml", "v4.xml", "crlf.xml", "space81.xml", "Mf.xml", "gbps.xml", "GBps.xml", *WARNED)


def on(platform: object, **more: object) -> dict:
    """One worker, a gradient of 1 MB, LV08."""
    return {"cost": {"push_bytes": 1e6, "pull_bytes": 1e6, "flops_per_sample": 1e6}, "data": {"samples": 100},
            "workers": {"count": 1, "batch_size": 10}, "protocol": {"name": "hardsync"},
            "cluster": {"platform": str(platform), "network": {"simgrid": "LV08"}}, **more}


class Platforms(Case):
    """Cases 35a to 35i."""

    def push_seconds(self, platform: object) -> float:
        """How long the first push of 1 MB moves, with nobody else on the network."""
        run = self.run_scenario(on(platform), "--timeline")
        push = next(row for row in self.rows(run, "timeline.csv") if row["kind"] == "push")
        return (int(push["end_ns"]) - int(push["begin_ns"])) * 1e-9

    def json_platform(self, **platform: object) -> Path:
        path = self.work / f"platform{self.count}.json"
        path.write_text(json.dumps(platform))
        return path

    def compute_seconds(self, platform: object, workers: int, per_host: int) -> float:
        scenario = on(platform, workers={"count": workers, "batch_size": 10, "per_host": per_host})
        rows = self.rows(self.run_scenario(scenario))
        seconds = {(int(row["end_ns"]) - int(row["begin_ns"])) * 1e-9 for row in rows if row["samples"] == "10"}
        self.assertEqual(len(seconds), 1)
        return seconds.pop()

    def test_wrong_files_are_refused_in_one_line(self) -> None:
        for name, (line, message) in REFUSED.items():
            for command in ("run", "check"):
                with self.subTest(name, command=command):
                    said = self.refused(on(DATA / name), command)
                    self.assertTrue(said.startswith(f"{DATA / name}:{line}: {message}"), said)
        self.assertIn("there is no file", self.refused(on(DATA / "missing.xml")))

    def test_every_file_has_its_verdict(self) -> None:
        others = {"cluster.xml", "slow_cluster.xml", "failing_link.xml", "island.xml", "changing_latency.xml",
                  "changing.xml"}
        self.assertEqual({path.name for path in DATA.glob("*.xml")}, {*REFUSED, *ACCEPTED, *others})

    def test_right_files_run_and_assumed_units_are_told(self) -> None:
        for name in ACCEPTED:
            with self.subTest(name):
                warning = f"rubato: warning: {DATA / name}:3: {WARNED[name]}\n" if name in WARNED else ""
                for arguments in (["check"], ["run", "--out", "o", "--force"]):
                    done = self.call(*arguments, self.write(on(DATA / name)))
                    self.assertEqual((done.returncode, done.stderr), (0, warning))
        run = self.run_scenario(on(DATA / "space81.xml"))
        self.assertEqual(self.rows(run, "servers.csv")[0]["host"], "host 0")
        self.assertEqual(self.rows(run, "workers.csv")[0]["host"], "host 1")

    def test_a_message_takes_what_lv08_says(self) -> None:
        # 13.01 * latency + 1.05 * bytes / (0.97 * bandwidth) on a link that both directions share.
        self.assertAlmostEqual(self.push_seconds(DATA / "ok.xml"), 0.009310, delta=5e-7)
        self.assertAlmostEqual(self.push_seconds(DATA / "gbps.xml"), 0.009310, delta=5e-7)
        self.assertAlmostEqual(self.push_seconds(DATA / "GBps.xml"), 0.001733, delta=5e-7)
        exact = 13.01 * 50e-6 + 1.05 * 1e6 / (0.97 * 125e6)
        self.assertAlmostEqual(self.push_seconds(DATA / "ok.xml"), exact, delta=1.5e-9)

    def test_json_keeps_the_factor_of_eight(self) -> None:
        # Full duplex: no 1.05. The star has two links of 25 us; with 50 us one way.
        shapes = ({"kind": "full", "count": 2, "latency": "50us"}, {"kind": "star", "count": 2, "latency": "25us"},
                  {"kind": "fat-tree", "down": [2], "up": [1], "latency": "25us"},
                  {"kind": "torus", "dimensions": [2], "latency": "50us"})
        for shape in shapes:
            for bandwidth, bytes_per_s in (("1Gbps", 125e6), ("1GBps", 1e9), (125e6, 125e6)):
                with self.subTest(shape["kind"], bandwidth=bandwidth):
                    seconds = self.push_seconds(self.json_platform(bandwidth=bandwidth, **shape))
                    self.assertAlmostEqual(seconds, 13.01 * 50e-6 + 1e6 / (0.97 * bytes_per_s), delta=1.5e-9)

    def test_a_tenth_of_the_bandwidth_lengthens_a_hardsync_epoch(self) -> None:
        fast, slow = self.push_seconds(DATA / "cluster.xml"), self.push_seconds(DATA / "slow_cluster.xml")
        self.assertAlmostEqual(fast, 0.009548, delta=5e-7)
        self.assertAlmostEqual(slow, 0.083775, delta=5e-7)
        # One worker, ten rounds: each computes 10 samples of 1e6 flops (at 2 and 1 Gf), pushes, and, but for the last,
        # pulls. Before them the worker reports in a control message of 64 bytes.
        cases = (("cluster.xml", fast, 2e9, 125e6), ("slow_cluster.xml", slow, 1e9, 12.5e6))
        for name, seconds, speed, bytes_per_s in cases:
            report = 13.01 * 2 * 50e-6 + 64 / (0.97 * bytes_per_s)
            time = self.summary(self.run_scenario(on(DATA / name)))["time_s"]
            self.assertAlmostEqual(time, report + 10 * (10 * 1e6 / speed) + 19 * seconds, delta=1e-7)

    def test_speeds_and_cores_of_hosts_count(self) -> None:
        slow = self.json_platform(kind="star", count=3, speed="1Gf")
        one = self.compute_seconds(slow, 1, 1)
        self.assertAlmostEqual(one, 10 * 1e6 / 1e9, delta=1e-9)
        self.assertAlmostEqual(self.compute_seconds(self.json_platform(kind="star", count=3, speed="2Gf"), 1, 1),
                               one / 2, delta=1e-9)
        # cluster.xml: core="4" at 2 Gf. Four workers on a host are as fast as one, eight half as fast.
        alone = self.compute_seconds(DATA / "cluster.xml", 1, 1)
        self.assertEqual(self.compute_seconds(DATA / "cluster.xml", 4, 4), alone)
        self.assertAlmostEqual(self.compute_seconds(DATA / "cluster.xml", 8, 8), 2 * alone, delta=1e-9)

    def test_the_factors_stand_in_the_documentation(self) -> None:
        text = (DATA.parents[2] / "platforms" / "README.md").read_text()
        for figure in ("0.97", "13.01", "1.05"):
            self.assertIn(figure, text)

    def test_too_few_hosts_are_shared_and_it_is_said(self) -> None:
        path = self.write(on(DATA / "ok.xml", workers={"count": 8, "batch_size": 10}))
        done = self.call("run", path, "--out", "shared")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("8 workers share 1 host, up to 8 a host; workers.hosts = 1 says so on purpose", done.stderr)
        self.assertIn('warning: 8 workers on host "B" share its 1 core: a gradient takes 8 times as long', done.stderr)
        row = self.rows(self.work / "shared")[0]
        self.assertAlmostEqual((int(row["end_ns"]) - int(row["begin_ns"])) * 1e-9, 8 * 10 * 1e6 / 1e9, delta=1e-9)
        many = on(DATA / "ok.xml", workers={"count": 8, "batch_size": 10, "per_host": 2})
        self.assertIn("8 workers need 4 hosts besides the server's, and the platform offers 1", self.refused(many))


if __name__ == "__main__":
    DATA = Path(sys.argv.pop(2)).resolve()
    main()
