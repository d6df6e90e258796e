"""Worker i takes sqrt(i) seconds: how far each method is after the same time, with the keys of docs/validation.md.

Usage: sqrt_test.py RUBATO REPOSITORY
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

PROTOCOLS = {
    "async": lambda _: {"name": "async"},
    "minibatch SGD": lambda _: {"name": "hardsync"},
    "rennala": lambda key: {"name": "rennala", "gradients_per_update": key},
    "ringmaster": lambda key: {"name": "ringmaster", "delay_threshold": key},
    "ringmaster, cancelling": lambda key: {"name": "ringmaster", "delay_threshold": key, "cancel": True},
}


def tuned(page):
    """{method: (learning rate, B or threshold)} of the page's table on these methods."""
    table = page[page.index("| method | learning rate |"):].split("\n\n")[0]
    rows = re.findall(r"^\| ([^|]+) \| ([0-9.e-]+) \| ([0-9]*) \| [0-9,]+ \|", table, re.MULTILINE)
    return {name: (float(rate), int(key or 0)) for name, rate, key in rows}


def main():
    program, root = sys.argv[1], Path(sys.argv[2])
    found = tuned((root / "docs/validation.md").read_text())
    assert found.keys() == PROTOCOLS.keys(), found
    end = {}
    for name, (rate, key) in found.items():
        with tempfile.TemporaryDirectory(prefix="rubato-") as out:
            sets = [f"protocol={json.dumps(PROTOCOLS[name](key))}", f"optimizer.learning_rate={rate}"]
            words = [word for one in sets for word in ("--set", one)]
            done = subprocess.run([program, "run", root / "scenarios/sweeps/sqrt-times-base.json", "--quiet", "--json",
                                   "--force", "--out", out, *words], capture_output=True, text=True, check=True)
        summary = json.loads(done.stdout)
        end[name] = summary["suboptimality"]
        print(f"{name}: {end[name]:.4g}, gradients {summary['gradients']}", flush=True)
    assert 2 * end["ringmaster"] < end["rennala"], end
    assert 5 * end["rennala"] < end["async"], end
    assert 3 * end["async"] < end["minibatch SGD"], end
    assert abs(end["ringmaster, cancelling"] / end["ringmaster"] - 1) < 0.5, end


if __name__ == "__main__":
    main()
