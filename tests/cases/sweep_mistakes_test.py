"""Case 26 for sweep files: what is mistyped or misplaced is refused before any work, with place and suggestion.

Usage: sweep_mistakes_test.py RUBATO.
"""

import case
from sweeps import SweepCase

GOOD = """{
  "base": "base.json",
  "seeds": [1, 2],
  "variants": [
    {"label": "async", "set": {"protocol": {"name": "async"}}},
    {"label": "soft", "set": {"protocol": {"name": "n-softsync", "n": 2}}}
  ],
  "axes": {
    "workers.batch_size": [4, 8],
    "workers.count": [4, 5]
  },
  "zip": [["workers.batch_size", "workers.count"]],
  "where": "workers.count * workers.batch_size <= 100"
}
"""
# What is replaced, by what, the line that the message names, and the message.
MISTAKES = (
    ('"seeds"', '"sedes"', 3, 'sedes: unknown key; did you mean "seeds"?'),
    ('"seeds": [1, 2]', '"seeds": [1, 1]', 3, "seeds: seed 1 stands there twice"),
    ('"seeds": [1, 2]', '"seeds": [1, "2"]', 3, "seeds[1]: expected an integer from 0 to"),
    ('"seeds": [1, 2]', '"seeds": 3', 3, "seeds: expected an array, found the number 3"),
    ('"seeds": [1, 2]', '"protocol": {"name": "async"}', 3,
     "protocol: unknown key; it is a key of scenarios: it belongs into the base"),
    ('"base": "base.json",', '"base": "nowhere.json",', 2, "base: there is no file nowhere.json"),
    ('"base": "base.json",', '"base": ".",', 2, "base: . is a folder, expected a scenario file"),
    ('"base": "base.json",', '"comment": "x",', 1, '"base" is missing: expected a string'),
    ('"label": "soft"', '"label": "so\\nft"', 6, "variants[1].label: expected a name in one line"),
    ('"workers.count * workers.batch_size <= 100"', '"seed != 2"', 13, "where: \"seed != 2\""),
    ('"label": "soft"', '"label": "async"', 6, 'variants[1].label: label "async" stands there twice'),
    ('"label": "soft", ', "", 6, 'variants[1]: "label" is missing: expected a string'),
    ('"label": "soft", "set"', '"label": "soft", "sets"', 6, 'variants[1].sets: unknown key; did you mean "set"?'),
    ('"label": "soft", "set": {"protocol"', '"label": "soft", "protocol": {"protocol"', 6,
     "variants[1].protocol: unknown key; a variant's keys of the scenario stand in its \"set\""),
    ('"n": 2', '"n": 9', 6, "protocol.n: expected at most the number of workers, 4, found 9"),
    ('"n": 2', '"n": "2"', 6, "protocol.n: expected an integer of at least 1, found the string"),
    ('"n-softsync", "n": 2', '"n-softsnc", "n": 2', 6, "protocol.name: expected one of"),
    ('"workers.batch_size": [4, 8],', '"workers.batchsize": [4, 8],', 12,
     'zip[0]: "workers.batch_size" is none of the axes; did you mean "workers.batchsize"?'),
    ('"workers.count": [4, 5]', '"workers.count": [4, 5, 6]', 12, "zip[0]: axes that advance together need as many"),
    ('"workers.count": [4, 5]', '"workers.count": [4, 0]', 10, "workers.count: expected an integer from 1 to"),
    ('"workers.count": [4, 5]', '"workers.count": [4, 4]', 10, "axes.workers.count: value 2 is the same as value 1"),
    ('"workers.count": [4, 5]', '"workers.count": []', 10, "axes.workers.count: expected at least 1 entry"),
    ('"workers.count": [4, 5]', '"workers.count": [4, 5], "seed": [1]', 10, 'axes.seed: seeds are listed in "seeds"'),
    ('"workers.count": [4, 5]', '"workers.count": [4, 5], "workers": [{}]', 10,
     'axes.workers: is set by the axis "workers.batch_size" already'),
    ('"workers.count": [4, 5]', '"workers.count": [4, 5], "workers.count": [1]', 10,
     'duplicate key "workers.count", already on line 10'),
    ('"workers.count": [4, 5]', '"workers.count": [4, 5], "comment": ["a", "b"]', 10,
     "axes.comment: comments cannot be varied: expected a text for people, found an array"),
    ('"workers.count": [4, 5]', '"workers.count": [4, 5], "": [1]', 10, "axes.: expected a key of the scenario with"),
    ('"workers.count": [4, 5]', '"workers.count": [4, 5], "a..b": [1]', 10, "axes.a..b: expected a key of the"),
    ('"workers.count": [4, 5]', '"workers.count": [4, 5], "protocol.name.x": [1]', 10,
     'protocol.name.x: "name" is the string "async", it has no key "x"'),
    ('"workers.count": [4, 5]', '"workers.count": [4, 5], "workers.comment": ["a", "b"]', 10,
     "axes.workers.comment: comments cannot be varied"),
    ('"n": 2}}', '"n": 2}, "protocol.comment": "x"}', 6,
     "variants[1].set.protocol.comment: comments cannot be varied"),
    ('"workers.count": [4, 5]\n', '"workers.count": [4, 5],\n', 11, "trailing comma before '}'"),
    ('workers.count * ', "workers.cuont * ", 13, 'where: "workers.cuont * workers.batch_size <= 100": "workers.cuont" '
     "is no key of a scenario; did you mean workers.count?"),
    ("<= 100", "<= ", 13, "where: "),
    ("<= 100", "= 100", 13, "where: "),
    ("workers.count * workers.batch_size <= 100", "protocol.name", 13,
     'where: "protocol.name": is a text, expected a condition that is true or false, such as protocol.name == '),
    ("workers.count * workers.batch_size <= 100", "protocol.name == async", 13,
     'where: "protocol.name == async": "async" is no key of a scenario; texts stand in double quotes'),
    ("workers.count * workers.batch_size <= 100", "protocol.name > 3", 13,
     'where: "protocol.name > 3": a text can be compared with == and != only'),
    ("workers.count * workers.batch_size <= 100", "protocol.name != 3, 1", 13,
     'where: "protocol.name != 3, 1": expected one condition; && and || join several'),
    ("workers.count * workers.batch_size <= 100", "protocol != 3", 13,
     'where: "protocol != 3": "protocol" is an object or an array, expected a key with a number, a text, '),
    ("<= 100", "<= 1", 13, 'where: "workers.count * workers.batch_size <= 1" leaves no point'),
)
TUNE = '"tune": {"axes": {"optimizer.learning_rate": [0.1]}, "by": "train_loss", "seeds": [9]},\n  "where"'
TUNE_MISTAKES = (
    ('"train_loss"', '"test_error"', 'tune.by: "test_error" is of the test set, which may not choose anything'),
    ('"train_loss"', '"time_s"', 'tune.by: expected one of "valid_error", "valid_loss" or "train_loss"'),
    ('"train_loss"', '"valid_error"', "tune.by: a timing-only run has no valid_error (variant \"async\", "),
    ('"seeds": [9]', '"seeds": [2]', 'tune.seeds: seed 2 is one of "seeds" too'),
    ('"by": "train_loss", ', "", 'tune: "by" is missing: expected one of'),
    ('"by"', '"bye"', 'tune.bye: unknown key; did you mean "by"?'),
    ('{"optimizer.learning_rate": [0.1]}', '{"comment": [0.1]}', "tune.axes.comment: comments cannot be varied"),
    ('{"optimizer.learning_rate": [0.1]}', '{"comment": "x"}', "tune.axes: expected at least 1 key to tune"),
    ("optimizer.learning_rate", "workers.count", 'tune.axes.workers.count: is set by the axis "workers.count" already'),
)


