"""Mistyped and misplaced keys: refused before any work, with the place and a suggestion.

Usage: mistakes_test.py RUBATO.
"""

import fcntl
import json
import os

from case import Case, main

GOOD = """{
  "name": "mistakes",
  "cost": {"push_bytes": "1kB", "flops_per_sample": 1e6},
  "data": {"samples": 100},
  "workers": {"count": 8, "batch_size": 10},
  "protocol": {"name": "async"},
  "optimizer": {"learning_rate": 0.1},
  "stop": {"epochs": 1}
}
"""
# What is replaced, by what, the line that the message names, and the message.
MISTAKES = (
    ('"learning_rate"', '"learing_rate"', 7, 'optimizer.learing_rate: unknown key; did you mean "learning_rate"?'),
    ('"data": {', '"learning_rate": 0.1, "data": {', 4,
     "learning_rate: unknown key; it belongs at optimizer.learning_rate"),
    ('"learning_rate": 0.1', '"batch_size": 10', 7,
     "optimizer.batch_size: unknown key; it belongs at workers.batch_size"),
    ('"stop": {"epochs": 1}', '"stop": {"epoch": 1}', 8, 'stop.epoch: unknown key; did you mean "epochs"?'),
    ('"batch_size": 10', '"batch_size": 10, "count": 4', 5, 'duplicate key "count", already on line 5'),
    ('"stop"', '"data": {"samples": 5},\n  "stop"', 8, 'duplicate key "data", already on line 4'),
    ('"count": 8', '"count": "8"', 5,
     'workers.count: expected an integer from 1 to 1000000, found the string "8"; write 8 without quotes'),
    ('{"epochs": 1}', '{"epochs": 1},', 9, "trailing comma before '}'"),
    ('"batch_size": 10}', '"batch_size": 10,}', 5, "trailing comma before '}'"),
    ('"async"', '"asnyc"', 6, 'protocol.name: expected one of '),
    ("0.1", "NaN", 7, '"NaN" is not a JSON value'),
    ('"name": "mistakes"', "// a comment", 2, 'JSON has no comments; use the key "comment"'),
)


