"""The schema is valid, and python3-jsonschema gives the verdicts of rubato's own reader.

Usage: schema_test.py SCHEMA RUBATO. Left out is what a schema cannot say: combinations, and what is reserved.
"""

import json
import os
import subprocess
import sys
import tempfile

import jsonschema

COST = {"model": "resnet50"}
BASE = {"cost": COST, "workers": {"count": 8}, "protocol": {"name": "async"}}


def with_key(path: str, value: object) -> dict:
    """BASE with one more value, at a dotted path."""
    scenario = json.loads(json.dumps(BASE))
    node = scenario
    keys = path.split(".")
    for key in keys[:-1]:
        node = node.setdefault(key, {})
    node[keys[-1]] = value
    return scenario


GOOD = [
    ("$schema", "../src/cli/scenario.schema.json"), ("seed", 4.0), ("comment", "why"),
    ("data.sampling", "random"), ("data.validation", 0), ("protocol.name", "ssgd"),
    ("cluster.network.concurrent_transfers", None), ("cluster.network.star.bandwidth", "25Gbps"),
    ("cluster.network.star.latency", 0), ("workers.hosts", {"8": 2, "comment": "c"}), ("workers.hosts", 3),
    ("cluster.devices.default", {"seconds": {"8": 0.03, "32": "90ms"}, "comment": "c"}),
    ("cluster.devices.default", {"a": 0.1, "b": 0.2}),
    ("optimizer.staleness_rule", "inverse-n"), ("optimizer.staleness_rule", {"name": "polynomial", "exponent": 1}),
    ("optimizer.staleness_rule", {"expression": "1/(1+a*staleness)", "a": 2, "comment": "c"}),
    ("optimizer.schedule", [{"epoch": 1, "factor": 0.5}]),
    ("trace.gradients", {"every": 7}), ("trace.gradients", False),
    ("cluster.devices.default", {"quantiles": {"32": [0.1, "200ms", 0.3]}}),
    ("cluster.devices.default", {"c": 1, "quantiles": {"32": [0, 1, 2]}, "levels": [0, 0.1, 1], "host_sharing": 2}),
    ("cluster.devices.default", {"c": 1, "host_sharing": {"1": 1, "4": 1.5, "comment": "c"}}),
    ("cluster.server", {"push_s_per_byte": 1e-9, "measured_bytes": [0, "1GB"]}),
    ("cluster.network.star.measured_bytes", [1, 2]),
    ("cost", {"layers": "alexnet", "layers_batch_size": 256, "flops_per_sample": 1}),
    ("cost", {"layers": [{"bytes": 3, "forward_s": 1, "backward_s": "1ms"}], "layers_batch_size": 1,
              "flops_per_sample": 1}),
    ("stop", {"updates": 3, "seconds": "1h"}), ("faults", []), ("execution.pool_threads", 2),
]  # fmt: skip
BAD = [
    ("$schema", 3), ("cost.$schema", "x"), ("cost", {"pull_bytes": 5}), ("cluster.hosts", ["a"]),
    ("cluster.devices.default", {"p": 1}),
    ("seed", -1), ("seed", "1"), ("seed", 1.5), ("name", ""), ("name", "a/b"), ("nmae", "x"), ("comment", 3),
    ("data.dataset", "mnist"), ("data.validation", 1), ("data.shape", [1, 2]), ("data.shape", [1, 2, 0]),
    ("protocol.name", "hardsink"), ("protocol.n", 0), ("protocol", {}), ("protocol", "async"), ("workers.count", 0),
    ("workers.count", "8"), ("workers.hosts", {"eight": 1}), ("workers.hosts", {"8": 0}), ("workers.groups", []),
    ("workers.groups", [{"device": "a"}]), ("optimizer.learing_rate", 1), ("optimizer.momentum", 1),
    ("optimizer.staleness_rule", "inverse"), ("optimizer.staleness_rule", {"exponent": 1}),
    ("optimizer.staleness_rule", {"name": "polynomial", "power": 1}),
    ("optimizer.staleness_rule", {"expression": "a", "a": "b"}), ("optimizer.schedule", [{"epoch": 1}]),
    ("trace.gradients", 3), ("trace.gradients", {"every": 0}), ("stop.epochs", 0), ("stop.target", {}),
    ("cluster.network.concurrent_transfers", 0), ("cluster.network.star.bandwidth", 0),
    ("cluster.network.star.latency", True), ("cluster.devices.x", {"seconds": {}}),
    ("cluster.devices.x", {"seconds": 3}), ("cluster.server.push_s", -1), ("cost.model", "vgg"),
    ("cluster.devices.x", {"quantiles": {}}), ("cluster.devices.x", {"quantiles": {"32": [1]}}),
    ("cluster.devices.x", {"quantiles": {"32": [-1, 1]}}), ("cluster.devices.x", {"levels": [0, 1]}),
    ("cluster.devices.x", {"quantiles": {"8": [1, 2]}, "levels": [0, 2]}), ("cluster.profile", 3),
    ("cluster.devices.x", {"host_sharing": {"one": 1}}), ("cluster.devices.x", {"host_sharing": {"1": 0}}),
    ("cluster.server.push_s_per_byte", -1), ("cluster.server.measured_bytes", [1]), ("cluster.profile", ""),
    ("cost", {"push_bytes": 3, "flops_per_sample": 1, "layers_batch_size": 1}),
    ("cost", {"push_bytes": 3, "flops_per_sample": 1, "layers_rate": 1}), ("cost", {"layers": ""}),
    ("cost", {"layers": [{"bytes": 3, "forward_s": 1}], "flops_per_sample": 1}),
    ("cost", {"layers": [{"bytes": 0}], "flops_per_sample": 1}),
    ("evaluate.at_end", "yes"), ("cluster.noise.lognormal_cv", None),
]  # fmt: skip


