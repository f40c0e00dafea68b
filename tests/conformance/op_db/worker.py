"""`python -m tests.conformance.op_db.worker`: reads lines of `name|most samples`, writes one line of JSON each.

Requires an interpreter with PyTorch. The parent process restarts it if an operator crashes it.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import defaultdict
from dataclasses import asdict

import torch
from torch.testing._internal.common_methods_invocations import op_db

from .checks import Allowance, Checks, MissingOperator
from .differences import allowance_of


def row(name: str, infos: list, most: int) -> dict:
    """The row of all variants of one name."""
    start, checks, missing, missing_forms = time.monotonic(), [], [], []
    allowance = Allowance(**allowance_of(name))
    for info in infos:
        try:
            report = Checks(info, allowance, most).run()
        except MissingOperator as e:
            missing.append(str(e))
            continue
        missing_forms += report.missing
        for (check, dtype), counts in report.counts.items():
            if counts.passed or counts.failed or counts.on_purpose or counts.skipped:
                checks.append({"variant": info.variant_test_name, "check": check, "dtype": dtype, **asdict(counts)})
    return {"name": name, "checks": checks, "missing": missing, "missing_forms": sorted(set(missing_forms)),
            "seconds": round(time.monotonic() - start, 2)}  # fmt: skip


def main() -> int:
    torch.set_num_threads(1)
    by_name = defaultdict(list)
    for info in op_db:
        by_name[info.name].append(info)
    rows = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # output of operators is not a row
    for line in sys.stdin:
        name, most = line.strip().rsplit("|", 1)
        if name == "?":
            reply = {"names": sorted(by_name), "version": torch.__version__}
        else:
            try:
                reply = row(name, by_name[name], int(most))
            except Exception as e:  # a fault of the suite, or an exception of a type that PyTorch never raises
                reply = {"name": name, "broken": f"{type(e).__name__}: {e}"}
        rows.write(json.dumps(reply, default=str) + "\n")
        rows.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
