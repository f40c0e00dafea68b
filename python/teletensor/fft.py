"""torch.fft: discrete Fourier transforms.

All transforms use three operators: from complex to complex numbers, from real numbers to the first half of their
spectrum, and from half a spectrum back to real numbers. `norm` selects which transforms are scaled: "backward" (the
default) scales the inverse by 1/n, "ortho" scales both directions by 1/sqrt(n), and "forward" scales the forward
transform by 1/n.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from . import _C
from ._C import Tensor
from ._integers import repeated
from ._options import check_flags, check_layout
from ._overridable import wrap_functions as _wrap_functions

__all__ = [
    "Tensor", "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift", "ihfft",
    "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn",
]  # fmt: skip

_torch, _ops = _C.torch, _C.ops


def _scale(norm: str | None, count: int, forward: bool) -> float:
    if norm not in (None, "backward", "ortho", "forward"):
        raise RuntimeError(f'Invalid normalization mode: "{norm}"')
    if norm == "ortho":
        return 1 / math.sqrt(count) if count else 1.0
    divides = (norm == "forward") is forward
    return 1 / count if divides and count else 1.0


def _as_floating(input: Tensor, name: str) -> Tensor:
    """Converts integers to the default float dtype; rejects half precision, for which there are no transforms."""
    if input.dtype in (_C.float16, _C.bfloat16):
        raise RuntimeError(f"[{name}] Unsupported dtype {input.dtype}")
    inexact = input.is_floating_point() or input.dtype.is_complex
    return input if inexact else input.to(_C.default_dtype())


def _as_complex(input: Tensor, name: str) -> Tensor:
    input = _as_floating(input, name)
    return input if input.dtype.is_complex else input.to(input.dtype.to_complex())


def _as_real(input: Tensor, name: str) -> Tensor:
    if input.dtype.is_complex:
        raise TypeError(f"[{name}] expects a real input tensor, but got {input.dtype}")
    return _as_floating(input, name)


def _wrapped(dim: int, ndim: int) -> int:
    if ndim == 0:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    if not -ndim <= dim < ndim:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {dim})")
    return dim % ndim


def _shape_and_dims(input: Tensor, s, dim, name: str) -> tuple[list[int], list[int]]:
    """Returns the lengths to transform and their dimensions. A length of -1 in `s` stands for the dimension's size."""
    ndim = input.dim()
    if s is None and type(dim) is list and len(dim) == 1 and type(dim[0]) is int:  # most calls
        d = _wrapped(dim[0], ndim)
        n = input.shape[d]
        if n < 1:
            raise RuntimeError(f"[{name}] Invalid number of data points ({n}) specified")
        return [n], [d]
    if dim is not None:
        dims = [_wrapped(d, ndim) for d in repeated(dim, 1)]
        if len(set(dims)) != len(dims):
            raise RuntimeError(f"[{name}] FFT dims must be unique")
    if s is not None:
        sizes = list(repeated(s, 1))
        if dim is None:
            if len(sizes) > ndim:
                raise RuntimeError(f"[{name}] Got shape with {len(sizes)} values but input tensor only has {ndim} dimensions.")
            dims = list(range(ndim - len(sizes), ndim))
        elif len(sizes) != len(dims):
            raise RuntimeError(f"[{name}] When given, dim and shape arguments must have the same length")
    else:
        dims = dims if dim is not None else list(range(ndim))
        sizes = [-1] * len(dims)
    sizes = [input.shape[d] if n == -1 and ndim else n for n, d in zip(sizes, dims)]
    for n in sizes:
        if n < 1:
            raise RuntimeError(f"[{name}] Invalid number of data points ({n}) specified")
    return sizes, dims


def _resized(input: Tensor, s, sizes, dims) -> Tensor:
    """Truncates the dimensions to the sizes or pads them with zeros. Without lengths `s`, the sizes are the input's."""
    if s is None:
        return input
    padding = [0] * (2 * input.dim())
    for n, d in zip(sizes, dims):
        if n < input.shape[d]:
            input = input.narrow(d, 0, n)
        padding[2 * (input.dim() - 1 - d) + 1] = n - input.shape[d]
    return _ops.pad(input, padding) if any(padding) else input


