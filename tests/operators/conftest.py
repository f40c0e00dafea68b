"""Rows that need an operator which the GPUs lack: they fail as expected, and say which one it is."""

from __future__ import annotations

import re

import pytest

from engine.generate.reference import backends
from tests.operators.samples import OPERATORS, ROOT

# As the generated reference (docs/operators.md of the build) lists them, from what is registered.
LACKING = {op.name for op in OPERATORS} - backends(OPERATORS, ROOT / "kernels")["cuda"]


@pytest.hookimpl(hookwrapper=True)
def pytest_pyfunc_call(pyfuncitem):
    outcome = yield
    if outcome.excinfo is None:
        return
    named = re.search(r"\[(\w+)\] is not implemented for cuda", str(outcome.excinfo[1]))
    if named is None or named[1] not in LACKING:
        return
    try:
        pytest.xfail(f"cuda lacks {named[1]}")
    except pytest.xfail.Exception as expected:
        outcome.force_exception(expected)
