"""Trees of servers of Gupta et al. 2015 (Rudra-adv, Rudra-adv*), predicted by the scenarios that ship.

Usage: trees_test.py RUBATO REPOSITORY
"""

import csv
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

PROGRAM = ""
ROOT = Path()


def run(scenario, sets):
    """A summary, and the rows of workers.csv and servers.csv."""
    with tempfile.TemporaryDirectory(prefix="rubato-") as out:
        settings = [word for key, value in sets.items() for word in ("--set", f"{key}={value}")]
        done = subprocess.run([PROGRAM, "run", ROOT / "scenarios/papers" / scenario, "--quiet", "--json", "--force",
                               "--out", out, *settings], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        tables = []
        for name in ("workers.csv", "servers.csv"):
            with open(Path(out) / name, newline="", encoding="utf-8") as file:
                tables.append(list(csv.DictReader(file)))
        return json.loads(done.stdout), *tables


def seconds(rows, *columns):
    return sum(float(row[column]) for row in rows for column in columns)


class Trees(unittest.TestCase):
    """Published figures are read from analysis/data."""

    @classmethod
    def setUpClass(cls):
        import rudra_trees  # pylint: disable=import-outside-toplevel

        cls.script = rudra_trees
        cls.facts = rudra_trees.published()

    def scenario(self, name):
        return json.loads((ROOT / "scenarios/papers" / name).read_text())

    def lines_of_the_page(self, table):
        done = subprocess.run([sys.executable, ROOT / "analysis/rudra_trees.py", table, "--rubato", PROGRAM],
                              capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        page = (ROOT / "docs/validation.md").read_text().splitlines()
        self.assertEqual([line for line in done.stdout.splitlines() if line not in page], [])


class Table1(Trees):
    def test_the_published_overlap(self):
        summary, *_ = run("rudra-table1.json", {})
        self.assertLess(abs(100 * summary["compute_utilization"] - self.facts["star"]["percent"]), 1.5)
        self.assertEqual(summary["setting"]["topology"], "star")

    def test_order_of_systems(self):
        overlap = {name: run("rudra-table1.json", sets)[0]["compute_utilization"]
                   for name, sets in self.script.SYSTEMS.items()}
        self.assertLess(2 * overlap["Rudra-base"], overlap["Rudra-adv"])
        self.assertLess(overlap["Rudra-adv"], overlap["Rudra-adv, computing while communicating"])
        self.assertLess(1.05 * overlap["Rudra-adv, computing while communicating"], overlap["Rudra-adv*"])

    def test_pushes_are_hidden_behind_computation(self):
        # A leaf takes in gradients for more than two fifths of the time, and yet no worker waits for it.
        summary, workers, servers = run("rudra-table1.json", self.script.DOWNCAST)
        self.assertLess(seconds(workers, "push_queued_s", "push_moving_s"), 0.001 * seconds(workers, "compute_s"))
        self.assertGreater(summary["compute_utilization"], 0.999)
        self.assertGreater(seconds(servers[1:], "push_s"), 0.4 * summary["time_s"] * len(servers[1:]))
        # Not so where it takes longer than computing.
        slow = {key: 1e-9 for key in self.script.COSTS}
        _, workers, _ = run("rudra-table1.json", {**self.script.DOWNCAST, **slow})
        self.assertGreater(seconds(workers, "push_queued_s", "push_moving_s"), 0.3 * seconds(workers, "compute_s"))

    def test_seconds_of_a_gradient_are_published_ones(self):
        for name in ("rudra-table1.json", "rudra-figure9.json"):
            device = self.scenario(name)["cluster"]["devices"]["default"]
            self.assertEqual({int(batch): value for batch, value in device["seconds"].items()}, self.facts["seconds"])

    def test_one_figure_is_fitted(self):
        fitted = self.script.fit(self.script.Simulator(PROGRAM), self.facts)
        for name in ("rudra-table1.json", "rudra-figure9.json"):
            self.assertEqual(set(self.scenario(name)["cluster"]["server"].values()) - {self.comment(name)}, {fitted})

    def comment(self, name):
        return self.scenario(name)["cluster"]["server"].get("comment")

    def test_the_page_is_that_of_the_scenario(self):
        self.lines_of_the_page("table1")

    def test_wrong_input_is_one_line(self):
        done = subprocess.run([sys.executable, ROOT / "analysis/rudra_trees.py", "table1", "--rubato", "/no/such"],
                              capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done.stderr)
        with tempfile.TemporaryDirectory(prefix="rubato-") as name:
            path = Path(name) / "facts.json"
            for text in ("", "[]", "{}", '{"samples": 1, "overlap": [], "one_learner": {}, "epochs": []}'):
                path.write_text(text)
                with mock.patch.object(self.script, "PUBLISHED", path):
                    self.assertRaisesRegex(self.script.Wrong, "^[^\n]+$", self.script.published)


class ImageNet(Trees):
    def test_order_of_systems(self):
        runs = self.script.Simulator(PROGRAM).epochs({})
        minutes, staleness = {}, {}
        for name, sets, summary in runs:
            minutes.setdefault(name.removesuffix("-softsync"), []).append(self.script.minutes(summary))
            staleness[name, sets["workers.batch_size"]] = summary["staleness"]["mean"]
        hard, soft = minutes["base-hardsync"], minutes["base"]
        for one, two in zip(minutes["adv*"], minutes["adv"]):  # batch sizes 4 and 8
            self.assertLess(1.05 * one, two)
            self.assertLess(1.2 * two, soft[0])
        self.assertLess(1.2 * soft[0], hard[0])
        for batch_size in (4, 8):
            self.assertGreater(staleness["adv*-softsync", batch_size], 1.02 * staleness["adv-softsync", batch_size])
        self.assertEqual(staleness["base-hardsync", 16], 0)

    def test_the_epoch_whose_computation_was_used(self):
        # Its minutes are those of computation alone; that nothing else is added is the prediction.
        (row,) = self.facts["epochs"]
        times = {(name, sets["workers.batch_size"]): self.script.minutes(summary)
                 for name, sets, summary in self.script.Simulator(PROGRAM).epochs({})}
        self.assertLess(abs(times[row["system"], row["batch_size"]] / row["minutes"] - 1), 0.03)

    def test_hosts_follow_from_workers(self):
        for workers, hosts in ((18, 4), (54, 8)):
            _, rows, _ = run("rudra-imagenet.json", {"workers.count": workers, "topology.name": "tree",
                                                  "stop.epochs": 0.001})
            self.assertEqual(len({row["host"] for row in rows}), hosts)

    def test_the_page_is_that_of_the_scenario(self):
        for table in ("imagenet", "assumptions"):
            self.lines_of_the_page(table)


class Figure9(Trees):
    def test_the_machine_is_the_same(self):
        mine, theirs = self.scenario("rudra-figure9.json"), self.scenario("rudra-table1.json")
        self.assertEqual(mine["workers"]["hosts"], theirs["workers"]["hosts"])
        cost = self.scenario("rudra-imagenet.json")["cost"]
        self.assertEqual({**cost, "comment": ""}, {**mine["cost"], "comment": ""})

        def bare(tree):
            return {key: bare(value) if isinstance(value, dict) else value
                    for key, value in tree.items() if key != "comment"}

        self.assertEqual(bare(mine["cluster"]), bare(theirs["cluster"]))

    def test_time_to_a_fixed_error(self):
        with tempfile.TemporaryDirectory(prefix="rubato-") as folder:
            file, out = Path(folder) / "two-seeds.json", Path(folder) / "out"
            sweep = json.loads((ROOT / "scenarios/sweeps/rudra-figure9.json").read_text())
            sweep.update(base=str(ROOT / "scenarios/papers/rudra-figure9.json"), seeds=[1, 2])
            file.write_text(json.dumps(sweep))
            done = subprocess.run([PROGRAM, "sweep", file, "--out", out, "-j", "2", "--quiet"], capture_output=True,
                                  text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(out / "aggregate.csv", newline="", encoding="utf-8") as file:
                rows = {row["label"].removesuffix("-softsync"): row for row in csv.DictReader(file)}
        times = [float(rows[name.removesuffix("-softsync")]["time_to_target_s.mean"]) for name in self.facts["order"]]
        self.assertEqual(times, sorted(times))
        for one, two in zip(times, times[1:]):
            self.assertLess(1.05 * one, two, times)
        self.assertGreater(float(rows["adv*"]["staleness.mean.mean"]), float(rows["adv"]["staleness.mean.mean"]))


if __name__ == "__main__":
    PROGRAM, ROOT = sys.argv.pop(1), Path(sys.argv.pop(1))
    sys.path.insert(0, str(ROOT / "analysis"))
    unittest.main()
