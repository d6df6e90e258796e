"""Neither side loads the other's library: libsimgrid exports MPI_* symbols, and an image that holds both aborts.

Looks at what the program and the module are linked with, and at what a local run and a simulated run really load.
Usage: libraries_test.py RUBATO MODULE SCENARIO
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path


def linked(path):
    """Names of all libraries that the loader would bring in for a file."""
    return subprocess.run(["ldd", path], capture_output=True, text=True, check=True).stdout


def loaded(program, scenario, backend, *sets):
    """The loader's own account of the libraries of one run."""
    with tempfile.TemporaryDirectory(prefix="rubato-") as work:
        log = Path(work) / "loader"
        subprocess.run([program, "run", scenario, "--quiet", "--backend", backend, "--out", Path(work) / "run",
                        "--set", 'stop={"updates": 3}', *(part for text in sets for part in ("--set", text))],
                       check=True, env={**os.environ, "LD_DEBUG": "libs", "LD_DEBUG_OUTPUT": str(log)})
        # One file a process: the simulation may try a platform in a child first.
        return "".join(path.read_text(errors="replace") for path in Path(work).glob("loader.*"))


def main():
    program, module, scenario = sys.argv[1:4]
    assert "libsimgrid" not in linked(program), "the program links SimGrid"
    assert "libmpi" not in linked(program), "the program links MPI"
    assert "libsimgrid" in linked(module), "the module does not link SimGrid"
    assert "libmpi" not in linked(module), "the SimGrid module links MPI"
    simulated, local = loaded(program, scenario, "sim"), loaded(program, scenario, "local")
    assert "calling init" in simulated and "libsimgrid" in simulated, "a simulated run does not load SimGrid"
    assert "libsimgrid" not in local, "a local run loads SimGrid"
    flow = loaded(program, scenario, "sim", "cluster.network.model=flow")
    assert "libsimgrid" not in flow, "a run over the flow network loads SimGrid"
    for account in (simulated, local, flow):
        assert "libmpi" not in account, "a run loads MPI"


if __name__ == "__main__":
    main()
