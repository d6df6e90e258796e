"""Arithmetic behind the tables of averaging in phases, and that scenarios agree on the fitted costs."""

import json
import math
import sys
import unittest
from pathlib import Path

from pandas import DataFrame, Series

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "analysis"))

import mpca_phases  # noqa: E402
import mpca_runs  # noqa: E402
from rubato_analysis import AnalysisError  # noqa: E402


def scenario(name: str) -> dict:
    """A file under scenarios/."""
    return json.loads((ROOT / "scenarios" / name).read_text(encoding="utf-8"))


class RunsTest(unittest.TestCase):
    """Small numbers, by hand."""

    def test_suggested_tau_is_that_of_the_paper(self) -> None:
        for row in json.loads(mpca_runs.PUBLISHED.read_text(encoding="utf-8"))["rows"]:
            if "exchange_s" in row:
                self.assertEqual(mpca_runs.suggested_tau(row["exchange_s"], row["step_s"]), row["tau"])

    def test_busy_share_cuts_what_lies_outside(self) -> None:
        begin, end = Series([0.0, 20.0, 90.0, 300.0]), Series([15.0, 40.0, 130.0, 310.0])
        # Of 10 to 110: 5, 20 and 20, of two workers.
        self.assertAlmostEqual(mpca_runs.busy_share(begin, end, (10.0, 110.0), 2), 45 / 200)

    def test_middle_is_in_nanoseconds(self) -> None:
        self.assertEqual(mpca_runs.middle(10), (2e9, 8e9))

    def test_smallest_is_found_wherever_it_is(self) -> None:
        for first in (1, 2, 3, 7, 8, 100, 1023):
            self.assertEqual(mpca_runs.smallest(lambda at, first=first: at >= first), first)

    def test_newton_finds_a_pair_and_says_where_there_is_none(self) -> None:
        def error(x: float, y: float) -> list[float]:
            return [8 * x + 0.5 * y - 3, 8 * x + 40 * y - 50 + 0.1 * x * y]

        x, y = mpca_runs.newton(error, (1.0, 1.0), (1e-4, 1e-4))
        self.assertLess(max(map(abs, error(x, y))), 1e-4)
        with self.assertRaises(AnalysisError):
            mpca_runs.newton(lambda x, y: [x * x + 1, y], (3.0, 1.0), (1e-4, 1e-4))


class PhasesTest(unittest.TestCase):
    """Tables of a run, written down."""

    def rounds(self) -> DataFrame:
        """Cycles of two seconds, two shards in turn, each with the mean 3 s after its word and broadcast by 5 s."""
        begin = [2_000_000_000 * number for number in range(10)]
        return DataFrame({"shard": [number % 2 for number in range(10)], "reduce_begin_ns": begin,
                          "reduce_end_ns": [at + 3_000_000_000 for at in begin],
                          "broadcast_end_ns": [at + 5_000_000_000 for at in begin[:-1]] + [math.nan]})

    def test_stages(self) -> None:
        self.assertEqual(mpca_phases.stages(self.rounds()), {"cycle": 2.0, "interval": 4.0, "delay": 5.0})
        self.assertEqual(set(mpca_phases.reduces(self.rounds())), {3.0})

    def test_link_is_a_part_of_each_direction(self) -> None:
        servers = DataFrame({"role": [0], "bytes_out": [250e6], "bytes_in": [25e6]})
        self.assertEqual(mpca_phases.link(servers, 4.0), (0.5, 0.05))

    def test_weights_are_parts_of_the_steps_of_a_cycle(self) -> None:
        rows = [(cycle, worker, 1 if worker == 2 else 2) for cycle in range(6, 9) for worker in range(3)]
        exchanges = DataFrame(rows, columns=["cycle", "worker", "steps"])
        slow, other = mpca_phases.weights(exchanges, [2])
        self.assertAlmostEqual(slow, 0.2)
        self.assertAlmostEqual(other, 0.4)

    def test_longest_wait_is_of_the_workers_named(self) -> None:
        exchanges = DataFrame({"cycle": [5, 6, 7, 7], "worker": [1, 1, 1, 0], "asked_ns": [0] * 4,
                               "begin_ns": [9e9, 1e9, 2e9, 8e9]})
        self.assertEqual(mpca_phases.longest_wait(exchanges, [1]), 2.0)

    def test_differences_are_paired_by_seed(self) -> None:
        one, other = Series([3.0, 4.0, 6.0], index=[1, 2, 3]), Series([4.0, 1.0, 2.0], index=[3, 1, 2])
        mean, half = mpca_phases.paired(one, other)
        self.assertAlmostEqual(mean, 2.0)
        self.assertAlmostEqual(half, 0.0)
        mean, half = mpca_phases.ci95(Series([1.0, 2.0, 3.0]))
        self.assertAlmostEqual(half, 4.303 / math.sqrt(3), delta=1e-3)
        with self.assertRaises(AnalysisError):
            mpca_phases.paired(one, other.drop(2))

    def test_who_is_compared_at_the_end(self) -> None:
        labels = ["easgd", "mpca", "streaming-diloco", "async", "async, free messages"]
        self.assertEqual(mpca_phases.compared(labels),
                         [("mpca", "easgd"), ("streaming-diloco", "easgd"), ("streaming-diloco", "mpca"),
                          ("async", "mpca"), ("async, free messages", "async")])
        self.assertEqual(mpca_phases.compared(["easgd", "async"]), [])

    def test_last_error_is_the_newest_by_then(self) -> None:
        evals = DataFrame({"time_ns": [0, 10_000_000_000, 20_000_000_000], "test_error": [0.9, 0.2, 0.1]})
        self.assertAlmostEqual(mpca_phases.last_error(evals, 19), 20.0)
        self.assertAlmostEqual(mpca_phases.last_error(evals, 20), 10.0)


class CostsTest(unittest.TestCase):
    """What is fitted stands in several files."""

    def test_the_comparison_has_the_fitted_costs(self) -> None:
        fitted = scenario("papers/mpca-table1.json")["cluster"]["exchange"]
        base = scenario("sweeps/mpca-fashion-base.json")
        self.assertEqual(base["cluster"]["exchange"], {key: fitted[key] for key in ("send_s", "send_s_per_byte")})
        (charged,) = [one["set"] for one in scenario("sweeps/mpca-fashion.json")["variants"] if one["label"] == "async"]
        self.assertEqual(charged["cluster.server"],
                         {"pull_s": fitted["send_s"], "pull_s_per_byte": fitted["send_s_per_byte"]})
        message = int(float(base["cost"]["push_bytes"].removesuffix("MiB")) * mpca_runs.MIB)
        own = base["cluster"]["devices"]["default"]["seconds"]["64"]
        self.assertAlmostEqual(charged["cluster.devices"]["default"]["seconds"]["64"],
                               own + fitted["send_s"] + fitted["send_s_per_byte"] * message, delta=5e-5)


if __name__ == "__main__":
    unittest.main()
