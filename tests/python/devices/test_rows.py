"""The operators' declared samples on a device library's device: those of its kernels, and a part of the others, which
the CPU executes."""

from __future__ import annotations

import numpy as np
import pytest

from tests.operators.samples import SAMPLES, arguments, as_list, call, takes_device, tensor, values
from tests.operators.test_rows import DIFFERENTIABLE, TOLERANCES, WITH_REFERENCE, close, differentiable_call, strided

pytestmark = pytest.mark.slow

KERNELS = {
    "abs", "add", "assign", "clone", "exp", "fill", "full", "full_like", "gt", "linear", "log", "lt", "matmul", "maximum", "mean",
    "minimum", "mul", "neg", "relu", "sigmoid", "sqrt", "square", "sub", "sum", "tanh", "threshold_backward", "to_dtype",
    "true_divide",
}  # fmt: skip
# The 9th sample of each nine others; a sample of each operator runs on other devices in tests/operators.
OTHERS = [s for s in WITH_REFERENCE if s.operator.name not in KERNELS and takes_device(s.operator)][::9]
CASES = [s for s in WITH_REFERENCE if s.operator.name in KERNELS] + OTHERS


def test_kernels_have_samples():
    assert {s.operator.name for s in SAMPLES} >= KERNELS and len(OTHERS) > 100


def _compare(torch, sample, make) -> None:
    results = call(torch, sample, arguments(torch, sample, make, "example"))
    expected = as_list(sample.reference())
    assert len(results) == len(expected)
    for i, (r, e) in enumerate(zip(results, expected)):
        # The example's kernels are plain loops: float32 results of theirs have float32's tolerance.
        limit = max(float(sample.operator.entry.get("tolerance", TOLERANCES["float64"])), 1e-6 if str(r.dtype) == "torch.float32" else 0)
        close(values(r), e, limit, f"result {i}")


@pytest.mark.parametrize("sample", CASES, ids=str)
def test_value(torch, sample):
    _compare(torch, sample, lambda name, a: tensor(torch, a, device="example"))


@pytest.mark.parametrize("sample", [s for s in CASES if s.operator.name in KERNELS], ids=str)
def test_view(torch, sample):
    """Noncontiguous arguments."""
    _compare(torch, sample, lambda name, a: strided(torch, a, "example"))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32", "bool", "float16", "int8"])
@pytest.mark.parametrize("name", sorted(KERNELS - {"assign", "fill", "full", "full_like", "clone", "to_dtype"}))
def test_dtype(torch, name, dtype):
    """Each kernel and each dtype, accepted by it or not, as the CPU computes it."""
    sample = next(s for s in CASES if s.operator.name == name and s.floating)
    held = {k: np.clip(np.abs(np.round(sample.values[k] * 2)), 0, 1 if dtype == "bool" else 3) for k in sample.floating}

    def run(device):
        convert = lambda k, a: tensor(torch, held.get(k, a), getattr(torch, dtype) if k in held else None).to(device)  # noqa: E731
        try:
            return [values(r) for r in call(torch, sample, arguments(torch, sample, convert, device))]
        except (RuntimeError, TypeError) as e:
            return str(e).splitlines()[0].replace("example:0", "cpu")

    got, want = run("example"), run("cpu")
    if isinstance(want, str):
        assert got == want
        return
    for r, e in zip(got, want, strict=True):
        assert r.dtype == e.dtype and r.shape == e.shape
        np.testing.assert_allclose(r.astype("float64"), e.astype("float64"), rtol=4e-3 if dtype == "float16" else 2e-6, atol=1e-6)


@pytest.mark.parametrize("sample", [s for s in DIFFERENTIABLE if s.operator.name in KERNELS][::2], ids=str)
def test_gradient(torch, sample):
    """Gradients equal the CPU's."""
    gradients = []
    for device in ("cpu", "example"):
        function, leaves = differentiable_call(torch, sample, device)
        results = function(*leaves)
        if not results:  # integers
            return
        total = sum((r * r).sum() for r in results)
        gradients.append([values(g) for g in torch.autograd.grad(total, leaves)])
    for want, got in zip(*gradients, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9)
