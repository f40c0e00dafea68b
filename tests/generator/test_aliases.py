"""Which operators may return memory of their arguments, by their declarations and as the engine executes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.codegen.aliases import makes_new_results
from engine.codegen.declaration import load

OPERATORS = {op.name: op for op in load(Path(__file__).resolve().parents[2] / "engine/ops")}


@pytest.mark.parametrize(
    "name", ["relu", "conv2d", "l1_loss", "cross_entropy", "batch_norm", "var_mean", "softmax", "max_pool2d"]
)
def test_new_results(name):
    assert makes_new_results(OPERATORS[name], OPERATORS)


@pytest.mark.parametrize(
    "name", ["transpose", "reshape", "flatten", "contiguous", "detach", "rot90", "repeat_interleave", "backward"]
)
def test_possible_views(name):
    assert not makes_new_results(OPERATORS[name], OPERATORS)
