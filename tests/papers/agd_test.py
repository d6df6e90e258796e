"""Times of an iteration without a server: Daily, Vishnu and Siegel 2016, predicted by the scenarios that ship.

Usage: agd_test.py RUBATO REPOSITORY
"""

import json
import sys
import unittest
from pathlib import Path

PROGRAM = Path()
ROOT = Path()
DEVICES = (2, 4, 8)
SLACK = 1.005  # equal within half a per cent


def layer_seconds(net):
    """Of forward and backward pass, in the units of the table."""
    with open(ROOT / f"scenarios/models/{net}.json", encoding="utf-8") as file:
        layers = json.load(file)["layers"]
    return sum(layer["forward_s"] for layer in layers), sum(layer["backward_s"] for layer in layers)


def seconds(text):
    for unit, scale in (("us", 1e-6), ("ms", 1e-3)):
        if text.endswith(unit):
            return float(text[:-2]) * scale
    raise ValueError(text)


class Agd(unittest.TestCase):
    """What analysis/agd_times.py measures, which the tables of docs/validation.md are of."""

    @classmethod
    def setUpClass(cls):
        sys.path.insert(0, str(ROOT / "analysis"))
        import agd_times  # pylint: disable=import-outside-toplevel,import-error
        cls.found = agd_times.measure(PROGRAM, DEVICES)

    def cases(self):
        """Net, cluster, devices, seconds of an iteration by protocol, of a backward pass, and of applying."""
        for (net, cluster), by_devices in self.found.items():
            with open(ROOT / f"scenarios/papers/agd-{net}-{cluster}.json", encoding="utf-8") as file:
                scenario = json.load(file)
            whole = scenario["workers"]["count"] * scenario["workers"]["batch_size"]
            forward, backward = layer_seconds(net)
            for devices, times in by_devices.items():
                with self.subTest(net=net, cluster=cluster, devices=devices):
                    gradient = scenario["cluster"]["devices"]["default"]["b"] * whole / devices
                    apply = seconds(scenario["cluster"]["server"]["update_s"])
                    self.assertAlmostEqual(times["no-comm"], gradient + apply, delta=1e-5 * gradient)
                    yield net, cluster, devices, times, gradient * backward / (forward + backward), apply

    def test_the_less_is_waited_for_the_shorter_an_iteration(self):
        count = 0
        for *_, times, _, _ in self.cases():
            order = [times[name] for name in ("no-comm", "delayed 3", "delayed 2", "delayed 1", "sync")]
            for shorter, longer in zip(order, order[1:]):
                self.assertLessEqual(shorter, SLACK * longer, times)
            self.assertLess(times["delayed 1"], times["sync"])
            count += 1
        self.assertEqual(count, 12)

    def test_layers_save_a_backward_pass_at_most(self):
        for *_, times, backward, apply in self.cases():
            self.assertLessEqual(times["sync"] - times["layer-wise (a)"], backward * (1 + 1e-6), times)
            for order in ("layer-wise (b)", "layer-wise (c)", "layer-wise (b), 4 MB"):
                self.assertLessEqual(times["sync"] - times[order], (backward + apply) * (1 + 1e-6), times)

    def test_layers_are_between_delays_and_whole_sums_where_communication_exceeds_the_backward_pass(self):
        longer = []
        for net, cluster, devices, times, backward, _ in self.cases():
            if times["sync"] - times["no-comm"] <= backward:
                continue
            longer.append((net, cluster, devices))
            for order in ("layer-wise (a)", "layer-wise (b)", "layer-wise (c)", "layer-wise (b), 4 MB"):
                self.assertLessEqual(times["delayed 1"], SLACK * times[order], times)
                self.assertLessEqual(times[order], SLACK * times["sync"], times)
        self.assertEqual(longer, [("alexnet", "dgx1", 8)])

    def test_layers_that_are_too_many_are_slower_than_whole_sums_unless_they_are_put_together(self):
        slower = []
        for net, cluster, devices, times, _, _ in self.cases():
            each = [times[f"layer-wise ({order})"] for order in "abc"]
            if max(each) > SLACK * times["sync"]:
                self.assertGreater(min(each), 2 * times["sync"], times)
                slower.append((net, cluster, devices))
            self.assertLessEqual(times["layer-wise (b), 4 MB"], SLACK * times["sync"], times)
            self.assertLessEqual(times["delayed 1"], SLACK * times["layer-wise (b), 4 MB"], times)
        # 58 sums of 14 messages each, of 20 us and more.
        self.assertEqual(slower, [("googlenet", "dgx1", 8)])


if __name__ == "__main__":
    PROGRAM, ROOT = Path(sys.argv.pop(1)).resolve(), Path(sys.argv.pop(1)).resolve()
    unittest.main()
