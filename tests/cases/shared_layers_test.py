"""Layer tables that other tools made: a workload of ASTRA-sim and a topology of SCALE-Sim.

Usage: shared_layers_test.py RUBATO. Reads shared/cases/layers beside the repository; exit status 77 where that is
missing.
"""

import json
import os
import sys

from case import Case, main, shared_cases

FOLDER = shared_cases() / "layers"
ASTRA = "astra_Resnet50_DataParallel.txt"
SCALE = "scalesim_Googlenet.csv"


def scenario(layers: object, **cost: object) -> dict:
    return {"cost": {"layers": str(layers), **cost}, "data": {"samples": 320},
            "workers": {"count": 2, "batch_size": 32}, "protocol": {"name": "async"},
            "cluster": {"devices": {"default": {"seconds": {"32": 0.1}}}}}  # fmt: skip


class SharedLayers(Case):
    """Read as they are, and with ends of lines, blanks and commas in other places."""

    def resolved(self, content: dict) -> dict:
        """The cost of the scenario that a run saves."""
        return json.loads((self.run_scenario(content) / "scenario.json").read_text())["cost"]

    def rows(self, name: str) -> list[list[str]]:  # type: ignore[override]
        """The fields of the layers, by a reader of the test's own."""
        lines = [line.strip() for line in (FOLDER / name).read_text().splitlines() if line.strip()]
        if name == ASTRA:
            return [line.split() for line in lines[2:]]
        return [[cell.strip() for cell in line.rstrip(",").split(",")] for line in lines[1:]]

    def test_astra_sim(self) -> None:
        cost = self.resolved(scenario(FOLDER / ASTRA, layers_batch_size=32))
        rows = self.rows(ASTRA)
        self.assertEqual(len(rows), 54)
        self.assertEqual([layer["name"] for layer in cost["layers"]], [row[0] for row in rows])
        for layer, row in zip(cost["layers"], rows):
            self.assertEqual(layer["bytes"], int(row[10]))
            self.assertAlmostEqual(layer["forward_s"], int(row[2]) * 1e-9, delta=1e-15)
            self.assertAlmostEqual(layer["backward_s"], (int(row[5]) + int(row[8])) * 1e-9, delta=1e-15)
        self.assertEqual((cost["layers_batch_size"], cost["push_bytes"]), (32, sum(int(row[10]) for row in rows)))

    def test_scale_sim(self) -> None:
        cost = self.resolved(scenario(FOLDER / SCALE, layers_rate="5Tf", layers_batch_size=32))
        rows = self.rows(SCALE)
        self.assertEqual(len(cost["layers"]), 58)
        self.assertEqual([layer["name"] for layer in cost["layers"]], [row[0] for row in rows])
        for index, (layer, row) in enumerate(zip(cost["layers"], rows)):
            height, width, filter_height, filter_width, channels, filters, stride = map(int, row[1:])
            weights = filter_height * filter_width * channels * filters
            places = -((height - filter_height + stride) // -stride) * -((width - filter_width + stride) // -stride)
            self.assertEqual(layer["bytes"], 4 * weights)
            forward = 2 * weights * places * 32 / 5e12
            self.assertAlmostEqual(layer["forward_s"], forward, delta=1e-12)
            self.assertAlmostEqual(layer["backward_s"], (1 if index == 0 else 2) * forward, delta=1e-12)

    def test_what_does_not_matter(self) -> None:
        for name, more in ((ASTRA, {"layers_batch_size": 8}), (SCALE, {"layers_rate": "5Tf"})):
            text = (FOLDER / name).read_bytes().replace(b"\r", b"")
            plain = self.resolved(scenario(FOLDER / name, **more))
            blank = b"  \t " if name == ASTRA else b","
            for change in (lambda it: it.replace(b"\n", b"\r\n"), lambda it: it.replace(b"\n", b"\n\n \t\n"),
                           lambda it: it.replace(b"\n", b" , \n"), lambda it: it.replace(b"\t", blank),
                           lambda it: it.replace(b" ", b"\t"), lambda it: it.rstrip()):
                (self.work / name).write_bytes(change(text))
                cost = self.resolved(scenario(f"./{name}", **more))
                self.assertEqual(cost["layers"], plain["layers"])

    def test_what_is_cut_off_or_repeated_is_refused(self) -> None:
        lines = (FOLDER / ASTRA).read_text().splitlines()
        for changed, place, message in (
                (lines[:-1], 2, "expected 54 layers, as this line says, found 53"),
                (lines + lines[-1:], 57, "expected 54 layers, as line 2 says, found one more"),
                (lines[:9] + [lines[9].rsplit(None, 2)[0]] + lines[10:], 10, "found 10"),
                (lines[:9] + [lines[9].replace("ALLREDUCE", "ALLREDUCE\t-")] + lines[10:], 10, "found 13"),
        ):  # fmt: skip
            (self.work / "cut.txt").write_text("\n".join(changed) + "\n")
            said = self.refused(scenario("./cut.txt"), "check")
            self.assertIn(f"cut.txt:{place}: expected ", said)
            self.assertIn(message, said)
        lines = (FOLDER / SCALE).read_text().splitlines()
        for changed, place, message in (
                (lines[2:], 1, "expected the header"),
                (lines[:4] + [lines[4].replace("64, 192,", "64,")] + lines[5:], 5, "found 7"),
                (lines[:4] + [lines[4].replace("64,", "-64,")] + lines[5:], 5, 'found the string "-64"'),
        ):  # fmt: skip
            (self.work / "cut.csv").write_text("\n".join(changed) + "\n")
            said = self.refused(scenario("./cut.csv", layers_rate=1e12), "check")
            self.assertIn(f"cut.csv:{place}: ", said)
            self.assertIn(message, said)


if __name__ == "__main__":
    if not FOLDER.is_dir():
        print("skipped:", FOLDER, "is not here")
        sys.exit(77)
    os.environ.setdefault("PYTHONDONTWRITEBYTECODE", "1")
    main()
