"""The generated cases on a GPU, compared with the same calls on the CPU: every dtype, and gradients."""

from __future__ import annotations

import numpy as np
import pytest

from engine.codegen.reference import backends
from tests.conftest import DEVICES
from tests.operators.samples import CPU_ONLY, OPERATORS, ROOT, Sample, arguments, call, tensor, values
from tests.operators.test_rows import (
    COMPLEX,
    DIFFERENTIABLE,
    INTEGERS,
    TOLERANCES,
    close,
    differentiable_call,
    in_every_dtype,
    rounded,
)

if "cuda" not in DEVICES:
    pytest.skip("the engine in this process has no GPU", allow_module_level=True)

CASES = [op for op in OPERATORS if any(p.is_tensor for p in op.params) and not op.is_random and op.name not in CPU_ONLY]
# Results whose vectors have arbitrary signs or phases: indices by operator.
FREE_SIGNS = {"eigh_decomposed": (1,), "svd_decomposed": (0, 2), "eig_decomposed": (1,)}
REFUSED = (RuntimeError, TypeError, IndexError, ValueError)


def ordered(eigenvalues: np.ndarray, vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sorted by real and imaginary parts, since the order of eigenvalues is unspecified."""
    places = np.lexsort((eigenvalues.imag.round(4), eigenvalues.real.round(4)))
    if vectors.size:
        vectors = np.take_along_axis(vectors, places[..., None, :], -1)
    return np.take_along_axis(eigenvalues, places, -1), vectors


def outcome(torch, sample: Sample, dtype: str, device: str):
    """The results' values, or the error."""
    convert = lambda name, a: tensor(torch, a, getattr(torch, dtype) if name in sample.floating else None, device=device)  # noqa: E731
    try:
        results = call(torch, sample, arguments(torch, sample, convert))
        found = ordered(*map(values, results)) if sample.operator.name == "eig_decomposed" else map(values, results)
        return [(repr(r.dtype), a) for r, a in zip(results, found, strict=True)]
    except REFUSED as error:
        return error


@pytest.mark.parametrize(("rows", "dtypes"), in_every_dtype(CASES))
def test_dtype(torch, rows, dtypes):
    """In every dtype: the CPU's values, or its error."""
    for dtype in dtypes:
        for sample in rows:
            compare_with_cpu(torch, sample, dtype)


def compare_with_cpu(torch, sample: Sample, dtype: str) -> None:
    numbers = {
        k: np.clip(np.abs(np.round(np.nan_to_num(sample.values[k]))), 0, 1 if dtype == "bool" else 5) for k in sample.floating
    } if dtype in INTEGERS else {}  # fmt: skip
    if dtype in COMPLEX:
        numbers = rounded(torch, sample, dtype)
    exact = Sample(sample.operator, sample.index, {**sample.values, **numbers})
    on_cpu, on_gpu = outcome(torch, exact, dtype, "cpu"), outcome(torch, exact, dtype, "cuda")
    if isinstance(on_cpu, Exception):
        assert type(on_gpu) is type(on_cpu), f"{dtype}: CPU: {on_cpu}, GPU: {on_gpu}"
        return
    if isinstance(on_gpu, Exception):
        raise on_gpu
    tolerance = 2 * TOLERANCES.get(dtype, TOLERANCES["float32"])
    for i, ((ours, got), (theirs, expected)) in enumerate(zip(on_gpu, on_cpu, strict=True)):
        assert ours == theirs
        if i in FREE_SIGNS.get(sample.operator.name, ()):
            got, expected = np.abs(got), np.abs(expected)
        if sample.operator.name not in ("empty_like", "new_empty"):
            close(got, expected, tolerance, f"{dtype}: result {i}")


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("sample", [s for s in DIFFERENTIABLE if s.operator.name not in CPU_ONLY], ids=str)
def test_gradient(torch, sample, dtype):
    """The CPU's gradients of every result, with the same output gradients; or its error for complex numbers."""
    if dtype in COMPLEX:
        if not sample.floating or dtype not in sample.operator.entry.get("dtypes", COMPLEX):
            return
        sample = Sample(sample.operator, sample.index, {**sample.values, **rounded(torch, sample, dtype)})
        try:
            compare_gradients(torch, sample, ["cpu"])
        except (RuntimeError, TypeError):
            with pytest.raises((RuntimeError, TypeError)):
                compare_gradients(torch, sample, ["cuda"])
            return
    compare_gradients(torch, sample, ["cpu", "cuda"])


def compare_gradients(torch, sample: Sample, devices: list[str]) -> None:
    found = []
    for device in devices:
        function, leaves = differentiable_call(torch, sample, device)
        if not leaves:
            return
        results = [r for r in function(*leaves) if r.requires_grad]
        if not results:
            return
        weights = [tensor(torch, np.cos(np.arange(r.numel())).reshape(r.shape), r.dtype, device=str(r.device)) for r in results]
        grads = torch.autograd.grad(results, leaves, weights, allow_unused=True)
        found.append([None if g is None else values(g) for g in grads])
    for i, (expected, got) in enumerate(zip(found[0], found[-1], strict=True)):
        assert (got is None) == (expected is None)
        if got is not None:
            close(got, expected, 1e-9, f"gradient {i}")


def test_gpus_have_every_operator():
    """The generated reference lists exactly the registered kernels."""
    lacking = {op.name for op in OPERATORS} - backends(OPERATORS, ROOT / "kernels")["cuda"]
    # The composite lstm calls lstm_sequence on the CPU only.
    assert lacking == {"lstm_sequence", "lstm_sequence_backward"} | CPU_ONLY
