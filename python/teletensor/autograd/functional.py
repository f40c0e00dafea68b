"""Jacobians and Hessians, computed row by row, and their products with vectors."""

from __future__ import annotations

from .. import _C
from .._C import Tensor
from .gradients import grad


def _prepare(inputs, create_graph: bool):
    """Returns the inputs as leaves that require grad, and whether `inputs` is a sequence.

    With create_graph, an input that already requires grad is returned itself.
    """
    many = isinstance(inputs, (tuple, list))
    given = tuple(inputs) if many else (inputs,)
    return tuple(x if create_graph and x.requires_grad else x.detach().requires_grad_() for x in given), many


def _reject_strict(name: str, strict: bool) -> None:
    if strict:
        raise NotImplementedError(f"{name}(strict=True) is not supported: independent inputs have a derivative of zero")


def vjp(func, inputs, v=None, create_graph: bool = False, strict: bool = False):
    """Returns (func(inputs), v^T J), where J is the Jacobian."""
    _reject_strict("vjp", strict)
    leaves, many = _prepare(inputs, create_graph)
    outputs = func(*leaves)
    found = grad(outputs, leaves, v, create_graph=create_graph, materialize_grads=True)
    return outputs.detach() if not create_graph else outputs, found if many else found[0]


def jvp(func, inputs, v=None, create_graph: bool = False, strict: bool = False):
    """Returns (func(inputs), J v), where J is the Jacobian. v may be None if the inputs have one element each."""
    from .. import func as functions

    _reject_strict("jvp", strict)
    many = isinstance(inputs, (tuple, list))
    primals = tuple(inputs) if many else (inputs,)
    several = many and isinstance(v, (tuple, list))
    tangents = tuple(_C.torch.ones_like(x) for x in primals) if v is None else tuple(v) if several else (v,)
    if v is None and any(x.numel() != 1 for x in primals):
        raise RuntimeError(
            "The vector v can only be None if the input to the user-provided function is a single Tensor "
            "with a single element."
        )
    if not create_graph:
        primals, tangents = tuple(x.detach() for x in primals), tuple(t.detach() for t in tangents)
    return functions.jvp(func, primals, tangents)


def jacobian(
    func, inputs, create_graph: bool = False, strict: bool = False, vectorize: bool = False, strategy: str = "reverse-mode"
):
    """Returns the derivatives of the output with respect to each input, of size (*output.shape, *input.shape).

    ``vectorize`` and ``strategy`` select how PyTorch computes the same result.
    """
    _reject_strict("jacobian", strict)
    _check_strategy("strategy", strategy, create_graph, vectorize)
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


def _check_strategy(name: str, strategy: str, create_graph: bool, vectorize: bool) -> None:
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError(f"Expected {name} to be either 'reverse-mode' or 'forward-mode', got {strategy!r}")
    if strategy == "forward-mode" and create_graph:
        raise NotImplementedError(
            'torch.autograd.functional.jacobian: `create_graph=True` and `strategy="forward-mode"` are not supported together (yet).'
        )
    if strategy == "forward-mode" and not vectorize:
        raise NotImplementedError("Computing Jacobian using forward-AD requires vectorize=True")


def hessian(
    func, inputs: Tensor, create_graph: bool = False, strict: bool = False, vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
):  # fmt: skip
    """Returns the second derivatives of a scalar function."""
    _reject_strict("hessian", strict)
    _check_strategy("outer_jacobian_strategy", outer_jacobian_strategy, create_graph, vectorize)
    return jacobian(lambda x: grad(func(x), x, create_graph=True)[0], inputs, create_graph)


def hvp(func, inputs, v=None, create_graph: bool = False, strict: bool = False):
    """Returns (func(inputs), H v) for a scalar function, where H is the Hessian."""
    _reject_strict("hvp", strict)
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


# The Hessian H is symmetric, so v^T H and H v are equal.
vhp = hvp
