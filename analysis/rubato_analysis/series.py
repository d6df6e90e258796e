"""What the runs of a figure are called and how each is drawn."""

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Callable

from rubato_analysis.run_directory import Run
from rubato_analysis.styles import Style, protocol_style


@dataclass(frozen=True)
class Series:
    """A run with its name and look in a figure."""

    run: Run
    label: str
    style: Style


def protocol_label(run: Run) -> str:
    """The protocol as papers write it: 2-softsync."""
    if run.protocol != "n-softsync":
        return run.protocol
    return f"{run.n}-softsync"


def _rule_label(run: Run) -> str:
    rule = run.staleness_rule
    return "no staleness rule" if rule == "none" else f"rule {rule}"


def _seed_label(run: Run) -> str:
    return f"seed {run.scenario.get('seed')}"


# What else may tell runs apart, in the order in which labels name it. Only what differs among the runs is named.
_DIFFERENCES: tuple[Callable[[Run], str], ...] = (
    lambda run: f"{run.workers_count} workers",
    lambda run: f"batch {run.batch_size}",
    lambda run: f"rate {run.scenario.get('optimizer', {}).get('learning_rate')}",
    _rule_label,
    lambda run: str(run.scenario.get("model", {}).get("name") or "no model"),
    lambda run: f"cost {run.scenario.get('cost', {}).get('model') or 'own'}",
    lambda run: run.backend or "unfinished",
    _seed_label,
)


def series_of(runs: list[Run], seeds: bool = True) -> list[Series]:
    """Labels and looks. A run's look depends on the set of runs, never on their order.

    seeds: whether runs that differ in their seed alone are told apart; else they share label and look, unless two of
    them have the seed in common as well.
    """
    differing = [describe for describe in _DIFFERENCES if len({describe(run) for run in runs}) > 1]
    labels = [", ".join([protocol_label(run)] + [describe(run) for describe in differing]) for run in runs]
    # What nothing above tells apart goes by the scenario's name, and where names are the same, by the directory.
    for told_by in (lambda run: run.name, lambda run: run.path):
        labels = [f"{label} ({told_by(run)})" if labels.count(label) > 1 and _tells_apart(told_by, label, labels, runs)
                  else label for label, run in zip(labels, runs)]
    if not seeds and _seed_label in differing:
        differing.remove(_seed_label)
        shared = [", ".join([protocol_label(run)] + [describe(run) for describe in differing]) for run in runs]
        seen = Counter(zip(shared, map(_seed_label, runs)))
        again = {label for (label, _), count in seen.items() if count > 1}
        labels = [own if label in again else label for own, label in zip(labels, shared)]
    return _styled(runs, labels)


def _styled(runs: list[Run], labels: list[str]) -> list[Series]:
    """Runs of one label have one look; labels of one protocol are variants of its look."""
    same_look: dict[tuple[str, int | None], list[str]] = defaultdict(list)
    for run, label in sorted(zip(runs, labels), key=lambda pair: pair[1]):
        if label not in same_look[run.protocol, run.n]:
            same_look[run.protocol, run.n].append(label)
    return [
        Series(run, label, protocol_style(run.protocol, run.n, same_look[run.protocol, run.n].index(label)))
        for run, label in zip(runs, labels)
    ]


def _tells_apart(told_by: Callable[[Run], str], label: str, labels: list[str], runs: list[Run]) -> bool:
    """Whether the runs that share a label differ in this."""
    return len({told_by(run) for run, other in zip(runs, labels) if other == label}) > 1


def title_of(runs: list[Run]) -> str:
    """Names of the scenarios."""
    names = list(dict.fromkeys(run.name for run in runs))
    return ", ".join(names) if len(names) <= 3 else f"{names[0]} and {len(names) - 1} other scenarios"


def subtitle_of(runs: list[Run]) -> str:
    """What all the runs have in common: workers, what learns, and what is charged."""

    def common(describe: Callable[[Run], str]) -> str:
        values = {describe(run) for run in runs}
        return values.pop() if len(values) == 1 else ""

    return ", ".join(filter(None, (common(_machines), common(_learning), common(_cost), common(_clock))))


def _machines(run: Run) -> str:
    batch = f" of batch {run.batch_size}" if run.batch_size else ""
    return f"{run.workers_count} worker{'' if run.workers_count == 1 else 's'}{batch}"


def _learning(run: Run) -> str:
    model = run.scenario.get("model", {})
    if not model.get("name") or model.get("gradients") == "none":
        return "timing only"
    dataset = run.scenario.get("data", {}).get("dataset")
    return f"{model['name']} on {dataset}" if dataset else str(model["name"])


def _cost(run: Run) -> str:
    cost = run.scenario.get("cost", {}).get("model")
    return f"charged as {cost}" if cost else ""


def _clock(run: Run) -> str:
    return {"sim": "simulated"}.get(run.backend, f"{run.backend} backend" if run.backend else "")


def ending(run: Run) -> str:
    """What a legend must say of a run that did not end well; empty for one that did."""
    return "" if run.status == "finished" else run.status.replace("_", " ")
