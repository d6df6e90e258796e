"""Types of the columns of every table of a run; docs/traces.md defines them and gives their units.

int64     an integer that is always there
Int64     pandas' nullable integer: empty (pandas.NA) where it never came to that, such as `apply_version` of a
          cancelled gradient. Values up to 2**53, about 104 days in nanoseconds.
float64   a number; empty is NaN
str       text
category  text with few values

Columns that are not listed here are kept, with the type that pandas infers.
"""

# {column: type}; the columns that every file of the name has.
TABLES: dict[str, dict[str, str]] = {
    "gradients": {
        "seq": "int64",
        "worker": "int64",
        "worker_seq": "int64",
        "read_version": "int64",
        "apply_version": "Int64",
        "staleness": "Int64",
        "samples": "int64",
        "pull_ns": "Int64",
        "begin_ns": "Int64",
        "end_ns": "Int64",
        "push_ns": "Int64",
        "applied_ns": "Int64",
        "outcome": "category",
        "scale": "float64",
        "loss": "float64",
    },
    "updates": {
        "time_ns": "int64",
        "version": "int64",
        "shard": "int64",
        "contributors": "int64",
        "mean_staleness": "float64",
        "samples": "int64",
        "epoch": "float64",
        "learning_rate": "float64",
        "effective_learning_rate": "float64",
    },
    "evals": {
        "time_ns": "int64",
        "version": "int64",
        "epoch": "float64",
        "samples": "int64",
        "train_loss": "float64",
        "valid_loss": "float64",
        "valid_error": "float64",
        "test_loss": "float64",
        "test_error": "float64",
    },
    "workers": {"worker": "int64", "device": "str", "host": "str"},
    "servers": {"role": "int64", "host": "str"},
    "timeline": {
        "role": "int64",
        "kind": "category",
        "begin_ns": "int64",
        "end_ns": "int64",
        "peer": "Int64",
        "bytes": "int64",
    },
}

# Columns that a file may have besides, where their type is not what pandas would infer.
OPTIONAL: dict[str, str] = {
    "data_epoch": "Int64",
    "data_first": "Int64",
    "grad_norm": "float64",
    "gap": "float64",
    "gradient_norm": "float64",
    "suboptimality": "float64",
    "staleness_mean": "float64",
    "staleness_p99": "Int64",
}

# What to ask of `rubato run` so that a table is written.
SWITCHES: dict[str, str] = {
    "gradients": "--set trace.gradients=true",
    "updates": "--set trace.updates=true",
    "timeline": "--timeline",
}
