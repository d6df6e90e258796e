"""Causes between a simulated and a real run: one thing differs, on one side alone, and compare must name it.

The real side runs under mpirun on emulated devices and links, long enough in each phase that it sleeps most of the
time: so a small and busy machine carries it. The prediction is calibrated from a real run without injection.

Usage: explain_test.py RUBATO.
"""

import copy
import json
import subprocess
import unittest
from typing import Any

from launch import PROGRAM, LaunchTest

PROTOCOLS = {"hardsync": {"name": "hardsync"}, "async": {"name": "async"}}
INJECTED = ("slow worker", "half the link", "dear update")
COUNT = 3
SLOW = COUNT - 1
NETWORK = ("push moving", "pull moving")


def real(protocol: dict[str, Any]) -> dict[str, Any]:
    """60 ms a gradient, 31 ms a message on the worker's own link, 1 ms an update.

    That is small, so that whom a push happens to meet at the server matters little; and noise lets workers meet now and
    then, not always or never.
    """
    return {
        "data": {"dataset": "synthetic", "samples": 100000, "test_samples": 20, "shape": [4, 4, 1], "classes": 3},
        "model": {"name": "softmax"},
        "cost": {"push_bytes": 300000, "pull_bytes": 300000},
        "workers": {"groups": [{"count": COUNT, "device": "even"}], "batch_size": 8},
        "protocol": protocol,
        "stop": {"gradients": 60 * COUNT},
        "cluster": {
            "network": {"star": {"bandwidth": "10MBps", "latency": "500us", "server_bandwidth": "10GBps"}},
            "devices": {"even": {"seconds": {"8": 0.06}}},
            "noise": {"lognormal_cv": 0.12},
            "server": {"push_s": 0.0005, "pull_s": 0.0002, "update_s": 0.001},
        },
        "execution": {"emulate": {"compute": True, "messages": True, "network": True}},
        "trace": {"timeline": True},
    }


def injected_into_real(scenario: dict[str, Any], what: str) -> dict[str, Any]:
    out = copy.deepcopy(scenario)
    if what == "slow worker":
        out["execution"]["emulate"]["slow"] = {str(SLOW): 1.3}
    elif what == "half the link":
        out["cluster"]["network"]["star"]["bandwidth"] = "5MBps"
    else:
        out["cluster"]["server"]["update_s"] += 0.002
    return out


def injected_into_simulation(resolved: dict[str, Any], what: str) -> dict[str, Any]:
    """resolved: scenario.json of the calibrated prediction, whose figures are numbers."""
    out = copy.deepcopy(resolved)
    cluster = out["cluster"]
    if what == "slow worker":
        slow = copy.deepcopy(cluster["devices"]["even"])
        slow["seconds"] = {batch: 1.3 * seconds for batch, seconds in slow["seconds"].items()}
        cluster["devices"]["slow"] = slow
        group = out["workers"]["groups"][0]
        out["workers"]["groups"] = [group | {"count": COUNT - 1}, group | {"count": 1, "device": "slow"}]
    elif what == "half the link":
        cluster["network"]["star"]["bandwidth"] /= 2
    else:
        cluster["server"]["update_s"] += 0.002
    return out


def weight(line: dict[str, Any]) -> float:
    """By what lines are ranked, but for their noise."""
    return max(abs(line["total"]), abs(line["own"]))


class ExplainTest(LaunchTest):
    """A simulation before --, a run under mpirun behind it."""

    def run_real(self, scenario: dict[str, Any], out: str) -> None:
        self.run_on("mpi", scenario, out, ranks=COUNT + 1)

    def calibrated(self, scenario: dict[str, Any], measured: str, out: str) -> dict[str, Any]:
        """Simulates with what the real run tells; the resolved scenario."""
        profile = self.path(f"{out}-profile.json")
        subprocess.run([PROGRAM, "calibrate", "--run", self.path(measured), "--out", profile], check=True,
                       capture_output=True, timeout=60)
        simulated = copy.deepcopy(scenario)
        # Gradients take the very times that a simulation draws; all else is as it was measured.
        for part in ("network", "server"):
            del simulated["cluster"][part]
        simulated["cluster"]["profile"] = profile
        self.run_on("sim", simulated, out)
        with open(self.path(out, "scenario.json"), encoding="utf-8") as file:
            return json.load(file)

    def explained(self, predicted: str, measured: str) -> dict[str, Any]:
        done = subprocess.run([PROGRAM, "compare", self.path(predicted), "--", self.path(measured), "--explain",
                               "--json"], capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)["explanation"]

    def assert_named(self, explanation: dict[str, Any], what: str, sign: int) -> None:
        """The first line is what was injected; sign: 1 where the measured side is the slower one."""
        told = json.dumps(explanation["causes"][:4], indent=1)
        top = explanation["causes"][0]
        self.assertGreater(sign * top["own"], 0, told)
        if what == "slow worker":
            self.assertEqual(top["label"], f"compute of worker {SLOW}", told)
        elif what == "half the link":
            self.assertIn(top["cause"], NETWORK, told)
            self.assertEqual(top["who"], "all", told)
        else:
            self.assertEqual((top["cause"], top["who"]), ("apply wait", "all"), told)

    def test_what_was_injected_into_one_side_comes_first(self) -> None:
        for name, protocol in PROTOCOLS.items():
            scenario = real(protocol)
            self.run_real(scenario, f"{name}-real")
            resolved = self.calibrated(scenario, f"{name}-real", f"{name}-sim")
            even = self.explained(f"{name}-sim", f"{name}-real")
            for number, what in enumerate(INJECTED):
                measured, predicted = f"{name}-real{number}", f"{name}-sim{number}"
                self.run_real(injected_into_real(scenario, what), measured)
                self.run_on("sim", injected_into_simulation(resolved, what), predicted)
                for pair, sign in (((f"{name}-sim", measured), 1), ((predicted, f"{name}-real"), -1)):
                    with self.subTest(protocol=name, injected=what, into="real" if sign > 0 else "simulated"):
                        explanation = self.explained(*pair)
                        self.assert_named(explanation, what, sign)
                        top = explanation["causes"][0]
                        # Without the injection nothing of that size is claimed of the like.
                        for line in even["causes"]:
                            if line["cause"] == top["cause"]:
                                self.assertLess(weight(line), weight(top), line["label"])


if __name__ == "__main__":
    unittest.main()
