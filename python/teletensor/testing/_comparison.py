"""assert_close: compares tensors, numbers, and sequences and mappings of them, with PyTorch's messages."""

from __future__ import annotations

import cmath
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .. import _C
from .._C import Tensor

# By dtype: (rtol, atol). Integers and bools must be equal.
_TOLERANCES = {
    _C.float16: (1e-3, 1e-5), _C.bfloat16: (1.6e-2, 1e-5), _C.float32: (1.3e-6, 1e-5), _C.float64: (1e-7, 1e-7),
    _C.complex64: (1.3e-6, 1e-5), _C.complex128: (1e-7, 1e-7),
}  # fmt: skip
_NUMBERS = {int: _C.int64, float: _C.float64, complex: _C.complex128}


def default_tolerances(*dtypes: _C.dtype) -> tuple[float, float]:
    """The largest tolerances of the dtypes."""
    found = [_TOLERANCES.get(dtype, (0.0, 0.0)) for dtype in dtypes]
    return max(r for r, _ in found), max(a for _, a in found)


@dataclass(frozen=True)
class _Options:
    """The arguments of assert_close, and the current position in nested containers."""

    allow_subclasses: bool
    rtol: float | None
    atol: float | None
    equal_nan: bool
    check_device: bool
    check_dtype: bool
    check_layout: bool
    check_stride: bool
    msg: str | Callable[[str], str] | None
    place: tuple = ()

    def fail(self, text: str, kind: type[Exception] = AssertionError) -> None:
        """Raises the error, with the position and the caller's message."""
        if self.place:
            text += f"\n\nThe failure occurred for item {''.join(f'[{part!r}]' for part in self.place)}"
        if self.msg is not None and kind is AssertionError:
            text = self.msg(text) if callable(self.msg) else self.msg
        raise kind(text)

    def tolerances(self, *dtypes: _C.dtype) -> tuple[float, float]:
        """The given tolerances, or those of the dtypes."""
        if (self.rtol is None) != (self.atol is None):
            raise ValueError(
                "Both 'rtol' and 'atol' must be either specified or omitted, "
                f"but got no {'rtol' if self.rtol is None else 'atol'}."
            )
        return (self.rtol, self.atol) if self.rtol is not None and self.atol is not None else default_tolerances(*dtypes)