def rubato_accepts(program: str, folder: str, scenario: object) -> tuple[bool, str]:
    """The verdict of `rubato check`, and what it said."""
    path = os.path.join(folder, "scenario.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(scenario, file)
    answer = subprocess.run([program, "check", path], capture_output=True, text=True, check=False)
    assert answer.returncode in (0, 2), answer
    if answer.returncode == 2:
        assert len(answer.stderr.strip().split("\n")) == 1, answer.stderr
    return answer.returncode == 0, answer.stderr.strip()


def keys_without_description(schema: dict, path: str = "") -> list[str]:
    """Every key that a user may write has a description."""
    found = []
    for key, child in schema.get("properties", {}).items():
        place = f"{path}.{key}"
        if "description" not in child and "$ref" not in child:
            found.append(place)
        found += keys_without_description(child, place)
    for branch in [schema.get("items"), *schema.get("anyOf", [])]:
        if isinstance(branch, dict):
            found += keys_without_description(branch, path)
    return found


def scenarios_that_ship(schema_path: str) -> list[str]:
    """Files that an editor opens with this schema."""
    root = os.path.join(os.path.dirname(schema_path), "..", "..", "scenarios")
    found = [os.path.join(place, name) for place, _, names in os.walk(root) for name in names if name.endswith(".json")]
    assert len(found) > 5, root
    return sorted(found)


SWEEP = {"base": "base.json"}
GOOD_SWEEPS = [
    {}, {"comment": "c", "$schema": "x"}, {"seeds": [0, 2.0]}, {"variants": [{"label": "a", "comment": "c"}]},
    {"variants": [{"label": "a", "set": {"protocol": {"name": "hardsync"}, "workers.count": 3}}]},
    {"axes": {"workers.count": [1, 2], "cluster.noise": [{"lognormal_cv": 0.1}]}, "zip": []},
    {"axes": {"workers.count": [1, 2], "stop.updates": [1, 2]}, "zip": [["workers.count", "stop.updates"]]},
    {"where": "workers.count > 1"},
]  # fmt: skip
BAD_SWEEPS = [
    {"base": 3}, {"base": ""}, {"seeds": []}, {"seeds": ["1"]}, {"seeds": [-1]}, {"seeds": 3}, {"axis": {}},
    {"variants": []}, {"variants": [{}]}, {"variants": [{"label": ""}]}, {"variants": [{"label": "a", "sets": {}}]},
    {"variants": [{"label": "a", "set": 3}]}, {"axes": {"workers.count": []}}, {"axes": {"workers.count": 3}},
    {"axes": []}, {"zip": [["workers.count"]]}, {"zip": "a"}, {"where": ""}, {"where": 3}, {"tune": {}},
    {"tune": {"axes": {}, "by": "train_loss", "seeds": [9]}},
    {"tune": {"axes": {"workers.count": [1]}, "by": "test_error", "seeds": [9]}},
    {"tune": {"axes": {"workers.count": [1]}, "by": "train_loss", "seeds": []}},
    {"tune": {"axes": {"workers.count": [1]}, "by": "train_loss"}},
]  # fmt: skip


def sweep_problems(schema: dict, program: str) -> list[str]:
    """The schema of sweeps against the reader of sweeps."""
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    problems = [f"{place}: no description" for place in keys_without_description(schema)]
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "base.json"), "w", encoding="utf-8") as file:
            json.dump(BASE, file)
        path = os.path.join(folder, "sweep.json")
        for expected, keys in [(True, one) for one in GOOD_SWEEPS] + [(False, one) for one in BAD_SWEEPS]:
            sweep = {**SWEEP, **keys}
            with open(path, "w", encoding="utf-8") as file:
                json.dump(sweep, file)
            answer = subprocess.run([program, "sweep", path, "--dry-run"], capture_output=True, text=True, check=False)
            second = validator.is_valid(sweep)
            if (answer.returncode == 0, second) != (expected, expected) or answer.returncode not in (0, 2):
                problems.append(f"{json.dumps(sweep)}: rubato {answer.returncode} ({answer.stderr.strip()}), "
                                f"jsonschema {second}")
    return problems


