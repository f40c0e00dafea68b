"""Compares captured code with eager calls and with PyTorch: ``make captures``.

PyTorch's operator and module samples in compiled functions and in exported modules, the files of ``torch.export`` that each
package reads from the other, and the numbers of graphs of the functions in ``tests/python/compile/rows.py``.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from .peer import ROOT, add_option, environment, python_of

FEWEST = 0.95  # of the rows: as many graphs and breaks as with PyTorch, or fewer


def run(title: str, command: Sequence[str]) -> tuple[bool, str]:
    """Runs a module; prints its output. Returns whether it succeeded, and what it printed."""
    print(f"== {title}", flush=True)
    done = subprocess.run([*command], cwd=ROOT, env=environment(), stdout=subprocess.PIPE, text=True)
    print(done.stdout, end="", flush=True)
    return done.returncode == 0, done.stdout


def rows(python: str) -> bool:
    """Whether enough functions have as many graphs and breaks as with PyTorch."""
    module = ("-m", "tests.conformance.compile_rows")
    with tempfile.TemporaryDirectory() as name:
        files = [Path(name, f"{package}.json") for package in ("ours", "theirs")]
        for file, command in zip(files, ([sys.executable, *module, "--one"], [python, *module, "--one", "--peer"])):
            done = subprocess.run(command, cwd=ROOT, env=environment(), stdout=subprocess.PIPE, text=True)
            file.write_text(done.stdout)
        succeeded, output = run("graphs and breaks", [sys.executable, *module, *map(str, files)])
    same, _, total = output.split(" functions", 1)[0].partition(" of ")
    return succeeded and int(same) >= FEWEST * int(total)


def main() -> int:
    """Runs all comparisons; returns 1 if one found a difference."""
    parser = argparse.ArgumentParser(prog="tests.conformance.captures", description=__doc__)
    add_option(parser)
    python = python_of(parser.parse_args())
    compiled = (python, "-m", "tests.conformance.compiled")
    results = [
        run("operators in compiled functions", [*compiled, "ops"])[0],
        run("modules in compiled functions", [*compiled, "modules"])[0],
        run("exported modules", [*compiled, "modules", "--export"])[0],
        run("graphs and files of torch.export", [sys.executable, "-m", "tests.conformance.graphs", "--python", python])[0],
        rows(python),
    ]
    print(f"captures: {results.count(False)} of {len(results)} comparisons failed")
    return int(not all(results))


if __name__ == "__main__":
    sys.exit(main())
