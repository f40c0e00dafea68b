"""The loop of the fuzz targets that read mutated files. Inputs with a fault, or that make the process grow, are kept."""

from __future__ import annotations

import argparse
import os
import resource
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

BUILD = Path(os.environ.get("TELETENSOR_BUILD", Path(__file__).resolve().parents[2] / "build"))
MEMORY = 512 << 20  # bytes by which the process may grow over all inputs


def run(
    name: str, suffix: str, description: str, seeds: Callable[[Any], list[bytes]],
    mutations: Callable[[list[bytes], int], Iterator[bytes]], fault_of: Callable[[Any, bytes], str | None],
) -> int:  # fmt: skip
    """Runs a target for the seconds of its command line; returns 1 if there are findings.

    Args:
        name: of the target, NAME_fuzz; suffix: of the files that are kept.
        seeds: returns valid files, and has used everything that is loaded at the first use.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--findings", type=Path, default=BUILD / "fuzz" / name)
    options = parser.parse_args()
    os.environ.setdefault("TELETENSOR_DAEMON", str(BUILD / "bin/teletensord"))
    sys.path.insert(0, str(BUILD / "python"))
    import teletensor as torch

    originals = seeds(torch)
    options.findings.mkdir(parents=True, exist_ok=True)
    running = options.findings / f"running{suffix}"
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    ends = time.monotonic() + options.seconds
    count = findings = 0
    for data in mutations(originals, options.seed):
        if time.monotonic() >= ends:
            break
        running.write_bytes(data)
        fault = fault_of(torch, data)
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10
        if fault is None and grown > MEMORY:
            fault = f"the process grew by {grown >> 20} MB"
            before += grown >> 10
        count += 1
        if fault is not None:
            findings += 1
            kept = options.findings / f"seed{options.seed}-{count}{suffix}"
            kept.write_bytes(data)
            print(f"{kept}: {fault}", flush=True)
    running.unlink()
    print(f"{name}_fuzz: {count} inputs, {findings} findings, seed {options.seed}")
    return 1 if findings else 0
