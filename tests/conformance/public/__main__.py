"""Lists PyTorch's public names that are missing here, by module; writes docs/names.md.

    python -m tests.conformance.public [--write]
    python -m tests.conformance.public --attributes FILE --uses FILE...

The exit status is 1 if a name is missing without a reason in reasons.yaml, or if a reason matches no missing name.
With --attributes, lists attributes of PyTorch's modules that programs use, and that are missing here: code imports names also
from modules that have imported them.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path

from .table import PAGE, absent, emit, public_names, reasons, report, uses


def list_attributes(attributes: Path, counts: dict[str, int]) -> int:
    """Prints the missing attributes that programs use, most used first, and the counts."""
    names = public_names(attributes)
    missing = absent(importlib.import_module("teletensor"), names)
    used = sorted((name for name in missing if counts.get(name)), key=lambda name: (-counts[name], name))
    for name in used:
        print(f"{counts[name]:6} {name}")
    known = sum(name in counts for name in names)
    print(f"{len(names)} attributes of modules: {len(missing)} are missing. Programs use {known} of them: {len(used)} are missing.")
    return 0


def main() -> int:
    """Prints the counts and the names."""
    parser = argparse.ArgumentParser(prog="tests.conformance.public", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write docs/names.md")
    parser.add_argument("--list", action="store_true", help="list names with a reason, too")
    parser.add_argument("--attributes", type=Path, metavar="FILE", help="attributes of PyTorch's modules, as record writes them")
    parser.add_argument("--uses", type=Path, nargs="+", default=[], metavar="FILE", help="lines `count|name` with numbers of programs")
    options = parser.parse_args()
    if options.attributes:
        return list_attributes(options.attributes, uses(options.uses))
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
