"""One look for each protocol: fixed, distinct, and legible in grey."""

import itertools
import os
import random
import tempfile
import unittest

from matplotlib.colors import to_rgb
from rubato_analysis import load
from rubato_analysis.label_styles import COLORS, label_style, label_styles, protocol_of_label, series_styles
from rubato_analysis.points import collect, series_of_points
from rubato_analysis.series import series_of
from rubato_analysis.styles import KINDS, PROTOCOLS, protocol_style
from rubato_analysis.sweep import load_sweep
from synthetic import write_run
from synthetic_sweep import write_sweep


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
            expected = {one.run.path: one.style for one in series_of(list(map(load, paths)))}
            draw = random.Random(1)
            for _ in range(20):
                some = draw.sample(paths, draw.randint(1, 4))
                for one in series_of(list(map(load, some))):
                    self.assertEqual(one.style, expected[one.run.path])

    def test_seeds_are_told_apart_whatever_their_order(self) -> None:
        with tempfile.TemporaryDirectory() as root:
            paths = [write_run(os.path.join(root, f"s{seed}"), "async", updates=5, seed=seed) for seed in (1, 2, 3)]
            forward = {one.label: one.style for one in series_of(list(map(load, paths)))}
            backward = {one.label: one.style for one in series_of(list(map(load, paths[::-1])))}
            self.assertEqual(forward, backward)
            self.assertEqual(sorted(forward), ["async, seed 1", "async, seed 2", "async, seed 3"])
            self.assertEqual(len(set(forward.values())), 3)

    def test_equal_runs_are_named_by_their_path(self) -> None:
        with tempfile.TemporaryDirectory() as root:
            paths = [write_run(os.path.join(root, leaf), "async", updates=5) for leaf in "ab"]
            labels = [one.label for one in series_of(list(map(load, paths)))]
            self.assertEqual(labels, [f"async ({path})" for path in paths])

    def test_seeds_share_a_label_where_they_are_one_series(self) -> None:
        with tempfile.TemporaryDirectory() as root:
            paths = [write_run(os.path.join(root, f"s{seed}"), "async", updates=5, seed=seed) for seed in (1, 2)]
            paths.append(write_run(os.path.join(root, "hard"), "hardsync", updates=5, rule="inverse-n"))
            self.assertEqual([one.label for one in series_of(list(map(load, paths)), seeds=False)],
                             ["async", "async", "hardsync"])
            paths.append(write_run(os.path.join(root, "again"), "async", updates=5, seed=2))
            labels = [one.label for one in series_of(list(map(load, paths)), seeds=False)]
            self.assertEqual((labels[2], len(set(labels))), ("hardsync", 4))


class LabelsTest(unittest.TestCase):
    """Series of sweeps go by labels."""

    def test_names_of_protocols(self) -> None:
        told = {"hardsync": ("hardsync", None), "SSGD": ("hardsync", None), "4-softsync": ("n-softsync", 4),
                "softsync": ("n-softsync", None), "lambda-softsync": ("n-softsync", 64), "ours": None, "async 2": None}
        for label, expected in told.items():
            self.assertEqual(protocol_of_label(label), expected)
        for name in PROTOCOLS:
            self.assertEqual(label_style(name), protocol_style(name))
        self.assertEqual(label_style("4-softsync"), protocol_style("n-softsync", 4))

    def test_case_29(self) -> None:
        """{hardsync, softsync, async}, then {async, ssp}, then the other way round: the same looks."""
        with tempfile.TemporaryDirectory() as root:
            looks = []
            for i, labels in enumerate((("hardsync", "softsync", "async"), ("async", "ssp"), ("ssp", "async"),
                                        ("async", "softsync", "hardsync"), ("ours", "async", "theirs"))):
                sweep = load_sweep(write_sweep(os.path.join(root, str(i)), labels, seeds=(1,)))
                points = collect([sweep])
                series = series_of_points(points.report, points.swept, ["setting.workers", "setting.batch_size"])
                self.assertEqual([one.label for one in series], list(labels))
                looks.append({one.label: one.style for one in series})
        first, second, third, fourth, fifth = looks
        self.assertEqual(first, fourth)
        self.assertEqual(second, third)
        self.assertEqual({first["async"], second["async"], fifth["async"]}, {protocol_style("async")})
        self.assertEqual(first["hardsync"], protocol_style("hardsync"))
        self.assertEqual(second["ssp"], protocol_style("ssp"))
        self.assertEqual(len({(look.color, look.marker) for look in (first | second).values()}), 4)

    def test_other_labels(self) -> None:
        labels = [f"variant {i}" for i in range(25)] + ["ours", "hardsync", "async"]
        styles = label_styles(labels)
        self.assertEqual(len({(style.marker, style.dash) for style in styles.values()}), len(labels))
        self.assertEqual(styles, label_styles(labels[::-1]))
        self.assertEqual(label_styles(["ours", "theirs"])["ours"], label_style("ours"))
        self.assertFalse(set(COLORS) & {style.color for style in PROTOCOLS.values()})
        for color, known in itertools.product(COLORS, PROTOCOLS.values()):
            distance = sum((x - y) ** 2 for x, y in zip(to_rgb(color), to_rgb(known.color))) ** 0.5
            self.assertGreater(distance, 0.2, (color, known))

    def test_settings_of_a_label(self) -> None:
        styles = series_styles([("async", "batch 16"), ("async", "batch 4"), ("ours", "")])
        self.assertEqual(styles["async", "batch 4"], protocol_style("async"))
        self.assertEqual(styles["async", "batch 16"].color, protocol_style("async").color)
        self.assertNotEqual(styles["async", "batch 16"], styles["async", "batch 4"])


if __name__ == "__main__":
    unittest.main()
