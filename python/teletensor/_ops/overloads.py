"""Functions that accept more types of arguments in PyTorch than the operators that implement them."""

from __future__ import annotations

import contextlib
import functools
import math

from .. import _C
from .._C import Tensor
from .._integers import is_int
from .._options import check_flags, check_memory_format
from .out_variant import exact_out_variant, out_variant

__all__ = [
    "bucketize", "diff", "fill", "index_fill", "linspace", "logspace", "nanquantile", "polygamma", "quantile",
    "randint_like", "repeat_interleave", "scatter", "searchsorted", "take_along_dim", "tensor_split",
]  # fmt: skip

_torch, _ops = _C.torch, _C.ops


def _quantile_tensor(q, input: Tensor) -> Tensor:
    if isinstance(q, Tensor):
        return q
    if not 0 <= q <= 1:
        raise RuntimeError(f"quantile() q must be in the range [0, 1] but got {q}")
    return _torch.full([], q, dtype=input.dtype, device=input.device)


@exact_out_variant
def quantile(input: Tensor, q, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear") -> Tensor:
    """The q-quantiles of the elements; q is a number or a tensor of numbers."""
    return _ops.quantile(input, _quantile_tensor(q, input), dim, keepdim, interpolation=interpolation)


@exact_out_variant
def nanquantile(input: Tensor, q, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear") -> Tensor:
    """quantile of the elements that are not NaN."""
    return _ops.nanquantile(input, _quantile_tensor(q, input), dim, keepdim, interpolation=interpolation)


@exact_out_variant
def searchsorted(
    sorted_sequence: Tensor, input, *, out_int32: bool = False, right: bool = False, side: str | None = None,
    sorter: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The insertion index of each value in a sorted sequence; `sorter` is the permutation that sorts the sequence."""
    if side not in (None, "left", "right"):
        raise RuntimeError(f"torch.searchsorted(): side can only be 'left' or 'right' but got {side}")
    if side == "left" and right:
        raise RuntimeError("torch.searchsorted(): side and right can't be set to opposites, got side of left while right was True")
    if sorter is not None:
        if sorter.shape != sorted_sequence.shape:
            raise RuntimeError(
                f"torch.searchsorted(): boundary and sorter must have the same size, but got boundary tensor "
                f"{list(sorted_sequence.shape)} and got sorter tensor {list(sorter.shape)}"
            )
        sorted_sequence = sorted_sequence.gather(-1, sorter)
    number = not isinstance(input, Tensor)
    if number and sorted_sequence.dim() != 1:
        raise RuntimeError(
            "torch.searchsorted(): input value can be a scalar only when boundary tensor dimension is 1, but got boundary "
            f"tensor dim({sorted_sequence.dim()})"
        )
    if number and isinstance(input, float) and not sorted_sequence.is_floating_point():
        sorted_sequence = sorted_sequence.to(_C.default_dtype())
    values = _C.tensor(input, dtype=sorted_sequence.dtype, device=sorted_sequence.device) if number else input
    if values.dtype is not sorted_sequence.dtype:
        common = _C.promote_types(values.dtype, sorted_sequence.dtype)
        values, sorted_sequence = values.to(common), sorted_sequence.to(common)
    found = _ops.searchsorted(sorted_sequence, values, right=right or side == "right")
    return found.to(_C.int32) if out_int32 else found


@exact_out_variant
def bucketize(input, boundaries: Tensor, *, out_int32: bool = False, right: bool = False) -> Tensor:
    """The index of the bucket between boundaries that contains each value."""
    if boundaries.dim() != 1:
        raise RuntimeError(f"boundaries tensor must be 1 dimension, but got dim({boundaries.dim()})")
    return searchsorted(boundaries, input, out_int32=out_int32, right=right)


def diff(
    input: Tensor, n: int = 1, dim: int = -1, prepend: Tensor | None = None, append: Tensor | None = None, *,
    out: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The n-th differences along dim of the concatenation of `prepend`, `input` and `append`."""
    if isinstance(dim, bool) or not is_int(dim):
        raise TypeError(f"diff(): argument 'dim' (position 3) must be int, not {type(dim).__name__}")
    if n == 0:
        _joined(input, dim, prepend, append)  # checks the sizes
        return input.clone() if out is None else _copy(input, out=out)
    return _differences(input, n, dim, prepend, append, out=out)


@exact_out_variant
def _copy(input: Tensor) -> Tensor:
    return input


@out_variant
def _differences(input: Tensor, n: int, dim: int, prepend: Tensor | None, append: Tensor | None) -> Tensor:
    return _ops.diff(_joined(input, dim, prepend, append), n, dim)


def _joined(input: Tensor, dim: int, prepend: Tensor | None, append: Tensor | None) -> Tensor:
    if prepend is None and append is None:
        return input
    return _torch.cat([t for t in (prepend, input, append) if t is not None], dim)


def tensor_split(
    input: Tensor, indices_or_sections=None, dim: int = 0, *, sections: int | None = None, indices=None,
    tensor_indices_or_sections: Tensor | None = None,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Splits into a number of nearly equal pieces, or at indices. Waits if `indices_or_sections` is a tensor."""
    given = [v for v in (indices_or_sections, sections, indices, tensor_indices_or_sections) if v is not None]
    if len(given) != 1:
        raise TypeError(f"tensor_split() expected one of sections, indices and tensor_indices_or_sections, got {len(given)}")
    indices_or_sections = given[0]
    if isinstance(indices_or_sections, Tensor):
        if indices_or_sections.dtype is not _C.int64:
            raise RuntimeError(
                f"tensor_split expected tensor_indices_or_sections to have dtype of long, but got {indices_or_sections.dtype}"
            )
        if indices_or_sections.dim() > 1:
            raise RuntimeError(
                "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional tensor, but got "
                f"a tensor with {indices_or_sections.dim()} dims"
            )
        indices_or_sections = indices_or_sections.tolist()
    if is_int(indices_or_sections):
        return _ops.tensor_split(input, indices_or_sections, dim)
    if input.dim() == 0:
        raise RuntimeError("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims")
    size = input.size(dim)
    ends = [slice(i, None).indices(size)[0] for i in indices_or_sections]
    return tuple(input.narrow(dim, a, max(b - a, 0)) for a, b in zip([0, *ends], [*ends, size]))


tensor_split.__overloads__ = tuple(
    f"input, {name}, dim=0" for name in ("sections", "indices", "tensor_indices_or_sections", "indices_or_sections")
)


def _check_output_size(expected: int | None, size: int) -> None:
    if expected is not None and expected != size:
        raise RuntimeError(f"repeat_interleave: allocated size does not match required size, got output_size {expected} for {size}")


def repeat_interleave(
    input: Tensor | None = None, repeats=None, dim: int | None = None, *, output_size: int | None = None
) -> Tensor:
    """Repeats each element, or each slice along dim. Waits for the engine unless `repeats` is an int.

    With only one argument, which contains counts, repeats each index that many times.
    """
    if input is None:
        input, repeats = repeats, None
    if repeats is None:  # input contains counts: repeat its indices
        return repeat_interleave(_torch.arange(input.shape[0], device=input.device), input, 0)
    if is_int(repeats):
        result = _ops.repeat_interleave(input, repeats, dim)
        _check_output_size(output_size, result.shape[0 if dim is None else dim])
        return result
    if dim is None:
        input, dim = input.reshape(-1), 0
    if input.dim() == 0:
        input = input.reshape(1)
    if not isinstance(repeats, Tensor):
        repeats = _C.tensor(repeats, dtype=_C.int64, device=input.device)
    if repeats.dtype not in (_C.int64, _C.int32):
        raise RuntimeError("repeats has to be Long or Int tensor")
    size = input.shape[dim]
    if repeats.dim() > 1 or repeats.numel() not in (1, size):
        raise RuntimeError(
                f"repeats must have the same size as input along dim, but got repeats.size(0) = {repeats.numel()} "
                f"and input.size({dim}) = {size}"
            )
    if getattr(repeats, "has_no_values", False):
        return _repeated_without_values(input, repeats.to(input.device, _C.int64).reshape(-1).expand(size), dim, output_size)
    times = repeats.tolist()
    times = [times] * size if isinstance(times, int) else times * size if len(times) == 1 else times
    if any(n < 0 for n in times):
        raise RuntimeError("repeats can not be negative")
    count = sum(times)
    _check_output_size(output_size, count)
    ends = repeats.to(input.device, _C.int64).reshape(-1).expand(size).cumsum(0)
    places = _torch.arange(count, device=input.device)
    return input.index_select(dim, _torch.searchsorted(ends, places, right=True))


def _repeated_without_values(input: Tensor, repeats: Tensor, dim: int, output_size: int | None) -> Tensor:
    """repeat_interleave() in a recording, which checks the counts when it runs."""
    from .assertions import _check as check

    check((repeats < 0).sum().item() == 0, "repeats can not be negative")
    count = repeats.sum().item()
    check(count >= 0)
    if output_size is not None:
        check(count == output_size, "repeat_interleave: output_size does not match the sum of repeats")
        count = output_size
    places = _torch.arange(count, device=input.device)
    return input.index_select(dim, _torch.searchsorted(repeats.cumsum(0), places, right=True))


repeat_interleave.__overloads__ = ("input, repeats, dim=None, *, output_size=None", "repeats, *, output_size=None")


@exact_out_variant
def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """The elements at the indices along dim; other dimensions broadcast. Without dim, both tensors are flattened."""
    if indices.dtype != _C.int64:
        raise RuntimeError(f"torch.take_along_dim(): dtype of indices should be Long but got {indices.dtype}")
    if dim is None:
        input, indices, dim = input.reshape(-1), indices.reshape(-1), 0
    size = input.shape[dim] if input.dim() else 1
    return _ops.take_along_dim(input, _torch.where(indices < 0, indices + size, indices), dim)


def randint_like(
    input: Tensor, low: int | None = None, high: int | None = None, *, dtype=None, device=None, requires_grad=False, layout=None,
    memory_format=None, pin_memory=False, generator=None,
) -> Tensor:  # fmt: skip
    """Random integers in [low, high), or in [0, low) if only one bound is given, with the sizes of `input`."""
    check_memory_format("randint_like", memory_format)
    check_flags("randint_like", pin_memory=pin_memory)
    low, high = (0, low) if high is None else (0 if low is None else low, high)
    if high is None:
        raise TypeError("randint_like() missing 1 required positional arguments: \"high\"")
    with generator or contextlib.nullcontext():
        drawn = _ops.randint_like(input, low, high, dtype=dtype or input.dtype, device=device, layout=layout, memory_format=memory_format)
    return drawn.requires_grad_(requires_grad)


randint_like.__overloads__ = tuple(
    f"input, {bounds}, *, generator=None, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False, memory_format=None"
    for bounds in ("high", "low, high")
)


def _bound_value(name: str, value):
    if not isinstance(value, Tensor):
        return value
    if value.dim():
        raise RuntimeError(f"{name} only supports 0-dimensional start and end tensors, but got one with {value.dim()} dimension(s).")
    return value.item()


def _accept_tensor_bounds(name: str):
    function = getattr(_torch, name)

    @functools.wraps(function)
    def steps_between(start, end, *args, **kwargs) -> Tensor:
        return function(_bound_value(name, start), _bound_value(name, end), *args, **kwargs)

    steps_between.__name__, steps_between.__doc__ = name, function.__doc__
    base = "base=10.0, " if name == "logspace" else ""
    steps_between.__overloads__ = (
        f"start, end, steps, {base}*, out=None, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False",
    )
    return steps_between


linspace, logspace = _accept_tensor_bounds("linspace"), _accept_tensor_bounds("logspace")


def polygamma(n: int, input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The n-th derivative of digamma."""
    return _ops.polygamma(n, input, out=out)


@exact_out_variant
def scatter(input: Tensor, dim: int, index: Tensor, src=None, *, value=None, reduce: str | None = None) -> Tensor:
    """input with src, a tensor or a number, written at the indices along dim, or added or multiplied (`reduce`)."""
    src = value if src is None else src
    if reduce is None:
        return (_ops.scatter if isinstance(src, Tensor) else _ops.scatter_value)(input, dim, index, src)
    if reduce not in ("add", "multiply"):
        raise RuntimeError("reduce argument must be either add or multiply.")
    if not isinstance(src, Tensor):
        src = _torch.full(index.shape, src, dtype=input.dtype, device=input.device)
    return _ops.scatter_reduce(input, dim, index, src, "sum" if reduce == "add" else "prod")


scatter.__overloads__ = ("input, dim, index, src, *, reduce=None, out=None", "input, dim, index, value, *, reduce=None, out=None")


def _scatter_in_place(self: Tensor, *args, **kwargs) -> Tensor:
    return _ops.assign(self, scatter(self, *args, **kwargs), out=self) if "reduce" in kwargs else _overwrite(self, *args, **kwargs)


_scatter_in_place.__overloads__ = ("dim, index, src, *, reduce=None", "dim, index, value, *, reduce=None")
_overwrite = Tensor.scatter_


@out_variant
def fill(input: Tensor, value) -> Tensor:
    """A tensor like input that contains one value: a number, or a 0-dimensional tensor, which is differentiated."""
    if not isinstance(value, Tensor):
        return _torch.fill(input, value)
    if value.dim():
        raise RuntimeError(f"fill only supports 0-dimension value tensor but got tensor with {value.dim()} dimensions.")
    return value.to(input.device, input.dtype).expand(input.shape).clone()


@out_variant
def index_fill(input: Tensor, dim: int, index: Tensor, value) -> Tensor:
    """input with a number, or a 0-dimensional tensor, written at the indices of a dimension."""
    if not isinstance(value, Tensor):
        return _ops.index_fill(input, dim, index, value)
    if value.dim():
        raise RuntimeError(f"index_fill_ only supports a 0-dimensional value tensor, but got tensor with {value.dim()} dimension(s).")
    here = _ops.index_fill(_torch.zeros(input.shape, dtype=_C.bool, device=input.device), dim, index, True)
    return _torch.where(here, value.to(input.dtype), input)


def _index_fill_in_place(self: Tensor, dim: int, index: Tensor, value) -> Tensor:
    if not isinstance(value, Tensor):
        return _fill_indices(self, dim, index, value)
    return _ops.assign(self, index_fill(self, dim, index, value), out=self)


_fill_indices = Tensor.index_fill_


def _cauchy_in_place(self: Tensor, median: float = 0, sigma: float = 1) -> Tensor:
    if not sigma > 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma}")
    return _draw_cauchy(self, median, sigma)


def _log_normal_in_place(self: Tensor, mean: float = 1, std: float = 2) -> Tensor:
    if not std > 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std}")
    return _draw_log_normal(self, mean, std)


def _geometric_in_place(self: Tensor, p: float) -> Tensor:
    if self.is_floating_point():
        return _draw_geometric(self, p)
    return self.copy_(_draw_geometric(_torch.empty(self.shape, device=self.device), p))


def _random_in_place(self: Tensor, *bounds, **kwargs) -> Tensor:
    if "from" in kwargs:  # a reserved word: passed as random_(**{"from": 3})
        bounds = (kwargs.pop("from"), *bounds)
    if bounds and (bounds[1:] == (None,) or kwargs.get("to", 0) is None):
        kwargs.pop("to", None)
        return _random_from(self, bounds[0], **kwargs)
    return _draw_random(self, *bounds, **kwargs)


def _random_from(self: Tensor, low: int, **kwargs) -> Tensor:
    """Draws integers from ``low`` to the dtype's largest value or, for a floating dtype, to the largest of its
    consecutive integers.
    """
    from .._functions import finfo, iinfo

    if self.dtype is _C.uint64:
        raise NotImplementedError(f"random_ of uint64 expects an upper bound after the lower bound {low}, got None")
    if self.dtype is _C.int64:  # an exclusive bound of 2**63 is not an int64
        if low == -(2**63):
            self.view(_C.uint64).random_(**kwargs)
            return self
        return _draw_random(self, low - 1, 2**63 - 1, **kwargs).add_(1)
    if self.is_floating_point():
        largest = 2 ** (1 - round(math.log2(finfo(self.dtype).eps)))
    else:
        largest = 1 if self.dtype is _C.bool else iinfo(self.dtype).max
    return _draw_random(self, low, largest + 1, **kwargs)


_draw_cauchy, _draw_log_normal, _draw_geometric = Tensor.cauchy_, Tensor.log_normal_, Tensor.geometric_
_draw_random = Tensor.random_


def _polygamma_of(self: Tensor, n: int) -> Tensor:
    return _ops.polygamma(n, self)


def _polygamma_in_place(self: Tensor, n: int) -> Tensor:
    return _ops.polygamma(n, self, out=self)


for _name in (
    "bucketize", "diff", "index_fill", "nanquantile", "quantile", "repeat_interleave", "scatter",
    "take_along_dim", "tensor_split",
):  # fmt: skip
    setattr(Tensor, _name, globals()[_name])
for _method in (_index_fill_in_place, _scatter_in_place, _cauchy_in_place, _log_normal_in_place, _geometric_in_place, _random_in_place):
    _method.__name__ = _method.__name__.removeprefix("_").removesuffix("in_place")
    setattr(Tensor, _method.__name__, _method)
Tensor.polygamma, Tensor.polygamma_ = _polygamma_of, _polygamma_in_place
