"""One look for each protocol: fixed, distinct, and legible in grey."""

import itertools
import os
import random
import tempfile
import unittest

from matplotlib.colors import to_rgb
from rubato_analysis.series import load_all, series_of
from rubato_analysis.styles import KINDS, PROTOCOLS, protocol_style
from synthetic import write_run


class StylesTest(unittest.TestCase):
    """Properties of the table, and of labels."""

    def test_no_two_protocols_share_a_colour_or_a_marker(self) -> None:
        self.assertEqual(len({style.color.lower() for style in PROTOCOLS.values()}), len(PROTOCOLS))
        self.assertEqual(len({style.marker for style in PROTOCOLS.values()}), len(PROTOCOLS))

    def test_colours_are_apart(self) -> None:
        for (a, first), (b, second) in itertools.combinations(PROTOCOLS.items(), 2):
            distance = sum((x - y) ** 2 for x, y in zip(to_rgb(first.color), to_rgb(second.color))) ** 0.5
            self.assertGreater(distance, 0.1, (a, b))

    def test_kinds_of_work_are_apart(self) -> None:
        self.assertEqual(len({style.color for style in KINDS.values()}), len(KINDS))

    def test_n_decides_the_shade(self) -> None:
        styles = {n: protocol_style("n-softsync", n) for n in (1, 2, 4, 8, 30)}
        self.assertEqual(len({style.color for style in styles.values()}), 5)
        self.assertEqual({style.marker for style in styles.values()}, {PROTOCOLS["n-softsync"].marker})
        self.assertEqual(styles[4], protocol_style("n-softsync", 4))
        reds = [to_rgb(styles[n].color)[0] for n in (1, 2, 4, 8, 30)]
        self.assertEqual(reds, sorted(reds))

    def test_an_unknown_protocol_has_a_look_too(self) -> None:
        self.assertEqual(protocol_style("mine"), protocol_style("mine"))
        self.assertNotIn(protocol_style("mine").color, {style.color for style in PROTOCOLS.values()})

    def test_variants_keep_colour_and_marker(self) -> None:
        looks = [protocol_style("async", variant=k) for k in range(5)]
        self.assertEqual({(look.color, look.marker) for look in looks}, {("#D55E00", "^")})
        self.assertEqual(len({(look.dash, look.fill) for look in looks}), 5)

    def test_looks_do_not_depend_on_order_or_company(self) -> None:
        with tempfile.TemporaryDirectory() as root:
            paths = [
                write_run(os.path.join(root, "hard"), "hardsync", updates=5, rule="none"),
                write_run(os.path.join(root, "soft"), "n-softsync", 2, updates=5, rule="none"),
                write_run(os.path.join(root, "async"), "async", updates=5, rule="none"),
                write_run(os.path.join(root, "ssp"), "ssp", updates=5, rule="none"),
            ]
            expected = {one.run.path: one.style for one in series_of(load_all(paths))}
            draw = random.Random(1)
            for _ in range(20):
                some = draw.sample(paths, draw.randint(1, 4))
                for one in series_of(load_all(some)):
                    self.assertEqual(one.style, expected[one.run.path])

    def test_seeds_are_told_apart_whatever_their_order(self) -> None:
        with tempfile.TemporaryDirectory() as root:
            paths = [write_run(os.path.join(root, f"s{seed}"), "async", updates=5, seed=seed) for seed in (1, 2, 3)]
            forward = {one.label: one.style for one in series_of(load_all(paths))}
            backward = {one.label: one.style for one in series_of(load_all(paths[::-1]))}
            self.assertEqual(forward, backward)
            self.assertEqual(sorted(forward), ["async, seed 1", "async, seed 2", "async, seed 3"])
            self.assertEqual(len(set(forward.values())), 3)

    def test_equal_runs_are_named_by_their_path(self) -> None:
        with tempfile.TemporaryDirectory() as root:
            paths = [write_run(os.path.join(root, leaf), "async", updates=5) for leaf in "ab"]
            labels = [one.label for one in series_of(load_all(paths))]
            self.assertEqual(labels, [f"async ({path})" for path in paths])


if __name__ == "__main__":
    unittest.main()
