"""`python -m tests.conformance.op_db.worker`: answers [name, most samples] by the row of an operator (worker_loop.py).

Requires an interpreter with PyTorch. The parent process restarts it if an operator crashes it.
"""

from __future__ import annotations

import functools
import sys
import time
from collections import defaultdict
from dataclasses import asdict

from torch.testing._internal.common_methods_invocations import op_db

from ..worker_loop import serve_rows
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
    by_name = defaultdict(list)
    for info in op_db:
        by_name[info.name].append(info)
    return serve_rows({name: functools.partial(row, name, infos) for name, infos in by_name.items()})


if __name__ == "__main__":
    sys.exit(main())
