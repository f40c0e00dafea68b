"""`python -m tests.conformance.module_db.worker`: answers [name, 0] by the row of a module or optimizer (worker_loop.py).

Requires an interpreter with PyTorch. The parent process restarts it if a module crashes it.
"""

from __future__ import annotations

import sys
import time
from dataclasses import asdict

from torch.testing._internal.common_modules import module_db
from torch.testing._internal.common_optimizers import optim_db

from ..worker_loop import serve_rows
from .module_checks import ModuleChecks
from .optimizer_checks import OptimizerChecks


def row(name: str, checks) -> dict:
    """The results of one module or optimizer."""
    start = time.monotonic()
    try:
        tally = checks.run()
    except AttributeError as e:
        return {"name": name, "inputs": 0, "checks": [], "missing": [str(e)]}
    found = [
        {"check": check, "dtype": dtype, **asdict(counts)}
        for (check, dtype), counts in tally.counts.items()
        if counts.passed or counts.failed or counts.on_purpose or counts.skipped
    ]
    return {"name": name, "inputs": checks.inputs, "checks": found, "missing": [], "seconds": round(time.monotonic() - start, 2)}


def main() -> int:
    """Answers requests until the input ends."""
    makers = {info.name: (info, ModuleChecks) for info in module_db}
    makers |= {f"optim.{info.name}": (info, OptimizerChecks) for info in optim_db}
    return serve_rows({name: lambda _, name=name, made=made: row(name, made[1](made[0])) for name, made in makers.items()})


if __name__ == "__main__":
    sys.exit(main())
