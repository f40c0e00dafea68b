"""`python -m tests.conformance.module_db.worker`: reads lines of `name|`, writes one line of JSON each.

Requires an interpreter with PyTorch. The parent process restarts it if a module crashes it.
"""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import asdict

import torch
from torch.testing._internal.common_modules import module_db
from torch.testing._internal.common_optimizers import optim_db

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
    torch.set_num_threads(1)
    makers = {info.name: lambda info=info: ModuleChecks(info) for info in module_db}
    makers |= {f"optim.{info.name}": lambda info=info: OptimizerChecks(info) for info in optim_db}
    rows = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # output of modules is not a row
    for line in sys.stdin:
        name = line.strip().rsplit("|", 1)[0]
        if name == "?":
            reply = {"names": sorted(makers), "version": torch.__version__}
        else:
            try:
                reply = row(name, makers[name]())
            except Exception as e:  # noqa: BLE001 - a fault of the suite
                reply = {"name": name, "broken": f"{type(e).__name__}: {e}"}
        rows.write(json.dumps(reply, default=str) + "\n")
        rows.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
