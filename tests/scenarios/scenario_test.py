"""Runs one scenario file, cut short, and checks what must hold of every run, whatever the protocol.

Usage: scenario_test.py RUBATO SCENARIO. Exit status 0: all held.
"""

import csv
import filecmp
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

UPDATES = 12
SAME = ["gradients.csv", "updates.csv", "evals.csv", "workers.csv", "servers.csv", "events.log", "scenario.json"]


def rubato(program, *arguments, status=0):
    """Runs the program; its exit status must be `status`. Returns standard output and standard error."""
    done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == status, f"exit {done.returncode}, expected {status}: {done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def rows(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def updates_of(run):
    """Of the server or, of several, of the first one, as gradients.csv and the summary are."""
    return [row for row in rows(run / "updates.csv") if row["shard"] == "0"]


def count_of(row):
    """Gradients in the sum that a row stands for."""
    return int(row.get("count", 1))


def check_books(run, summary, lambda_):
    """Conservation of gradients, versions without gaps, vector clock against rows, times that add up."""
    gradients, updates = rows(run / "gradients.csv"), updates_of(run)
    counts = summary["gradients"]
    by_outcome = {name: sum(count_of(row) for row in gradients if row["outcome"] == name) for name in counts}
    assert by_outcome == counts, (by_outcome, counts)
    started = {(row["worker"], int(row["worker_seq"]) + i) for row in gradients for i in range(count_of(row))}
    assert len(started) == sum(counts.values()), "a gradient has two rows"
    for worker in range(lambda_):
        seqs = sorted(int(seq) for who, seq in started if int(who) == worker)
        assert seqs == list(range(len(seqs))), f"worker {worker} lost a gradient"
    assert [int(row["version"]) for row in updates] == list(range(1, len(updates) + 1))
    by_version = {}
    for row in gradients:
        if row["outcome"] == "applied":
            assert int(row["staleness"]) == int(row["apply_version"]) - int(row["read_version"]) >= 0
            by_version.setdefault(int(row["apply_version"]) + 1, []).extend([int(row["staleness"])] * count_of(row))
    for row in updates:
        # Where models are averaged in parts, a part may come before any step has been taken.
        staleness = by_version.get(int(row["version"]), [])
        assert len(staleness) == int(row["contributors"])
        assert abs(sum(staleness) / max(len(staleness), 1) - float(row["mean_staleness"])) < 1e-9
    histogram = summary["staleness"]["histogram"]
    assert sum(histogram) == counts["applied"]
    for row in rows(run / "workers.csv"):
        seconds = sum(float(row[name]) for name in row if name.endswith("_s"))
        assert abs(seconds - summary["time_s"]) <= 0.01 * summary["time_s"] + 1e-3, (row, summary["time_s"])


def check_conservation(run, lambda_, delay=0):
    """Mean staleness + mean updates between push and next read = (lambda - 1) / c, exactly, with the ends counted.

    With a `delay` a worker goes on to so many gradients before one of its own is applied.
    """
    gradients = [row for row in rows(run / "gradients.csv") if row["outcome"] == "applied"]
    versions = len(updates_of(run))
    fired = {}
    for row in gradients:
        fired[row["apply_version"]] = max(fired.get(row["apply_version"], -1), int(row["seq"]))
    total, workers = 0, {}
    for row in gradients:
        workers.setdefault(row["worker"], []).append(row)
    for own in workers.values():
        own.sort(key=lambda row: int(row["worker_seq"]))
        for row, following in zip(own, own[1:] + [None]):
            until = int(following["read_version"]) if following else versions
            later = until - int(row["apply_version"]) - (fired[row["apply_version"]] == int(row["seq"]))
            assert later >= -delay, "a worker read weights older than those it has contributed to"
            total += int(row["staleness"]) + later
    total += (lambda_ - len(workers)) * versions
    assert total == versions * (lambda_ - 1), (total, versions * (lambda_ - 1))