class SweepMistakes(SweepCase):
    """Exit status 2, one line, nothing written."""

    def refused_text(self, text: str, *arguments: str) -> str:
        (self.work / "sweep.json").write_text(text)
        for how in ((), ("--dry-run",)):
            done = self.call("sweep", "sweep.json", *arguments, *how)
            self.assertEqual((done.returncode, done.stdout), (2, ""), done)
            self.assertRegex(done.stderr, r"\Arubato: [^\n]+\n\Z")
            self.assertEqual({path.name for path in self.work.iterdir()}, {"sweep.json", "base.json"})
        return done.stderr.strip().removeprefix("rubato: ")

    def test_the_good_one_is_good(self) -> None:
        (self.work / "sweep.json").write_text(GOOD)
        done = self.call("sweep", "sweep.json", "--out", self.out, "--quiet")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.each_once(8)

    def test_comments_may_stand_in_every_object(self) -> None:
        text = GOOD.replace('"axes": {', '"axes": {"comment": "x", ').replace('"label"', '"comment": "y", "label"')
        (self.work / "sweep.json").write_text(text.replace('"set": {', '"set": {"comment": "z", '))
        done = self.call("sweep", "sweep.json", "--out", self.out, "--quiet")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertNotIn("comment", self.lines()[0])

    def test_mistakes(self) -> None:
        for old, new, line, message in MISTAKES:
            with self.subTest(new):
                self.assertEqual(GOOD.count(old), 1)
                said = self.refused_text(GOOD.replace(old, new))
                self.assertTrue(said.startswith(f"sweep.json:{line}: {message}"), said)

    def test_mistakes_of_tuning(self) -> None:
        good = GOOD.replace('"where"', TUNE)
        for old, new, message in TUNE_MISTAKES:
            with self.subTest(new):
                self.assertEqual(TUNE.count(old), 1)
                said = self.refused_text(good.replace(TUNE, TUNE.replace(old, new)))
                self.assertTrue(said.startswith(f"sweep.json:13: {message}"), said)

    def test_a_bad_value_names_file_line_variant_and_key(self) -> None:
        said = self.refused_text(GOOD.replace('"n": 2', '"m": 2'))
        self.assertTrue(said.startswith("sweep.json:6: protocol.m: unknown key"), said)
        self.assertTrue(said.endswith('(variant "soft", workers.batch_size = 4, workers.count = 4)'), said)

    def test_a_mistake_in_the_base_names_the_base(self) -> None:
        (self.work / "base.json").write_text((self.work / "base.json").read_text().replace("samples", "smaples"))
        self.assertIn("base.json:1: data.smaples: unknown key", self.refused_text(GOOD))
        (self.work / "base.json").write_text('{"extends": "."}')
        self.assertIn("base.json:1: extends: . is a folder, expected a scenario file", self.refused_text(GOOD))

    def test_truncated_anywhere(self) -> None:
        for length in range(0, len(GOOD) - 2, 37):
            self.assertRegex(self.refused_text(GOOD[:length]), r"\Asweep\.json:\d+: ")

    def test_on_the_command_line(self) -> None:
        self.assertIn("did you mean", self.refused_text(GOOD, "--set", "workers.cuont=3"))
        self.assertIn("expected I/N", self.refused_text(GOOD, "--shard", "3/2"))
        self.assertIn("expected I/N", self.refused_text(GOOD, "--shard", "1"))
        self.assertIn("expected a number of processes", self.refused_text(GOOD, "-j", "-1"))
        self.assertIn("go together", self.refused_text(GOOD, "--best", "3"))
        self.assertIn("did you mean time_s?", self.refused_text(GOOD, "--best", "3", "--by", "tim_s"))
        self.assertIn("did you mean --status?", self.refused_text(GOOD, "--statsu"))

    def test_a_condition_that_leaves_out_a_variant(self) -> None:
        counts = self.sweep({"variants": [
            {"label": "hard", "set": {"protocol": {"name": "hardsync"}}},
            {"label": "soft", "set": {"protocol": {"name": "n-softsync", "n": 2}}}], "where": "protocol.n <= 4"})
        self.assertEqual(counts["points"], 1)
        self.assertIn('warning: where: "protocol.n <= 4" leaves no point of variant "hard"', self.said)
        self.assertNotIn('"soft"', self.said)

    def test_a_platform_that_is_wrong(self) -> None:
        (self.work / "p.xml").write_text("<platform/>")
        text = GOOD.replace('"seeds"', '"comment": "x", "seeds"')
        (self.work / "sweep.json").write_text(text)
        done = self.call("sweep", "sweep.json", "--out", self.out, "--set", "cluster.platform=p.xml")
        self.assertEqual((done.returncode, done.stdout), (2, ""), done)
        self.assertIn("p.xml", done.stderr)
        self.assertFalse(self.out.exists())


if __name__ == "__main__":
    case.main()
