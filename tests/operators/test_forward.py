"""Forward mode of every sample of every differentiable operator, beside its gradient's derivative, and by which rule."""

from __future__ import annotations

import numpy as np
import pytest

from tests.operators.samples import Sample, values
from tests.operators.test_mapped import EFFECTS
from tests.operators.test_rows import DIFFERENTIABLE, differentiable_call, rounded

ROWS = [s for s in DIFFERENTIABLE if not s.operator.name.startswith(EFFECTS) and not any(p.written for p in s.operator.params)]
DTYPES = ("float64", "complex128")
# Their gradient of padding is zero, although the result depends on it.
PADDED = {"embedding"}


# Operators of which no declaration and no rule determines the derivative (in their first sample).
TWICE_BACKWARD = set("""
    attention_forward cumprod grid_sample grid_sample_values grid_tap_weight gru jagged_reduce jagged_softmax log_softmax_backward
    logcumsumexp lstm lu_factored matrix_exp max_pool3d qr_factored rnn scatter_combine sgn softmax_attention
    softmax_backward sparse_bsr_mm sparse_coalesce sparse_csr_matmul sparse_csr_mm_extremum sparse_csr_triangular_solve
    sparse_semi_compress sparse_softmax
""".split())


def twice_backward(torch, function, inputs: list, tangents: list) -> list:
    """J t as the derivative of J^T u, which is linear in u; None for results that do not depend on the inputs."""
    results = function(*inputs)
    vectors = [torch.zeros_like(r).requires_grad_() for r in results]
    chosen = [(r, u) for r, u in zip(results, vectors) if r.requires_grad]
    if not chosen:
        return [None] * len(results)
    products = torch.autograd.grad(*zip(*[(r,) for r, _ in chosen]), inputs, [u for _, u in chosen], create_graph=True, allow_unused=True)
    used = [(p, t) for p, t in zip(products, tangents) if p is not None and p.requires_grad]
    if not used:
        return [None] * len(results)
    return torch.autograd.grad([p for p, _ in used], vectors, [t for _, t in used], allow_unused=True)


def turned(sample: Sample, dtype: str, torch) -> Sample | None:
    """The sample in the dtype; None if the operator does not support it."""
    if dtype == "float64":
        return sample
    entry = sample.operator.entry
    if not sample.floating or "dtypes" in entry and dtype not in entry["dtypes"]:
        return None
    return Sample(sample.operator, sample.index, {**sample.values, **rounded(torch, sample, dtype)})


def compare(torch, sample: Sample) -> bool:
    """Compares one sample; returns whether there was something to compare."""
    function, leaves = differentiable_call(torch, sample)
    leaves = [x.detach().requires_grad_() for x in leaves]
    if not leaves or not sum(x.numel() for x in leaves):
        return False
    rng = np.random.default_rng(len(leaves))
    draws = [rng.standard_normal(x.shape) + (1j * rng.standard_normal(x.shape) if x.is_complex() else 0) for x in leaves]
    tangents = [torch.tensor(np.asarray(d)).to(x.dtype) for d, x in zip(draws, leaves)]
    try:
        for r in function(*leaves):
            values(r)
    except (RuntimeError, TypeError) as e:
        assert str(e).startswith("["), f"an unhelpful error: {e}"
        return False
    if not function(*leaves):
        return False  # no result has derivatives
    results, want = function(*leaves), twice_backward(torch, function, leaves, tangents)
    got = torch.func.jvp(lambda *x: tuple(function(*x)), tuple(x.detach() for x in leaves), tuple(tangents))
    for i, (primal, tangent, result, expected) in enumerate(zip(*got, results, want, strict=True)):
        assert (tangent.shape, tangent.dtype) == (result.shape, result.dtype), f"result {i}"
        limit = 1e-4 if result.dtype in (torch.float32, torch.complex64) else 1e-8
        np.testing.assert_allclose(values(primal), values(result), rtol=limit, atol=limit, err_msg=f"value of result {i}")
        expected = torch.zeros_like(result) if expected is None else expected
        np.testing.assert_allclose(values(tangent), values(expected), rtol=limit, atol=limit, err_msg=f"tangent of result {i}")
    return True


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("sample", ROWS, ids=str)
def test_derivative(torch, sample, dtype):
    case = turned(sample, dtype, torch)
    if case is None or sample.operator.name in PADDED:
        return
    try:
        compare(torch, case)
    except NotImplementedError as e:
        assert "second derivative" in str(e) or "derivative" in str(e), e


def test_rules(torch, monkeypatch):
    """How many operators follow a rule, in all their samples, and which ones are differentiated twice on their own."""
    from teletensor.func import _forward_rules as rules

    twice = set()
    fallback = rules._twice

    def recorded(call):
        twice.add(call.op.name)
        return fallback(call)

    monkeypatch.setattr(rules, "_twice", recorded)
    compared = {s.operator.name for s in ROWS if s.index == 0 and _compared(torch, s)}
    assert twice & compared == TWICE_BACKWARD
    assert len(compared) >= 376


def _compared(torch, sample: Sample) -> bool:
    try:
        return compare(torch, sample)
    except NotImplementedError:
        return False
