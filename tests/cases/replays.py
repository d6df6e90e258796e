"""What the tests of replays share: a small run, and what `rubato replay` says of one."""

from case import Case


class ReplayCase(Case):
    """Runs leave their events."""

    @staticmethod
    def scenario(protocol: str = "async", **more: object) -> dict:
        return {"data": {"dataset": "synthetic", "samples": 300, "test_samples": 40, "shape": [4, 4, 1], "classes": 3,
                         "validation": 0.1},
                "workers": {"count": 4, "batch_size": 10}, "protocol": {"name": protocol},
                "model": {"name": "mlp", "hidden": [6]}, "stop": {"epochs": 2}, "evaluate": {"every_epochs": 0.5},
                "optimizer": {"name": "momentum", "momentum": 0.9, "learning_rate": 0.05},
                "cluster": {"network": {"model": "flow"}, "devices": {"default": {"seconds": {"10": 0.01}}},
                            "noise": {"lognormal_cv": 0.3}, "server": {"push_s": 1e-4, "update_s": 3e-3}}, **more}

    def replayed(self, *arguments: object, status: int = 0) -> str:
        done = self.call("replay", *arguments)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout if status != 2 else done.stderr
