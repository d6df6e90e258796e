"""Small learning scenarios for runs over MPI."""

POLICIES = [{"name": "hardsync"}, {"name": "n-softsync", "n": 1}, {"name": "n-softsync", "n": 2}, {"name": "async"}]


def learning(policy: dict, count: int, batch_size: int = 16, samples: int = 203, hidden: int = 12) -> dict:
    """A small network on small data; payloads are longer than a note from 20 hidden units on."""
    return {
        "data": {"samples": samples, "shape": [6, 6, 1], "test_samples": 50, "classes": 4},
        "model": {"name": "mlp", "hidden": [hidden]},
        "workers": {"count": count, "batch_size": batch_size},
        "protocol": policy,
        "optimizer": {"name": "momentum", "learning_rate": 0.05},
        "stop": {"epochs": 3},
        "evaluate": {"every_epochs": 1},
        "trace": {"events": True, "timeline": True},
    }
