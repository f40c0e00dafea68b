"""Runs the backend tests of the package `onnx` with teletensor, and prints how many pass.

    python -m tests.conformance.onnx.run [--only PATTERN] [--light] [--json FILE] [--table FILE]

The tests are those of the groups node, simple, pytorch-converted and pytorch-operator, and with --light the nine image
models of the group real, whose weights are constants. Set TELETENSOR_IN_PROCESS=1 to run the engine in this process. Exits
with 1 if a test fails that `expected.json` does not list, or one passes that it lists.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
import time
import unittest
import warnings
from pathlib import Path

EXPECTED = Path(__file__).with_name("expected.json")


def cases(only: str = "", light: bool = False) -> list[unittest.TestCase]:
    """The tests for the CPU whose names a pattern matches; `light`: those of the group real too."""
    from onnx.backend.test.runner import Runner

    from teletensor.onnx.backend import TeletensorBackend

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy warns while the package computes expected results
        classes = Runner(TeletensorBackend, __name__).test_cases
    found = []
    for name, group in sorted(classes.items()):
        if "Real" in name and not light:
            continue
        for test in sorted(vars(group)):
            if test.startswith("test_") and test.endswith("_cpu") and re.search(only, test):
                found.append(group(test))
    return found


def group_of(case: unittest.TestCase) -> str:
    return re.sub("OnnxBackend(.*)Test", r"\1", type(case).__name__)


def run(tests: list[unittest.TestCase], progress: bool = False) -> dict[str, str]:
    """The error of each test that fails, by name."""
    failed = {}
    for number, case in enumerate(tests):
        result = unittest.TestResult()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            case.run(result)
        for _, text in [*result.failures, *result.errors]:
            lines = [line for line in text.strip().splitlines() if line.strip()]
            failed[case._testMethodName.removesuffix("_cpu")] = " | ".join(lines[-4:])[:400]
        if progress and number % 200 == 0:
            print(f"{number} of {len(tests)}, {len(failed)} failed", file=sys.stderr, flush=True)
    return failed


def table(tests: list[unittest.TestCase], failed: dict[str, str]) -> str:
    """A table of the groups, and one of the tests that fail."""
    lines = ["| group | tests | pass |", "|---|---|---|"]
    for group in sorted({group_of(t) for t in tests}):
        own = [t._testMethodName.removesuffix("_cpu") for t in tests if group_of(t) == group]
        lines.append(f"| {group} | {len(own)} | {sum(n not in failed for n in own)} |")
    lines.append(f"| all | {len(tests)} | {len(tests) - len(failed)} |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="a regular expression that names must match")
    parser.add_argument("--light", action="store_true", help="also run the group real (13 s)")
    parser.add_argument("--json", help="write the failures there")
    parser.add_argument("--table", help="write the table there")
    args = parser.parse_args()
    start = time.monotonic()
    if args.light:  # the tests copy their models there
        os.environ.setdefault("ONNX_HOME", tempfile.mkdtemp(prefix="teletensor-onnx-"))
    tests = cases(args.only, args.light)
    failed = run(tests, True)
    for name, error in failed.items():
        print(f"{name}: {error}")
    print(table(tests, failed))
    print(f"{len(tests) - len(failed)} of {len(tests)} pass, {time.monotonic() - start:.0f} s")
    if args.json:
        Path(args.json).write_text(json.dumps(failed, indent=1))
    if args.table:
        Path(args.table).write_text(table(tests, failed) + "\n")
    expected = json.loads(EXPECTED.read_text()) if EXPECTED.exists() else {}
    names = {t._testMethodName.removesuffix("_cpu") for t in tests}
    return int(set(failed) != set(expected) & names)


if __name__ == "__main__":
    sys.exit(main())
