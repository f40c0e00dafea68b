"""Jacobians and products with them, row by row."""

from __future__ import annotations

from .. import _C
from .._C import Tensor


def _prepare(inputs):
    many = isinstance(inputs, (tuple, list))
    leaves = tuple(x.detach().requires_grad_() for x in (inputs if many else (inputs,)))
    return leaves, many


def vjp(func, inputs, v=None, create_graph: bool = False, strict: bool = False):
    """(func(inputs), v^T J): the product of a vector with the Jacobian."""
    from . import grad

    leaves, many = _prepare(inputs)
    outputs = func(*leaves)
    found = grad(outputs, leaves, v, create_graph=create_graph, materialize_grads=True)
    return outputs.detach() if not create_graph else outputs, found if many else found[0]


def jacobian(func, inputs, create_graph: bool = False, strict: bool = False, vectorize: bool = False):
    """The derivatives of every output by every input: sizes of the output, then of the input."""
    from . import grad

    leaves, many = _prepare(inputs)
    output = func(*leaves)
    flat = output.reshape(-1)
    rows = [grad(flat[i], leaves, retain_graph=True, create_graph=create_graph, materialize_grads=True) for i in range(flat.numel())]  # fmt: skip
    stacked = tuple(
        _C.torch.stack([row[k] for row in rows]).reshape(tuple(output.shape) + tuple(x.shape)) for k, x in enumerate(leaves)
    )
    return stacked if many else stacked[0]


def hessian(func, inputs: Tensor, create_graph: bool = False, strict: bool = False, vectorize: bool = False):
    """The second derivatives of a function with one output."""
    from . import grad

    return jacobian(lambda x: grad(func(x), x, create_graph=True)[0], inputs, create_graph)
