"""The state of a DTensor, which the files that compute DTensors share."""

from __future__ import annotations

from collections.abc import Sequence

from ... import _C
from ._spec import Spec


class Distributed(_C.Tensor):
    """The base of DTensor: a tensor without values, with the local tensors of the ranks that this process drives."""

    _locals: tuple[_C.Tensor, ...]
    _spec: Spec
    created: type[Distributed]  # the class of the tensors that make() creates


def make(locals_: Sequence[_C.Tensor], spec: Spec, size: Sequence[int]) -> Distributed:
    """A DTensor of local tensors, one per member of the mesh."""
    made = _C._make_wrapper(Distributed.created, size, None, 0, locals_[0].dtype, locals_[0].device)
    made._locals, made._spec = tuple(locals_), spec
    return made
