"""Names of protocols, as figures and tables show them."""

from typing import Any

# Other names in the literature and in other systems for what rubato calls otherwise.
ALIASES = {
    "ssgd": "hardsync",
    "sync": "hardsync",
    "softsync": "n-softsync",
    "k-batch-async": "n-softsync",
    "fedbuff": "n-softsync",
}


def canonical_name(name: str) -> str:
    """The one name of a protocol."""
    plain = name.lower().replace("_", "-")
    return ALIASES.get(plain, plain)


def gradients_per_update(protocol: dict[str, Any], workers: int) -> int:
    """c: the gradients that one update consists of (Gupta et al. 2015, section 3.1)."""
    name = canonical_name(str(protocol.get("name", "")))
    if name == "n-softsync":
        return int(protocol.get("gradients_per_update") or max(1, workers // int(protocol.get("n") or 1)))
    if name == "hardsync" or (name == "bsp" and protocol.get("update", "aggregated") == "aggregated"):
        return workers
    if name == "backup-workers":
        return workers - int(protocol.get("backups") or 0)
    if name == "rennala":
        return int(protocol.get("gradients_per_update") or workers)
    if name == "admission":
        return int(protocol.get("gradients_per_update") or 1)
    return 1