PROFILE = {"profile_version": 1}
TIMES = {"n": 3, "mean": 1.5}
GOOD_PROFILES = [
    {}, {"comment": "c", "$schema": "x", "date": "today", "host": "h", "cores": 3, "notes": ["a"]},
    {"compute": {"a": {"batches": {"8": TIMES}}, "comment": "c"}},
    {"compute": {"a": {"batches": {"8": {**TIMES, "quantiles": [1, 2]}}, "host_sharing": {"2": 1.5}, "source": "run",
                       "dispatch_s": 0.1}}, "levels": [0, 1]},
    {"server": {"bytes": [0, 1], "push": {"n": 1, "fixed_s": 1, "per_byte_s": 0}, "pull": {}, "update": {}}},
    {"network": {"bytes": [1, 1], "bandwidth": 2, "latency_s": 0, "server_bandwidth": 3, "largest_error": 0.5,
                 "messages": [{"bytes": 1, "seconds": 2, "n": 3}]}},
]  # fmt: skip
BAD_PROFILES = [
    {"profile_version": 2}, {"profile_version": "1"}, {"date": 3}, {"cores": -1}, {"levels": [0]}, {"levels": [0, 2]},
    {"notes": [3]}, {"seconds": 1}, {"compute": []}, {"compute": {"a": {}}}, {"compute": {"a": {"batches": {}}}},
    {"compute": {"a": {"batches": {"x": TIMES}}}}, {"compute": {"a": {"batches": {"8": {}}}}},
    {"compute": {"a": {"batches": {"8": {"mean": 0}}}}}, {"compute": {"a": {"batches": {"8": {**TIMES, "n": 0}}}}},
    {"compute": {"a": {"batches": {"8": TIMES}, "source": "guess"}}}, {"server": {}}, {"server": {"bytes": [1]}},
    {"compute": {"a": {"batches": {"8": TIMES}, "host_sharing": {"2": 0}}}},
    {"server": {"bytes": [1, 2], "push": {"fixed_s": -1}}}, {"server": {"bytes": [1, 2], "push": {"fixed": 1}}},
    {"network": {"bytes": [1, 2]}}, {"network": {"bytes": [1, 2], "bandwidth": 0}},
    {"network": {"bytes": [1, 2], "bandwidth": 1, "messages": [{"bytes": 1}]}},
]  # fmt: skip


def profile_problems(schema: dict, program: str) -> list[str]:
    """The schema of profiles against the reader of profiles."""
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    problems = [f"{place}: no description" for place in keys_without_description(schema)]
    with tempfile.TemporaryDirectory() as folder:
        scenario = {**BASE, "cluster": {"profile": "profile.json", "devices": {"default": {"c": 1}}}}
        for expected, keys in [(True, one) for one in GOOD_PROFILES] + [(False, one) for one in BAD_PROFILES]:
            profile = {**PROFILE, **keys}
            with open(os.path.join(folder, "profile.json"), "w", encoding="utf-8") as file:
                json.dump(profile, file)
            first, message = rubato_accepts(program, folder, scenario)
            if (first, validator.is_valid(profile)) != (expected, expected):
                problems.append(f"{json.dumps(profile)}: rubato {first} ({message}), jsonschema {not first}")
    return problems


