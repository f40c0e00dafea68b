"""Every sample program of the operator reference runs."""

from __future__ import annotations

import contextlib
import io

import pytest

from engine.codegen.sample_code import sample_code
from tests.operators.samples import OPERATORS

# One test per declaration file: a test per operator would take longer than its program.
SOURCES = sorted({op.source for op in OPERATORS})


@pytest.mark.parametrize("source", SOURCES)
def test_samples_run(torch, source):
    programs = {op.name: sample_code(op) for op in OPERATORS if op.source == source}
    for name, program in programs.items():
        with contextlib.redirect_stdout(io.StringIO()) as output:
            try:
                exec(compile(program, name, "exec"), {"__name__": name})  # noqa: S102 - generated from our declarations
            except Exception as e:
                raise AssertionError(f"{name}: {program}") from e
        assert bool(output.getvalue()) == bool(program), name
