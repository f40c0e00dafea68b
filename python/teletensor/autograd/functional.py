"""Jacobians, Hessians and their products with vectors, row by row."""

from __future__ import annotations

from .. import _C
from .._C import Tensor
from .gradients import grad


def _prepare(inputs, create_graph: bool):
    """The inputs as leaves that require grad; with create_graph those that require grad stay in their graph."""
    many = isinstance(inputs, (tuple, list))
    given = tuple(inputs) if many else (inputs,)
    return tuple(x if create_graph and x.requires_grad else x.detach().requires_grad_() for x in given), many


def _refuse_strict(name: str, strict: bool) -> None:
    if strict:
        raise NotImplementedError(f"{name}(strict=True) is not supported: independent inputs have a derivative of zero")


def vjp(func, inputs, v=None, create_graph: bool = False, strict: bool = False):
    """(func(inputs), v^T J): the product of a vector with the Jacobian."""
    _refuse_strict("vjp", strict)
    leaves, many = _prepare(inputs, create_graph)
    outputs = func(*leaves)
    found = grad(outputs, leaves, v, create_graph=create_graph, materialize_grads=True)
    return outputs.detach() if not create_graph else outputs, found if many else found[0]


def jvp(func, inputs, v=None, create_graph: bool = False, strict: bool = False):
    """(func(inputs), J v): the product of the Jacobian with a vector like the inputs; v is optional for one number."""
    from .. import func as functions

    _refuse_strict("jvp", strict)
    many = isinstance(inputs, (tuple, list))
    primals = tuple(inputs) if many else (inputs,)
    tangents = tuple(_C.torch.ones_like(x) for x in primals) if v is None else tuple(v) if many else (v,)
    if v is None and any(x.numel() != 1 for x in primals):
        raise RuntimeError(
            "The vector v can only be None if the input to the user-provided function is a single Tensor "
            "with a single element."
        )
    if not create_graph:
        primals, tangents = tuple(x.detach() for x in primals), tuple(t.detach() for t in tangents)
    return functions.jvp(func, primals, tangents)


def jacobian(func, inputs, create_graph: bool = False, strict: bool = False, vectorize: bool = False):
    """The derivatives of every output element by every input element: output's sizes, then the input's."""
    _refuse_strict("jacobian", strict)
    leaves, many = _prepare(inputs, create_graph)
    output = func(*leaves)
    flat = output.reshape(-1)
    rows = [
        grad(flat[i], leaves, retain_graph=True, create_graph=create_graph, materialize_grads=True)
        for i in range(flat.numel())
    ]
    stacked = tuple(
        _C.torch.stack([row[k] for row in rows]).reshape(tuple(output.shape) + tuple(x.shape)) for k, x in enumerate(leaves)
    )
    return stacked if many else stacked[0]


def hessian(func, inputs: Tensor, create_graph: bool = False, strict: bool = False, vectorize: bool = False):
    """The second derivatives of a scalar function."""
    _refuse_strict("hessian", strict)
    return jacobian(lambda x: grad(func(x), x, create_graph=True)[0], inputs, create_graph)


def hvp(func, inputs, v=None, create_graph: bool = False, strict: bool = False):
    """(func(inputs), H v) for a scalar function."""
    _refuse_strict("hvp", strict)
    leaves, many = _prepare(inputs, create_graph)
    output = func(*leaves)
    vectors = tuple(v) if isinstance(v, (tuple, list)) else (_C.torch.ones_like(leaves[0]) if v is None else v,)
    first = grad(output, leaves, create_graph=True, materialize_grads=True)
    used = [(g, u) for g, u in zip(first, vectors, strict=True) if g.requires_grad]
    if used:
        found = grad([g for g, _ in used], leaves, [u for _, u in used], create_graph=create_graph, materialize_grads=True)
    else:
        found = tuple(_C.torch.zeros_like(x) for x in leaves)
    return output if create_graph else output.detach(), found if many else found[0]


# The Hessian is symmetric.
vhp = hvp
