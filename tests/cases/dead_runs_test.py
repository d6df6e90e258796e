"""Runs that faults bring to their end: who is waited for in vain is found, and named.

Usage: dead_runs_test.py RUBATO
"""

import unittest

from case import main
from fault_case import FaultCase, timing


class DeadRuns(FaultCase):
    """Each test runs the program on scenarios of its own."""

    def test_the_dead_are_found_whatever_else_breaks(self) -> None:
        """The only worker is down for good, and links, other hosts and the worker itself have spells at random."""
        dead = {"workers": [0], "at_s": 0.0025}
        for model in ("flow", "simgrid"):
            for other in ({"links": ["host-1"], "bandwidth_factor": 0.01}, {"workers": [0]}, {"hosts": ["host-1"]}):
                with self.subTest(model=model, **other):
                    scenario = timing([dead, {**other, "every_s": 0.02, "for_s": 0.05}], "async", 1)
                    scenario["cluster"]["network"]["model"] = model
                    scenario["stop"] = {"gradients": 29}
                    detail, run = self.ended(scenario, "deadlock")
                    self.assertIn("server waits for any worker to be back", detail)
                    self.assertLess(len(self.rows(run, "faults.csv")), 10_000)
        # One that will be back after many changes of a link is waited for.
        late = timing([{"workers": [0], "at_s": 0.5, "until_s": 300},
                       {"links": ["host-1"], "bandwidth_factor": 0.5, "every_s": 0.02, "for_s": 0.02}], "async", 1)
        late["stop"] = {"gradients": 3}
        self.assertEqual(self.summary(self.run_scenario(late))["gradients"]["applied"], 3)

    def test_gradients_that_never_end(self) -> None:
        faults = [{"workers": [0], "every_s": 0.001, "for_s": 0.001}]
        detail, run = self.ended(timing(faults, "async", 1, stop={"gradients": 29}), "deadlock")
        self.assertRegex(detail, r'^at \S+ s workers had crashed 10000 times, and no gradient had come in between: '
                                 r'worker 0 on host "host-1", the last, takes 1 s for one$')
        self.assertEqual(self.summary(run)["faults"]["crashes"], 10_000)
        # Another worker's gradients come.
        run = self.run_scenario(timing(faults, "async", 2, stop={"gradients": 29}))
        self.assertGreater(self.summary(run)["faults"]["crashes"], 10_000)

    def test_crashes_of_workers_without_anything_to_do(self) -> None:
        # Strided, and one slice an epoch: it is worker 0's.
        def alone(first: dict) -> dict:
            scenario = timing([first, {"workers": [1], "every_s": 0.001, "for_s": 0.001}], "async", 2,
                              stop={"gradients": 2})
            return {**scenario, "data": {"samples": 10, "sampling": "strided"}}

        for since in (0, 0.5):
            detail, _ = self.ended(alone({"workers": [0], "at_s": since}), "deadlock")
            self.assertIn('worker 1 on host "host-2" was the last; worker 0 on host "host-1" is down since '
                          f"{since} s", detail)
        # What will be back is waited for, and so is a gradient that takes as long.
        for first, seconds in (({"workers": [0], "at_s": 0.5, "until_s": 60}, 1), ({"workers": [0], "at_s": 500}, 40)):
            scenario = alone(first)
            scenario["cluster"]["devices"] = {"default": {"seconds": {"10": seconds}}}
            summary = self.summary(self.run_scenario(scenario))
            self.assertEqual(summary["gradients"]["applied"], 2)
            self.assertGreater(summary["faults"]["crashes"], 20_000)

    def test_barriers_of_bounded_staleness(self) -> None:
        for protocol in ({"name": "ssp", "bound": 0}, {"name": "dssp", "lower_bound": 0, "r_max": 0}):
            detail, _ = self.ended(timing([{"workers": [1], "at_s": 5.5, "until_s": 9.5}], protocol), "peer_lost")
            self.assertEqual(detail, 'at 5.5 s worker 1 on host "host-2" crashed, and a barrier '
                                     'does not go on without any of its workers')

    def test_a_deadlock_counts_whom_it_does_not_name(self) -> None:
        scenario = timing([{"workers": [0], "at_s": 3.25}], {"name": "bounded-delay", "k": 4}, 6, stop={"epochs": 1})
        scenario["faults"][0]["workers"] = [0, 1, 2, 3, 4, 5]
        detail, _ = self.ended(scenario, "deadlock")
        self.assertEqual(detail.count("worker "), 4 + detail.count("any worker"))
        self.assertTrue(detail.endswith("; and 3 more"), detail)

    def test_a_deadlock_names_who_is_waited_for(self) -> None:
        scenario = timing([{"workers": [0, 1, 2], "at_s": 3.25}], stop={"epochs": 1})
        detail, run = self.ended(scenario, "deadlock")
        self.assertIn('worker 0 on host "host-1" is down since 3.25 s', detail)
        self.assertIn("server waits for any worker to be back", detail)
        done = self.call("run", self.write(scenario), "--out", self.work / "x")
        self.assertEqual(done.returncode, 3)
        self.assertIn("the run ended as deadlock: ", done.stderr)
        self.assertEqual(self.summary(run)["gradients"]["cancelled"], 3)


if __name__ == "__main__":
    main()
