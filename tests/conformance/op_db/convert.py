"""Converts values between PyTorch and teletensor, and compares results."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Callable

import numpy as np
import torch

import teletensor

MOST_DIMS = 64  # NumPy's limit
_SPARSE = (torch.sparse_coo, torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc)


class Unconvertible(Exception):
    """An argument without a counterpart here, such as a sparse tensor; the message describes it."""


def dtype_name(dtype) -> str:
    """The name of either package's dtype, such as `float32`."""
    return str(dtype).removeprefix("torch.")


def our_dtype(dtype: torch.dtype):
    """Our dtype of the same name."""
    found = getattr(teletensor, dtype_name(dtype), None)
    if type(found) is not teletensor.dtype:  # complex32 is only a name, and an instance by its __class__
        raise Unconvertible(f"dtype {dtype_name(dtype)}")
    return found


def _array(tensor: torch.Tensor) -> np.ndarray:
    """The values as an array; bfloat16, which NumPy lacks, as float32."""
    tensor = tensor.detach().resolve_conj().resolve_neg()
    tensor = tensor.to_dense() if tensor.layout in _SPARSE else tensor
    tensor = torch.zeros_like(tensor) if tensor._is_zerotensor() else tensor
    return (tensor.float() if tensor.dtype is torch.bfloat16 else tensor).numpy()


def _same_layout(tensor: torch.Tensor):
    """A tensor of ours with the same values, sizes and strides."""
    dtype = our_dtype(tensor.dtype)
    if tensor.dtype.is_complex and not hasattr(teletensor, "view_as_complex"):
        raise Unconvertible("complex numbers are not supported yet")
    plain = tensor.is_contiguous() and not tensor.is_conj() and not tensor.is_neg()
    room = tensor.untyped_storage().nbytes() // tensor.element_size()
    if plain and room == tensor.numel() or tensor.numel() == 0 or tensor.is_conj() or tensor.is_neg():
        return teletensor.tensor(_array(tensor.contiguous())).to(dtype)
    stretch = tensor.detach().as_strided((room,), (1,), 0)  # all the memory that the view spans
    base = teletensor.tensor(_array(stretch)).to(dtype)
    return base.as_strided(list(tensor.shape), list(tensor.stride()), tensor.storage_offset())


class Converter:
    """Converts arguments; remembers pairs of tensors, so that an argument passed twice stays one tensor."""

    def __init__(self) -> None:
        self.pairs: dict[int, tuple[torch.Tensor, Any]] = {}

    def tensor(self, tensor: torch.Tensor):
        if id(tensor) not in self.pairs:
            if tensor.layout in _SPARSE:
                ours = self.sparse(tensor)
                self.pairs[id(tensor)] = (tensor, ours)
                return ours
            if tensor.layout is not torch.strided or tensor.is_quantized or tensor.is_nested:
                raise Unconvertible(f"layout {tensor.layout}")
            if tensor.dim() > MOST_DIMS:
                raise Unconvertible(f"more than {MOST_DIMS} dimensions")
            ours = _same_layout(tensor) if tensor.device.type != "meta" else _meta(tensor)
            if tensor.requires_grad:
                ours.requires_grad_()
            self.pairs[id(tensor)] = (tensor, ours)
        return self.pairs[id(tensor)][1]

    def sparse(self, tensor: torch.Tensor):
        """A sparse tensor of the same components."""
        size, layout = teletensor.Size(tensor.shape), self(tensor.layout)
        made: dict[str, Any] = {"requires_grad": tensor.requires_grad}
        if tensor.layout is torch.sparse_coo:
            parts = map(_same_layout, (tensor._indices(), tensor._values()))
            return teletensor.sparse_coo_tensor(*parts, size, is_coalesced=tensor.is_coalesced(), **made)
        rows = tensor.layout in (torch.sparse_csr, torch.sparse_bsr)
        indices = (tensor.crow_indices(), tensor.col_indices()) if rows else (tensor.ccol_indices(), tensor.row_indices())
        parts = map(_same_layout, (*indices, tensor.values().detach()))
        return teletensor.sparse_compressed_tensor(*parts, size, layout=layout, **made)

    def __call__(self, value):
        if isinstance(value, torch.Tensor):
            return self.tensor(value)
        if isinstance(value, torch.dtype):
            return our_dtype(value)
        if isinstance(value, torch.device):
            return str(value)
        if isinstance(value, (torch.layout, torch.memory_format)):
            name = str(value).removeprefix("torch.")
            return getattr(teletensor, name)
        if isinstance(value, torch.Size):
            return teletensor.Size(value)
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return type(value)(*map(self, value))
        if isinstance(value, (list, tuple)):
            return type(value)(map(self, value))
        if isinstance(value, dict):
            return {key: self(item) for key, item in value.items()}
        if isinstance(value, slice):
            return slice(self(value.start), self(value.stop), self(value.step))
        if isinstance(value, torch.nn.PairwiseDistance):
            return teletensor.nn.PairwiseDistance(value.norm, value.eps, value.keepdim)
        if type(value).__module__.startswith("torch"):
            raise Unconvertible(f"a {type(value).__name__}")
        return value


def _meta(tensor: torch.Tensor):
    return teletensor.empty(tuple(tensor.shape), dtype=our_dtype(tensor.dtype), device="meta")


def leaves(value) -> Iterator[Any]:
    """The leaves of a result, in order."""
    if isinstance(value, dict):
        for item in value.values():
            yield from leaves(item)
    elif isinstance(value, (list, tuple)) and not isinstance(value, (torch.Size, teletensor.Size)):
        for item in value:
            yield from leaves(item)
    else:
        yield value