class Mistakes(Case):
    """Case 26, for scenario files and --set."""

    def refused_text(self, text: str, *arguments: str) -> str:
        (self.work / "s.json").write_text(text)
        for command in ("check", "run"):
            done = self.call(command, "s.json", *arguments)
            self.assertEqual((done.returncode, done.stdout), (2, ""), done)
            self.assertRegex(done.stderr, r"\Arubato: [^\n]+\n\Z")
            self.assertEqual([path.name for path in self.work.iterdir()], ["s.json"])
        return done.stderr.strip().removeprefix("rubato: ")

    def test_the_good_one_is_good(self) -> None:
        (self.work / "s.json").write_text(GOOD)
        self.assertEqual(self.call("run", "s.json", "--quiet").returncode, 0)

    def test_mistakes(self) -> None:
        for old, new, line, message in MISTAKES:
            with self.subTest(new):
                self.assertEqual(GOOD.count(old), 1)
                said = self.refused_text(GOOD.replace(old, new))
                self.assertTrue(said.startswith(f"s.json:{line}: {message}"), said)

    def test_truncated_anywhere(self) -> None:
        for length in range(0, len(GOOD) - 2, 23):
            said = self.refused_text(GOOD[:length])
            self.assertRegex(said, r"\As\.json:\d+: ")

    def test_on_the_command_line(self) -> None:
        said = self.refused_text(GOOD, "--set", "optimizer.learing_rate=1")
        self.assertIn('optimizer.learing_rate: unknown key; did you mean "learning_rate"?', said)
        self.assertIn("--set workers.count=\"8\"", self.refused_text(GOOD, "--set", 'workers.count="8"'))
        quoted = GOOD.replace('"learning_rate": 0.1', '"learning_rate": "0.1"')
        self.assertIn('found the string "0.1"; write 0.1 without quotes', self.refused_text(quoted))
        self.assertNotIn("quotes", self.refused_text(GOOD, "--set", "optimizer.learning_rate=1e400"))
        self.assertIn("it belongs at protocol.n", self.refused_text(GOOD, "--set", "n=4"))
        self.assertIn("expected KEY=VALUE", self.refused_text(GOOD, "--set", "protocol.name"))

    def test_names_that_the_platform_lacks(self) -> None:
        elsewhere = self.work.parent / f"{self.work.name}-platform.json"
        elsewhere.write_text('{"kind": "star", "count": 9, "bandwidth": "1Gbps", "latency": "1us"}')
        self.addCleanup(elsewhere.unlink)
        text = GOOD.replace('"stop"', f'"cluster": {{"platform": "{elsewhere}",\n    "server_host": "nas"}},\n  "stop"')
        self.assertIn('s.json:9: cluster.server_host: the platform has no host "nas"', self.refused_text(text))
        said = self.refused_text(text, "--set", "cluster.server_host=fs")
        self.assertIn('--set cluster.server_host=fs: cluster.server_host: the platform has no host "fs"', said)
        text = text.replace('"server_host": "nas"', '"hosts": ["nas"]')
        self.assertIn('s.json:9: cluster.hosts: the platform has no host "nas"', self.refused_text(text))
        faults = ('"faults": [{"hosts": ["host-1"], "at_s": 1},\n'
                  '    {"links": ["host-1", "lan"], "at_s": 1, "bandwidth_factor": 0.5}]')
        text = GOOD.replace('"stop"', f'"cluster": {{"platform": "{elsewhere}"}},\n  {faults},\n  "stop"')
        self.assertIn('s.json:10: faults[1].links[1]: the platform has no link "lan"', self.refused_text(text))

    def test_images_too_large(self) -> None:
        said = self.refused_text(GOOD, "--set", 'model={"name": "softmax"}', "--set", 'data.dataset="synthetic"',
                                 "--set", "data.shape=[4096,4096,128]")
        self.assertIn("data.shape: expected images of at most 67108864 numbers, found [4096, 4096, 128] with "
                      "2147483648", said)

    def test_two_runs_into_one_folder(self) -> None:
        (self.work / "s.json").write_text(GOOD)
        folder = self.work / "out"
        folder.mkdir()
        descriptor = os.open(folder, os.O_RDONLY)  # as a run does that is under way there
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        done = self.call("run", "s.json", "--out", "out", "--force")
        os.close(descriptor)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done)
        self.assertEqual(done.stderr,
                         "rubato: out: another run is writing there; --out names another folder\n")
        self.assertEqual(list(folder.iterdir()), [])
        self.assertEqual(self.call("run", "s.json", "--out", "out", "--quiet").returncode, 0)

    def test_in_a_file_that_is_extended(self) -> None:
        base = self.work / "below"
        base.mkdir()
        (base / "base.json").write_text(GOOD.replace('"learning_rate"', '"learing_rate"'))
        done = self.call("run", self.write({"extends": "below/base.json"}))
        self.assertEqual(done.returncode, 2)
        self.assertIn("below/base.json:7: optimizer.learing_rate: unknown key", done.stderr)

    def test_in_a_platform_file(self) -> None:
        platform = self.work / "p.json"
        for text, message in (('{"kind": "star", "count": 3, "bandwith": 1}', '/bandwith: unknown key; did you mean'),
                              ('{"kind": "star", "count": "3"}', '/count: is "3"; expected a whole number'),
                              ('{"kind": "star", "count": 3, "count": 4}', 'duplicate key "count"'),
                              ('{"kind": "star",\n "count": 3,}', "2: not valid JSON: syntax error while"),
                              ('{"kind": "star", "count": 3', "1: not valid JSON: syntax error while"),
                              ('{"kind": "star", "count": 3}\n\0}', "2: holds a zero byte: expected JSON text")):
            platform.write_text(text)
            said = self.refused({**json.loads(GOOD), "cluster": {"platform": str(platform)}})
            place = ":" if message[0].isdigit() else ": "
            self.assertTrue(said.startswith(f"{platform}{place}{message}"), said)


if __name__ == "__main__":
    main()
