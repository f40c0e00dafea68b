"""Jacobians and Hessians, computed row by row or forward, and their products with vectors."""

from __future__ import annotations

from .. import _C, _transforms
from .._C import Tensor
from .._grad_mode import enable_grad
from ..func import derivatives, forward, tree
from .gradients import grad

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]


def _prepare(function: str, inputs, create_graph: bool):
    """Returns the inputs as leaves that require grad, and whether `inputs` is a sequence.

    With create_graph, an input that already requires grad is returned as a view, so that one that is given twice is two inputs.
    """
    many, given = _as_tuple(tuple(inputs) if isinstance(inputs, list) else inputs, "inputs", function)
    return tuple(x.view_as(x) if create_graph and x.requires_grad else x.detach().requires_grad_() for x in given), many


def _several(function: str, outputs) -> tuple[tuple[Tensor, ...], bool]:
    """The outputs of a user's function as a tuple, and whether it returned a sequence."""
    many = isinstance(outputs, (tuple, list))
    found = tuple(outputs) if many else (outputs,)
    for each in found:
        if not isinstance(each, Tensor):
            raise TypeError(
                f"The outputs of the user-provided function given to {function} must be either a Tensor or a tuple of Tensors, "
                f"got {type(each)}"
            )
    return found, many


def _as_tuple(inp, arg_name: str | None = None, fn_name: str | None = None):
    """Whether an argument is a tuple, and its tensors as a tuple. Without names only the tuple, unchecked."""
    if arg_name is None and fn_name is None:
        return tuple(inp) if isinstance(inp, (tuple, list)) else (inp,)
    many = isinstance(inp, tuple)
    given = inp if many else (inp,)
    for i, each in enumerate(given):
        if not isinstance(each, Tensor):
            place = f"value at index {i}" if many else f"given {arg_name}"
            raise TypeError(
                f"The {arg_name} given to {fn_name} must be either a Tensor or a tuple of Tensors but the {place} has type {type(each)}."
            )
    return many, given


def _tuple_postprocess(res, to_unpack):
    """The result without the tuples around it, and around its elements, for which `to_unpack` has False."""
    outer, inner = to_unpack if isinstance(to_unpack, tuple) else (to_unpack, True)
    res = res if inner else tuple(each[0] for each in res)
    return res if outer else res[0]


def _grad_postprocess(inputs, create_graph: bool):
    """The tensors, detached unless the graph is kept."""
    if isinstance(inputs, Tensor):
        return inputs if create_graph else inputs.detach()
    return tuple(_grad_postprocess(each, create_graph) for each in inputs)


def _construct_standard_basis_for(tensors: tuple[Tensor, ...], tensor_numels: tuple[int, ...]) -> tuple[Tensor, ...]:
    """The identity matrix of sum(tensor_numels) rows as blocks of columns, one per tensor, with its dtype and device.

    Libraries import it to compute Jacobians of several outputs.
    """
    if len(tensors) != len(tensor_numels) or not tensors:
        raise AssertionError(
            f"[_construct_standard_basis_for] expected one size per tensor, and a tensor, got {len(tensors)} tensors and "
            f"{len(tensor_numels)} sizes"
        )
    blocks = tuple(t.new_zeros(sum(tensor_numels), n) for t, n in zip(tensors, tensor_numels))
    row = 0
    for block, n in zip(blocks, tensor_numels):
        block.diagonal(-row).fill_(1)
        row += n
    return blocks


def _reject_strict(name: str, strict: bool) -> None:
    """Refuses `strict` where it would ask whether a gradient depends on an input: a gradient with create_graph=True always
    requires grad, and its derivative is zero if it does not.
    """
    if strict:
        raise NotImplementedError(f"{name} does not find out whether a gradient is independent of an input")


def _scalar(function: str, outputs) -> Tensor:
    """The single number that hessian(), hvp() and vhp() differentiate."""
    (output, *more), many = _several(function, outputs)
    if many or more:
        raise RuntimeError(f"The function given to {function} should return a single Tensor")
    if output.numel() != 1:
        raise RuntimeError(f"The Tensor returned by the function given to {function} should contain a single element")
    return output


