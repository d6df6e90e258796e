"""Runs that went on from a checkpoint are computed again from it, or it is told what is missing.

Usage: replay_resumed_test.py RUBATO
"""

from pathlib import Path

from case import main
from replays import ReplayCase

PROTOCOLS = ("hardsync", "n-softsync", "async")


class ReplayResumed(ReplayCase):
    """The log of such a run begins with the state of its roles."""

    def resumed(self, protocol: str, backend: str = "sim") -> tuple[Path, int]:
        """A run that stopped once and went on, and the version at which it did."""
        out = self.work / f"resumed-{protocol}-{backend}"
        saved = {"execution": {"checkpoint": {"every_updates": 5 if protocol == "hardsync" else 8}}}
        for epochs in (2, 5):
            path = self.write(self.scenario(protocol, stop={"epochs": epochs}, **saved))
            done = self.call("run", path, "--events", "--backend", backend, "--out", out, "--resume", "--quiet")
            self.assertEqual(done.returncode, 0, done.stderr)
        state = (out / "events.log").read_text().splitlines()[1]
        self.assertTrue(state.startswith("S "), state)
        return out, int(state.split(" version=", 1)[1].split(" ", 1)[0])

    def test_a_resumed_run_is_computed_from_its_checkpoint(self) -> None:
        for backend in ("sim", "local"):
            for protocol in PROTOCOLS:
                with self.subTest(backend=backend, protocol=protocol):
                    run, version = self.resumed(protocol, backend)
                    # It may have made others since, and keeps the one that its log begins with.
                    kept = sorted(int(path.stem) for path in (run / "checkpoints").glob("*.ckpt"))
                    self.assertIn(version, kept)
                    # Those before it go once there are two new ones; real runs may be over before that.
                    if backend == "sim":
                        self.assertEqual((len(kept), kept[0]), (3, version))
                    said = self.replayed(run, "--weights", "--evaluate")
                    self.assertIn(f"the same final weights {self.summary(run)['weights_hash']}", said)
                    # The same rule leaves the same tables; what is before the checkpoint stays as recorded.
                    again = self.work / f"again-{protocol}-{backend}"
                    self.replayed(run, "--set", "optimizer.momentum=0.9", "--out", again, "--quiet")
                    for table in ("gradients.csv", "updates.csv", "evals.csv", "workers.csv"):
                        self.assertEqual((again / table).read_bytes(), (run / table).read_bytes(), table)
                    told, recorded = self.summary(again), self.summary(run)
                    for key in ("weights_hash", "gradients", "updates", "staleness", "traffic", "best_valid_error"):
                        self.assertEqual(told[key], recorded[key], key)
                    other = self.work / f"other-{protocol}-{backend}"
                    self.replayed(run, "--set", "optimizer.name=sgd", "--out", other, "--quiet")
                    before = [row for row in self.rows(run, "updates.csv") if int(row["version"]) <= version]
                    self.assertEqual(self.rows(other, "updates.csv")[:version], before)
                    self.assertNotEqual(self.summary(other)["weights_hash"], recorded["weights_hash"])
                    # A velocity is no sum of squares, though it is as long.
                    square = self.work / f"square-{protocol}-{backend}"
                    self.replayed(run, "--set", "optimizer.name=adagrad", "--out", square, "--quiet")
                    self.assertEqual(self.summary(square)["status"], "finished")

    def test_a_resumed_run_without_its_checkpoint_says_what_is_missing(self) -> None:
        run, version = self.resumed("async")
        name = f"checkpoints/{version}.ckpt"
        whole = (run / name).read_bytes()
        newest = max((run / "checkpoints").glob("*.ckpt"), key=lambda path: int(path.stem))

        def refused(expected: str) -> None:
            for arguments in (("--weights",), ("--set", "optimizer.learning_rate=1", "--out", self.work / "none")):
                said = self.replayed(run, *arguments, status=2)
                self.assertRegex(said, r"\Arubato: [^\n]+\n\Z")
                self.assertIn(f"{name}: {expected}", said)
                self.assertIn("resumed from", said)
            self.assertFalse((self.work / "none").exists())

        (run / name).unlink()
        refused("is missing")
        (run / name).write_bytes(whole[:-100])
        refused("is cut off")
        (run / name).write_bytes(whole[:-50] + bytes([whole[-50] ^ 1]) + whole[-49:])
        refused("was altered")
        (run / name).write_bytes(newest.read_bytes())
        refused("is of version")
        # A whole checkpoint of the same version, of another run.
        other = self.work / "other"
        path = self.write(self.scenario(execution={"checkpoint": {"every_updates": version}}, seed=2))
        self.assertEqual(self.call("run", path, "--out", other, "--quiet").returncode, 0)
        (run / name).write_bytes((other / name).read_bytes())
        refused("is not the checkpoint that")
        (run / name).write_bytes(whole)
        self.replayed(run, "--weights")


if __name__ == "__main__":
    main()
