"""What a sweep leaves: rows against the summaries of the same runs, statistics against Python's own.

Usage: sweep_tables_test.py RUBATO.
"""

import csv
import io
import json
import math
import statistics
from pathlib import Path

import case
from sweeps import A, BASE, SweepCase

# Student's t, 97.5 %, by degrees of freedom: from printed tables.
T = {1: 12.706204736, 2: 4.3026527297, 3: 3.1824463053, 4: 2.7764451052, 9: 2.2621571628}
LEARNING = {
    "name": "bowl", "data": {"samples": 200}, "model": {"name": "quadratic", "dimension": 5, "noise": 0.1},
    "workers": {"count": 3, "batch_size": 10}, "protocol": {"name": "async"}, "stop": {"epochs": 1},
    "optimizer": {"learning_rate": 0.05}, "cluster": {"devices": {"default": {"a": 0.001}}},
}


def flat(value: object, path: str = "") -> dict:
    """Dotted names of the scalars in a summary."""
    if not isinstance(value, dict):
        return {path: value}
    return {key: one for name, below in value.items() for key, one in flat(below, f"{path}.{name}".strip(".")).items()}


class SweepTables(SweepCase):
    """Small sweeps, read as a user's script would read them."""

    def test_a_row_says_what_the_summary_says(self) -> None:
        self.base(LEARNING)
        self.sweep({"seeds": [1, 2], "variants": [
            {"label": "a, \"b\"", "set": {"protocol": {"name": "n-softsync", "n": 2}}}, {"label": "c"}]}, "--keep")
        rows = self.each_once(4)
        self.assertEqual({row["label"] for row in rows}, {'a, "b"', "c"})
        for row in rows:
            run = self.out / "runs" / row["point"]
            summary = self.summary(run)
            self.assertEqual(str(json.loads((run / "scenario.json").read_text())["seed"]), row["seed"])
            self.assertEqual(summary["seed"], int(row["seed"]))
            known = flat({key: value for key, value in summary.items() if key != "environment"})
            for name in ("trace_version", "scenario", "backend", "clock", "schedule", "staleness.histogram"):
                known.pop(name)
            self.assertEqual(known.pop("shards.each"), [])
            for name in ("engine.ranks", "engine.oversubscribed", "engine.clock_residual_s"):
                known.pop(name)  # points of sweeps run on no ranks
            self.assertEqual(set(known) - set(row), set())
            for name, value in known.items():
                if name.startswith("engine."):
                    continue
                if isinstance(value, (int, float)):
                    self.assertEqual(float(row[name]), value, name)
                else:
                    self.assertEqual(row[name], value or "", name)
            # The run repeats as one of `rubato run`.
            out = self.work / f"again-{row['point']}"
            self.assertEqual(self.call("run", run / "scenario.json", "--out", out, "--quiet").returncode, 0)
            self.assertEqual(self.summary(out)["weights_hash"], row["weights_hash"])

    def test_the_header(self) -> None:
        self.sweep({"variants": [{"label": "v", "set": {"protocol": {"comment": "x", "name": "n-softsync"}}}],
                    "axes": {"workers.batch_size": [10], "cluster.noise": [{"lognormal_cv": 0.5}]}})
        header = self.lines()[0]
        self.assertTrue(header.startswith("point,phase,label,seed,protocol,workers.batch_size,cluster.noise,status,"
                                          "status_detail,time_s,epochs,samples,gradients.applied,"), header)
        self.assertTrue(header.endswith(",version"))
        (row,) = self.table()
        self.assertEqual(json.loads(row["protocol"]), {"name": "n-softsync", "n": 1})
        self.assertEqual(row["cluster.noise"], '{"lognormal_cv":0.5}')
        self.assertEqual((row["phase"], row["seed"]), ("report", "1"))

    def test_aggregate_against_python(self) -> None:
        for count in (1, 2, 5, 10):
            self.sweep({"seeds": list(range(count)), "axes": {"workers.batch_size": [5, 10]}})
            rows = [row for row in self.table() if int(row["seed"]) < count]
            for line in self.table("aggregate.csv"):
                own = [row for row in rows if row["workers.batch_size"] == line["workers.batch_size"]]
                self.assertEqual((int(line["n"]), len(own)), (count, count))
                for figure in ("time_s", "staleness.mean", "throughput.samples_per_s"):
                    values = [float(row[figure]) for row in own]
                    self.assertTrue(math.isclose(float(line[f"{figure}.mean"]), statistics.fmean(values)))
                    self.assertTrue(math.isclose(float(line[f"{figure}.median"]), statistics.median(values)))
                    if count == 1:
                        self.assertEqual((line[f"{figure}.std"], line[f"{figure}.ci95"]), ("", ""))
                        continue
                    deviation = statistics.stdev(values)
                    self.assertTrue(math.isclose(float(line[f"{figure}.std"]), deviation, rel_tol=1e-9))
                    half = T[count - 1] * deviation / math.sqrt(count)
                    self.assertTrue(math.isclose(float(line[f"{figure}.ci95"]), half, rel_tol=1e-8))

    def test_diverged_runs_are_counted_and_not_averaged(self) -> None:
        self.base({**LEARNING, "stop": {"epochs": 30}})
        self.sweep({"seeds": [1, 2], "axes": {"optimizer.learning_rate": [0.05, 50]}})
        rows = self.each_once(4)
        self.assertEqual(sorted(row["status"] for row in rows), ["diverged"] * 2 + ["finished"] * 2)
        good, bad = self.table("aggregate.csv")
        self.assertEqual([(line["n"], line["diverged"], line["failed"]) for line in (good, bad)],
                         [("2", "0", "0"), ("0", "2", "0")])
        self.assertEqual({value for name, value in bad.items() if name.endswith((".mean", ".std", ".ci95"))}, {""})
        self.assertEqual(self.sweep({"seeds": [1, 2], "axes": {"optimizer.learning_rate": [0.05, 50]}})["skipped"], 4)

    def test_reached_and_best(self) -> None:
        self.base({**LEARNING, "stop": {"epochs": 20, "target": {"metric": "suboptimality", "at_most": 0.01}},
                   "evaluate": {"every_epochs": 0.25}})
        sweep = {"seeds": [1, 2, 3], "axes": {"optimizer.learning_rate": [1e-6, 0.02, 0.2]}}
        self.sweep(sweep)
        lines = self.table("aggregate.csv")
        self.assertEqual([line["reached"] for line in lines], ["0", "3", "3"])
        done = self.call("sweep", self.work / "sweep.json", "--out", self.out, "--best", 5, "--by", "time_to_target_s",
                         "--json")
        best = json.loads(done.stdout)
        self.assertEqual([one["optimizer.learning_rate"] for one in best], ["0.2", "0.02"])
        self.assertEqual(best[0]["mean"], float(lines[2]["time_to_target_s.mean"]))
        text = self.call("sweep", self.work / "sweep.json", "--out", self.out, "--best", 1, "--by",
                         "throughput.updates_per_s").stdout
        self.assertIn("larger is better", text)
        self.assertEqual(text.count("\n"), 2)

    def test_where_zip_and_keys_that_do_not_apply(self) -> None:
        self.sweep({"variants": [{"label": "hard", "set": {"protocol.name": "hardsync"}},
                                 {"label": "soft", "set": {"protocol.name": "n-softsync"}}],
                    "axes": {"protocol.n": [1, 2, 4]},
                    "where": 'protocol.name == "hardsync" || protocol.n * 2 <= workers.count'})
        self.assertEqual({(row["label"], row["protocol.n"]) for row in self.each_once(3)},
                         {("hard", ""), ("soft", "1"), ("soft", "2")})
        self.assertIn("2 settings are the same as an earlier one", self.said)
        self.out = self.work / "zip"
        self.sweep({"axes": {"workers.batch_size": [1, 2], "workers.count": [5, 6], "stop.gradients": [10, 20]},
                    "zip": [["workers.count", "workers.batch_size"]]})
        self.assertEqual({(row["workers.batch_size"], row["workers.count"], row["stop.gradients"])
                          for row in self.each_once(4)},
                         {("1", "5", "10"), ("1", "5", "20"), ("2", "6", "10"), ("2", "6", "20")})

    def test_set_changes_the_base_first(self) -> None:
        self.sweep({"axes": {"workers.batch_size": [1, 2]}}, "--set", "workers.batch_size=7", "--set",
                   "workers.count=3")
        rows = self.each_once(2)
        self.assertEqual({(row["workers.batch_size"], row["setting.workers"]) for row in rows},
                         {("1", "3"), ("2", "3")})

    def test_set_in_vain_is_a_warning(self) -> None:
        sweep = {"axes": {"workers.batch_size": [1, 2]}, "variants": [
            {"label": "hard", "set": {"protocol": {"name": "hardsync"}}}, {"label": "as it is"}]}
        self.sweep(sweep, "--set", "workers.batch_size=7", "--set", "workers.count=3", "--set",
                   "protocol.name=hardsync")
        warnings = [line for line in self.said.splitlines() if "warning" in line]
        self.assertEqual(warnings, [
            'rubato: warning: --set workers.batch_size=7: is overridden by the axis "workers.batch_size" of the sweep',
            'rubato: warning: --set protocol.name=hardsync: is overridden by the variant "hard" of the sweep'])
        self.sweep({**sweep, "seeds": [1, 2]}, "--set", "seed=3", "--status")
        self.assertIn('--set seed=3: is overridden by "seeds" of the sweep', self.said)
        # A part of an object that an axis sets, and one that it does not.
        for value, count in (('{"count": 3, "batch_size": 4}', 1), ('{"count": 3}', 0)):
            self.sweep(sweep, "--status", "--set", f"workers={value}")
            self.assertEqual(self.said.count("is overridden by"), count, self.said)

    def test_best_of_nothing(self) -> None:
        path = self.sweep_file({"axes": {A: [0.01, 0.02]}})
        best = ("--best", 3, "--by", "time_to_target_s")
        for how in ((), ("--json",)):
            done = self.call("sweep", path, "--out", self.out, *best, *how)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertRegex(done.stderr, r"\Arubato: \S+/out: has no finished point of this sweep's report, so none "
                             r"is best; there is no results.csv: [^\n]+\n\Z")
        self.assertFalse(self.out.exists())
        self.assertEqual(self.call("sweep", path, "--out", self.out, "--set", "workers.count=5").returncode, 0)
        done = self.call("sweep", path, "--out", self.out, *best)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("so none is best; 2 rows are of other points\n", done.stderr)
        # Finished runs without the figure are an answer.
        self.assertEqual(self.call("sweep", path, "--out", self.out, "--quiet").returncode, 0)
        done = self.call("sweep", path, "--out", self.out, *best)
        self.assertEqual((done.returncode, done.stdout),
                         (0, "none of the finished runs has the figure time_to_target_s\n"))

    def test_a_new_axis_widens_the_table(self) -> None:
        self.sweep({"axes": {A: [0.01]}})
        (old,) = self.table()
        self.sweep({"axes": {"workers.batch_size": [10, 20]}})
        # One of them is the point of before: its row stays, and gets the cell that it lacked.
        rows = self.each_once(2)
        self.assertEqual({key: value for key, value in rows[0].items() if value},
                         {"workers.batch_size": "10", **{key: value for key, value in old.items() if value}})
        self.assertEqual([row["workers.batch_size"] for row in rows], ["10", "20"])
        # The columns of the first sweep are still there, in another order.
        self.assertEqual(self.sweep({"axes": {A: [0.01, 0.02]}})["skipped"], 1)
        self.assertEqual([row[A] for row in self.each_once(3)], ["0.01", "", "0.02"])

    def test_dry_run_and_status_run_nothing(self) -> None:
        path = self.sweep_file({"seeds": [1, 2], "axes": {A: [0.01, 0.02, 5]}})
        text = self.call("sweep", path, "--dry-run", "--out", self.out, "--keep").stdout
        self.assertRegex(text, r"points +6, of 3 settings x 2 seeds")
        self.assertRegex(text, r"time +roughly .* with \d+ process")
        self.assertRegex(text, r"disk +about .* of results.csv and .* of run directories")
        self.assertIn("6 missing", self.call("sweep", path, "--status", "--out", self.out).stdout)
        self.assertFalse(self.out.exists())
        done = self.call("sweep", path, "--out", self.out)
        self.assertEqual(done.returncode, 1)
        self.assertIn("2 points failed", done.stderr)
        self.assertNotIn("\r", done.stderr)
        (self.out / "aggregate.csv").unlink()
        text = self.call("sweep", path, "--status", "--out", self.out).stdout
        self.assertIn("4 finished, 0 diverged, 2 failed", text)
        self.assertEqual(len(self.table("aggregate.csv")), 3)
        self.assertIn("4 are done in", self.call("sweep", path, "--dry-run", "--out", self.out).stdout)

    def test_default_folder(self) -> None:
        self.sweep_file({"seeds": [1]})
        for arguments in ((), ("--set", "workers.count=3")):
            self.assertEqual(self.call("sweep", "sweep.json", *arguments).returncode, 0)
        names = sorted(path.name for path in (self.work / "runs").iterdir())
        self.assertEqual(len(names), 2)
        self.assertRegex(names[0], r"^sweep-[0-9a-f]{8}$")
        self.sweep_file({"seeds": [1, 2]})
        self.assertIn("1 points are done already", self.call("sweep", "sweep.json").stderr)
        saved = json.loads((self.work / "runs" / names[0] / "sweep.json").read_text())
        self.assertEqual(set(saved), {"version", "base", "seeds"})

    def test_identity_is_by_content(self) -> None:
        self.sweep({"seeds": [1]})
        base = {"comment": "another text", **BASE}
        base["name"] = "another"
        base["workers"] = {"batch_size": 10, "count": 4.0}
        self.base(base)
        self.assertEqual(self.sweep({"seeds": [1]})["skipped"], 1)
        self.base({**BASE, "stop": {"gradients": 201}})
        self.assertEqual(self.sweep({"seeds": [1]})["of_other_points"], 1)

    def test_platforms_of_several_kinds(self) -> None:
        platform = {"kind": "star", "count": 6}
        (self.work / "p.json").write_text(json.dumps(platform))
        (self.work / "p.xml").write_text(
            "<?xml version='1.0'?><!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">"
            "<platform version=\"4.1\"><zone id=\"z\" routing=\"Full\">"
            + "".join(f"<host id=\"h{i}\" speed=\"1Gf\"/>" for i in range(5)) + "<link id=\"l\" bandwidth=\"1GBps\" "
            "latency=\"1us\"/>" + "".join(f"<route src=\"h0\" dst=\"h{i}\"><link_ctn id=\"l\"/></route>"
                                          for i in range(1, 5)) + "</zone></platform>")
        self.sweep({"seeds": list(range(6)), "variants": [
            {"label": "inline"}, {"label": "xml", "set": {"cluster.platform": "p.xml"}},
            {"label": "json", "set": {"cluster.platform": "p.json"}},
            {"label": "other", "set": {"cluster.network": {"star": {"bandwidth": "1Gbps"}}}}]}, "-j", 2)
        rows = self.each_once(24)
        self.assertEqual({row["status"] for row in rows}, {"finished"}, rows)
        for label, flags in (("xml", ["cluster.platform=p.xml"]), ("inline", [])):
            text = self.call("run", "base.json", "--json", "--set", "seed=3", *(
                word for flag in flags for word in ("--set", flag))).stdout
            row = next(row for row in rows if row["label"] == label and row["seed"] == "3")
            self.assertEqual(json.loads(text)["time_s"], float(row["time_s"]))

    def test_platforms_that_bear_no_other_in_their_process(self) -> None:
        """Profiles, of latencies too; and a link that fails is a failed point."""
        data = Path(__file__).resolve().parents[1] / "sim" / "data"
        base = {**BASE, "workers": {"count": 1, "batch_size": 10}}
        self.base(base)
        self.sweep({"seeds": list(range(4)), "variants": [{"label": "star"}, *(
            {"label": name, "set": {"cluster.platform": str(data / f"{name}.xml")}}
            for name in ("changing_latency", "ok", "failing_link"))]}, "-j", 2, status=None)
        rows = self.each_once(16)
        status = {label: {row["status"] for row in rows if row["label"] == label}
                  for label in ("star", "changing_latency", "ok", "failing_link")}
        self.assertEqual(status["star"] | status["changing_latency"] | status["ok"], {"finished"}, rows)
        single = self.call("run", "base.json", "--json", "--set", "seed=3", "--set",
                           f"cluster.platform={data / 'changing_latency.xml'}")
        row = next(row for row in rows if row["label"] == "changing_latency" and row["seed"] == "3")
        self.assertEqual(json.loads(single.stdout)["time_s"], float(row["time_s"]))
        for row in rows:
            if row["status"] == "failed":
                self.assertIn("peer_lost: ", row["status_detail"])

    def test_the_tables_are_csv(self) -> None:
        self.sweep({"variants": [{"label": 'one "quoted", and more'}]})
        text = (self.out / "results.csv").read_text()
        self.assertEqual(text.count("\n"), 2)
        self.assertEqual(next(csv.DictReader(io.StringIO(text)))["label"], 'one "quoted", and more')


if __name__ == "__main__":
    case.main()
