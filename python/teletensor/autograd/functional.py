"""Jacobians and Hessians, computed row by row or forward, and their products with vectors."""

from __future__ import annotations

from .. import _C, _transforms
from .._C import Tensor
from ..func import derivatives, forward, tree
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
    """Returns (func(inputs), J v), where J is the Jacobian, in one forward pass.

    Args:
        func: a function of tensors that returns a tensor or several.
        inputs: its argument, or a sequence of arguments.
        v: the direction, of the inputs' structure; may be None for one input with one element.
        create_graph: whether the results can be differentiated further.
        strict: whether an output that does not depend on the inputs is an error.
    """
    many = isinstance(inputs, (tuple, list))
    primals = tuple(inputs) if many else (inputs,)
    several = many and isinstance(v, (tuple, list))
    tangents = tuple(_C.torch.ones_like(x) for x in primals) if v is None else tuple(v) if several else (v,)
    if v is None and (len(primals) != 1 or primals[0].numel() != 1):
        raise RuntimeError(
            "The vector v can only be None if the input to the user-provided function is a single Tensor "
            "with a single element."
        )
    if not create_graph:
        primals, tangents = tuple(map(_transforms.untaped, primals)), tuple(map(_transforms.untaped, tangents))
    outputs, products = forward.jvp(func, primals, tangents, strict=strict)
    if create_graph:
        return outputs, products
    return tree.map_leaves(_transforms.untaped, outputs), tree.map_leaves(_transforms.untaped, products)


def jacobian(
    func, inputs, create_graph: bool = False, strict: bool = False, vectorize: bool = False, strategy: str = "reverse-mode"
):
    """Returns the derivatives of the output with respect to each input, of size (*output.shape, *input.shape).

    Args:
        func: a function of tensors that returns a tensor; with "forward-mode" it may return several.
        inputs: its argument, or a sequence of arguments.
        create_graph: whether the result can be differentiated further; only for "reverse-mode".
        strict: not supported: independent inputs have a derivative of zero.
        vectorize: required for "forward-mode", which computes all elements of an input at once; "reverse-mode" issues a pass
            per element in either case.
        strategy: "reverse-mode", a backward pass per element of the output, or "forward-mode".
    """
    _check_strategy("jacobian", "strategy", strategy, create_graph, vectorize, strict)
    if strategy == "forward-mode":
        return _forward_jacobian(func, inputs)
    _reject_strict("jacobian", strict)
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


def _forward_jacobian(func, inputs):
    many = isinstance(inputs, (tuple, list))
    given = tuple(map(_transforms.untaped, inputs if many else (inputs,)))
    found = forward.jacfwd(func, tuple(range(len(given))))(*given)
    rows = tree.map_leaves(_transforms.untaped, found)
    if many:
        return rows
    single = isinstance(rows, tuple) and all(isinstance(r, Tensor) for r in rows)  # of one output
    return rows[0] if single else tuple(r[0] for r in rows)


def _check_strategy(name: str, option: str, strategy: str, create_graph: bool, vectorize: bool, strict: bool) -> None:
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError(f"Expected {option} to be either 'reverse-mode' or 'forward-mode', got {strategy!r}")
    if strategy == "reverse-mode":
        return
    if create_graph:
        raise NotImplementedError(
            f'torch.autograd.functional.{name}: `create_graph=True` and `{option}="forward-mode"` are not supported together (yet).'
        )
    if strict:
        raise RuntimeError(
            f'torch.autograd.functional.{name}: `strict=True` and `{option}="forward-mode"` are not supported together (yet). '
            f'Please either set `strict=False` or `{option}="reverse-mode"`.'
        )
    if not vectorize:
        raise NotImplementedError("Computing Jacobian using forward-AD requires vectorize=True")


def hessian(
    func, inputs: Tensor, create_graph: bool = False, strict: bool = False, vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
):  # fmt: skip
    """Returns the second derivatives of a scalar function.

    ``outer_jacobian_strategy`` selects how the gradient is differentiated, as ``strategy`` of jacobian() does.
    """
    _check_strategy("hessian", "outer_jacobian_strategy", outer_jacobian_strategy, create_graph, vectorize, strict)
    if outer_jacobian_strategy == "forward-mode":
        numbers = tuple(range(len(inputs))) if isinstance(inputs, (tuple, list)) else 0
        return _forward_jacobian(derivatives.grad(func, numbers), inputs)
    _reject_strict("hessian", strict)
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
