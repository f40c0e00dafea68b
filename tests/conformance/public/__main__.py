"""Lists PyTorch's public names that are missing here, by module; writes docs/names.md.

    python -m tests.conformance.public [--write]

The exit status is 1 if a name is missing without a reason in reasons.yaml, or if a reason matches no missing name.
"""

from __future__ import annotations

import argparse
import importlib
import sys

from .table import PAGE, emit, public_names, reasons, report


def main() -> int:
    """Prints the counts and the names."""
    parser = argparse.ArgumentParser(prog="tests.conformance.public", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write docs/names.md")
    parser.add_argument("--list", action="store_true", help="list names with a reason, too")
    options = parser.parse_args()
    result = report(importlib.import_module("teletensor"), public_names(), reasons())
    exist = len(result.works) + len(result.raises)
    print(f"{result.total} public names: {exist} exist, of which {len(result.raises)} raise NotImplementedError;")
    print(f"{len(result.explained)} are missing for a reason, {len(result.unexplained)} without a reason.")
    modules: dict[str, list[str]] = {}
    for name in [*result.unexplained, *(result.explained if options.list else ())]:
        module, _, attribute = name.rpartition(".")
        modules.setdefault(module, []).append(attribute)
    for module, names in modules.items():
        print(f"  {module} ({len(names)}): {' '.join(names)}")
    for pattern in result.stale:
        print(f"  reason without a missing name: {pattern}")
    if options.write:
        PAGE.write_text(emit(result))
    return bool(result.unexplained or result.stale)


if __name__ == "__main__":
    sys.exit(main())
