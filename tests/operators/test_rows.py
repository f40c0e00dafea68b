"""The generated cases: every sample of every declared operator."""

from __future__ import annotations

from zlib import crc32

import numpy as np
import pytest

from tests.conftest import DEVICES
from tests.operators import samples
from tests.operators.samples import CPU_ONLY, OPERATORS, SAMPLES, arguments, as_list, call, takes_device, tensor, values

TOLERANCES = {
    **{"float16": 4e-3, "bfloat16": 3e-2, "float32": 2e-5, "float64": 1e-9, "complex64": 2e-5, "complex128": 1e-9},
    **{"float8_e4m3fn": 0.07, "float8_e5m2": 0.13},
}
NARROW = ("float8_e4m3fn", "float8_e5m2")
FLOATING = ("float16", "bfloat16", "float32", "float64")
INTEGERS = ("bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64")
COMPLEX = ("complex64", "complex128")
KINDS = {"floating": NARROW + FLOATING, "integers": INTEGERS, "complex": COMPLEX}
# Errors for dtypes that an operator does not support, as in PyTorch.
REFUSALS = "not implemented for|is not supported|only supports|expected|Expected|must be|same dtype|can't be cast|should be"

WITH_REFERENCE = [s for s in SAMPLES if not s.operator.entry["ref"].startswith("none:")]
DIFFERENTIABLE = [
    s for s in SAMPLES
    if s.operator.differentiable_params & set(s.floating + s.complex + [k for k, v in s.values.items() if isinstance(v, list)])
    and not s.operator.is_random and s.operator.entry.get("grad") != "none"
    and not s.operator.entry.get("checked_inputs") == []
]  # fmt: skip
ERRORS = [
    (op, i, e) for op in OPERATORS for i, e in enumerate(op.entry.get("errors", []))
]  # fmt: skip


def everywhere(cases, operator_of=lambda case: case.operator, name_of=str) -> list:
    """The cases on each device that supports them."""
    return [
        pytest.param(case, device, id=name_of(case) if device == "cpu" else f"{name_of(case)}-{device}")
        for device in DEVICES for case in cases
        if device == "cpu" or (takes_device(operator_of(case)) and operator_of(case).name not in CPU_ONLY)
    ]  # fmt: skip


def close(actual, expected, tolerance: float, what: str) -> None:
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape, f"{what}: got sizes {actual.shape}, expected {expected.shape}"
    if actual.dtype == bool or expected.dtype == bool:
        np.testing.assert_array_equal(actual.astype(bool), expected.astype(bool), err_msg=what)
    elif actual.dtype.kind in "iu" and expected.dtype.kind in "iu":
        np.testing.assert_array_equal(actual, expected.astype(actual.dtype), err_msg=what)
    else:
        wide = "complex128" if "c" in (actual.dtype.kind, expected.dtype.kind) else "float64"
        np.testing.assert_allclose(actual.astype(wide), expected.astype(wide), rtol=tolerance, atol=tolerance, err_msg=what)


@pytest.mark.parametrize(("sample", "device"), everywhere(WITH_REFERENCE))
def test_value(torch, sample, device):
    """Compares values in float64 (and integers) with the reference."""
    results = call(torch, sample, arguments(torch, sample, lambda name, a: tensor(torch, a, device=device), device))
    expected = as_list(sample.reference())
    assert len(results) == len(expected)
    tolerance = float(sample.operator.entry.get("tolerance", TOLERANCES["float64"]))
    for i, (r, e) in enumerate(zip(results, expected)):
        # Results that are float32 by rule (no tensor arguments) are compared with float32's tolerance.
        limit = max(tolerance, 1e-6) if repr(r.dtype) == "torch.float32" else tolerance
        close(values(r), e, limit, f"result {i}")


def convertible(sample, dtype: str) -> bool:
    """Whether the dtype can represent the floating-point arguments."""
    arrays = [sample.values[k] for k in sample.floating]
    if dtype in FLOATING:
        return bool(arrays)
    return bool(arrays) and all(np.all(a == np.floor(a)) for a in arrays if a.size)


def rounded(torch, sample, dtype: str) -> dict:
    """The floating-point arguments converted to the dtype: small integers, or zeros and ones for bool."""
    held = {}
    for name in sample.floating:
        a = sample.values[name]
        if dtype in INTEGERS:
            a = np.clip(np.abs(np.round(np.nan_to_num(a))), 0, 1 if dtype == "bool" else 5)
        elif dtype in COMPLEX:
            rng = np.random.default_rng(a.size)
            a = a + 1j * rng.standard_normal(a.shape)
        held[name] = values(tensor(torch, a).to(getattr(torch, dtype))).astype("complex128" if dtype in COMPLEX else "float64")
    return held


