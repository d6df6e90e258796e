"""rubato init and rubato help from outside: what init writes runs as it is, and help finds what there is.

Usage: init_test.py SCHEMA RUBATO.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

import jsonschema

SCHEMA = ""
PROGRAM = ""


class Case(unittest.TestCase):
    """Runs the program in a folder of its own."""

    def setUp(self) -> None:
        # pylint: disable-next=consider-using-with
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)

    def path(self, *names: str) -> str:
        return os.path.join(self.scratch.name, *names)

    def read(self, name: str) -> str:
        with open(self.path(name), encoding="utf-8") as file:
            return file.read()

    def rubato(self, *arguments: str, status: int = 0) -> str:
        """Standard output."""
        answer = subprocess.run([PROGRAM, *arguments], cwd=self.scratch.name, capture_output=True, text=True,
                                check=False, timeout=120)
        self.assertEqual(answer.returncode, status, answer)
        return answer.stdout

    def refused(self, *arguments: str) -> str:
        """Exit status 2, exactly one line and nothing else."""
        answer = subprocess.run([PROGRAM, *arguments], cwd=self.scratch.name, capture_output=True, text=True,
                                check=False, timeout=120)
        self.assertEqual((answer.returncode, answer.stdout), (2, ""), answer)
        self.assertRegex(answer.stderr, r"\Arubato: [^\n]+\n\Z")
        return answer.stderr.strip().removeprefix("rubato: ")

    def built_protocols(self) -> list[str]:
        lines = self.rubato("list", "protocols").splitlines()
        return [line.split()[0] for line in lines if not line.endswith("(not yet)")]


class InitTest(Case):
    """rubato init."""

    def test_every_protocol_gives_a_scenario_that_runs_as_it_is(self) -> None:
        with open(SCHEMA, encoding="utf-8") as file:
            validator = jsonschema.Draft202012Validator(json.load(file))
        protocols = self.built_protocols()
        self.assertGreaterEqual(set(protocols), {"hardsync", "n-softsync", "async"})
        for protocol in protocols:
            name = f"{protocol}.json"
            self.assertIn(f"rubato run {name}", self.rubato("init", "--protocol", protocol, name))
            scenario = json.loads(self.read(name))
            self.assertEqual(list(validator.iter_errors(scenario)), [])
            self.assertEqual(scenario["protocol"]["name"], protocol)
            for section in (scenario, scenario["protocol"], scenario["workers"], scenario["cluster"]):
                self.assertTrue(section["comment"])
            averages = protocol in ("sparknet", "local-sgd", "diloco", "easgd", "mpca", "async-diloco",
                                     "gosgd", "streaming-diloco")
            if protocol == "plugin":  # for a file that is still to be written
                self.assertIn("docs/write-a-protocol.md", self.refused("run", name, "--out", protocol))
                continue
            self.assertIn(protocol, self.rubato("check", name))
            summary = json.loads(self.rubato("run", name, "--quiet", "--json", "--out", protocol))
            self.assertEqual((summary["status"], summary["setting"]["protocol"]), ("finished", protocol))
            # Where models are averaged, workers take whole steps, or all between two exchanges, to the end.
            beyond = 10 * scenario["workers"]["batch_size"] if averages else 1
            self.assertIn(summary["samples"], range(10000, 10000 + beyond))
            self.assertLess(summary["test_error"], 0.5)
            real = json.loads(self.rubato("run", name, "--quiet", "--json", "--backend", "local", "--out", "real"))
            self.assertEqual(real["status"], "finished")
            subprocess.run(["rm", "-r", self.path("real")], check=True)

    def test_aliases_are_written_by_their_own_name(self) -> None:
        self.assertEqual(json.loads(self.rubato("init", "--protocol", "ssgd", "-"))["protocol"]["name"], "hardsync")

    def test_the_default_file_is_not_overwritten_unasked(self) -> None:
        self.rubato("init")
        first = self.read("scenario.json")
        self.assertEqual(json.loads(first)["protocol"]["name"], "n-softsync")
        self.assertEqual(self.refused("init", "--protocol", "async"), "init: scenario.json exists; --force replaces it")
        self.assertEqual(self.read("scenario.json"), first)
        self.rubato("init", "--protocol", "async", "--force")
        self.assertEqual(json.loads(self.read("scenario.json"))["protocol"]["name"], "async")

    def test_stdout_is_the_same_text(self) -> None:
        self.rubato("init")
        self.assertEqual(self.rubato("init", "-"), self.read("scenario.json"))
        self.assertEqual(os.listdir(self.scratch.name), ["scenario.json"])

    def test_the_schema_is_where_the_file_says(self) -> None:
        self.rubato("init")
        address = json.loads(self.read("scenario.json"))["$schema"]
        self.assertTrue(address.startswith("file:///"), address)
        self.assertTrue(os.path.samefile(address.removeprefix("file://"), SCHEMA), address)
        tree = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(SCHEMA))))
        answer = subprocess.run([PROGRAM, "init", "-"], cwd=os.path.join(tree, "scenarios"), capture_output=True,
                                text=True, check=True, timeout=60)
        self.assertEqual(json.loads(answer.stdout)["$schema"], "../src/cli/scenario.schema.json")

    def test_mistakes(self) -> None:
        self.assertIn('did you mean "hardsync"?', self.refused("init", "--protocol", "hardsink"))
        message = self.refused("init", "--protocol", "gadei")
        self.assertIn("not yet", message)
        self.assertIn("--protocol gadei", message)
        self.assertIn("is a folder", self.refused("init", "."))
        self.assertIn("no/folder/x.json", self.refused("init", "no/folder/x.json"))
        self.assertIn("unexpected argument", self.refused("init", "a.json", "b.json"))
        self.assertIn("expected at most 100 bytes", self.refused("init", "x" * 101 + ".json"))
        self.assertIn("expected a file", self.refused("init", ""))
        self.assertEqual(os.listdir(self.scratch.name), [])


class HelpTest(Case):
    """rubato help."""

    def test_alone_it_is_the_help_of_the_program(self) -> None:
        text = self.rubato("help")
        self.assertEqual(text, self.rubato("--help"))
        for status in (0, 1, 2, 3, 70):
            self.assertRegex(text, rf"(?m)^  {status} +\w")

    def test_every_command_tells_its_options_with_an_example(self) -> None:
        listed = self.rubato("help").partition("Subcommands:")[2].partition("Exit")[0]
        commands = re.findall(r"(?m)^  ([a-z]+)  ", listed)
        self.assertGreaterEqual(set(commands), {"run", "init", "check", "list", "replay", "plot", "help"})
        for command in commands:
            text = self.rubato(command, "--help")
            self.assertEqual(text, self.rubato("help", command))
            self.assertIn(f"  rubato {command} ", text.partition("Example")[2])
            for line in text.splitlines():
                self.assertLessEqual(len(line), 120, line)
                if line.startswith("  -"):
                    self.assertRegex(line, r"^  \S+( [A-Z=]+)? +\w.+", line)
                # What takes a value says what it is without one; a flag is off.
                if re.match(r"  --(backend|out|protocol) ", line):
                    rest = text[text.index(line):].partition("\n  -")[0]
                    self.assertIn("(default: ", rest)

    def test_every_kind_of_figure_tells_its_options(self) -> None:
        kinds = re.search(r"with KIND (.+?)\nUsage", self.rubato("plot", "--help"), re.DOTALL)[1]
        names = [kind for kind in re.split(r",|\bor\b|\s", kinds) if kind]
        self.assertIn("timeline", names)
        for kind in names:
            self.assertIn("--output FILE", self.rubato("plot", kind, "--help"))

    def test_topics(self) -> None:
        self.assertIn("--set workers.batch_size=64", self.rubato("help", "batch_size"))
        self.assertTrue(self.rubato("help", "batch_size").startswith(self.rubato("help", "workers.batch_size")))
        self.assertIn("value of   protocol.name", self.rubato("help", "softsync"))
        self.assertIn("--backend local", self.rubato("help", "local"))
        self.assertEqual(self.rubato("help", "rules"), self.rubato("list", "rules"))
        self.assertIn("\n  protocol ", self.rubato("help", "scenario"))
        self.assertIn("protocol.name", self.rubato("help", "name"))
        self.assertIn("rubato plot staleness --help", self.rubato("help", "staleness"))
        self.assertIn("a variable of optimizer.staleness_rule.expression", self.rubato("help", "staleness"))
        several = self.rubato("help", "count")
        self.assertIn("  workers.count: ", several)
        self.assertIn("  workers.groups[].count: ", several)
        both = self.rubato("help", "momentum")
        self.assertIn("optimizer.momentum: ", both)
        self.assertIn("value of   optimizer.name", both)

    def test_the_schema_is_printed_whole(self) -> None:
        with open(SCHEMA, encoding="utf-8") as file:
            self.assertEqual(self.rubato("help", "--schema"), file.read())

    def test_what_is_not_known(self) -> None:
        self.assertIn("did you mean batch_size?", self.refused("help", "batchsize"))
        self.assertIn("did you mean workers.batch_size?", self.refused("help", "workers.bach_size"))
        path = "cluster.network.star.bandwidth"
        self.assertIn(f"did you mean {path}?", self.refused("help", path.replace("width", "with")))
        self.assertIn("did you mean hardsync?", self.refused("help", "hardsink"))
        self.assertIn("did you mean check?", self.refused("help", "chekc"))
        self.assertIn("rubato help scenario", self.refused("help", "zzzzzzzz"))
        self.assertIn("no key", self.refused("help", "two\nlines"))
        self.assertIn("without a topic", self.refused("help", "--schema", "protocol"))
        self.assertIn("unexpected argument", self.refused("help", "run", "check"))


if __name__ == "__main__":
    PROGRAM = os.path.abspath(sys.argv.pop())
    SCHEMA = os.path.abspath(sys.argv.pop())
    unittest.main()