# Relative to the value and to the largest finite value of the tensor, since a sum's error scales with its terms.
TOLERANCES = {
    "float64": 1e-9, "float32": 2e-5, "bfloat16": 2e-2, "float16": 3e-3, "complex128": 1e-9, "complex64": 2e-5,
}  # fmt: skip


def difference(ours, theirs, *, values: bool = True, tolerance_factor: float = 1.0, absolute: bool = False) -> str:
    """How two results differ; empty if they are equal. `absolute`: ignore signs."""
    mine, others = list(leaves(ours)), list(leaves(theirs))
    if len(mine) != len(others):
        return f"{len(mine)} results, PyTorch has {len(others)}"
    for i, (a, b) in enumerate(zip(mine, others)):
        place = f"result {i}: " if len(mine) > 1 else ""
        if isinstance(b, torch.Tensor):
            if not isinstance(a, teletensor.Tensor):
                return f"{place}a {type(a).__name__}, PyTorch has a tensor"
            if found := _tensor_difference(a, b, values, tolerance_factor, absolute):
                return place + found
        elif found := _plain_difference(a, b, values):
            return place + found
    return ""


def _plain_difference(a, b, values: bool) -> str:
    if isinstance(b, (torch.dtype, torch.device, torch.Size)):
        return "" if str(a) == str(b) else f"{a}, PyTorch has {b}"
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        if (a.dtype, a.shape) != (b.dtype, b.shape):
            return f"an array of {a.dtype} {a.shape}, PyTorch has {b.dtype} {b.shape}"
        return _value_difference(a, b, TOLERANCES.get(b.dtype.name, 0.0)) if values else ""
    if type(a) is not type(b):
        return f"a {type(a).__name__}, PyTorch has a {type(b).__name__}"
    if not values or a == b or (isinstance(b, float) and np.isclose(a, b, rtol=1e-5, equal_nan=True)):
        return ""
    return f"{a!r}, PyTorch has {b!r}"


def _tensor_difference(a, b: torch.Tensor, values: bool, tolerance_factor: float, absolute: bool) -> str:
    if dtype_name(a.dtype) != dtype_name(b.dtype):
        return f"dtype {dtype_name(a.dtype)}, PyTorch has {dtype_name(b.dtype)}"
    if tuple(a.shape) != tuple(b.shape):
        return f"sizes {list(a.shape)}, PyTorch has {list(b.shape)}"
    if str(a.layout) != str(b.layout):
        return f"a tensor of {a.layout}, PyTorch has {b.layout}"
    if b.layout in _SPARSE:
        a, b = a.detach().to_dense(), b.detach().to_dense()
    if not values or b.numel() == 0 or b.device.type == "meta":
        return ""
    a = a.detach()
    mine = (a.float() if a.dtype is teletensor.bfloat16 else a).numpy()
    other = _array(b)
    if absolute:
        mine, other = np.abs(mine), np.abs(other)
    return _value_difference(mine, other, TOLERANCES.get(dtype_name(b.dtype), 0.0) * tolerance_factor)


def _value_difference(mine: np.ndarray, other: np.ndarray, tolerance: float) -> str:
    if mine.dtype.kind not in "fc":
        wrong = mine != other
    else:
        finite = np.abs(other[np.isfinite(other)])
        scale = float(finite.max()) if finite.size else 0.0
        with np.errstate(all="ignore"):
            near = np.abs(mine - other) <= tolerance * np.maximum(np.abs(other), max(1.0, scale))
        both_nan = np.isnan(mine) & np.isnan(other)
        wrong = ~(near | both_nan | (mine == other))
    if not wrong.any():
        return ""
    place = tuple(int(i) for i in np.argwhere(wrong)[0])
    return f"{int(wrong.sum())} of {wrong.size} values, at {list(place)} {mine[place]!r}, PyTorch has {other[place]!r}"


def back(value):
    """Converts one of our values to PyTorch."""
    if isinstance(value, teletensor.Tensor):
        values = value.detach().to_dense()
        plain = (values.float() if value.dtype is teletensor.bfloat16 else values).numpy()
        plain = torch.from_numpy(plain).to(getattr(torch, dtype_name(value.dtype)))
        layout = str(value.layout).removeprefix("torch.")
        return plain if layout == "strided" else plain.to_sparse(layout=getattr(torch, layout))
    if isinstance(value, teletensor.dtype):
        return getattr(torch, dtype_name(value))
    return value


def _through(function: Callable) -> Callable:
    """Wraps a PyTorch function that selects the significant elements of a result, for our tensors."""

    def count(operator, *args, **kwargs):
        first = getattr(torch.masked, operator.__name__) if callable(operator) else back(operator)
        return Converter()(function(first, *map(back, args), **{k: back(v) for k, v in kwargs.items()}))

    return count


for _name in ("_output_mask", "_input_mask"):  # masks that op_db uses for results of masked operators
    setattr(teletensor.masked, _name, _through(getattr(torch.masked, _name)))


def rebind(function: Callable) -> Callable:
    """A function of PyTorch's tests with `torch` rebound to teletensor; other functions unchanged."""
    code = getattr(function, "__code__", None)
    if code is None or not function.__module__.startswith("torch.testing"):
        return function
    scope = {**function.__globals__, "torch": teletensor}
    bound = type(function)(code, scope, function.__name__, function.__defaults__, function.__closure__)
    bound.__kwdefaults__ = function.__kwdefaults__
    return bound
