"""Transforms that apply other transforms to the parts of a tensor."""

from __future__ import annotations

from .. import _C
from .._lazy import set_module
from . import constraints
from ._transform_types import Transform
from .utils import _sum_rightmost, lazy_property


class _JoinedTransform(Transform):
    def __init__(self, tseq, dim: int, cache_size: int):
        tseq = list(tseq)
        for transform in tseq:
            if not isinstance(transform, Transform):
                raise AssertionError(f"All elements of tseq must be Transform instances, got {type(transform).__name__}")
        super().__init__(cache_size)
        self.transforms = [t.with_cache(cache_size) for t in tseq] if cache_size else tseq
        self.dim = dim

    bijective = property(lambda self: all(t.bijective for t in self.transforms))

    def _parts(self, x) -> list:
        """The parts of the tensor, one for each transform."""
        raise NotImplementedError

    def _check(self, x, length: int) -> None:
        if not -x.dim() <= self.dim < x.dim():
            raise AssertionError(f"dim {self.dim} out of range for tensor with {x.dim()} dimensions")
        if x.shape[self.dim] != length:
            raise AssertionError(f"expected size {length} in dim {self.dim}, got {x.shape[self.dim]}")


class CatTransform(_JoinedTransform):
    """Applies each transform to a part of the tensor along `dim`, of the given length; see torch.cat."""

    def __init__(self, tseq, dim: int = 0, lengths=None, cache_size: int = 0):
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise AssertionError(f"lengths ({len(self.lengths)}) must match transforms ({len(self.transforms)})")

    @lazy_property
    def event_dim(self) -> int:
        """The largest event_dim of the transforms."""
        return max(t.event_dim for t in self.transforms)

    @lazy_property
    def length(self) -> int:
        """The size of the tensor along dim."""
        return sum(self.lengths)

    def with_cache(self, cache_size: int = 1):
        return self if self._cache_size == cache_size else CatTransform(self.transforms, self.dim, self.lengths, cache_size)

    def _parts(self, x) -> list:
        self._check(x, self.length)
        return list(x.split(self.lengths, self.dim))

    def _call(self, x):
        return _C.torch.cat([t(part) for t, part in zip(self.transforms, self._parts(x))], self.dim)

    def _inverse(self, y):
        return _C.torch.cat([t.inv(part) for t, part in zip(self.transforms, self._parts(y))], self.dim)

    def log_abs_det_jacobian(self, x, y):
        terms = [
            _sum_rightmost(t.log_abs_det_jacobian(a, b), self.event_dim - t.event_dim)
            for t, a, b in zip(self.transforms, self._parts(x), self._parts(y))
        ]
        # Counted from the end, after the event dimensions have been summed.
        dim = (self.dim - x.dim() if self.dim >= 0 else self.dim) + self.event_dim
        return _C.torch.cat(terms, dim) if dim < 0 else sum(terms)

    @constraints.dependent_property
    def domain(self):
        """The transforms' domains, concatenated."""
        return constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self):
        """The transforms' codomains, concatenated."""
        return constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)


class StackTransform(_JoinedTransform):
    """Applies each transform to an entry of the tensor along `dim`; see torch.stack."""

    def __init__(self, tseq, dim: int = 0, cache_size: int = 0):
        super().__init__(tseq, dim, cache_size)

    def with_cache(self, cache_size: int = 1):
        return self if self._cache_size == cache_size else StackTransform(self.transforms, self.dim, cache_size)

    def _parts(self, x) -> list:
        self._check(x, len(self.transforms))
        return [x.select(self.dim, i) for i in range(len(self.transforms))]

    def _call(self, x):
        return _C.torch.stack([t(part) for t, part in zip(self.transforms, self._parts(x))], self.dim)

    def _inverse(self, y):
        return _C.torch.stack([t.inv(part) for t, part in zip(self.transforms, self._parts(y))], self.dim)

    def log_abs_det_jacobian(self, x, y):
        pairs = zip(self.transforms, self._parts(x), self._parts(y))
        return _C.torch.stack([t.log_abs_det_jacobian(a, b) for t, a, b in pairs], self.dim)

    @constraints.dependent_property
    def domain(self):
        """The transforms' domains, stacked."""
        return constraints.stack([t.domain for t in self.transforms], self.dim)

    @constraints.dependent_property
    def codomain(self):
        """The transforms' codomains, stacked."""
        return constraints.stack([t.codomain for t in self.transforms], self.dim)


set_module("teletensor.distributions.transforms", CatTransform, StackTransform)
