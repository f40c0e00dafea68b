"""Function transforms that differentiate forward: jvp, jacfwd, hessian and linearize.

They call the function with dual tensors (_dual.py), whose operators compute values and tangents in one pass.
"""

from __future__ import annotations

from functools import wraps
from typing import Any, Callable

from .. import _C, _transforms
from .._C import Tensor
from . import tree
from ._batched import UnmappedWriteError
from ._dual import ForwardLevel, make_dual
from ._linearized import LinearLevel
from ._transformed import NewTensors
from .batching import vmap
from .derivatives import NestingLevel, grad, jacrev, ordinary_tensors, select_arguments, split_aux

_JVP = "jvp(f, primals, tangents)"


def _check_tensors(values: list, name: str) -> None:
    if not values:
        raise RuntimeError(f"{_JVP}: Expected {name} to contain at least one Tensor.")
    for value in values:
        if not isinstance(value, Tensor):
            raise RuntimeError(f"{_JVP}: Expected {name} to only contain Tensors, got {type(value)}")


def _unpacked(level: ForwardLevel, output: Any, strict: bool) -> tuple[Tensor, Tensor]:
    if not isinstance(output, Tensor):
        raise RuntimeError(f"{_JVP}: expected f(*args) to return only tensors, got unsupported type {type(output)}")
    primal, tangent = level.unpack_result(output)
    if tangent is not None:
        return primal, tangent
    if strict:
        raise RuntimeError(
            "jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs. This is not allowed with "
            "strict=True."
        )
    return primal, _C.torch.zeros_like(primal)


def _run(level: ForwardLevel, func: Callable, duals: Any, has_aux: bool) -> tuple[Any, Any]:
    """Calls the function with dual tensors. Returns its output, and aux without tangents."""
    before, _transforms.running.forward_enabled = _transforms.running.forward_enabled, True
    try:
        with NestingLevel(), NewTensors(level.enter):
            output, aux = split_aux(func(*duals), has_aux, "jvp")
    finally:
        _transforms.running.forward_enabled = before
    found = tree.leaves(output)
    if not found or found == [None]:
        raise RuntimeError(f"{_JVP}: Expected f to be a function that has non-empty output (got output = {found})")
    return output, tree.map_leaves(lambda a: level.unpack(a)[0], aux)


def jvp(func: Callable, primals: tuple, tangents: tuple, *, strict: bool = False, has_aux: bool = False):
    """Returns (func(*primals), J v), where v are the tangents, computed in one pass.

    Args:
        func: a function of tensors, or of trees of them, that returns tensors.
        primals: its arguments.
        tangents: a tensor for each of the primals, of its size and dtype.
        strict: whether an output that does not depend on the inputs is an error; otherwise its derivative is zero.
        has_aux: whether func returns (output, aux); aux is returned as a third value, without a derivative.
    Raises:
        RuntimeError: primals and tangents differ in structure or sizes, or an output is no tensor.
        ValueError: a primal or a tangent is neither floating point nor complex.
    """
    if not isinstance(primals, (tuple, list)) or not isinstance(tangents, (tuple, list)):
        raise RuntimeError(
            f"{_JVP}: expected tuples of primals and tangents, got {type(primals).__name__} and {type(tangents).__name__}"
        )
    with ordinary_tensors():
        return values_and_products(func, primals, tangents, strict, has_aux)


def values_and_products(func: Callable, primals: tuple, tangents: tuple, strict: bool = False, has_aux: bool = False) -> tuple:
    """jvp(), whose results within inference_mode are inference tensors."""
    given, directions = tree.leaves(primals), tree.leaves(tangents)
    _check_tensors(given, "primals")
    _check_tensors(directions, "tangents")
    if len(given) != len(directions):
        raise RuntimeError(f"{_JVP}: expected one tangent per primal, got {len(given)} primals, {len(directions)} tangents")
    with ForwardLevel() as level:
        duals = [make_dual(level, x, t) for x, t in zip(given, directions)]
        output, aux = _run(level, func, tree.rebuild(primals, duals), has_aux)
        pairs = [_unpacked(level, o, strict) for o in tree.leaves(output)]
    results = tuple(tree.rebuild(output, list(column)) for column in zip(*pairs))
    return (*results, aux) if has_aux else results


def jacfwd(func: Callable, argnums: int | tuple[int, ...] = 0, has_aux: bool = False, *, randomness: str = "error") -> Callable:
    """Same as jacrev, but in one forward pass for all elements of an input: for functions with fewer inputs than outputs.

    Args:
        func: a function of tensors that returns tensors.
        argnums: the arguments to differentiate.
        has_aux: whether func returns (output, aux); aux is returned beside the Jacobian.
        randomness: see vmap, which maps over the elements.
    """
    @wraps(func)
    @ordinary_tensors()
    def differentiated(*args: Any):
        selected, substitute = select_arguments(args, argnums)
        given = tree.leaves(selected)
        columns: list[list[Tensor]] = []  # by input and output, with a dimension of the input's elements
        seen: list[Any] = []  # the structure of the output, and aux

        def derivative(unit: Tensor, position: int) -> tuple:
            with ForwardLevel() as level:
                duals = [make_dual(level, x, unit if i == position else None) for i, x in enumerate(given)]
                output, aux = _run(level, lambda xs: func(*substitute(xs)), (tree.rebuild(selected, duals),), has_aux)
                seen[:] = output, aux
                found = [_unpacked(level, o, False)[1] for o in tree.leaves(output)]
            return (*found, *(a for a in tree.leaves(aux) if isinstance(a, Tensor)))

        for position, x in enumerate(given):
            if not isinstance(x, Tensor):
                raise RuntimeError(f"[jacfwd] expected tensors as inputs, got {type(x).__name__}")
            units = _C.torch.eye(x.numel(), dtype=x.dtype, device=x.device).reshape(x.numel(), *x.shape)
            columns.append(list(vmap(derivative, (0, None), randomness=randomness)(units, position)))
        output, aux = seen
        count = len(tree.leaves(output))

        def by_inputs(position: int) -> Any:
            rows = [of_input[position].movedim(0, -1) for of_input in columns]
            return tree.rebuild(selected, [row.reshape((*row.shape[:-1], *x.shape)) for row, x in zip(rows, given)])

        found = tree.rebuild(output, [by_inputs(i) for i in range(count)])
        if not has_aux:
            return found
        tensors = iter(columns[0][count:])
        return found, tree.map_leaves(lambda a: next(tensors)[0] if isinstance(a, Tensor) else a, aux)

    return differentiated


