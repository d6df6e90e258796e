"""What the cases about faults share: their scenarios, and what each of their runs is asked."""

from pathlib import Path

from case import Case


def timing(faults: list, protocol: dict | str = "async", count: int = 3, **more: object) -> dict:
    """Timing only: a gradient takes a second, messages nothing to speak of. Worker w is on host-(w+1)."""
    protocol = {"name": protocol} if isinstance(protocol, str) else protocol
    return {"cost": {"push_bytes": 100}, "data": {"samples": 100000}, "workers": {"count": count, "batch_size": 10},
            "protocol": protocol, "stop": {"seconds": 30}, "faults": faults,
            "cluster": {"network": {"model": "flow"}, "devices": {"default": {"seconds": {"10": 1.0}}}}, **more}


class FaultCase(Case):
    """Each test runs the program on scenarios of its own."""

    def of(self, run: Path, worker: int) -> list[dict]:
        rows = [row for row in self.rows(run) if int(row["worker"]) == worker]
        return sorted(rows, key=lambda row: int(row["worker_seq"]))

    def faults(self, run: Path) -> list[tuple]:
        return [(int(row["time_ns"]) / 1e9, row["event"], row["role"], row["host"], row["link"])
                for row in self.rows(run, "faults.csv")]

    def assert_balanced(self, run: Path) -> None:
        counts = self.summary(run)["gradients"]
        rows = self.rows(run)
        self.assertEqual({kind: sum(row["outcome"] == kind for row in rows) for kind in counts}, counts)
        for worker in {row["worker"] for row in rows}:
            numbers = [int(row["worker_seq"]) for row in self.of(run, int(worker))]
            self.assertEqual(numbers, list(range(len(numbers))))

    def ended(self, scenario: dict, status: str, *arguments: str) -> tuple[str, Path]:
        """Exit status 3; what is said and where it lies."""
        run = self.run_scenario(scenario, *arguments, status=3)
        self.assert_balanced(run)
        summary = self.summary(run)
        self.assertEqual(summary["status"], status, summary["status_detail"])
        return summary["status_detail"], run
