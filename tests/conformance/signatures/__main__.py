"""`python -m tests.conformance.signatures`: records PyTorch's declarations, prints the differences, writes the page.

Exits with 1 if a difference has no reason.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from .. import peer
from . import check
from .ours import BUILD
from .reasons import TABLE

ROOT = Path(__file__).resolve().parents[3]


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.conformance.signatures", description=__doc__)
    parser.add_argument("--recorded", action="store_true", help="use the recorded declarations; needs no PyTorch")
    parser.add_argument("--page", type=Path, default=ROOT / "docs/signatures.md", help="output file for the table")
    peer.add_option(parser)
    args = parser.parse_args()
    sys.path.insert(0, str(BUILD / "python"))
    if not args.recorded:
        command = [peer.python_of(args, "yaml"), "-m", "tests.conformance.signatures.declarations"]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        check.DECLARATIONS.write_text(subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True, text=True).stdout)
    result = check.check()
    args.page.write_text(check.page(result))
    print("\n".join(result.unexplained))
    used = {d.why for d in result.found}
    for entry in TABLE:
        if entry["why"] not in used:
            print(f"listed reason that no longer applies: {entry['names']}: {entry['why']}")
    print(check.summary(result))
    return int(bool(result.unexplained))


if __name__ == "__main__":
    sys.exit(main())
