"""Clusters that are uneven in space and time: speeds of workers, kinds of noise, spells of slowness.

Usage: uneven_test.py RUBATO
"""

import math
import statistics
from pathlib import Path

from case import Case, main


def timing(workers: dict, cluster: dict | None = None, **more: object) -> dict:
    """Timing only, over links that cost nothing to speak of."""
    return {"cost": {"push_bytes": 100}, "data": {"samples": 100000}, "workers": {"batch_size": 10, **workers},
            "protocol": {"name": "async"}, "stop": {"gradients": 400},
            "cluster": {"network": {"model": "flow"}, "devices": {"default": {"seconds": {"10": 1.0}}},
                        **(cluster or {})}, **more}


class Uneven(Case):
    """Each test runs the program on scenarios of its own."""

    def seconds(self, run: Path) -> dict[int, list[float]]:
        """Of gradients, by worker, in the order of their computation."""
        found: dict[int, list[tuple[int, float]]] = {}
        for row in self.rows(run):
            if row["end_ns"] != "-1" and row["end_ns"]:
                found.setdefault(int(row["worker"]), []).append(
                    (int(row["worker_seq"]), 1e-9 * (int(row["end_ns"]) - int(row["begin_ns"]))))
        return {worker: [seconds for _, seconds in sorted(rows)] for worker, rows in found.items()}

    def assert_each(self, workers: dict, expected: list[float]) -> None:
        found = self.seconds(self.run_scenario(timing({"count": len(expected), **workers})))
        for worker, seconds in enumerate(expected):
            for value in found[worker]:
                self.assertAlmostEqual(value, seconds, delta=1e-8 * seconds, msg=f"worker {worker}")

    def test_each_worker_has_a_speed_of_its_own(self) -> None:
        self.assert_each({"seconds": "sqrt(i)"}, [math.sqrt(i + 1) for i in range(5)])
        self.assert_each({"seconds": "1 + (i == lambda)"}, [1, 1, 2])
        self.assert_each({"seconds": [0.5, 3]}, [0.5, 3])
        self.assert_each({"slow": "1 + (i - 1) / lambda"}, [1, 1.25, 1.5, 1.75])
        self.assert_each({"slow": [1, 2, 4]}, [1, 2, 4])
        self.assert_each({"slow": {"2": 1.3, "comment": "the old machine"}}, [1, 1, 1.3])
        self.assert_each({"seconds": "i", "slow": {"0": 3}}, [3, 2])

    def test_spells(self) -> None:
        straggler = {"workers": [1], "slowdown": 3, "from_s": 10, "until_s": "20s"}
        found = self.seconds(self.run_scenario(timing({"count": 2}, {"stragglers": [straggler]})))
        self.assertAlmostEqual(max(found[0]), 1, delta=1e-6)
        # In ten seconds three gradients and a third are computed, those that the ends of the spell cut included.
        self.assertAlmostEqual(sum(found[1]) - len(found[1]), 10 - 10 / 3, delta=1e-3)  # messages take some time
        self.assertIn(sum(value > 2.999 for value in found[1]), (2, 3))
        random = {"slowdown": 5, "every_s": 20, "for_s": 20}
        found = self.seconds(self.run_scenario(timing({"count": 4}, {"stragglers": [random]}, stop={"seconds": 4000})))
        for worker in range(4):
            # Half of the time passes in spells, in which a fifth gets done.
            self.assertAlmostEqual(statistics.fmean(found[worker]), 1 / (0.5 + 0.1), delta=0.25)
        single = self.seconds(self.run_scenario(timing({"count": 1}, {"stragglers": [{"slowdown": 7,
                                                                                      "probability": 0.2}]})))[0]
        self.assertEqual({round(value, 6) for value in single}, {1, 7})

    def test_kinds_of_noise(self) -> None:
        for noise, least in (({"normal_cv": 0.2}, 0.05), ({"exponential_cv": 0.3}, 0.7), ({"lognormal_cv": 0.3}, 0)):
            run = self.run_scenario(timing({"count": 2}, {"noise": noise}, stop={"gradients": 8000}))
            values = [value for rows in self.seconds(run).values() for value in rows]
            self.assertAlmostEqual(statistics.fmean(values), 1, delta=0.02)
            self.assertAlmostEqual(statistics.stdev(values), next(iter(noise.values())), delta=0.02)
            self.assertGreaterEqual(min(values), least - 1e-9)

    def test_a_real_run_rehearses_them(self) -> None:
        scenario = timing({"count": 3, "slow": {"2": 2}},
                          {"devices": {"default": {"seconds": {"10": 0.02}}},
                           "stragglers": [{"workers": [0], "slowdown": 3, "until_s": 0.5}]},
                          stop={"seconds": 1.5}, model={"name": "quadratic", "dimension": 10},
                          execution={"emulate": {"compute": True}})
        del scenario["cost"]
        mean = {backend: {worker: statistics.fmean(values) for worker, values in self.seconds(
            self.run_scenario(scenario, "--backend", backend)).items()} for backend in ("sim", "local")}
        for worker in range(3):
            self.assertAlmostEqual(mean["local"][worker] / mean["sim"][worker], 1, delta=0.25)
        self.assertAlmostEqual(mean["sim"][2], 0.04, delta=1e-6)

    def test_mistakes(self) -> None:
        for workers, cluster, told in (
            ({"slow": [1, 2]}, {}, "workers.slow: expected a figure for each of the 3 workers, found 2"),
            ({"slow": {"3": 2}}, {}, "there is no such worker: they are 0 to 2"),
            ({"slow": {"1": 0}}, {}, "workers.slow.1: expected"),
            ({"seconds": "sqrt(j)"}, {}, "\"j\" is no variable; there are i, from 1 for the first worker on, and"),
            ({"seconds": "i - 2"}, {}, "gives -1 for i = 1, expected a finite number above 0"),
            ({"seconds": "1, 2"}, {}, "expected one value"),
            ({"seconds": {"0": 1}}, {}, "workers.seconds: expected"),
            ({}, {"noise": {"normal_cv": 0.2, "exponential_cv": 0.2}}, "cannot stand beside normal_cv"),
            ({}, {"noise": {"normal_cv": 0.7}}, "cluster.noise.normal_cv: expected"),
            ({}, {"noise": {"common": {"share": 0.5}}}, "time_s"),
            ({}, {"stragglers": [{"slowdown": 2}]}, "cluster.stragglers[0]: expected one of"),
            ({}, {"stragglers": [{"slowdown": 2, "probability": 0.1, "until_s": 3}]}, "expected one of"),
            ({}, {"stragglers": [{"slowdown": 2, "every_s": 3}]}, "for_s"),
            ({}, {"stragglers": [{"slowdown": 2, "from_s": 5, "until_s": 3}]}, "expected an end after the begin"),
            ({}, {"stragglers": [{"slowdown": 2, "probability": 0.1, "workers": [3]}]}, "they are 0 to 2"),
            ({}, {"stragglers": [{"slowdown": 2, "probability": 0.1, "workers": [1, 1]}]}, "stands there twice"),
            ({}, {"stragglers": [{"slowdwn": 2, "probability": 0.1}]}, "did you mean \"slowdown\"?")):
            with self.subTest(told):
                self.assertIn(told, self.refused(timing({"count": 3, **workers}, cluster), "check"))


main()
