"""Pointwise functions, sums and histograms composed of operators."""

from __future__ import annotations

import math
from typing import NamedTuple

from .. import _C
from .._C import Tensor
from .._integers import repeated
from .._named_results import printed_as
from .out_variant import inplace_variant, out_variants

__all__ = [
    "gradient", "histogram", "isin", "positive",
]  # fmt: skip

_torch = _C.torch


@printed_as("histogram")
class Histogram(NamedTuple):
    hist: Tensor
    bin_edges: Tensor


def isin(
    elements=None, test_elements=None, *, assume_unique: bool = False, invert: bool = False, element=None, test_element=None
) -> Tensor:
    """Whether each element is among the test elements. ``assume_unique`` does not change the result.

    A number may be passed as ``element`` or ``test_element``.
    """
    elements = element if elements is None else elements
    test_elements = test_element if test_elements is None else test_elements
    if elements is None or test_elements is None:
        raise TypeError("isin() expected elements and test_elements, got only one of them")
    if not isinstance(elements, Tensor):
        elements = _C.tensor(elements)
    if not isinstance(test_elements, Tensor):
        return elements != test_elements if invert else elements == test_elements
    return _C.ops.isin(elements, test_elements, invert=invert)


isin.__overloads__ = tuple(
    f"{e}, {t}, *, assume_unique=False, invert=False, out=None"
    for e, t in (("elements", "test_elements"), ("element", "test_elements"), ("elements", "test_element"))
)


def histogram(input: Tensor, bins=100, *, range=None, weight: Tensor | None = None, density: bool = False) -> Histogram:
    """Returns (histogram, edges): the count or total weight of each bin, and the edges of the bins."""
    flat = input.detach().reshape(-1)
    if isinstance(bins, Tensor):
        edges = bins.to(flat.dtype)
    else:
        low, high = range if range is not None else (float(flat.min()), float(flat.max())) if flat.numel() else (0.0, 1.0)
        if bins < 1 or not (math.isfinite(low) and math.isfinite(high)):
            raise RuntimeError(
                f"[histogram] expected a positive number of bins and a finite range, got {bins} and [{low}, {high}]"
            )
        low, high = (low - 0.5, high + 0.5) if low == high else (low, high)
        edges = _torch.linspace(low, high, bins + 1, dtype=flat.dtype, device=flat.device)
    count = edges.numel() - 1
    inside = (flat >= edges[0]) & (flat <= edges[count])
    index = (_torch.searchsorted(edges, flat, right=True) - 1).clamp(0, count - 1)
    weights = inside.to(flat.dtype) if weight is None else _torch.where(inside, weight.reshape(-1), 0.0)
    found = _torch.zeros(count, dtype=flat.dtype, device=flat.device).scatter_add(0, index, weights.to(flat.dtype))
    return Histogram(found / found.sum() / edges.diff() if density else found, edges)


def gradient(input: Tensor, *, spacing=None, dim=None, edge_order: int = 1) -> tuple[Tensor, ...]:
    """Central differences of neighbouring elements divided by their distance; one-sided differences at the edges."""
    if edge_order not in (1, 2):
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    dims = list(range(input.dim())) if dim is None else list(repeated(dim, 1))
    spacing = 1 if spacing is None else spacing
    if isinstance(spacing, (list, tuple)) and len(spacing) != len(dims):
        raise RuntimeError(
            "torch.gradient expected spacing to be unspecified, a scalar or it's spacing and dim arguments to have the same "
            f"length, but got a spacing argument of length {len(spacing)} and a dim argument of length {len(dims)}."
        )
    if len(set(d % max(1, input.dim()) for d in dims)) != len(dims):
        raise RuntimeError(f"dim {dims} appears multiple times in the list of dims")
    spaces = list(spacing) if isinstance(spacing, (list, tuple)) else [spacing] * len(dims)
    return tuple(_slopes(input, d, s, edge_order) for d, s in zip(dims, spaces))


def _slopes(input: Tensor, dim: int, spacing, edge_order: int) -> Tensor:
    n = input.shape[dim]
    if n < edge_order + 1:
        raise RuntimeError("torch.gradient expected each dimension size to be at least edge_order+1")
    has_coordinates = isinstance(spacing, Tensor) and spacing.dim() == 1
    kind = _C.promote_types(input.dtype, spacing.dtype) if has_coordinates else input.dtype
    input = input.to(kind if kind.is_floating_point or kind.is_complex else _C.default_dtype())
    if has_coordinates:
        coordinates = spacing
    else:
        coordinates = _torch.arange(n, dtype=_C.float64, device=input.device) * spacing
    view_shape = [-1 if d == dim % input.dim() else 1 for d in range(input.dim())]
    steps = coordinates.diff().to(input.dtype).reshape(view_shape).expand([n - 1 if m == -1 else m for m in view_shape])
    slopes = input.diff(dim=dim) / steps
    first, last = slopes.narrow(dim, 0, 1), slopes.narrow(dim, n - 2, 1)
    if n == 2:
        return _torch.cat([first, last], dim)
    before, after = steps.narrow(dim, 0, n - 2), steps.narrow(dim, 1, n - 2)
    if coordinates is spacing:
        left, right = slopes.narrow(dim, 0, n - 2), slopes.narrow(dim, 1, n - 2)
        inner = (left * after + right * before) / (before + after)
    else:  # does not depend on the element itself, which may be infinite
        inner = (input.narrow(dim, 2, n - 2) - input.narrow(dim, 0, n - 2)) / (before + after)
    if edge_order == 2:
        first, last = _slope_at_edge(slopes, steps, dim, 0), _slope_at_edge(slopes, steps, dim, n - 2)
    return _torch.cat([first, inner, last], dim)


def _slope_at_edge(slopes: Tensor, steps: Tensor, dim: int, edge: int) -> Tensor:
    """Returns the slope at an edge of the parabola through the three elements nearest to the edge."""
    other = edge + 1 if edge == 0 else edge - 1
    own, next_ = slopes.narrow(dim, edge, 1), slopes.narrow(dim, other, 1)
    near, far = steps.narrow(dim, edge, 1), steps.narrow(dim, other, 1)
    return own + (own - next_) * near / (near + far)


def positive(input: Tensor) -> Tensor:
    """Returns the tensor itself."""
    if input.dtype is _C.bool:
        raise NotImplementedError("The `+` operator, on a bool tensor is not supported.")
    return input



globals().update(out_variants(globals(), (), exact=("histogram", "isin")))
for _name in ("histogram", "positive"):
    setattr(Tensor, _name, globals()[_name])
Tensor.mvlgamma_ = inplace_variant("mvlgamma")
Tensor.float_power_ = inplace_variant("float_power", exact=True)
