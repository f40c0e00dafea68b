#!/usr/bin/env python3
"""Configures a CMake preset and builds it, or only the given targets.

Usage: ``deploy/build.py [-D NAME=VALUE]... PRESET [TARGET...]``

Shows one line with a percentage. The output of CMake and ninja is written to build.log in the preset's build folder. If a
step fails, its part of the log is printed and the exit status is 1.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

ROOT = Path(__file__).resolve().parent.parent
STEP = re.compile(r"^\[(\d+)/(\d+)\] ")  # format of NINJA_STATUS below


def folder_of(preset: str) -> Path:
    """Returns the build folder of a configure preset in CMakePresets.json."""
    for entry in json.loads((ROOT / "CMakePresets.json").read_text())["configurePresets"]:
        if entry["name"] == preset and "binaryDir" in entry:
            return Path(entry["binaryDir"].replace("${sourceDir}", str(ROOT)))
    raise SystemExit(f"build.py: expected a preset of CMakePresets.json, got {preset!r}")


def main() -> int:
    """Builds; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("preset", help="a configure and build preset of CMakePresets.json")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="default: the preset's targets")
    parser.add_argument("-D", dest="define", action="append", default=[], metavar="NAME=VALUE", help="a CMake variable")
    args = parser.parse_args()
    folder = folder_of(args.preset)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "build.log"
    console = Console()
    environment = {
        **os.environ,
        "NINJA_STATUS": "[%f/%t] ",
        # What was compiled in one clone serves the others: ccache compares paths relative to the clone.
        "CCACHE_BASEDIR": str(ROOT),
        "CCACHE_NOHASHDIR": "1",
        # ccache runs this in front of the compiler; deploy/check_compile_times.py reads the file.
        "CCACHE_PREFIX": str(ROOT / "deploy/record_compile_time.sh"),
        "TT_COMPILE_TIMES": str(folder / "compile_times.txt"),
    }
    build = ["cmake", "--build", "--preset", args.preset]
    build += ["--target", *args.targets] if args.targets else []
    with path.open("w") as log:
        configure = ["cmake", "--preset", args.preset, *(f"-D{definition}" for definition in args.define)]
        if subprocess.run(configure, cwd=ROOT, stdout=log, stderr=log).returncode != 0:
            console.print(path.read_text(), markup=False, highlight=False)
            return 1
        columns = [TextColumn("build"), BarColumn(30), TaskProgressColumn(), TimeElapsedColumn(),
                   TextColumn("{task.fields[step]}", markup=False)]
        process = subprocess.Popen(build, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                   errors="replace", env=environment)
        reported = 0
        lines: list[str] = []
        with Progress(*columns, console=console, transient=True) as progress:
            task = progress.add_task("build", total=None, step="")
            for line in process.stdout:
                log.write(line)
                lines.append(line)
                if match := STEP.match(line):
                    done, total = int(match[1]), int(match[2])
                    step = Path(line.split()[-1]).name[:40]
                    progress.update(task, completed=done, total=total, step=step)
                    if not console.is_terminal and 10 * done // total > reported:  # a line per 10%
                        reported = 10 * done // total
                        console.print(f"build: {10 * reported}% of {total} steps", highlight=False)
        status = process.wait()
    if status != 0:
        first = next((i for i, line in enumerate(lines) if line.startswith("FAILED: ")), 0)
        console.print("".join(lines[first:])[:20000], markup=False, highlight=False)
        console.print(f"build: failed; the full output is in {path.relative_to(ROOT)}", highlight=False)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