def check_intervals(run, communication):
    """A push carries no more than its gradients, and only every so many exchanges bring weights."""
    push_every, pull_every = communication["push_every"], communication["pull_every"]
    workers = {}
    for row in rows(run / "gradients.csv"):
        workers.setdefault(row["worker"], []).append(row)
    for own in workers.values():
        own.sort(key=lambda row: int(row["worker_seq"]))
        assert all(count_of(row) == push_every for row in own[:-1]), "a push carries another number of gradients"
        versions = [int(row["read_version"]) for row in own]
        for at in range(0, len(own), pull_every):
            assert len(set(versions[at : at + pull_every])) == 1, "weights came without a pull"
    assert any(len({row["read_version"] for row in own}) > 1 for own in workers.values()), "nobody has pulled again"


def check_replay(program, run, work):
    """The recorded run replays; with one line altered it does not, and the line is named."""
    rubato(program, "replay", run)
    lines = (run / "events.log").read_text().splitlines(keepends=True)
    short = work / "short"
    short.mkdir()
    for name in ("scenario.json", "summary.json"):
        (short / name).write_text((run / name).read_text())
    (short / "events.log").write_text("".join(lines[:-1]))
    assert "breaks off" in rubato(program, "replay", short, status=1)
    chosen = random.Random(7).sample(range(1, len(lines) - 1), 5)
    for index in chosen:
        altered = work / f"altered-{index}"
        altered.mkdir()
        (altered / "scenario.json").write_text((run / "scenario.json").read_text())
        line = lines[index]
        at = max(position for position, character in enumerate(line) if character.isdigit())
        changed = line[:at] + str((int(line[at]) + 1) % 10) + line[at + 1 :]
        (altered / "events.log").write_text("".join(lines[:index] + [changed] + lines[index + 1 :]))
        (altered / "summary.json").write_text((run / "summary.json").read_text())
        said = rubato(program, "replay", altered, status=1)
        assert f"line {index + 1}" in said or f":{index + 1}:" in said, (index + 1, said)
        assert any(role in said for role in ("server", "worker", "relay", "shard")), said


def main():
    program, scenario = sys.argv[1], Path(sys.argv[2])
    rubato(program, "check", scenario)
    resolved = None
    with tempfile.TemporaryDirectory(prefix="rubato-") as name:
        work = Path(name)
        # All tables, whatever the scenario leaves out.
        # Gossip has no versions to count until somebody asks for one.
        gossip = json.loads(scenario.read_text()).get("protocol", {}).get("name") == "gosgd"
        stop = {"gradients": 10 * UPDATES} if gossip else {"updates": UPDATES}
        common = [scenario, "--quiet", "--events", "--set", f"stop={json.dumps(stop)}", "--set", "trace={}"]
        for threads in (1, 2):
            rubato(program, "run", *common, "--out", work / f"run{threads}", "--set",
                   f"execution.pool_threads={threads}")
        run = work / "run1"
        resolved = json.loads((run / "scenario.json").read_text())
        summary = json.loads((run / "summary.json").read_text())
        assert summary["status"] in ("finished", "diverged"), summary["status"]
        if summary["status"] == "finished" and not gossip:
            assert summary["updates"] == UPDATES
        lambda_ = summary["setting"]["workers"]
        check_books(run, summary, lambda_)
        communication = resolved["workers"].get("communication")
        if communication:
            check_intervals(run, communication)
        elif resolved["workers"]["pipeline"] == "overlap" or resolved["topology"]["name"] != "star":
            pass  # conservation is a law of workers that read after their own gradient is applied
        elif resolved["protocol"]["name"] in ("easgd", "mpca", "async-diloco", "gosgd", "streaming-diloco"):
            pass  # and workers with a model of their own merge what they read into it
        elif resolved["protocol"]["name"] != "hardsync":
            check_conservation(run, lambda_, resolved["protocol"].get("delay", 0))
        else:
            assert summary["staleness"]["max"] == 0
        for file in SAME:
            if file != "scenario.json":
                assert filecmp.cmp(run / file, work / "run2" / file, shallow=False), f"{file} depends on the threads"
        other = json.loads((work / "run2" / "summary.json").read_text())
        for part in ("engine", "environment"):
            summary.pop(part), other.pop(part)
        assert summary == other, "the summary depends on the number of threads"
        check_replay(program, run, work)
        if summary["weights_hash"]:
            assert "the same final weights" in rubato(program, "replay", run, "--weights", "--evaluate")
    print(f"{scenario}: {summary['status']}, {sum(summary['gradients'].values())} gradients, staleness mean "
          f"{summary['staleness']['mean']:.4g}")


if __name__ == "__main__":
    main()
