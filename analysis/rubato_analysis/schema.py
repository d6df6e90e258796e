"""Types of the columns of every table of a run; docs/traces.md defines them and gives their units.

int64     an integer that is always there
Int64     pandas' nullable integer: empty cells (what never came to that, such as `apply_version` of a cancelled
          gradient) are pandas.NA
float64   a number; empty cells are NaN
str       text (dtype object); empty cells are ""
category  text out of the few words of CATEGORIES, in their order; words of later versions come after them

A table without rows has the same types. Columns that are not listed here are kept, with the type that pandas infers.
"""

# {table: {column: type}}, in the order of the files.
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
        "data_epoch": "Int64",
        "data_first": "Int64",
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
        "gradient_norm": "float64",
        "suboptimality": "float64",
    },
    "workers": {
        "worker": "int64",
        "device": "str",
        "host": "str",
        "gradients": "Int64",
        "applied": "int64",
        "dropped": "int64",
        "cancelled": "int64",
        "leftover": "int64",
        "staleness_mean": "float64",
        "staleness_p99": "Int64",
        "compute_s": "float64",
        "push_queued_s": "float64",
        "push_moving_s": "float64",
        "pull_request_s": "float64",
        "pull_moving_s": "float64",
        "policy_wait_s": "float64",
        "apply_wait_s": "float64",
        "evaluate_s": "float64",
        "idle_s": "float64",
        "inquiries": "Int64",
        "pulls": "Int64",
    },
    "servers": {
        "role": "int64",
        "host": "str",
        "pushes": "int64",
        "updates": "int64",
        "replies": "int64",
        "push_s": "float64",
        "update_s": "float64",
        "pull_s": "float64",
        "evaluate_s": "float64",
        "idle_s": "float64",
        "bytes_in": "int64",
        "bytes_out": "int64",
        "receiving_s": "float64",
        "sending_s": "float64",
    },
    "controller": {
        "time_ns": "int64",
        "worker": "int64",
        "pushes": "int64",
        "slowest": "Int64",
        "slowest_pushes": "int64",
        "gap": "int64",
        "last_push_ns": "Int64",
        "interval_ns": "Int64",
        "slowest_last_push_ns": "Int64",
        "slowest_interval_ns": "Int64",
        "r_limit": "Int64",
        "granted": "int64",
        "predicted_ns": "Int64",
        "slowest_predicted_ns": "Int64",
    },
    "rounds": {
        "round": "int64",
        "version": "int64",
        "worker": "Int64",
        "shard": "Int64",
        "workers": "int64",
        "steps": "int64",
        "samples": "int64",
        "broadcast_begin_ns": "Int64",
        "broadcast_end_ns": "Int64",
        "compute_begin_ns": "Int64",
        "compute_end_ns": "Int64",
        "reduce_begin_ns": "Int64",
        "reduce_end_ns": "Int64",
        "prepare_begin_ns": "Int64",
        "prepare_end_ns": "Int64",
    },
    "exchanges": {
        "cycle": "int64",
        "shard": "int64",
        "worker": "int64",
        "steps": "int64",
        "pulls": "int64",
        "asked_ns": "int64",
        "begin_ns": "int64",
        "end_ns": "int64",
    },
    "iterations": {
        "worker": "int64",
        "iteration": "int64",
        "delay": "int64",
        "in_flight": "int64",
        "version": "int64",
        "begin_ns": "int64",
        "computed_ns": "int64",
        "waited_ns": "int64",
        "end_ns": "int64",
    },
    "layers": {
        "worker": "int64",
        "iteration": "int64",
        "bucket": "int64",
        "gradient_begin_ns": "int64",
        "gradient_end_ns": "int64",
        "reduce_begin_ns": "Int64",
        "reduce_end_ns": "Int64",
        "apply_begin_ns": "int64",
        "apply_end_ns": "int64",
    },
    "shards": {
        "shard": "int64",
        "worker": "int64",
        "worker_seq": "int64",
        "read_version": "int64",
        "apply_version": "Int64",
        "staleness": "Int64",
        "applied_ns": "Int64",
        "outcome": "category",
    },
    "faults": {
        "time_ns": "int64",
        "event": "category",
        "role": "Int64",
        "host": "str",
        "link": "str",
        "bandwidth_factor": "float64",
        "latency_factor": "float64",
    },
    "timeline": {
        "role": "int64",
        "kind": "category",
        "begin_ns": "int64",
        "end_ns": "int64",
        "peer": "Int64",
        "bytes": "int64",
    },
}