def assert_close(
    actual: Any, expected: Any, *, allow_subclasses: bool = True, rtol: float | None = None, atol: float | None = None,
    equal_nan: bool = False, check_device: bool = True, check_dtype: bool = True, check_layout: bool = True, check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:  # fmt: skip
    """Raises AssertionError unless |actual - expected| <= atol + rtol * |expected| for all elements. Waits for the engine.

    Args:
        actual, expected: tensors, numbers, bools, None, or sequences and mappings of them.
        allow_subclasses: whether the types may be related rather than the same.
        rtol, atol: both or none; by default those of the dtype, 0 for integers.
        equal_nan: whether NaN equals NaN.
        check_device, check_dtype, check_stride: whether these must be the same. Layouts always are.
        msg: replaces the message, or a function of the message that returns another one.
    """
    options = _Options(
        allow_subclasses, rtol, atol, equal_nan, check_device, check_dtype, check_layout, check_stride, msg
    )
    _compare(actual, expected, options)


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _compare(actual: Any, expected: Any, options: _Options) -> None:
    if _is_sequence(actual) and _is_sequence(expected):
        if len(actual) != len(expected):
            options.fail(f"The length of the sequences mismatch: {len(actual)} != {len(expected)}")
        for i, (a, e) in enumerate(zip(actual, expected)):
            _compare(a, e, replace(options, place=(*options.place, i)))
    elif isinstance(actual, Mapping) and isinstance(expected, Mapping):
        _compare_keys(actual, expected, options)
        for key in _in_order(actual):
            _compare(actual[key], expected[key], replace(options, place=(*options.place, key)))
    else:
        _compare_leaves(actual, expected, options)


def _in_order(mapping: Mapping) -> list:
    try:
        return sorted(mapping)
    except TypeError:
        return list(mapping)


def _compare_keys(actual: Mapping, expected: Mapping, options: _Options) -> None:
    missing, additional = expected.keys() - actual.keys(), actual.keys() - expected.keys()
    if missing or additional:
        options.fail(
            "The keys of the mappings do not match:\n"
            f"Missing keys in the actual mapping: {sorted(missing)}\nAdditional keys in the actual mapping: {sorted(additional)}"
        )


def _compare_leaves(actual: Any, expected: Any, options: _Options) -> None:
    bools, numbers = (bool, np.bool_), (int, float, complex, np.number)
    if actual is None or expected is None:
        if actual is not expected:
            options.fail(f"None mismatch: {actual} is not {expected}")
    elif isinstance(actual, bools) and isinstance(expected, bools):
        if bool(actual) is not bool(expected):
            options.fail(f"Booleans mismatch: {bool(actual)} is not {bool(expected)}")
    elif isinstance(actual, numbers) and isinstance(expected, numbers):
        _compare_numbers(actual, expected, options)
    elif _related(actual, expected, options):
        _compare_tensors(_as_tensor(actual), _as_tensor(expected), options)
    else:
        options.fail(
            f"No comparison pair was able to handle inputs of type {type(actual)} and {type(expected)}.", TypeError
        )


def _related(actual: Any, expected: Any, options: _Options) -> bool:
    """Whether the two values can be compared as tensors."""
    kinds = type(actual), type(expected)
    if kinds[0] is not kinds[1] and not (
        options.allow_subclasses and (isinstance(actual, kinds[1]) or isinstance(expected, kinds[0]))
    ):
        return False
    return isinstance(actual, (Tensor, np.ndarray))


def _as_tensor(value: Any) -> Tensor:
    return value.detach() if isinstance(value, Tensor) else _C.tensor(value)


def _compare_numbers(actual: Any, expected: Any, options: _Options) -> None:
    kinds = [type(v.item() if isinstance(v, np.number) else v) for v in (actual, expected)]
    if options.check_dtype and type(actual) is not type(expected):
        options.fail(f"The (d)types do not match: {type(actual)} != {type(expected)}.")
    rtol, atol = options.tolerances(*(_NUMBERS[kind] for kind in kinds))
    a, e = (v.item() if isinstance(v, np.number) else v for v in (actual, expected))
    if a == e or (options.equal_nan and cmath.isnan(a) and cmath.isnan(e)):
        return
    difference = abs(a - e)
    if not cmath.isfinite(difference) or difference > atol + rtol * abs(e):
        options.fail(_scalar_mismatch(a, e, rtol, atol))


def _compare_attributes(actual: Tensor, expected: Tensor, options: _Options) -> None:
    checks = (
        (True, "shape", actual.shape, expected.shape), (options.check_layout, "layout", actual.layout, expected.layout),
        *([(True, "stride()", actual.stride(), expected.stride())] if options.check_stride else ()),
        (options.check_device, "device", actual.device, expected.device), (options.check_dtype, "dtype", actual.dtype, expected.dtype),
    )  # fmt: skip
    for wanted, name, a, e in checks:
        if wanted and a != e:
            options.fail(f"The values for attribute '{name}' do not match: {a} != {e}.")


def _compare_tensors(actual: Tensor, expected: Tensor, options: _Options) -> None:
    if actual.is_nested or expected.is_nested:
        _compare_nested(actual, expected, options)
        return
    if actual.is_quantized or expected.is_quantized:
        _compare_quantized(actual, expected, options)
        return
    _compare_attributes(actual, expected, options)
    if (actual.layout != "torch.strided" or expected.layout != "torch.strided") and actual.device.type != "meta":
        _compare_sparse(actual, expected, options)
        return
    if actual.device.type == "meta" or expected.device.type == "meta":
        return
    rtol, atol = options.tolerances(actual.dtype, expected.dtype)
    dtype = _C.promote_types(actual.dtype, expected.dtype)
    a, e = actual.cpu().to(dtype), expected.cpu().to(dtype)
    if dtype in (_C.float8_e4m3fn, _C.float8_e5m2):
        a, e = a.to(_C.float32), e.to(_C.float32)
    close = _C.torch.isclose(a, e, rtol=rtol, atol=atol, equal_nan=options.equal_nan)
    if not bool(close.all()):
        options.fail(_mismatch(a, e, close, rtol, atol))


def _compare_quantized(actual: Any, expected: Any, options: _Options) -> None:
    """Compares the numbers that quantized tensors represent, with a tolerance for them."""
    _compare_attributes(actual, expected, options)
    for name in ("is_quantized", "qscheme"):
        a, e = (v() if callable(v) else v for v in (getattr(t, name) for t in (actual, expected)))
        if a != e:
            options.fail(f"The values for attribute '{name}' do not match: {a} != {e}.")
    _compare_tensors(actual.dequantize(), expected.dequantize(), options)


def _compare_nested(actual: Any, expected: Any, options: _Options) -> None:
    """Compares the constituents of nested tensors, of any layouts."""
    if not (actual.is_nested and expected.is_nested):
        options.fail("The values for attribute 'is_nested' do not match: "
                     f"{actual.is_nested} != {expected.is_nested}.")
    pairs = actual.unbind(), expected.unbind()
    if len(pairs[0]) != len(pairs[1]):
        options.fail(f"The number of constituents of nested tensors does not match: {len(pairs[0])} != {len(pairs[1])}")
    if options.check_layout and actual.layout != expected.layout:
        options.fail(f"The values for attribute 'layout' do not match: {actual.layout} != {expected.layout}.")
    for a, e in zip(*pairs):
        _compare_tensors(a, e, options)


def _compare_sparse(actual: Any, expected: Any, options: _Options) -> None:
    """Compares indices and values of sparse tensors; tensors of different layouts as strided ones."""
    if actual.layout != expected.layout:
        _compare_tensors(actual.to_dense(), expected.to_dense(), options)
        return
    if actual.is_sparse and actual.is_coalesced() != expected.is_coalesced():
        actual, expected = actual.coalesce(), expected.coalesce()
    if actual._nnz() != expected._nnz():
        options.fail(f"The number of specified values in sparse tensors does not match: {actual._nnz()} != {expected._nnz()}")
    rows = actual.layout in ("torch.sparse_csr", "torch.sparse_bsr")
    names = ("_indices", "_values") if actual.is_sparse else (
        *(("crow_indices", "col_indices") if rows else ("ccol_indices", "row_indices")), "values"
    )
    for name in names[:-1]:
        a, e = (getattr(t, name)() for t in (actual, expected))
        _compare_tensors(a, e, replace(options, check_dtype=False, rtol=0.0, atol=0.0))
    _compare_tensors(getattr(actual, names[-1])(), getattr(expected, names[-1])(), options)


def _mismatch(actual: Tensor, expected: Tensor, close: Tensor, rtol: float, atol: float) -> str:
    """The message for tensors that are not close."""
    if actual.dim() == 0:
        return _scalar_mismatch(actual.item(), expected.item(), rtol, atol)
    integers = not (actual.is_floating_point() or actual.is_complex())
    wide = _C.int64 if integers else _C.float64 if actual.dtype in (_C.float16, _C.bfloat16) else actual.dtype
    matching = close.numpy()
    a, e = actual.to(wide).numpy(), expected.to(wide).numpy()
    with np.errstate(all="ignore"):
        absolute = np.abs(a - e)
        relative = absolute / np.abs(e)
        relative = relative.astype(np.float32) if integers else relative
    absolute, relative = (np.where(matching, 0, d) for d in (absolute, relative))
    exact, mismatched = rtol == atol == 0, int((~matching).sum())
    lines = [f"Tensor-likes are not {'equal' if exact else 'close'}!", ""]
    lines += [f"Mismatched elements: {mismatched} / {matching.size} ({mismatched / matching.size:.1%})"]
    for name, values, limit in (("absolute", absolute, atol), ("relative", relative, rtol)):
        place = np.unravel_index(int(values.argmax()), values.shape)
        text = f"Greatest {name} difference: {values[place].item()} at index {tuple(int(i) for i in place)}"
        lines.append(text + ("" if exact else f" (up to {limit} allowed)"))
    return "\n".join(lines)


def _scalar_mismatch(a: Any, e: Any, rtol: float, atol: float) -> str:
    exact, difference = rtol == atol == 0, abs(a - e)
    relative = difference / abs(e) if e != 0 else float("inf")
    lines = [f"Scalars are not {'equal' if exact else 'close'}!", "", f"Expected {e} but got {a}."]
    lines += [f"Absolute difference: {difference}" + ("" if exact else f" (up to {atol} allowed)")]
    return "\n".join([*lines, f"Relative difference: {relative}" + ("" if exact else f" (up to {rtol} allowed)")])


def assert_allclose(actual: Any, expected: Any, rtol=None, atol=None, equal_nan: bool = True, msg: str = "") -> None:
    """The old name of assert_close: compares neither dtypes nor devices, and converts numbers and arrays to tensors."""
    a = actual if isinstance(actual, Tensor) else _C.tensor(actual)
    e = expected if isinstance(expected, Tensor) else _C.tensor(expected, dtype=a.dtype)
    if rtol is None and atol is None:
        rtol, atol = default_tolerances(a.dtype, e.dtype)
    assert_close(
        a, e, rtol=rtol, atol=atol, equal_nan=equal_nan, check_device=True, check_dtype=False, check_stride=False, msg=msg or None
    )