def wrapped(expected: np.ndarray, dtype) -> tuple[np.ndarray, np.ndarray]:
    """A float64 reference converted to an integer dtype, and where the conversion is defined."""
    known = np.isfinite(expected)
    return np.trunc(np.where(known, expected, 0)).astype("int64").astype(dtype), known


def compare(result, expected: np.ndarray, dtype: str) -> None:
    got = values(result)
    if got.dtype.kind in "iu":
        whole, known = (expected.astype(got.dtype), True) if expected.dtype.kind in "iub" else wrapped(expected.real, got.dtype)
        assert got.shape == whole.shape, f"{dtype}: got sizes {got.shape}, expected {whole.shape}"
        np.testing.assert_array_equal(np.where(known, got, 0), np.where(known, whole, 0), err_msg=dtype)
        return
    limit = TOLERANCES.get(dtype, 0) * (8 if dtype in ("float16", "bfloat16") else 1)
    single = repr(result.dtype) in ("torch.float32", "torch.complex64")
    close(got, expected, max(limit, TOLERANCES["float32"] if single else TOLERANCES["float64"]), dtype)


def in_every_dtype(operators) -> list:
    """The samples with floating-point numbers of each operator, and the dtypes of one kind that its declaration allows."""
    samples_of = {op.name: [] for op in operators}
    for sample in SAMPLES:
        if sample.operator.name in samples_of and sample.floating:
            samples_of[sample.operator.name].append(sample)
    cases = [
        (op.name, kind, samples_of[op.name], [dtype for dtype in dtypes if dtype in op.entry.get("dtypes", dtypes)])
        for op in operators for kind, dtypes in KINDS.items()
    ]  # fmt: skip
    return [pytest.param(rows, dtypes, id=f"{name}-{kind}") for name, kind, rows, dtypes in cases if rows and dtypes]


@pytest.mark.parametrize(("rows", "dtypes"), in_every_dtype([op for op in OPERATORS if not op.is_random]))
def test_dtype(torch, rows, dtypes):
    """In every dtype the results equal those of the same numbers in float64, or an error names the dtype."""
    for dtype in dtypes:
        for sample in rows:
            held = rounded(torch, sample, dtype)
            exact = samples.Sample(sample.operator, sample.index, {**sample.values, **held})

            def exact_tensor(name, a):
                return tensor(torch, a, getattr(torch, dtype) if name in held else None)

            try:
                results = call(torch, exact, arguments(torch, exact, exact_tensor))
                for r in results:
                    values(r)
            except (RuntimeError, TypeError, IndexError, ValueError) as e:
                assert str(e).startswith("["), f"{dtype}: an unhelpful error: {e}"
                continue
            with np.errstate(all="ignore"):
                reference = exact.reference()
            for r, expected in zip(results, as_list(reference) if reference is not None else ()):
                compare(r, expected, dtype)


def strided(torch, array: np.ndarray, device: str):
    """The array's values in a tensor with gaps and permuted strides."""
    if array.ndim == 0:
        return tensor(torch, np.stack([array, array]), device=device)[1]
    wide = np.repeat(np.moveaxis(array, 0, -1), 2, axis=-1)
    t = tensor(torch, wide, device=device)[..., ::2]
    return t.movedim(-1, 0)


def channels_last(torch, array: np.ndarray, device: str):
    """The array's values in a dense tensor whose second dimension is the innermost."""
    if array.ndim < 2:
        return strided(torch, array, device)
    return tensor(torch, np.moveaxis(array, 1, -1), device=device).movedim(-1, 1)


def check_layout(torch, result) -> None:
    """Reads the storage with the client's strides: the engine must have written the result with the same ones."""
    if result.numel() == 0:
        return
    count = result.untyped_storage().nbytes() // result.element_size()
    flat = values(torch.as_strided(result.detach(), (count,), (1,), 0))[result.storage_offset() :]
    by_strides = np.lib.stride_tricks.as_strided(flat, result.shape, [s * flat.itemsize for s in result.stride()])
    np.testing.assert_array_equal(by_strides, values(result), f"the client's strides are {result.stride()}")


@pytest.mark.parametrize(("sample", "device"), everywhere([s for s in WITH_REFERENCE if not s.operator.is_random]))
def test_view(torch, sample, device):
    """Noncontiguous inputs give the same results, and client and engine agree on their layouts."""
    if sample.operator.name in ("as_strided", "view", "view_as", "view_as_complex"):
        return  # their results depend on the strides
    arrange = channels_last if crc32(str(sample).encode()) % 2 else strided
    results = call(torch, sample, arguments(torch, sample, lambda name, a: arrange(torch, a, device), device))
    tolerance = max(float(sample.operator.entry.get("tolerance", 0)), TOLERANCES["float64"])
    for i, (r, e) in enumerate(zip(results, as_list(sample.reference()))):
        close(values(r), e, max(tolerance, 1e-6) if repr(r.dtype) == "torch.float32" else tolerance, f"result {i}")
        check_layout(torch, r)


