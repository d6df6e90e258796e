"""Every kind of platform of the SimGrid distribution runs four workers from end to end.

Usage: shared_platforms_test.py RUBATO. Reads shared/cases/platforms beside the repository; exit status 77 where that is
missing.
"""

import os
import re
import sys

from case import Case, main, shared_cases

FOLDER = shared_cases() / "platforms"
NAMES = {"cluster_backbone.xml", "cluster_crossbar.xml", "cluster_fat_tree.xml", "onelink.xml", "small_platform.xml",
         "small_platform_failures.xml", "small_platform_profile.xml", "two_hosts.xml"}


def four_workers(name: str, **cluster: object) -> dict:
    return {"cost": {"push_bytes": "10kB", "flops_per_sample": 1e5}, "data": {"samples": 1000},
            "workers": {"count": 4, "batch_size": 10}, "protocol": {"name": "n-softsync", "n": 2},
            "cluster": {"platform": str(FOLDER / name), **cluster}}


class SharedPlatforms(Case):
    """100 gradients of 10 samples each; the books must balance on whatever network."""

    def run_on(self, name: str, *arguments: str, **cluster: object) -> dict:
        done = self.call("run", self.write(four_workers(name, **cluster)), "--out", self.work / name, *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        for line in done.stderr.splitlines():
            self.assertTrue(line.startswith("rubato: warning: "), line)
        summary = self.summary(self.work / name)
        self.assertEqual((summary["status"], summary["samples"]), ("finished", 1000))
        self.assertEqual(summary["gradients"]["applied"] + summary["gradients"]["leftover"] +
                         summary["gradients"]["cancelled"], len(self.rows(self.work / name)))
        return summary

    def test_no_platform_is_left_out(self) -> None:
        self.assertEqual({path.name for path in FOLDER.glob("*.xml")}, NAMES)

    def test_all_that_do_not_fail(self) -> None:
        for name in sorted(NAMES - {"small_platform_failures.xml"}):
            with self.subTest(name):
                self.run_on(name)
                check = self.call("check", self.write(four_workers(name)))
                self.assertEqual(check.returncode, 0, check.stderr)
                self.assertRegex(check.stdout, r"(?m)^server +on \S+$")
                self.assertRegex(check.stdout, r"(?m)^routes +worker.* to server: .*B/s \(.*bps\), .*s; alone a grad")
                self.assertRegex(check.stdout, r"at least .* of virtual time; roughly .* to simulate here; about .*")

    def test_few_hosts_are_shared_and_it_is_said(self) -> None:
        for name in ("two_hosts.xml", "onelink.xml", "small_platform_profile.xml"):
            done = self.call("run", self.write(four_workers(name)), "--out", self.work / ("shared" + name))
            self.assertIn("warning: 4 workers share 1 host, up to 4 a host", done.stderr)
            self.assertIn("a gradient takes 4 times as long", done.stderr)

    def test_backbone_and_fat_tree_have_the_latencies_of_their_links(self) -> None:
        # 50 us up, 500 us on the backbone, 50 us down. In the fat tree hosts of one leaf are two links of 50 us apart,
        # others four; hosts 1 to 3 share the server's leaf.
        text = self.call("check", self.write(four_workers("cluster_backbone.xml"))).stdout
        self.assertRegex(text, r"workers 0-3 to server: 125 MB/s \(1 Gbps\), 600 us;")
        text = self.call("check", self.write(four_workers("cluster_fat_tree.xml"))).stdout
        self.assertRegex(text, r"workers 0-2 to server: 125 MB/s \(1 Gbps\), 100 us;")
        self.assertRegex(text, r"worker 3 to server: 125 MB/s \(1 Gbps\), 200 us;")

    def test_hosts_that_fail_elsewhere_or_later_do_not_matter(self) -> None:
        # Link 4 joins Tremblay and Bourassa, and goes off at 25 s.
        summary = self.run_on("small_platform_failures.xml", "--set", "workers.per_host=4", hosts=["Bourassa"])
        self.assertLess(summary["time_s"], 25)

    def test_a_link_that_goes_off_ends_the_run_with_its_books(self) -> None:
        # Link 3 joins Tremblay, the server's host, and Ginette, and goes off at 13 s.
        out = self.work / "off"
        scenario = four_workers("small_platform_failures.xml", devices={"default": {"a": 0.001}},
                                hosts=["Ginette", "Bourassa"])
        scenario["workers"]["per_host"] = 2
        scenario["protocol"] = {"name": "async"}
        scenario["cost"]["push_bytes"] = "30kB"
        scenario["stop"] = {"seconds": 20}
        done = self.call("run", self.write(scenario), "--out", out, "--events")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertRegex(done.stderr, 'the run ended as peer_lost: at 13.* s a transfer from .* on host "Ginette"')
        summary = self.summary(out)
        self.assertEqual(summary["status"], "peer_lost")
        rows = self.rows(out)
        self.assertGreater(len(rows), 0)
        self.assertEqual(sum(summary["gradients"].values()), len(rows))
        self.assertIn("leftover", {row["outcome"] for row in rows})
        # Nothing is charged beyond the failure.
        failed_s = float(re.search(r"at ([0-9.]+) s", summary["status_detail"])[1])
        for row in self.rows(out, "workers.csv"):
            self.assertLessEqual(sum(float(row[key]) for key in row if key.endswith("_s")), failed_s * 1.001)
        replay = self.call("replay", out)
        self.assertEqual(replay.returncode, 0, replay.stderr)

    def test_profiles_are_followed(self) -> None:
        # Jupiter, the server's host, is the one whose speed changes; the worker's is now.
        scenario = four_workers("small_platform_profile.xml", hosts=["Jupiter"], server_host="Fafard",
                                devices={"default": {"seconds": {"10": 1.0}}})
        scenario["workers"]["count"] = 1
        scenario["protocol"] = {"name": "async"}
        done = self.call("run", self.write(scenario), "--out", self.work / "run")
        self.assertNotIn("not followed", done.stderr)
        row = self.rows(self.work / "run")[0]
        # A second of work at half the speed until 2 s; it begins with the first word, which takes 10 ms.
        self.assertAlmostEqual(int(row["end_ns"]) / 1e9, 2 + 0.5 * int(row["begin_ns"]) / 1e9, delta=1e-6)


if __name__ == "__main__":
    if not FOLDER.is_dir():
        print("skipped:", FOLDER, "is not here")
        sys.exit(77)
    os.environ.setdefault("PYTHONDONTWRITEBYTECODE", "1")
    main()
