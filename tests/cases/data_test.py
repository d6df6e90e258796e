"""Data files that are not what they should be, from the command line: IDX and CIFAR-10.

Usage: data_test.py RUBATO DATA, the folder of the files.
"""

import gzip
import shutil
import sys
from pathlib import Path

from case import Case, main

DATA = Path()
BATCHES = tuple(f"data_batch_{i}.bin" for i in range(1, 6))


class Data(Case):
    """Case 35k. Each test fills a folder and trains on it."""

    def setUp(self) -> None:
        super().setUp()
        self.folder = self.work / "data"
        self.folder.mkdir()

    def put(self, file: str, name: str) -> None:
        (self.folder / name).unlink(missing_ok=True)
        shutil.copyfile(DATA / file, self.folder / name)

    def put_idx(self) -> None:
        for part in ("train", "t10k"):
            self.put("ok-images-idx3-ubyte", f"{part}-images-idx3-ubyte")
            self.put("ok-labels-idx1-ubyte", f"{part}-labels-idx1-ubyte")

    def put_cifar(self) -> None:
        for name in (*BATCHES, "test_batch.bin"):
            self.put("cifar_ok.bin", name)

    def scenario(self, dataset: str, model: str = "softmax", **data: object) -> dict:
        return {"data": {"dataset": dataset, "path": str(self.folder), **data}, "model": {"name": model},
                "workers": {"count": 2, "batch_size": 5}, "protocol": {"name": "hardsync"}}

    def trained_on(self, scenario: dict) -> int:
        summary = self.summary(self.run_scenario(scenario))
        self.assertEqual((summary["status"], summary["epochs"]), ("finished", 1))
        self.assertIsNotNone(summary["test_error"])
        return summary["samples"]

    def assert_refused(self, scenario: dict, name: str, *pieces: str) -> None:
        said = self.refused(scenario)
        self.assertTrue(said.startswith(f"{self.folder / name}: expected "), said)
        for piece in pieces:
            self.assertIn(piece, said)

    def test_idx_under_each_name(self) -> None:
        self.put_idx()
        self.assertEqual(self.trained_on(self.scenario("idx")), 20)
        for name, file in (("train-images.idx3-ubyte", "ok-images-idx3-ubyte"),
                           ("train-images-idx3-ubyte.gz", "gz-images-idx3-ubyte.gz"),
                           ("train-images.idx3-ubyte.gz", "gz-images-idx3-ubyte.gz"),
                           ("train-images-idx3-ubyte", "gzipped_without_suffix-images-idx3-ubyte")):
            with self.subTest(name):
                for old in self.folder.glob("train-images*"):
                    old.unlink()
                self.put(file, name)
                self.assertEqual(self.trained_on(self.scenario("idx")), 20)

    def test_broken_idx(self) -> None:
        for file, *pieces in (("trunc", "15696 bytes according to its header", "found 15012 bytes"),
                              ("headeronly", "an IDX header of 16 bytes", "found 10 bytes"),
                              ("hugecount", "3367254359296 bytes according to its header", "found 15696 bytes"),
                              ("littleendian", "IDX magic 0x00000803 (images)", "little-endian header")):
            with self.subTest(file):
                self.put_idx()
                self.put(f"{file}-images-idx3-ubyte", "train-images-idx3-ubyte")
                self.assert_refused(self.scenario("idx"), "train-images-idx3-ubyte", *pieces)
        for file, *pieces in (("short", "20 labels, one an image", "found 19"),
                              ("badlabel", "labels from 0 to 9", "found 11 at sample")):
            with self.subTest(file):
                self.put_idx()
                self.put(f"{file}-labels-idx1-ubyte", "train-labels-idx1-ubyte")
                self.assert_refused(self.scenario("idx"), "train-labels-idx1-ubyte", *pieces)

    def test_cifar_with_each_model(self) -> None:
        self.put_cifar()
        for model in ("softmax", "mlp", "cnn"):
            self.assertEqual(self.trained_on(self.scenario("cifar-10", model, samples=25)), 25)
        self.assertEqual(self.trained_on(self.scenario("cifar10", samples=25, validation=0.2)), 20)

    def test_cifar_from_the_folder_above_and_packed(self) -> None:
        self.folder = self.folder / "cifar-10-batches-bin"
        self.folder.mkdir()
        self.put_cifar()
        (self.folder / BATCHES[0]).unlink()
        with gzip.open(self.folder / (BATCHES[0] + ".gz"), "wb") as packed:
            packed.write((DATA / "cifar_ok.bin").read_bytes())
        scenario = self.scenario("cifar-10", samples=25)
        scenario["data"]["path"] = str(self.folder.parent)
        self.assertEqual(self.trained_on(scenario), 25)

    def test_a_whole_cifar_has_fifty_thousand_images(self) -> None:
        for i, name in enumerate((*BATCHES, "test_batch.bin")):
            with open(self.folder / name, "wb") as file:
                file.write(bytes([i]))
                file.truncate(10000 * 3073)
        said = self.call("check", self.write(self.scenario("cifar-10"))).stdout
        self.assertIn("50,000 training samples an epoch", said)
        (self.folder / BATCHES[4]).unlink()
        for samples in ({}, {"samples": 40000}):
            self.assert_refused(self.scenario("cifar-10", **samples), BATCHES[4], "found 4 of the 5")

    def test_broken_cifar(self) -> None:
        size = "30730000 bytes, 10000 records of 3073"
        for file, *pieces in (("cifar_trunc.bin", size, "found 15358 bytes, 4 records and 3066 bytes"),
                              ("cifar100_3074.bin", size, "found 15370 bytes", "it looks like CIFAR-100"),
                              ("cifar_empty.bin", size, "found 0 bytes, an empty file"),
                              ("cifar_label17.bin", "labels from 0 to 9", "found 17 at record 0")):
            for name in ("data_batch_2.bin", "test_batch.bin"):
                for samples in ({}, {"samples": 25}):
                    with self.subTest(file, name=name, **samples):
                        self.put_cifar()
                        self.put(file, name)
                        self.assert_refused(self.scenario("cifar-10", **samples), name, *pieces)
        self.put_cifar()
        self.assert_refused(self.scenario("cifar-10"), BATCHES[0], "10000 records", "data.samples", "found 5")

    def test_folders_that_are_missing(self) -> None:
        shutil.rmtree(self.folder)
        self.assertIn("there is no folder", self.refused({**self.scenario("cifar-10"), "model": {
            "name": "softmax", "gradients": "none"}, "cost": {"model": "cifar10-full"},
            "data": {"dataset": "cifar-10", "path": "nowhere", "samples": 50}}))
        scenario = self.scenario("cifar-10")
        del scenario["data"]["path"]
        self.assertIn('dataset "cifar-10" needs path', self.refused(scenario))


if __name__ == "__main__":
    DATA = Path(sys.argv.pop(2)).resolve()
    main()