def _vectors(function: str, v, like: tuple[Tensor, ...], of: str) -> tuple[Tensor, ...]:
    """`v` as a tuple of tensors of the sizes of `like`; 1 if it is None and `like` is a single number."""
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            raise RuntimeError(
                f"The vector v can only be None if the {of} the user-provided function is a single Tensor with a single element."
            )
        return (_one(like[0]),)
    vectors = tuple(v) if isinstance(v, (tuple, list)) else (v,)
    for vector in vectors:
        if not isinstance(vector, Tensor):
            raise TypeError(f"The v given to {function} must be either a Tensor or a tuple of Tensors, got {type(vector)}")
    if len(vectors) != len(like):
        raise RuntimeError(f"{function}: v is a tuple of invalid length: should be {len(like)} but got {len(vectors)}.")
    for i, (vector, tensor) in enumerate(zip(vectors, like, strict=True)):
        if vector.shape != tensor.shape:
            raise RuntimeError(f"{function}: v[{i}] has size {tuple(vector.shape)}, expected {tuple(tensor.shape)}")
    return vectors


def _one(output: Tensor) -> Tensor:
    """The gradient with which a backward pass from a single real number begins."""
    if output.is_complex():
        raise RuntimeError(f"grad can be implicitly created only for real scalar outputs but got {output.dtype}")
    return _C.torch.ones_like(output)


def _derivatives(outputs, leaves, vectors, create_graph: bool, strict: bool, what: str, retain: bool | None = None):
    """The products of vectors with the derivatives of outputs: zeros for independent inputs, which `strict` refuses.

    `what` names the outputs in errors.
    """
    _reject_strict("strict=True with create_graph=True", strict and create_graph)
    used = [(y, u) for y, u in zip(outputs, vectors, strict=True) if y.requires_grad]
    if strict and len(used) != len(outputs):
        raise RuntimeError(
            f"{what} of the user-provided function does not require gradients. It must be computed in a differentiable manner "
            "from the input when running in strict mode."
        )
    if not used:
        return tuple(map(_C.torch.zeros_like, leaves))
    recorded = create_graph or retain
    found = grad(
        [y for y, _ in used], leaves, [u for _, u in used], retain_graph=recorded, create_graph=create_graph, allow_unused=True
    )
    for i, each in enumerate(found if strict else ()):
        if each is None:
            raise RuntimeError(f"{what} of the user-provided function is independent of input {i}. This is not allowed in strict mode.")
    return tuple(_C.torch.zeros_like(x) if d is None else d for x, d in zip(leaves, found, strict=True))


def _result(tensors: tuple[Tensor, ...], many: bool, recorded: bool):
    """Tensors in the structure of the caller, detached unless recorded."""
    kept = tensors if recorded else tuple(t.detach() for t in tensors)
    return kept if many else kept[0]


@enable_grad()
def vjp(func, inputs, v=None, create_graph: bool = False, strict: bool = False):
    """Returns (func(inputs), v^T J), where J is the Jacobian.

    Args:
        func: a function of tensors that returns a tensor or several.
        inputs: its argument, or a sequence of arguments.
        v: tensors of the outputs' sizes; may be None for one output with one element.
        create_graph: whether the results can be differentiated further.
        strict: whether an output that does not depend on an input is an error, instead of a derivative of zero.
    """
    leaves, many = _prepare("vjp", inputs, create_graph)
    outputs, several = _several("vjp", func(*leaves))
    vectors = _vectors("vjp", v, outputs, "output of")
    found = _derivatives(outputs, leaves, vectors, create_graph, strict, "The output")
    return _result(outputs, several, create_graph), _result(found, many, create_graph)


@enable_grad()
def jvp(func, inputs, v=None, create_graph: bool = False, strict: bool = False):
    """Returns (func(inputs), J v), where J is the Jacobian, in one forward pass.

    Args:
        func: a function of tensors that returns a tensor or several.
        inputs: its argument, or a sequence of arguments.
        v: the direction, of the inputs' structure; may be None for one input with one element.
        create_graph: whether the results can be differentiated further.
        strict: whether an output that does not depend on the inputs is an error.
    """
    _, primals = _as_tuple(tuple(inputs) if isinstance(inputs, list) else inputs, "inputs", "jvp")
    tangents = _vectors("jvp", v, primals, "input to")
    if not create_graph:
        primals, tangents = tuple(map(_transforms.untaped, primals)), tuple(map(_transforms.untaped, tangents))

    def checked(*args):
        outputs = func(*args)
        _several("jvp", outputs)
        return outputs

    outputs, products = forward.values_and_products(checked, primals, tangents, strict)
    if create_graph:
        return outputs, products
    return tree.map_leaves(_transforms.untaped, outputs), tree.map_leaves(_transforms.untaped, products)


