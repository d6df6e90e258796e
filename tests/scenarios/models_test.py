"""Layer tables that ship: made by analysis/layer_tables.py, with the published number of parameters, and read.

Usage: models_test.py RUBATO ROOT FILE... with files of ROOT/scenarios.
"""

import csv
import json
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PROGRAM, ROOT, FILES = Path(), Path(), []

# Batch normalization with two parameters a channel; biases where the network has them.
PARAMETERS = {
    "alexnet": 60_965_224,  # Caffe's bvlc_alexnet
    "googlenet": 6_998_552,  # Caffe's bvlc_googlenet without auxiliary classifiers
    "vgg-a": 132_863_336,  # "133 million" in the paper
    "resnet34": 21_797_672,
    "resnet50": 25_557_032,
    "resnet152": 60_192_808,
    "resnet110": 1_727_962,  # "1.7 million" in the paper
    "cifar10-full": 89_578,
    "nlc-cnn": 1_922_511,  # 7.69 MB in the paper
}
# Millions of multiply-adds of a sample.
MACS = {"alexnet": 724.4, "googlenet": 1582.7, "vgg-a": 7609.1, "resnet34": 3663.8, "resnet50": 4089.2,
        "resnet152": 11513.6, "resnet110": 252.9, "cifar10-full": 12.3, "nlc-cnn": 8.7}  # fmt: skip


def tables() -> dict[str, dict]:
    """By name."""
    return {Path(name).stem: json.loads((ROOT / "scenarios" / name).read_text()) for name in FILES}


def scenario(layers: str) -> dict:
    """A small one."""
    return {"cost": {"layers": layers}, "protocol": {"name": "async"}, "workers": {"count": 2, "batch_size": 32},
            "data": {"samples": 320}, "cluster": {"devices": {"default": {"seconds": {"32": 0.1}}}}}


class Models(unittest.TestCase):
    """The tables as files, and as scenarios take them."""

    def test_the_script_makes_the_files_bit_for_bit(self) -> None:
        done = subprocess.run([sys.executable, ROOT / "analysis/layer_tables.py", "--check"], capture_output=True,
                              text=True, check=False)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def test_sums_are_those_that_are_published(self) -> None:
        self.assertEqual({name: sum(layer["parameters"] for layer in table["layers"])
                          for name, table in tables().items()}, PARAMETERS)
        self.assertAlmostEqual(4 * PARAMETERS["nlc-cnn"] / 1e6, 7.69, delta=0.001)

    def test_seconds_follow_from_the_operations(self) -> None:
        for name, table in tables().items():
            with self.subTest(name):
                self.assertEqual(table["name"], name)
                rows, scale = table["layers"], table["flops_per_s"] / table["batch_size"] / 2e6
                forward = sum(row["forward_s"] for row in rows) * scale
                self.assertAlmostEqual(forward, MACS[name], delta=0.05 + 1e-5 * MACS[name])
                self.assertEqual(rows[0]["backward_s"], rows[0]["forward_s"])
                for row in rows[1:]:
                    self.assertAlmostEqual(row["backward_s"], 2 * row["forward_s"], delta=1e-5 * row["forward_s"])

    def test_every_table_says_where_it_is_from_and_what_is_assumed(self) -> None:
        for name, table in tables().items():
            with self.subTest(name):
                self.assertIn("assumption, not a measurement", table["assumption"])
                self.assertTrue(table["source"] and table["derivation"])
                self.assertEqual(len({row["name"] for row in table["layers"]}), len(table["layers"]))

    def test_scenarios_take_them_by_name_and_by_path(self) -> None:
        for name, table in tables().items():
            for layers in (name, str(ROOT / f"scenarios/models/{name}.json")):
                with self.subTest(layers), tempfile.TemporaryDirectory() as work:
                    path = Path(work) / "s.json"
                    path.write_text(json.dumps(scenario(layers)))
                    done = subprocess.run([PROGRAM, "check", path], capture_output=True, text=True, check=False)
                    self.assertEqual((done.returncode, done.stderr), (0, ""))
                    row = re.search(r"^layers +(\d+), of ([\d,.e+]+) parameters; forward .*s, backward .*s for a "
                                    r"batch of (\d+)$", done.stdout, re.MULTILINE)
                    self.assertIsNotNone(row, done.stdout)
                    self.assertEqual((int(row[1]), int(row[3])), (len(table["layers"]), table["batch_size"]))

    def test_sweeps_show_the_names_of_tables_and_their_rates(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            work = Path(name)
            (work / "base.json").write_text(json.dumps(scenario("alexnet")))
            (work / "sweep.json").write_text(json.dumps({
                "base": "base.json",
                "axes": {"cost.layers": ["googlenet", "vgg-a"], "cost.layers_rate": ["5Tf", 1e12]}}))
            done = subprocess.run([PROGRAM, "sweep", work / "sweep.json", "--out", work / "out", "--quiet"],
                                  capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            with open(work / "out/results.csv", encoding="utf-8", newline="") as file:
                rows = list(csv.DictReader(file))
            self.assertEqual(sorted((row["cost.layers"], row["cost.layers_rate"]) for row in rows),
                             [("googlenet", "1e+12"), ("googlenet", "5Tf"), ("vgg-a", "1e+12"), ("vgg-a", "5Tf")])


if __name__ == "__main__":
    PROGRAM, ROOT, FILES = Path(sys.argv.pop(1)).absolute(), Path(sys.argv.pop(1)).absolute(), sys.argv[1:]
    del sys.argv[1:]
    unittest.main()
