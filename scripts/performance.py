#!/usr/bin/python3
"""Runs the benchmarks and writes docs/performance.md: scripts/performance.py [BUILD_DIRECTORY] [--only SECTION ...].

Figures are ratios of what was measured in one run, apart from messages a second, which depend on the machine named.
Exit status 1 where a figure misses its target.
"""
import argparse
import json
import operator
import os
import pathlib
import platform
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "performance.md"
PROGRAMS = {"tests/bench/bench_primitives": "Gradient kernels", "tests/bench/bench_gradients": "Real gradients",
            "tests/bench/bench_network": "The flow network alone",
            "tests/bench/bench_decisions": "Decisions of policies", "messages": "Timing-only simulation",
            "sweep": "Sweeps", "tests/bench/bench_mpi": "Messages between ranks",
            "driver": "Messages in runs over MPI"}
RANKS = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", "2"]
SCRIPTS = {"messages": "messages.py", "sweep": "sweep.py", "driver": "driver.py"}


def machine():
    text = pathlib.Path("/proc/cpuinfo").read_text()
    name = re.search(r"model name\s*: (.*)", text)
    memory = int(re.search(r"MemTotal:\s+(\d+)", pathlib.Path("/proc/meminfo").read_text()).group(1)) / 2**20
    system = re.search(r'PRETTY_NAME="(.*)"', pathlib.Path("/etc/os-release").read_text())
    return (f"{name.group(1) if name else platform.machine()}, {os.cpu_count()} cores, {memory:.0f} GiB, "
            f"{system.group(1) if system else platform.system()}")


def measure(build, program):
    more = [build / "tests/bench/bench_mpi"] if program == "driver" else []
    command = ([sys.executable, ROOT / "tests/bench" / SCRIPTS[program], build / "rubato", *more] if program in SCRIPTS
               else [*RANKS, build / program] if program == "tests/bench/bench_mpi" else [build / program])
    lines = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True,
                           env={**os.environ, "RUBATO_MODULES": str(build)}).stdout.splitlines()
    return [row(json.loads(line)) for line in lines]


def row(told):
    """A line of the page; the benchmark of ranks, which tells two times, says it in other words."""
    if "figure" not in told:
        return told
    if "skipped" in told:
        return {"name": told["figure"], "value": None, "target": told["target"],
                "detail": f"not measured: {told['skipped']}"}
    return {"name": f"{told['figure']}, {told['bytes']:,} bytes", "value": told["value"], "target": told["target"],
            "detail": f"{told['driver_us']:,.1f} us; bare MPI {told['bare_us']:,.1f} us; two ranks of one host"}


def holds(told):
    if not told["target"] or told["value"] is None:
        return True
    sign, limit = told["target"].split()
    return {"<=": operator.le, ">=": operator.ge}[sign](told["value"], float(limit.replace(",", "")))


def number(value):
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def section(build, program, title):
    """Its lines, and how many figures miss their targets."""
    lines = [f"## {title}", "", f"Measured {time.strftime('%Y-%m-%d')}: {machine()}.", "",
             "| what | measured | target | |", "|---|---:|---:|---|"]
    missed = 0
    for told in measure(build, program):
        missed += not holds(told)
        detail = ("" if holds(told) else "missed; ") + told["detail"]
        lines.append(f"| {told['name']} | {number(told['value'])} | {told['target']} | {detail} |")
        print(lines[-1], flush=True)
    return lines + [""], missed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", nargs="?", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--only", nargs="+", choices=sorted(PROGRAMS), default=list(PROGRAMS), metavar="SECTION",
                        help=f"measure these sections again, leave the others: {', '.join(sorted(PROGRAMS))}")
    parser.add_argument("--no-build", action="store_true", help="the programs are there, built elsewhere")
    options = parser.parse_args()
    build = options.build.resolve()
    if not options.no_build:
        subprocess.run(["ninja", "-C", build, "rubato", "rubato-simgrid.so", "rubato-mpi.so",
                        *(name for name in PROGRAMS if name.startswith("tests/"))],
                       check=True, stdout=subprocess.DEVNULL)
    there = dict(re.findall(r"(?m)^## (.*)\n((?:(?!## ).*\n)*)", PAGE.read_text() + "\n")) if PAGE.exists() else {}
    page = ["# Performance", "", "Made by `scripts/performance.py`, on the machine that each section names.", "",
            "Ratios compare figures of one run, so they carry over to other machines; messages a second are those of",
            "the machine. What is measured and how stands in the programs under `tests/bench`.", ""]
    total = 0
    for program, title in PROGRAMS.items():
        if program in options.only:
            lines, missed = section(build, program, title)
            page += lines
            total += missed
        elif title in there:
            page += [f"## {title}", *there[title].rstrip("\n").split("\n"), ""]
    PAGE.write_text("\n".join(page))
    return 1 if total else 0


if __name__ == "__main__":
    sys.exit(main())
