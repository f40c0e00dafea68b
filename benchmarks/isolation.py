"""The cost of a worker process: `python -m benchmarks.isolation` prints times and rates in an ordinary engine and in a worker
of an engine with --isolate=principal, and ratios.

Both engines run at the same time, and a client measures them in alternation, on unix sockets with shared memory.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.engine_pair import Engine, compare


def start(folder: Path) -> tuple:
    engines = [
        Engine(folder / name, f"unix:{folder / name}/engine.sock", *options)
        for name, options in (("ordinary", ()), ("isolated", ("--isolate", "principal")))
    ]
    return tuple((each, {"address": each.address, "token": each.token.read_text().strip()}) for each in engines)


if __name__ == "__main__":
    compare("unix socket and shared memory", ("engine", "worker"), start, 1)
