"""Every sample of every operator inside a Program: the results, their layouts and the gradients of a call, bit by bit."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.operators.samples import SAMPLES, arguments, call, tensor
from tests.operators.test_rows import DIFFERENTIABLE, check_layout, differentiable_call

# Operators that a Program cannot contain.
REFUSED = re.compile("sizes of its results depend on values|has effects outside of the session")
# Results of these depend on the address or the age of something outside of the call.
NOT_REPEATED = {
    "profiler_clock", "memory_stats", "memory_snapshot", "event_elapsed", "event_passed", "replay_counts",
    "empty", "empty_like", "new_empty",
}  # fmt: skip


def tensors_in(kwargs: dict) -> list:
    values = [v for value in kwargs.values() for v in (value if isinstance(value, list) else [value])]
    return [v for v in values if hasattr(v, "requires_grad")]


def same(torch, got, want) -> None:
    assert (got.dtype, got.shape, got.stride()) == (want.dtype, want.shape, want.stride())
    got, want = (t.detach().contiguous().reshape(-1).view(torch.uint8).numpy() for t in (got, want))
    np.testing.assert_array_equal(got, want)


def copies(sample, results: list) -> list:
    """Copies of views, which a Program does not return."""
    return [r.clone() for r in results] if "view" in sample.operator.entry else results


@pytest.mark.parametrize("sample", [s for s in SAMPLES if s.operator.name not in NOT_REPEATED], ids=str)
def test_value(torch, sample):
    outcomes = []
    for in_program in (False, True):
        kwargs = arguments(torch, sample, lambda name, a: tensor(torch, a))
        torch.manual_seed(5)

        def function(kwargs=kwargs):
            return copies(sample, call(torch, sample, kwargs))

        try:
            outcomes.append((torch.compiler.trace(function)() if in_program else function(), tensors_in(kwargs)))
        except NotImplementedError as error:
            if not in_program or not REFUSED.search(str(error)):
                raise
            return
    (want, before), (got, after) = outcomes
    assert len(got) == len(want)
    for a, b in zip([*got, *after], [*want, *before]):
        same(torch, a, b)
        check_layout(torch, a)


@pytest.mark.parametrize("sample", DIFFERENTIABLE, ids=str)
def test_gradient(torch, sample):
    gradients = []
    for in_program in (False, True):
        function, leaves = differentiable_call(torch, sample)
        if not leaves:
            return
        torch.manual_seed(5)
        try:
            of = torch.compiler.trace(lambda *x: copies(sample, function(*x)), *leaves) if in_program else function  # noqa: B023
        except NotImplementedError as error:
            assert in_program and REFUSED.search(str(error))
            return
        results = [r for r in of(*leaves) if r.requires_grad]
        total = sum((r.abs() if r.is_complex() else r).sin().sum() for r in results)
        gradients.append(torch.autograd.grad(total, leaves, allow_unused=True) if results else ())
    want, got = gradients
    assert [g is None for g in got] == [g is None for g in want]
    for a, b in zip(got, want):
        if a is not None:
            same(torch, a, b)