LAYER = {"name": "a", "parameters": 3, "forward_s": 1, "backward_s": 2.5}
TABLE = {"name": "n", "layers": [LAYER]}
GOOD_TABLES = [
    {}, {"$schema": "x", "comment": "c", "source": "s", "derivation": "d", "assumption": "a", "flops_per_s": 1e9},
    {"batch_size": 3}, {"layers": [{**LAYER, "comment": "c"}, {**LAYER, "parameters": 0, "forward_s": 0}]},
]  # fmt: skip
BAD_TABLES = [
    {"name": ""}, {"name": 3}, {"source": 3}, {"batch_size": 0}, {"batch_size": "3"}, {"batch_size": 1.5},
    {"flops_per_s": 0}, {"layer": []}, {"layers": []}, {"layers": {}}, {"layers": [3]}, {"layers": [{}]},
    {"layers": [{**LAYER, "bytes": 3}]}, {"layers": [{**LAYER, "parameters": -1}]},
    {"layers": [{**LAYER, "parameters": 0.5}]}, {"layers": [{**LAYER, "forward_s": -1}]},
    {"layers": [{**LAYER, "backward_s": "1s"}]}, {"layers": [{"name": "a", "parameters": 3, "forward_s": 1}]},
]  # fmt: skip


def table_problems(validator: jsonschema.Draft202012Validator, program: str) -> list[str]:
    """The schema of layer tables against their reader."""
    jsonschema.Draft202012Validator.check_schema(validator.schema)
    problems = [f"{place}: no description" for place in keys_without_description(validator.schema)]
    scenario = {**BASE, "cost": {"layers": "./table.json", "flops_per_sample": 1, "layers_batch_size": 3}}
    with tempfile.TemporaryDirectory() as folder:
        for expected, keys in [(True, one) for one in GOOD_TABLES] + [(False, one) for one in BAD_TABLES]:
            table = {**TABLE, **keys}
            with open(os.path.join(folder, "table.json"), "w", encoding="utf-8") as file:
                json.dump(table, file)
            first, message = rubato_accepts(program, folder, scenario)
            if (first, validator.is_valid(table)) != (expected, expected):
                problems.append(f"{json.dumps(table)}: rubato {first} ({message}), jsonschema {not first}")
    return problems


def main(schema_path: str, program: str) -> int:
    """Counts the disagreements."""
    with open(schema_path, encoding="utf-8") as file:
        schema = json.load(file)
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    problems = [f"{place}: no description" for place in keys_without_description(schema)]
    with open(os.path.join(os.path.dirname(schema_path), "sweep.schema.json"), encoding="utf-8") as file:
        sweep_schema = json.load(file)
    problems += sweep_problems(sweep_schema, program)
    with open(os.path.join(os.path.dirname(schema_path), "profile.schema.json"), encoding="utf-8") as file:
        problems += profile_problems(json.load(file), program)
    with open(os.path.join(os.path.dirname(schema_path), "layer_table.schema.json"), encoding="utf-8") as file:
        of_tables = jsonschema.Draft202012Validator(json.load(file))
    problems += table_problems(of_tables, program)
    for path in scenarios_that_ship(schema_path):
        with open(path, encoding="utf-8") as file:
            content = json.load(file)
        of_sweeps = jsonschema.Draft202012Validator(sweep_schema)
        table = os.path.basename(os.path.dirname(path)) == "models"
        judge = of_tables if table else of_sweeps if "base" in content else validator
        problems += [f"{path}: {error.message}" for error in judge.iter_errors(content)]
    cases = [(True, BASE)] + [(True, with_key(*case)) for case in GOOD] + [(False, with_key(*case)) for case in BAD]
    cases += [(False, {key: value for key, value in BASE.items() if key != gone}) for gone in ("workers", "protocol")]
    cases += [(False, 3), (False, [])]
    with tempfile.TemporaryDirectory() as folder:
        for expected, scenario in cases:
            second = validator.is_valid(scenario)
            first, message = rubato_accepts(program, folder, scenario)
            if (first, second) != (expected, expected):
                problems.append(f"{json.dumps(scenario)}: rubato {first} ({message}), jsonschema {second}")
    print("\n".join(problems + [f"{len(cases)} scenarios, {len(problems)} problems"]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
