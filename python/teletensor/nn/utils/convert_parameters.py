"""Conversion between parameters and one vector."""

from __future__ import annotations

from ... import _C
from ..._C import Tensor
from ..._grad_mode import no_grad
from ..._options import check_kind

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def parameters_to_vector(parameters) -> Tensor:
    """Concatenates all parameters to one vector."""
    return _C.torch.cat([p.reshape(-1) for p in parameters])


@no_grad
def vector_to_parameters(vec: Tensor, parameters) -> None:
    """Makes the parameters views of consecutive ranges of a vector."""
    check_kind("vector_to_parameters", "vec", vec, Tensor)
    at = 0
    for p in parameters:
        p.data = vec[at : at + p.numel()].view(p.shape).data
        at += p.numel()
