#!/usr/bin/env python3
"""Lists source files that take more than 20 s of processor time to compile on the reference machine; fails at twice that.

Usage: ``deploy/check_compile_times.py [--table] BUILD_FOLDER``

Reads the times that deploy/build.py recorded in the folder, which exist for files that ccache did not have. The limit is
scaled by the speed of this machine: the time that it needs for a fixed source. Twice the limit fails the check, because
files that are compiled beside others take longer than the fixed source; those above the limit are listed. ``--table`` lists
the total of each target and the slowest files instead.
"""

from __future__ import annotations

import argparse
import collections
import re
import resource
import subprocess
import sys
from pathlib import Path

LIMIT_S = 20.0  # on the reference machine: two virtual cores of an AMD EPYC (Zen 5)
REFERENCE_S = 3.0  # the time that the reference machine needs for CALIBRATION
CALIBRATION = """
#include <map>
#include <random>
#include <regex>
#include <string>
std::map<std::string, std::regex> patterns(const std::string& text) {
  std::map<std::string, std::regex> found;
  const std::regex pattern("a+(b|c)*");
  for (std::sregex_iterator i(text.begin(), text.end(), pattern), end; i != end; ++i) {
    found.emplace(i->str(), std::regex(i->str()));
  }
  return found;
}
"""


def read_times(folder: Path) -> dict[str, float]:
    """Returns the processor seconds of each object file that still exists, as recorded when it was last compiled."""
    path = folder / "compile_times.txt"
    times = {}
    for line in path.read_text().splitlines() if path.exists() else []:
        if match := re.fullmatch(r"([\d.]+)\+([\d.]+) (\S+)", line):
            name = match[3].removeprefix(f"{folder.resolve()}/")
            if (folder / name).exists():
                times[name] = float(match[1]) + float(match[2])
    return times


def calibrate() -> float:
    """Returns the processor seconds that this machine needs to compile CALIBRATION: the least of three runs."""
    least = float("inf")
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = ["c++", "-std=c++20", "-O2", "-x", "c++", "-c", "-", "-o", "/dev/null"]
        subprocess.run(command, input=CALIBRATION, text=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        least = min(least, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return least


def print_table(times: dict[str, float]) -> None:
    """Prints the totals of targets and the slowest files, in seconds."""
    totals: dict[str, list[float]] = collections.defaultdict(list)
    for name, seconds in times.items():
        match = re.search(r"CMakeFiles/([^/]+)\.dir/", name)
        totals[match[1] if match else name].append(seconds)
    print(f"{sum(times.values()):8.0f} s in {len(times)} files")
    for target, seconds in sorted(totals.items(), key=lambda item: -sum(item[1])):
        print(f"{sum(seconds):8.1f} s {len(seconds):4} files  {target}")
    for name, seconds in sorted(times.items(), key=lambda item: -item[1])[:20]:
        print(f"{seconds:8.1f} s  {name}")


def main() -> int:
    """Checks; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path, metavar="BUILD_FOLDER")
    parser.add_argument("--table", action="store_true", help="list the totals of targets and the slowest files")
    args = parser.parse_args()
    times = read_times(args.folder)
    if args.table:
        print_table(times)
        return 0
    speed = calibrate() / REFERENCE_S
    limit = LIMIT_S * speed
    slow = {name: seconds for name, seconds in times.items() if seconds > limit}
    for name, seconds in sorted(slow.items(), key=lambda item: -item[1]):
        print(f"compile times: {name} took {seconds:.1f} s of processor time, the limit is {limit:.1f} s here; divide it")
    slowest = f", the slowest took {max(times.values()):.1f} s" if times else ""
    print(f"compile times: {len(times)} recorded files{slowest}; the limit is {limit:.1f} s here")
    return 1 if any(seconds > 2 * limit for seconds in slow.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