def _call(operator: Callable, *args: Any) -> Tensor:
    """Calls an operator of the engine; a scale that a recording has computed from sizes becomes an argument of its node."""
    scale = next((a for a in args if type(a) is not float and isinstance(a, float) and hasattr(a, "call_function")), None)
    return operator(*args) if scale is None else scale.call_function(operator, args, {})


def _write_out(result: Tensor, out: Tensor | None) -> Tensor:
    return result if out is None else _torch.add(result, 0, out=out)


def _complex_to_complex(input: Tensor, s, dim, norm, forward: bool, name: str, out=None) -> Tensor:
    input = _as_complex(input, name)
    sizes, dims = _shape_and_dims(input, s, dim, name)
    if not dims:
        return _write_out(input.clone(), out)
    return _write_out(_call(_ops.fft_c2c, _resized(input, s, sizes, dims), dims, _scale(norm, math.prod(sizes), forward), forward), out)


def _real_to_complex(input: Tensor, s, dim, norm, name: str, out=None) -> Tensor:
    input = _as_real(input, name)
    sizes, dims = _shape_and_dims(input, s, dim, name)
    if not dims:
        raise RuntimeError(f"[{name}] must transform at least one axis")
    return _write_out(_call(_ops.fft_r2c, _resized(input, s, sizes, dims), dims, _scale(norm, math.prod(sizes), True)), out)


def _complex_to_real(input: Tensor, s, dim, norm, name: str, out=None) -> Tensor:
    input = _as_complex(input, name)
    has_last_size = s is not None and repeated(s, 1)[-1] != -1
    given, dims = _shape_and_dims(input, s, dim, name)
    if not dims:
        raise RuntimeError(f"[{name}] must transform at least one axis")
    last = given[-1] if has_last_size else 2 * ((input.shape[dims[-1]] if input.dim() else 1) - 1)
    if last < 1:
        raise RuntimeError(f"[{name}] Invalid number of data points ({last}) specified")
    resized = _resized(input, s, [*given[:-1], last // 2 + 1], dims)
    scale = _scale(norm, math.prod([*given[:-1], last]), False)
    return _write_out(_call(_ops.fft_c2r, resized, dims, scale, last), out)


def _norm_of_inverse(norm: str | None) -> str:
    """The norm that applies this norm's forward scale to the inverse transform."""
    return {None: "forward", "backward": "forward", "forward": "backward"}.get(norm, norm)


def _one_dim(n, dim: int):
    return (None if n is None else [n]), [dim]


def fft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out=None) -> Tensor:
    """The one-dimensional transform along dim. The input is truncated or zero-padded to n elements."""
    return _complex_to_complex(input, *_one_dim(n, dim), norm, True, "fft", out)


def ifft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out=None) -> Tensor:
    """The inverse of fft."""
    return _complex_to_complex(input, *_one_dim(n, dim), norm, False, "ifft", out)


def rfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out=None) -> Tensor:
    """The first half of a real signal's spectrum; the second half is its conjugate mirror image."""
    return _real_to_complex(input, *_one_dim(n, dim), norm, "rfft", out)


def irfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out=None) -> Tensor:
    """The inverse of rfft: n real numbers, by default 2 (size - 1)."""
    return _complex_to_real(input, *_one_dim(n, dim), norm, "irfft", out)


def hfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out=None) -> Tensor:
    """The real spectrum of a Hermitian signal; `input` is the signal's first half."""
    return _complex_to_real(_as_complex(input, "hfft").conj(), *_one_dim(n, dim), _norm_of_inverse(norm), "hfft", out)


def ihfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out=None) -> Tensor:
    """The inverse of hfft."""
    return _write_out(_real_to_complex(input, *_one_dim(n, dim), _norm_of_inverse(norm), "ihfft").conj(), out)


def fftn(input: Tensor, s=None, dim=None, norm: str | None = None, *, out=None) -> Tensor:
    """The transform along several dimensions: all of them, the last len(s), or the ones listed in dim."""
    return _complex_to_complex(input, s, dim, norm, True, "fftn", out)


def ifftn(input: Tensor, s=None, dim=None, norm: str | None = None, *, out=None) -> Tensor:
    """The inverse of fftn."""
    return _complex_to_complex(input, s, dim, norm, False, "ifftn", out)