class _NeedsForwardMode(Exception):  # noqa: N818 - selects another method
    """The function of a Hessian returns something else than one number, or disables gradients, which concerns backward mode only."""


# Up to so many elements of an input, its rows of the Hessian are computed as gradients of copies of the inputs.
_MAX_COPIES = 256


def _rows_of_copies(func: Callable, args: tuple, argnums: int | tuple[int, ...]) -> Any:
    """The Hessian by two backward passes over copies of the inputs, one for each element of an input.

    It takes fewer calls than dual tensors in a backward pass, and as many copies of what the function computes. Raises _NeedsForwardMode.
    """
    selected, substitute = select_arguments(args, argnums)
    given = tree.leaves(selected)

    def scalar(values: Any) -> Tensor:
        before = _C.grad_disabled_count()
        output = func(*substitute(values))
        if not isinstance(output, Tensor) or output.dim() != 0 or _C.grad_disabled_count() != before:
            raise _NeedsForwardMode
        return output

    def of_input(position: int) -> Any:
        x = given[position]
        units = _C.torch.eye(x.numel(), dtype=x.dtype, device=x.device).reshape(-1, *x.shape)
        copies = tree.rebuild(selected, [v.expand(len(units), *v.shape) for v in given])

        def diagonal(values: Any) -> Tensor:
            return (tree.leaves(vmap(grad(scalar))(values))[position] * units).sum()

        rows = tree.leaves(grad(diagonal)(copies))
        return tree.rebuild(selected, [row.reshape((*x.shape, *v.shape)) for row, v in zip(rows, given)])

    return tree.rebuild(selected, [of_input(i) for i in range(len(given))])


def hessian(func: Callable, argnums: int | tuple[int, ...] = 0) -> Callable:
    """Returns a function that computes the second derivatives of a scalar function.

    Inputs of few elements take two backward passes over copies of the inputs; others a forward pass over the gradient, as do
    functions of which the backward pass cannot be differentiated and those that return several numbers.
    """
    forward_over_reverse = jacfwd(jacrev(func, argnums), argnums)

    @wraps(func)
    def differentiated(*args: Any) -> Any:
        leaves = tree.leaves(select_arguments(args, argnums)[0])
        if all(isinstance(x, Tensor) and x.is_floating_point() and 0 < x.numel() <= _MAX_COPIES for x in leaves):
            try:
                return _rows_of_copies(func, args, argnums)
            except (_NeedsForwardMode, NotImplementedError, UnmappedWriteError):
                pass
        return forward_over_reverse(*args)

    return differentiated


def linearize(func: Callable, *primals: Any):
    """Returns func(*primals) and a function that maps tangents v to J v at the primals.

    The function is called once. The returned function repeats the operators that were applied to tangents, with the values
    that it recorded. It keeps these in memory.

    Raises:
        RuntimeError: (from the returned function) the tangents differ from the primals in structure, size, dtype or device, or
            a recorded value was changed in place.
    """
    given = tree.leaves(primals)
    _check_tensors(given, "primals")
    linear = LinearLevel()
    with linear, ForwardLevel() as level:
        inputs = [linear.input(_C.torch.zeros_like(x)) for x in given]
        output, _ = _run(level, func, tree.rebuild(primals, [make_dual(level, x, t) for x, t in zip(given, inputs)]), False)
        pairs = [_unpacked(level, o, False) for o in tree.leaves(output)]
    replay = linear.finish([t for _, t in pairs])
    described = [(tuple(x.shape), x.device, x.dtype) for x in given]
    structure = tree.rebuild(primals, [None] * len(given))

    def product(*tangents: Any) -> Any:
        values = tree.leaves(tangents)
        if tree.rebuild(tangents, [None] * len(values)) != structure:
            raise RuntimeError("Expected the tangents to have the same structure as the primals")
        for i, (t, (shape, device, dtype)) in enumerate(zip(values, described)):
            for name, got, wanted in (("shape", tuple(t.shape), shape), ("device", t.device, device), ("dtype", t.dtype, dtype)):
                if got != wanted:
                    raise RuntimeError(
                        f"tangent:{i} with {name} {got} in flattened pytree doesn't match the {name} {wanted} of the corresponding "
                        "primal."
                    )
        return tree.rebuild(output, replay(values))

    return tree.rebuild(output, [p for p, _ in pairs]), product
