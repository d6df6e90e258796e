"""docs/write-a-protocol.md and docs/write-a-rule.md: what stands there is taken out, compiled, run, and looked at.

Usage: pages_test.py RUBATO SOURCE_ROOT SANITIZER
"""

import json
import os
import re
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

from case import Case, main

ROOT, SANITIZER = Path(sys.argv.pop(2)), sys.argv.pop(2)
BUILD = Path(sys.argv[1]).resolve().parent
MPI = SANITIZER == "none" and shutil.which("mpirun") is not None and (BUILD / "rubato-mpi.so").exists()


@unittest.skipUnless(shutil.which("g++"), "the pages compile with g++")
class Pages(Case):
    """Each test has a folder that looks like that of rubato, and does in it what one page says."""

    def setUp(self) -> None:
        super().setUp()
        (self.work / "src").symlink_to(ROOT / "src")
        (self.work / "build").symlink_to(BUILD)

    def follow(self, page: str) -> None:
        """Writes the files of a page and gives its commands, in their order."""
        text = (ROOT / "docs" / page).read_text()
        self.assertLessEqual(text.count("\n"), 150)
        blocks = re.findall(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
        self.assertEqual(text.count("\n```"), 2 * len(blocks))
        for kind, file, content in blocks:
            if kind == "sh":
                real = r"^mpirun(.*\\\n)*.*|.*runs/\w+/real.*"
                self.command(content if MPI else re.sub(real, "", content, flags=re.M))
                continue
            self.assertLessEqual(content.count("\n"), 100)
            path = self.work / file
            path.parent.mkdir(exist_ok=True)
            path.write_text(content)

    def command(self, text: str, status: int = 0) -> str:
        done = subprocess.run(["bash", "-e", "-c", text], cwd=self.work, capture_output=True, text=True, check=False,
                              timeout=240)
        self.assertEqual(done.returncode, status, text + done.stdout + done.stderr)
        return done.stdout + done.stderr

    def runs(self, name: str) -> list[Path]:
        return [self.work / "runs" / name / how for how in ("simulated", *(("real",) if MPI else ()))]

    def test_a_protocol(self) -> None:
        self.follow("write-a-protocol.md")
        for run in self.runs("quorum"):
            summary, updates = self.summary(run), self.rows(run, "updates.csv")
            self.assertEqual((summary["status"], summary["epochs"]), ("finished", 2))
            self.assertEqual({row["contributors"] for row in updates[:-1]}, {"2"})
            contributors: dict[str, set[str]] = {}
            for row in self.rows(run):
                if row["outcome"] == "applied":
                    contributors.setdefault(row["apply_version"], set()).add(row["worker"])
            self.assertTrue(all(len(workers) == 2 for workers in list(contributors.values())[:-1]))
        self.assertGreater(self.summary(self.work / "runs/quorum/simulated")["staleness"]["max"], 0)
        self.resumes()
        self.refuses("quorum", {"quorums": 2}, 'unknown constant "quorums"; expected one of quorum')
        self.refuses("quorum", {"quorum": 4}, "quorum: expected at most the number of workers")
        self.refuses("quorum", {"quorum": 1.5}, "quorum: expected a whole number of at least 1")

    def resumes(self) -> None:
        """A checkpoint holds what the policy says in `each`."""
        more = "--quiet --set execution.checkpoint.every_updates=1 --out runs/resumed --set stop.epochs="
        self.command(f"build/rubato run quorum.json {more}1")
        self.command(f"build/rubato run quorum.json {more}2 --resume")
        summary = self.summary(self.work / "runs/resumed")
        self.assertEqual((summary["samples"], summary["gradients"]["leftover"]), (1200, 0))
        self.command("cp quorum.so other.so && echo >> other.so")
        told = self.command(f"build/rubato run quorum.json {more}3 --resume --set protocol.file=other.so", 2)
        self.assertIn("protocol.file, protocol.checksum", told)

    def refuses(self, name: str, constants: dict, text: str) -> None:
        told = self.command(f"build/rubato check {name}.json --set 'protocol.constants={json.dumps(constants)}'", 2)
        self.assertRegex(told, r"\Arubato: [^\n]+\n\Z")
        self.assertIn(text, told)

    def test_a_rule(self) -> None:
        self.follow("write-a-rule.md")
        simulated, expression = self.work / "runs/cautious/simulated", self.work / "runs/cautious/expression"
        self.assertEqual(self.summary(simulated)["weights_hash"], self.summary(expression)["weights_hash"])
        for run in self.runs("cautious"):
            for row in self.rows(run):
                if row["outcome"] == "applied":
                    self.assertAlmostEqual(float(row["scale"]), min(1, 2 / max(1, int(row["staleness"]))))
        self.assertGreater(self.summary(simulated)["staleness"]["max"], 2)

    def test_pages_do_not_get_into_each_other_s_way(self) -> None:
        runs = [set(re.findall(r"--out (\S+)", (ROOT / "docs" / page).read_text()))
                for page in ("write-a-protocol.md", "write-a-rule.md")]
        self.assertTrue(all(runs))
        self.assertFalse(runs[0] & runs[1])

    def test_plugins_that_do_what_cannot_be_done(self) -> None:
        """One line that names the file and what it did; exit status 2."""
        scenario = {"workers": {"count": 2, "batch_size": 1}, "cost": {"push_bytes": 1, "flops_per_sample": 1},
                    "data": {"samples": 40}, "cluster": {"network": {"model": "flow"}}}
        head = '#include "core/plugin.hpp"\n'
        policy = head + """struct Bad : rubato::PolicyDefaults {
    static constexpr std::string_view name = "bad";
    Bad(int, const rubato::Constants&) { %s }
    rubato::PolicyTraits traits() const { return {.word = rubato::Word::broadcast}; }
    rubato::Decision on_arrival(const rubato::Arrival& it, rubato::Orders& orders) { %s }
    void on_applied(rubato::Time, rubato::Orders& orders) { %s }
};
RUBATO_POLICY(Bad)
"""
        fire, throws = "return {.fire = true};", 'throw std::runtime_error("oops");'
        cases = (("", throws, "", "throws in on_arrival: oops"), ("", fire, "throw 5;", "throws in on_applied"),
                 ("", fire, "orders.release.push_back(999);", "releases worker 999 in on_applied: workers are 0 to 1"),
                 ("", "orders.cancel.push_back(-1); " + fire, "", "cancels worker -1 in on_arrival"),
                 ("", "return {.fire = true, .discard = true};", "", "says both fire and discard in on_arrival"),
                 ("", fire, "orders.round = true;", "ends a round in on_applied, and its traits have none"),
                 ("", fire, "orders.release = {0, 0, 1};", "orders what cannot be done, such as to let go who has not"),
                 (throws, fire, "", "throws in its constructor: oops"))
        for number, (making, arriving, applied, said) in enumerate(cases):
            with self.subTest(said):
                (self.work / "bad.cpp").write_text(policy % (making, arriving, applied))
                self.command(f"g++ -std=c++20 -fPIC -shared -I src bad.cpp -o bad{number}.so")
                told = self.ends_with_one_line({**scenario, "protocol": {"name": "plugin", "file": f"bad{number}.so"}})
                self.assertIn(f"/bad{number}.so {said}", told)
        (self.work / "rule.cpp").write_text(head + """struct Bad {
    explicit Bad(const rubato::Constants&) {}
    double operator()(const rubato::RuleInfo&) const { throw std::runtime_error("oops"); }
};
RUBATO_RULE(Bad)
""")
        self.command("g++ -std=c++20 -fPIC -shared -I src rule.cpp -o rule.so")
        rule = {"name": "plugin", "file": "rule.so"}
        told = self.ends_with_one_line({**scenario, "protocol": {"name": "async"},
                                        "optimizer": {"staleness_rule": rule}})
        self.assertIn("/rule.so throws in operator(): oops", told)

    def ends_with_one_line(self, scenario: dict) -> str:
        done = self.call("run", self.write(scenario), "--out", f"bad-{self.count}", "--quiet")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertRegex(done.stderr, r"\Arubato: [^\n]+\n\Z")
        return done.stderr

    def test_what_goes_with_a_plugin_is_what_its_traits_say(self) -> None:
        (self.work / "kin.cpp").write_text("""#include "core/plugin.hpp"
            struct Kin : rubato::PolicyDefaults {
                static constexpr std::string_view name = "kin";
                Kin(int, const rubato::Constants& constants) {
                    said.asks = constants.number("asks", 0) > 0;
                    said.drops = constants.number("drops", 0) > 0;
                    said.minds_staleness = constants.number("minds", 0) > 0;
                    if (constants.number("ok", 0) > 0) said.word = rubato::Word::ok;
                }
                rubato::PolicyTraits traits() const { return said; }
                rubato::Decision on_arrival(const rubato::Arrival& arrival, rubato::Orders& orders) {
                    if (said.word == rubato::Word::ok) orders.release.push_back(arrival.worker);
                    return {.fire = true};
                }
                rubato::PolicyTraits said{.alone = true};
            };
            RUBATO_POLICY(Kin)""")
        self.command("g++ -std=c++20 -fPIC -shared -I src kin.cpp -o kin.so")
        (self.work / "delays.csv").write_text("worker,read_version\n0,0\n1,0\n0,1\n1,2\n")
        scenario = {"workers": {"count": 2, "batch_size": 1}, "model": {"name": "quadratic"}, "data": {"samples": 40}}
        scheduled = {**scenario, "schedule": {"trace": str(self.work / "delays.csv")}}
        seldom = {"count": 2, "batch_size": 1, "communication": {"pull_every": 2}}
        rarely = {**scenario, "workers": seldom}

        def protocol(**constants: int) -> dict:
            return {"protocol": {"name": "plugin", "file": "kin.so", "constants": constants}}

        for said in ("drops", "minds"):
            self.assertIn('pull_every: "kin" minds how old', self.refused({**rarely, **protocol(**{said: 1})}))
            self.assertEqual(self.summary(self.run_scenario({**scenario, **protocol(**{said: 1})}))["updates"], 40)
        for said in ("asks", "drops", "ok"):
            self.assertIn('protocol.name: expected "hardsync", "n-softsync" or "async" beside schedule, which says who '
                          'goes on and when; "kin" decides', self.refused({**scheduled, **protocol(**{said: 1})}))
        # Where it says nothing of the kind it is async under another name.
        for each in (rarely, scheduled):
            mine, theirs = (self.summary(self.run_scenario({**each, **one}))
                            for one in (protocol(), {"protocol": {"name": "async"}}))
            self.assertEqual(mine["weights_hash"], theirs["weights_hash"])

    def test_files_that_are_no_plugins(self) -> None:
        scenario = {"workers": {"count": 2, "batch_size": 1}, "cost": {"push_bytes": 1, "flops_per_sample": 1},
                    "data": {"samples": 4}}
        self.assertIn('"file" is missing', self.refused({**scenario, "protocol": {"name": "plugin"}}))
        protocol = {"name": "plugin", "file": "none.so"}
        told = self.refused({**scenario, "protocol": protocol})
        self.assertIn("/none.so; docs/write-a-protocol.md tells", told)
        rule = {"optimizer": {"staleness_rule": {"name": "plugin", "file": "none.so"}}, "protocol": {"name": "async"}}
        self.assertIn("/none.so; docs/write-a-rule.md tells", self.refused({**scenario, **rule}))
        self.assertIn("/src is not a file", self.refused({**scenario, "protocol": protocol | {"file": "src"}}))
        (self.work / "none.so").write_text("nothing")
        self.assertIn("cannot load", self.refused({**scenario, "protocol": protocol}))
        old = ('#include "core/plugin.hpp"\nusing rubato::PolicyPlugin;\n'
               "static const PolicyPlugin it{1, nullptr};\n"
               'extern "C" const PolicyPlugin* rubato_policy() { return &it; }')
        for file, code in (("empty", "int nothing;"), ("old", old)):
            (self.work / f"{file}.cpp").write_text(code)
            self.command(f"g++ -std=c++20 -fPIC -shared -I src {file}.cpp -o {file}.so")
        self.assertIn("has no RUBATO_POLICY", self.refused({**scenario, "protocol": protocol | {"file": "empty.so"}}))
        self.assertIn("compile it again", self.refused({**scenario, "protocol": protocol | {"file": "old.so"}}))


if __name__ == "__main__":
    os.environ.pop("RUBATO_REWRITE", None)
    main()