@enable_grad()
def jacobian(
    func, inputs, create_graph: bool = False, strict: bool = False, vectorize: bool = False, strategy: str = "reverse-mode"
):
    """Returns the derivatives of the output with respect to each input, of size (*output.shape, *input.shape).

    They are in a tuple if there are several inputs, and in a tuple of these if there are several outputs.

    Args:
        func: a function of tensors that returns a tensor or several.
        inputs: its argument, or a sequence of arguments.
        create_graph: whether the result can be differentiated further; only for "reverse-mode".
        strict: whether an output that does not depend on an input is an error; only for "reverse-mode".
        vectorize: required for "forward-mode", which computes all elements of an input at once; "reverse-mode" issues a pass
            per element in either case.
        strategy: "reverse-mode", a backward pass per element of the output, or "forward-mode".
    """
    _check_strategy("jacobian", "strategy", strategy, create_graph, vectorize, strict)
    if strategy == "forward-mode":
        return _forward_jacobian(func, inputs)
    if vectorize and strict:
        raise RuntimeError(
            "torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not supported together. "
            "Please either set `strict=False` or `vectorize=False`."
        )
    leaves, many = _prepare("jacobian", inputs, create_graph)
    outputs, several = _several("jacobian", func(*leaves))
    found = tuple(_rows(y, leaves, create_graph, strict, f"Output {i}") for i, y in enumerate(outputs))
    shaped = tuple(row if many else row[0] for row in found)
    return shaped if several else shaped[0]


def _rows(output: Tensor, leaves: tuple[Tensor, ...], create_graph: bool, strict: bool, what: str) -> tuple[Tensor, ...]:
    """The Jacobian of one output with respect to each leaf, a backward pass per element."""
    flat, one = output.reshape(-1), _one(output.reshape(-1)[:1].sum())
    rows = [_derivatives((y,), leaves, (one,), create_graph, strict, what, retain=True) for y in flat.unbind()]
    sizes = [tuple(output.shape) + tuple(x.shape) for x in leaves]
    if not rows:
        return tuple(x.new_zeros(size) for x, size in zip(leaves, sizes, strict=True))
    return tuple(_C.torch.stack(column).reshape(size) for column, size in zip(zip(*rows, strict=True), sizes, strict=True))


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


@enable_grad()
def hessian(
    func, inputs, create_graph: bool = False, strict: bool = False, vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
):  # fmt: skip
    """Returns the second derivatives of a scalar function, of size (*input.shape, *input.shape); for several inputs, a tuple
    of tuples: element [i][j] is of size (*inputs[i].shape, *inputs[j].shape).

    ``outer_jacobian_strategy`` selects how the gradient is differentiated, as ``strategy`` of jacobian() does. ``strict=True``
    is not supported.
    """
    _check_strategy("hessian", "outer_jacobian_strategy", outer_jacobian_strategy, create_graph, vectorize, strict)
    if outer_jacobian_strategy == "forward-mode":
        numbers = tuple(range(len(inputs))) if isinstance(inputs, (tuple, list)) else 0
        return _forward_jacobian(derivatives.grad(func, numbers), inputs)
    _reject_strict("hessian(strict=True)", strict)
    many = isinstance(inputs, (tuple, list))

    def gradient(*leaves):
        output = _scalar("hessian", func(*leaves))
        found = _derivatives((output,), leaves, (_one(output),), True, False, "The output")
        return found if many else found[0]

    return jacobian(gradient, inputs, create_graph)


def hvp(func, inputs, v=None, create_graph: bool = False, strict: bool = False):
    """Returns (func(inputs), H v) for a scalar function, where H is the Hessian.

    ``v`` has the structure and sizes of `inputs`, and may be None for one input with one element. ``strict=True`` is not
    supported. ``create_graph`` is that of vjp().
    """
    return _hessian_product("hvp", func, inputs, v, create_graph, strict)


def vhp(func, inputs, v=None, create_graph: bool = False, strict: bool = False):
    """Returns (func(inputs), v^T H), as hvp() does: the Hessian H is symmetric."""
    return _hessian_product("vhp", func, inputs, v, create_graph, strict)


@enable_grad()
def _hessian_product(name: str, func, inputs, v, create_graph: bool, strict: bool):
    _reject_strict(f"{name}(strict=True)", strict)
    leaves, many = _prepare(name, inputs, create_graph)
    vectors = _vectors(name, v, leaves, "input to")
    output = _scalar(name, func(*leaves))
    first = _derivatives((output,), leaves, (_one(output),), True, False, "The output")
    found = _derivatives(first, leaves, vectors, create_graph, False, "The gradient")
    return output if create_graph else output.detach(), _result(found, many, create_graph)