# Columns without which a file is no such table, where that is not all of them: files of other writers, and of versions
# before a column was added, may lack the others.
REQUIRED: dict[str, list[str]] = {
    "gradients": [name for name in TABLES["gradients"] if not name.startswith("data_")],
    "evals": [name for name in TABLES["evals"] if name not in ("gradient_norm", "suboptimality")],
    "rounds": [name for name in TABLES["rounds"] if name != "shard"],
    "workers": ["worker", "device", "host"],
    "servers": ["role", "host"],
}

CATEGORIES: dict[str, list[str]] = {
    "outcome": ["applied", "dropped", "cancelled", "leftover"],
    "kind": ["compute", "push", "pull", "inquiry", "apply", "evaluate", "wait", "down", "relay", "copy"],
    "event": ["crash", "return", "link"],
}

# Types of columns that a file may have besides, where they are not what pandas would infer.
OPTIONAL: dict[str, str] = {"grad_norm": "float64", "gap": "float64", "shard": "Int64", "count": "int64"}

# Tables that runs of some protocols alone leave.
OF_PROTOCOL: dict[str, tuple[str, ...]] = {"controller": ("dssp",),
                                           "rounds": ("sparknet", "local-sgd", "diloco", "easgd", "mpca",
                                                      "async-diloco", "gosgd", "streaming-diloco"),
                                           "exchanges": ("mpca",),
                                           "iterations": ("allreduce", "no-comm", "layer-wise", "delayed",
                                                          "adaptive-delay"),
                                           "layers": ("allreduce", "no-comm", "layer-wise", "delayed",
                                                      "adaptive-delay")}

# Tables that runs with some topologies alone leave.
OF_TOPOLOGY: dict[str, str] = {"shards": "sharded"}

# Figures of the summary that are above 0 where a table is left, which others do not have.
OF_FIGURES: dict[str, str] = {"faults": "faults"}

# What to ask of `rubato run` so that a table is written.
SWITCHES: dict[str, str] = {
    "gradients": "--set trace.gradients=true",
    "updates": "--set trace.updates=true",
    "timeline": "--timeline",
    "controller": "protocol dssp",
    "rounds": "a protocol that averages models, --set trace.updates=true",
    "exchanges": "protocol mpca, --set trace.updates=true",
    "iterations": "a protocol without a server, --set trace.updates=true",
    "layers": "a protocol without a server, --set trace.layers=true",
    "shards": "topology sharded",
    "faults": "faults, in simulation",
}


def type_of(table: str, column: str) -> str | None:
    """Type of a column; None where it is not known."""
    return TABLES[table].get(column) or OPTIONAL.get(column)


def required_columns(table: str) -> list[str]:
    """Columns that every file of the table has."""
    return REQUIRED.get(table) or list(TABLES[table])


# results.csv of a sweep: these columns, the swept keys, those, and the figures of the summary.
RESULTS_HEAD = ["point", "phase", "label", "seed"]
RESULTS_TAIL = ["status", "status_detail"]
AGGREGATE_COLUMNS = ["label", "n", "diverged", "failed", "reached"]

_INTEGERS = """gradients.applied gradients.dropped gradients.cancelled gradients.leftover samples updates staleness.max
    staleness.p50 staleness.p99 traffic.messages traffic.bytes traffic.control_messages updates_to_target
    samples_to_target setting.workers setting.batch_size setting.global_batch trace_version engine.peak_rss_bytes
    engine.ranks faults.crashes faults.returns faults.links
    shards.mixed_gradients"""
_NUMBERS = """time_s epochs throughput.samples_per_s throughput.gradients_per_s throughput.updates_per_s
    throughput.steady_samples_per_s throughput.steady_ci95 staleness.mean staleness.steady_mean compute_utilization
    communication_hidden_fraction seconds.compute seconds.exposed_communication seconds.wait train_loss valid_error
    test_error best_valid_error time_to_target_s valid_loss test_loss gradient_norm suboptimality engine.wall_s
    engine.messages_per_s engine.clock_residual_s shards.staleness_mean"""
_TEXTS = "weights_hash scenario backend clock setting.protocol setting.topology setting.model setting.cost"

# {dotted name of a figure in summary.json: type of its column}; others are as pandas infers.
SUMMARY_TYPES: dict[str, str] = (
    dict.fromkeys(_INTEGERS.split(), "Int64")
    | dict.fromkeys(_NUMBERS.split(), "float64")
    | dict.fromkeys(_TEXTS.split(), "str")
)
