"""`import teletensor` loads few modules: its time is theirs. docs/packaging.md has the milliseconds."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.conftest import BUILD, IN_PROCESS, client_environment

PROGRAM = "import json, sys; before = set(sys.modules); import teletensor; print(json.dumps(sorted(set(sys.modules) - before)))"
# Slow to import, and not needed before the first tensor.
SLOW = """
    numpy inspect ctypes json subprocess socket tempfile dataclasses logging asyncio concurrent.futures multiprocessing html pickle
    ast dis
"""


@pytest.fixture(scope="module")
def modules() -> set[str]:
    """The modules that the package imports in a new interpreter."""
    folder = str(BUILD / ("tests/python" if IN_PROCESS else "python"))
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=client_environment(PYTHONPATH=folder), text=True, check=True,
                          capture_output=True)  # fmt: skip
    return set(json.loads(done.stdout))


def test_slow_modules_are_imported_when_they_are_used(modules):
    assert sorted(modules & set(SLOW.split())) == []


def test_number_of_modules(modules):
    """A module of the package takes about half a millisecond. What is not used by most programs is imported lazily."""
    own = {name for name in modules if name.partition(".")[0] == "teletensor"}
    assert len(own) <= 82, sorted(own)
    assert len(modules - own) <= 50, sorted(modules - own)


def test_parts_are_imported_at_their_first_use(modules):
    parts = "nn optim distributed fx export compiler onnx ao quantization serving profiler utils.data distributions _dynamo"
    assert sorted(modules & {f"teletensor.{name}" for name in parts.split()}) == []
