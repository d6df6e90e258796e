#!/usr/bin/python3
"""Runs the benchmarks and writes docs/performance.md: scripts/performance.py [BUILD_DIRECTORY].

Figures are ratios of what was measured in one run, apart from messages a second, which depend on the machine named.
Exit status 1 where a figure misses its target.
"""
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
            "sweep": "Sweeps"}
SCRIPTS = {"messages": "messages.py", "sweep": "sweep.py"}


def machine():
    text = pathlib.Path("/proc/cpuinfo").read_text()
    name = re.search(r"model name\s*: (.*)", text)
    memory = int(re.search(r"MemTotal:\s+(\d+)", pathlib.Path("/proc/meminfo").read_text()).group(1)) / 2**20
    system = re.search(r'PRETTY_NAME="(.*)"', pathlib.Path("/etc/os-release").read_text())
    return (f"{name.group(1) if name else platform.machine()}, {os.cpu_count()} cores, {memory:.0f} GiB, "
            f"{system.group(1) if system else platform.system()}")


def measure(build, program):
    command = ([sys.executable, ROOT / "tests/bench" / SCRIPTS[program], build / "rubato"] if program in SCRIPTS
               else [build / program])
    lines = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True,
                           env={**os.environ, "RUBATO_MODULES": str(build)}).stdout.splitlines()
    return [json.loads(line) for line in lines]


def holds(row):
    if not row["target"]:
        return True
    sign, limit = row["target"].split()
    return {"<=": operator.le, ">=": operator.ge}[sign](row["value"], float(limit.replace(",", "")))


def number(value):
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def main():
    build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build").resolve()
    subprocess.run(["ninja", "-C", build, "rubato", "rubato-simgrid.so", "tests/bench/bench_primitives",
                    "tests/bench/bench_gradients", "tests/bench/bench_network", "tests/bench/bench_decisions"],
                   check=True, stdout=subprocess.DEVNULL)
    page = ["# Performance", "",
            f"Made by `scripts/performance.py` on {time.strftime('%Y-%m-%d')}: {machine()}.", "",
            "Ratios compare figures of one run, so they carry over to other machines; messages a second are those of",
            "this one. What is measured and how stands in the programs under `tests/bench`.", ""]
    missed = 0
    for program, title in PROGRAMS.items():
        page += [f"## {title}", "", "| what | measured | target | |", "|---|---:|---:|---|"]
        for row in measure(build, program):
            verdict = "" if holds(row) else "missed; "
            missed += not holds(row)
            page.append(f"| {row['name']} | {number(row['value'])} | {row['target']} | {verdict}{row['detail']} |")
            print(page[-1], flush=True)
        page.append("")
    PAGE.write_text("\n".join(page))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