def rfftn(input: Tensor, s=None, dim=None, norm: str | None = None, *, out=None) -> Tensor:
    """fftn of a real signal; returns only the first half of the spectrum along the last dimension."""
    return _real_to_complex(input, s, dim, norm, "rfftn", out)


def irfftn(input: Tensor, s=None, dim=None, norm: str | None = None, *, out=None) -> Tensor:
    """The inverse of rfftn."""
    return _complex_to_real(input, s, dim, norm, "irfftn", out)


def hfftn(input: Tensor, s=None, dim=None, norm: str | None = None, *, out=None) -> Tensor:
    """hfft along the last of several dimensions, fft along the others."""
    return _complex_to_real(_as_complex(input, "hfftn").conj(), s, dim, _norm_of_inverse(norm), "hfftn", out)


def ihfftn(input: Tensor, s=None, dim=None, norm: str | None = None, *, out=None) -> Tensor:
    """The inverse of hfftn."""
    return _write_out(_real_to_complex(input, s, dim, _norm_of_inverse(norm), "ihfftn").conj(), out)


def _two_dims(function, name: str):
    def two(input: Tensor, s=None, dim=(-2, -1), norm: str | None = None, *, out=None) -> Tensor:
        if dim is None:
            raise TypeError(f"fft_{name}(): argument 'dim' (position 3) must be tuple of ints, not NoneType")
        return function(input, s, dim, norm, out=out)

    two.__name__, two.__doc__ = name, f"{function.__name__} along two dimensions, by default the last two."
    return two


fft2, ifft2, rfft2 = _two_dims(fftn, "fft2"), _two_dims(ifftn, "ifft2"), _two_dims(rfftn, "rfft2")
irfft2, hfft2, ihfft2 = _two_dims(irfftn, "irfft2"), _two_dims(hfftn, "hfft2"), _two_dims(ihfftn, "ihfft2")


def _frequencies(name: str, counts: list[Tensor], n: int, d: float) -> Tensor:
    counts = _torch.cat(counts)
    if not (counts.dtype.is_floating_point or counts.dtype.is_complex):
        raise RuntimeError(f"[{name}] expected a floating point or complex dtype, got {counts.dtype}")
    return counts * (1.0 / (n * d) if n * d else math.inf)


def fftfreq(
    n: int, d: float = 1.0, *, out=None, dtype=None, layout=None, device=None, pin_memory: bool = False, requires_grad: bool = False
) -> Tensor:
    """The frequencies of fft's results for n samples with spacing d; the second half is negative."""
    check_layout("fftfreq", layout)
    check_flags("fftfreq", pin_memory=pin_memory)
    dtype = dtype or _C.default_dtype()
    if n < 0:
        raise RuntimeError(f"[fftfreq] expected n >= 0, got {n}")
    counts = [_torch.arange((n + 1) // 2, dtype=dtype, device=device), _torch.arange(-(n // 2), 0, dtype=dtype, device=device)]
    return _write_out(_frequencies("fftfreq", counts, n, d), out).requires_grad_(requires_grad)


def rfftfreq(
    n: int, d: float = 1.0, *, out=None, dtype=None, layout=None, device=None, pin_memory: bool = False, requires_grad: bool = False
) -> Tensor:
    """The frequencies of rfft's results for n samples with spacing d."""
    check_layout("rfftfreq", layout)
    check_flags("rfftfreq", pin_memory=pin_memory)
    counts = _torch.arange(int(n / 2) + 1, dtype=dtype or _C.default_dtype(), device=device)
    return _write_out(_frequencies("rfftfreq", [counts], n, d), out).requires_grad_(requires_grad)


def _shifted(input: Tensor, dim, shift_of) -> Tensor:
    dims = list(range(input.dim())) if dim is None else list(repeated(dim, 1))
    return input.roll([shift_of(input.shape[d]) for d in dims], dims) if dims else input.clone()


def fftshift(input: Tensor, dim=None) -> Tensor:
    """Moves frequency zero to the middle."""
    return _shifted(input, dim, lambda n: n // 2)


def ifftshift(input: Tensor, dim=None) -> Tensor:
    """The inverse of fftshift."""
    return _shifted(input, dim, lambda n: (n + 1) // 2)

_wrap_functions(globals())
