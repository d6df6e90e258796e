"""A run directory as an object."""

import json
import os
import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd

from rubato_analysis.errors import AnalysisError, TraceWarning
from rubato_analysis.protocols import canonical_name, gradients_per_update
from rubato_analysis.schema import SWITCHES
from rubato_analysis.table import read_table


@dataclass(frozen=True)
class Run:
    """One run. Tables are read when they are first asked for, so that a sweep of thousands stays light.

    gradients, updates, evals, workers, servers, controller, rounds, exchanges, iterations, layers, shards, faults and
    timeline are frames with the types of schema.TABLES: real integers (int64, or nullable Int64 where cells may be
    empty), float64, text, and categories (`outcome`, `kind`, `event`). They raise AnalysisError for a missing file or a
    broken line; a broken last line is skipped with a TraceWarning.

    path      its directory
    scenario  scenario.json, resolved
    summary   summary.json; empty for a run that was killed, which has none
    """

    path: str
    scenario: dict[str, Any]
    summary: dict[str, Any]

    @cached_property
    def gradients(self) -> pd.DataFrame:
        """A row a gradient that was started."""
        return self._table("gradients")

    @cached_property
    def updates(self) -> pd.DataFrame:
        """A row an update of the weights."""
        return self._table("updates")

    @cached_property
    def evals(self) -> pd.DataFrame:
        """A row an evaluation."""
        return self._table("evals")

    @cached_property
    def workers(self) -> pd.DataFrame:
        """A row a worker."""
        return self._table("workers")

    @cached_property
    def servers(self) -> pd.DataFrame:
        """A row a server."""
        return self._table("servers")

    @cached_property
    def timeline(self) -> pd.DataFrame:
        """A row a stretch of time of a role; only where the run was asked for it."""
        return self._table("timeline")

    @cached_property
    def controller(self) -> pd.DataFrame:
        """A row a question to the synchronization controller; of runs of dssp alone."""
        return self._table("controller")

    @cached_property
    def rounds(self) -> pd.DataFrame:
        """A row a round, with its stages; of runs that average models alone."""
        return self._table("rounds")

    @cached_property
    def exchanges(self) -> pd.DataFrame:
        """A row a part of a shard that a worker hands on; of runs of mpca alone."""
        return self._table("exchanges")

    @cached_property
    def iterations(self) -> pd.DataFrame:
        """A row an iteration and worker; of runs without a server alone."""
        return self._table("iterations")

    @cached_property
    def layers(self) -> pd.DataFrame:
        """A row a bucket of layers, iteration and worker; of runs without a server, with trace.layers, alone."""
        return self._table("layers")

    @cached_property
    def shards(self) -> pd.DataFrame:
        """A row a gradient and shard; of runs with sharded servers alone."""
        return self._table("shards")

    @cached_property
    def faults(self) -> pd.DataFrame:
        """A row a crash, a return or a change of a link; of simulations in which there are such."""
        return self._table("faults")

    def _table(self, name: str) -> pd.DataFrame:
        path = os.path.join(self.path, f"{name}.csv")
        if not os.path.exists(path):
            hint = f"; `rubato run` writes it with {SWITCHES[name]}" if name in SWITCHES else ""
            raise AnalysisError(f"{path}: no such file{hint}")
        return read_table(path, name)

    @property
    def name(self) -> str:
        """Name of the scenario."""
        return str(self.scenario.get("name") or os.path.basename(os.path.normpath(self.path)))

    @property
    def protocol(self) -> str:
        """Canonical name of the protocol."""
        return canonical_name(str(_object(self.scenario, "protocol").get("name", "?")))

    @property
    def workers_count(self) -> int:
        """lambda: the number of workers."""
        workers = _object(self.scenario, "workers")
        groups = workers.get("groups") or [workers]
        return sum(int(group.get("count", 1)) for group in groups)

    @property
    def batch_size(self) -> int | None:
        """Samples of one worker's batch."""
        return _object(self.scenario, "workers").get("batch_size")

    @property
    def n(self) -> int | None:
        """The n of n-softsync; None for other protocols."""
        if self.protocol != "n-softsync":
            return None
        protocol = _object(self.scenario, "protocol")
        if protocol.get("gradients_per_update"):
            return max(1, self.workers_count // int(protocol["gradients_per_update"]))
        return int(protocol.get("n", 1))

    @property
    def gradients_per_update(self) -> int:
        """c: gradients of one update."""
        return gradients_per_update(_object(self.scenario, "protocol"), self.workers_count)

    @property
    def staleness_rule(self) -> str:
        """Name of the staleness rule, with what makes it adaptive, or its expression."""
        rule = _object(self.scenario, "optimizer").get("staleness_rule") or "none"
        if isinstance(rule, dict):
            name = str(rule.get("name") or rule.get("expression") or "none")
            mean_square = rule.get("mean_square", "none")
            return name if mean_square == "none" else f"{name} by {mean_square}"
        return str(rule)

    @property
    def status(self) -> str:
        """How the run ended; `unfinished` where it left no summary."""
        return str(self.summary.get("status", "unfinished"))

    @property
    def backend(self) -> str:
        """sim, local, mpi or shm; empty where it is not known."""
        return str(self.summary.get("backend", ""))

    @property
    def clock(self) -> str:
        """virtual or wall; empty where it is not known."""
        return str(self.summary.get("clock", ""))


def load(path: str | os.PathLike[str]) -> Run:
    """Opens the run directory `path`. Raises AnalysisError where it is none, warns where it did not finish.

    The types of the columns (pandas' names; docs/traces.md has them beside units and definitions):

    gradients  Int64: apply_version staleness pull_ns begin_ns end_ns push_ns applied_ns data_epoch data_first;
               category: outcome; float64: scale loss; int64: all others
    updates    float64: mean_staleness epoch learning_rate effective_learning_rate; int64: all others
    evals      int64: time_ns version samples; float64: all others
    workers    str: device host; int64: worker applied dropped cancelled leftover; Int64: gradients staleness_p99
               inquiries pulls; float64: staleness_mean and seconds
    servers    str: host; float64: seconds; int64: all others
    controller int64: time_ns worker pushes slowest_pushes gap granted; Int64: all others
    rounds     int64: round version workers steps samples; Int64: all others
    exchanges  int64: all others
    iterations int64: all others
    layers     Int64: reduce_begin_ns reduce_end_ns; int64: all others
    shards     Int64: apply_version staleness applied_ns; category: outcome; int64: all others
    faults     category: event; str: host link; Int64: role; int64: time_ns; float64: bandwidth_factor
               latency_factor
    timeline   category: kind; Int64: peer; int64: all others
    """
    path = os.fspath(path)
    if not os.path.isdir(path):
        raise AnalysisError(f"{path}: no such directory" if not os.path.exists(path) else f"{path}: not a directory")
    if not os.path.exists(os.path.join(path, "scenario.json")):
        raise AnalysisError(f"{path}: not a run directory (it has no scenario.json)")
    scenario = read_json(os.path.join(path, "scenario.json"))
    summary = {}
    if os.path.exists(os.path.join(path, "summary.json")):
        summary = read_json(os.path.join(path, "summary.json"))
    else:
        warnings.warn(f"{path}: the run did not finish (it has no summary.json)", TraceWarning, stacklevel=2)
    return Run(path, scenario, summary)


def read_json(path: str) -> dict[str, Any]:
    """The JSON object in a file."""
    try:
        with open(path, encoding="utf-8") as file:
            value = json.load(file)
    except OSError as error:
        raise AnalysisError(f"{path}: {error.strerror.lower()}") from None
    except ValueError as error:
        raise AnalysisError(f"{path}:{getattr(error, 'lineno', 1)}: not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise AnalysisError(f"{path}:1: expected a JSON object")
    return value


def _object(scenario: dict[str, Any], key: str) -> dict[str, Any]:
    """The object under `key`, or an empty one."""
    value = scenario.get(key)
    return value if isinstance(value, dict) else {}
