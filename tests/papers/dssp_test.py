"""Times of Zhao et al. 2019 as the scenarios that ship predict them.

Usage: dssp_test.py RUBATO REPOSITORY
"""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PROGRAM = ""
ROOT = Path()
BASE_NOISE = 0.05


def rubato(*arguments):
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def seconds(scenario, protocol, **sets):
    """Simulated seconds of 30 epochs."""
    with tempfile.TemporaryDirectory(prefix="rubato-") as out:
        sets = {"protocol": json.dumps(protocol), "stop.epochs": 30, **sets}
        settings = [word for key, value in sets.items() for word in ("--set", f"{key}={value}")]
        path = ROOT / "scenarios/papers" / scenario
        said = rubato("run", path, "--quiet", "--json", "--force", "--out", out, *settings)
        return json.loads(said)["time_s"]


def script(*arguments):
    done = subprocess.run([sys.executable, ROOT / "analysis/dssp_times.py", *arguments], capture_output=True,
                          text=True, check=False)
    return done.returncode, done.stdout, done.stderr


class Table1(unittest.TestCase):
    """Published rows are read from analysis/data. Both were fitted on: that they are met says that the fit holds."""

    @classmethod
    def setUpClass(cls):
        import dssp_times  # pylint: disable=import-outside-toplevel

        cls.script = dssp_times
        cls.facts = dssp_times.published()
        cls.folder = tempfile.TemporaryDirectory(prefix="rubato-")  # pylint: disable=consider-using-with
        rubato("sweep", ROOT / "scenarios/sweeps/dssp-table1.json", "--out", cls.folder.name, "-j", 2)
        times = dssp_times.means(cls.folder.name, dssp_times.NOISE)
        cls.ratios = {noise: dssp_times.ratios(one, cls.facts["table1"]["reference"]) for noise, one in times.items()}
        cls.asp_seconds = times[BASE_NOISE]["asp"]

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_published_rows(self):
        for label, (ratio, _) in self.script.published_ratios(self.facts["table1"]).items():
            self.assertLess(abs(self.ratios[BASE_NOISE][label] / ratio - 1), 0.03, label)
        (asp,) = [row["time_s"] for row in self.facts["table1"]["rows"] if row["label"] == "asp"]
        self.assertLess(abs(self.asp_seconds / asp - 1), 0.02)

    def test_order_of_protocols(self):
        for noise, one in self.ratios.items():
            waiting = [ratio for label, ratio in one.items() if label not in ("asp", "dssp literal_next")]
            self.assertEqual(len(waiting), 6)
            self.assertEqual(min(one, key=one.get), "asp")
            self.assertLess(one["dssp literal_next"], 1.01, noise)
            # In the long run a bound on the lead makes the fast worker as slow as the slow one, whatever the bound.
            self.assertGreater(min(waiting), 1.8, noise)
            self.assertLess(max(waiting) / min(waiting), 1.01, noise)

    def test_the_ratio_follows_the_speeds(self):
        times = [seconds("dssp-table1.json", {"name": name}, **{"workers.slow": '{"1": 1.6}'})
                 for name in ("asp", "ssp")]
        self.assertAlmostEqual(times[1] / times[0], (1 + 1.6) / 2, delta=0.02)

    def test_the_page_is_that_of_the_scenario(self):
        status, said, error = script("table", self.folder.name)
        self.assertEqual((status, error), (0, ""))
        page = (ROOT / "docs/validation.md").read_text().splitlines()
        self.assertEqual([line for line in said.splitlines() if line not in page], [])

    def test_wrong_input_is_one_line(self):
        for arguments in (("table", "/no/such/sweep"), ("order", "resnet", self.folder.name)):
            status, _, error = script(*arguments)
            self.assertEqual((status, error.count("\n")), (2, 1), error)


class Orders(unittest.TestCase):
    """Four equal workers: who is fastest, beside what is published."""

    PROTOCOLS = {"asp": {"name": "asp"}, "bsp": {"name": "bsp"}, "ssp": {"name": "ssp", "bound": 6},
                 "dssp": {"name": "dssp"}}

    def order(self, scenario, **sets):
        times = {name: seconds(scenario, protocol, **sets) for name, protocol in self.PROTOCOLS.items()}
        return sorted(times, key=times.get), times

    def published(self, model):
        return json.loads((ROOT / "analysis/data/dssp.json").read_text())["orders"][model]

    def test_bound_by_communication(self):
        names, times = self.order("dssp-alexnet.json")
        facts = self.published("alexnet")
        self.assertEqual(names[-1:], facts["last"])
        self.assertGreater(times[names[-1]], 1.4 * times[names[0]])
        self.assertLess(times[facts["first"][0]], 1.02 * times[names[0]])

    def test_bound_by_compute(self):
        # A barrier is never a gain by itself; it is where each update costs the server time.
        names, _ = self.order("dssp-resnet.json")
        self.assertEqual(names[-1], "bsp")
        names, times = self.order("dssp-resnet.json", **{"cluster.server.update_s": 0.01})
        self.assertEqual(names[0], self.published("resnet")["first"][0])
        self.assertGreater(times[names[1]], 1.2 * times[names[0]])
        self.assertLess(times[names[-1]], 1.03 * times[names[1]])  # the order of the others is not predicted


if __name__ == "__main__":
    PROGRAM, ROOT = sys.argv.pop(1), Path(sys.argv.pop(1))
    sys.path.insert(0, str(ROOT / "analysis"))
    unittest.main()