@pytest.mark.parametrize("sample", [s for s in SAMPLES if any(p.is_tensor for p in s.operator.params)], ids=str)
def test_meta(torch, sample):
    """On the meta device: sizes and dtypes without values."""
    op = sample.operator
    if op.is_dynamic or op.name in ("set_rng_state", "to_device"):
        return
    real = call(torch, sample, arguments(torch, sample, lambda name, a: tensor(torch, a)))
    meta = call(torch, sample, arguments(torch, sample, lambda name, a: tensor(torch, a).to("meta")))
    assert [(r.shape, r.dtype) for r in meta] == [(r.shape, r.dtype) for r in real]
    assert all(r.device.type == "meta" for r in meta)


def differentiable_call(torch, sample, device: str = "cpu"):
    """Returns the call as a function of its differentiable tensors, and these tensors."""
    entry = sample.operator.entry
    leaves, names = [], sample.operator.differentiable_params
    checked = entry.get("checked_inputs", [p.name for p in sample.operator.params if not p.written])
    outputs = entry.get("checked_outputs")

    def convert(name, array):
        t = tensor(torch, array, device=device)
        if name in names and array.dtype.kind in "fc" and name in checked:
            leaves.append(t.requires_grad_())
        return t

    kwargs = arguments(torch, sample, convert)

    def function(*inputs):
        replace = dict(zip(map(id, leaves), inputs))
        swapped = {
            k: [replace.get(id(x), x) for x in v] if isinstance(v, list) else replace.get(id(v), v) for k, v in kwargs.items()
        }
        results = call(torch, sample, swapped)
        results = results if outputs is None else [results[i] for i in outputs]
        return [r for r in results if r.is_floating_point() or r.is_complex()]

    return function, leaves


@pytest.mark.parametrize("sample", DIFFERENTIABLE, ids=str)
def test_gradient(torch, sample):
    """First derivatives in float64, compared with finite differences."""
    function, leaves = differentiable_call(torch, sample)
    if leaves and sum(x.numel() for x in leaves) > 0:
        assert torch.autograd.gradcheck(function, leaves, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("sample", DIFFERENTIABLE, ids=str)
def test_complex_gradient(torch, sample):
    """First derivatives in complex128, with respect to both parts of every number, for operators that support it."""
    entry = sample.operator.entry
    if not sample.floating or "dtypes" in entry and "complex128" not in entry["dtypes"]:
        return
    turned = samples.Sample(sample.operator, sample.index, {**sample.values, **rounded(torch, sample, "complex128")})
    function, leaves = differentiable_call(torch, turned)
    if not leaves or sum(x.numel() for x in leaves) == 0:
        return
    try:
        for r in function(*leaves):
            values(r)
    except (RuntimeError, TypeError) as e:
        assert str(e).startswith("["), f"an unhelpful error: {e}"
        return
    assert torch.autograd.gradcheck(function, leaves, atol=1e-5, rtol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("sample", DIFFERENTIABLE, ids=str)
def test_second_derivative(torch, sample):
    """Second derivatives in float64, compared with finite differences of the first."""
    function, leaves = differentiable_call(torch, sample)
    if sample.operator.entry.get("double_backward") is False:
        with pytest.raises(NotImplementedError, match="second derivative"):
            torch.autograd.gradgradcheck(function, leaves)
        return
    if leaves and 0 < sum(x.numel() for x in leaves) <= 64 and any(r.requires_grad for r in function(*leaves)):
        assert torch.autograd.gradgradcheck(function, leaves, atol=1e-4, rtol=1e-3)


@pytest.mark.parametrize(
    ("case", "device"), everywhere(ERRORS, lambda case: case[0], lambda case: f"{case[0].name}-{case[1]}")
)
def test_error(torch, case, device):
    """Invalid arguments raise PyTorch's exceptions, and the engine stays usable."""
    operator, index, row = case
    sample = samples.materialise(operator, index, row["args"])
    kinds = {"RuntimeError": RuntimeError, "IndexError": IndexError, "ValueError": ValueError, "TypeError": TypeError,
             "NotImplementedError": NotImplementedError}  # fmt: skip
    with pytest.raises(kinds[row["raises"]], match=row["match"]):
        for r in call(torch, sample, arguments(torch, sample, lambda name, a: tensor(torch, a, device=device), device)):
            r.tolist()  # errors that depend on the data are raised on reading
    assert torch.ones(2, device=device).neg().tolist() == [-1, -1]
