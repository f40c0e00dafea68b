"""Function transforms that differentiate, to any order.

All transforms run the function on copies of its arguments and differentiate it with the tape. The product of the
Jacobian with a vector (forward mode) is the derivative of the vector-Jacobian product, which is linear in its vector:
J v = d(u^T J)/du v ("Automatic differentiation in machine learning", Baydin et al., 2018, and R. Townsend's double-vjp
trick, 2017). This needs two passes; forward mode would need one.
"""

from __future__ import annotations

from functools import wraps
from typing import Any, Callable

from .. import _C, _transforms
from .._C import Tensor
from .._grad_mode import enable_grad
from .._options import check_flags
from ..autograd.gradients import grad as _gradients
from . import tree
from .batching import vmap


class _NestingLevel:
    """Counts nested derivatives: within another derivative, results must stay differentiable."""

    def __enter__(self) -> None:
        _transforms.running.derivatives += 1

    def __exit__(self, *_) -> None:
        _transforms.running.derivatives -= 1


def _copy_inputs(args: Any) -> tuple[Any, list[Tensor], bool]:
    """Copies the inputs to differentiate. Call it within a _NestingLevel.

    Returns (args with copies in place of the inputs, list of the copies, whether results must stay differentiable).
    """
    given = tree.leaves(args)
    for x in given:
        if not isinstance(x, Tensor):
            raise RuntimeError(f"[func] expected tensors as inputs, got {type(x).__name__}")
        if not (x.is_floating_point() or x.is_complex()):
            raise RuntimeError(f"[func] expected floating-point or complex inputs, got {x.dtype}")
    outer = _transforms.running.derivatives > 1 or any(x.requires_grad for x in given)
    copies = [x.view_as(x) if x.requires_grad else x.detach().requires_grad_() for x in map(_transforms.batched, given)]
    return tree.rebuild(args, copies), copies, outer


def _detach_unless_nested(values: Any, outer: bool) -> Any:
    return values if outer else tree.map_leaves(lambda v: v.detach() if isinstance(v, Tensor) else v, values)


def _split_aux(output: Any, has_aux: bool, name: str) -> tuple[Any, Any]:
    if not has_aux:
        return output, None
    if not isinstance(output, tuple) or len(output) != 2:
        raise RuntimeError(f"{name}: expected the function to return (output, aux) because has_aux is set")
    return output


def _vector_jacobian_products(outputs: Any, inputs: list[Tensor], vectors: Any) -> list[Tensor]:
    """Returns u^T J for each input, differentiable, with u = `vectors`; zeros for unused inputs."""
    pairs = [(o, u) for o, u in zip(tree.leaves(outputs), tree.leaves(vectors), strict=True) if o.requires_grad]
    if not pairs:
        return [_C.torch.zeros_like(x) for x in inputs]
    return list(_gradients([o for o, _ in pairs], inputs, [u for _, u in pairs], create_graph=True, materialize_grads=True))


def vjp(func: Callable, *primals: Any, has_aux: bool = False):
    """Returns func(*primals) and a function that maps cotangents u of the outputs to u^T J for each primal."""
    with enable_grad(), _NestingLevel():
        args, inputs, outer = _copy_inputs(primals)
        outputs, aux = _split_aux(func(*args), has_aux, "vjp")

    def product(*cotangents: Any) -> Any:
        vectors = cotangents[0] if len(cotangents) == 1 else cotangents
        if len(tree.leaves(vectors)) != len(tree.leaves(outputs)):
            raise RuntimeError(f"[vjp] expected {len(tree.leaves(outputs))} cotangents, got {len(tree.leaves(vectors))}")
        found = _vector_jacobian_products(outputs, inputs, vectors)
        differentiable = outer or _transforms.running.derivatives > 0 or any(v.requires_grad for v in tree.leaves(vectors))
        return _detach_unless_nested(tree.rebuild(primals, found), differentiable)

    results = _detach_unless_nested(outputs, outer)
    return (results, product, aux) if has_aux else (results, product)


def jvp(func: Callable, primals: tuple, tangents: tuple, *, strict: bool = False, has_aux: bool = False):
    """Returns (func(*primals), J v), where v are the tangents."""
    if strict:
        raise NotImplementedError("[jvp] strict=True is not supported: independent outputs have a derivative of zero")
    if not isinstance(primals, (tuple, list)) or not isinstance(tangents, (tuple, list)):
        raise RuntimeError(
            f"[jvp] expected tuples of primals and tangents, got {type(primals).__name__} and {type(tangents).__name__}"
        )
    if len(tree.leaves(primals)) != len(tree.leaves(tangents)):
        raise RuntimeError(
            f"[jvp] expected one tangent per primal, got {len(tree.leaves(primals))} primals, "
            f"{len(tree.leaves(tangents))} tangents"
        )
    for x, t in zip(tree.leaves(primals), tree.leaves(tangents)):
        if x.shape != t.shape:
            raise RuntimeError(f"[jvp] expected a tangent of its primal's size {tuple(x.shape)}, got {tuple(t.shape)}")
    outer = _transforms.running.derivatives > 0 or any(x.requires_grad for x in tree.leaves((primals, tangents)))
    with enable_grad(), _NestingLevel():
        args, inputs, _ = _copy_inputs(primals)
        outputs, aux = _split_aux(func(*args), has_aux, "jvp")
        vectors = tree.map_leaves(lambda o: _C.torch.zeros_like(o).requires_grad_(), outputs)
        products = _vector_jacobian_products(outputs, inputs, vectors)
        found = _vector_jacobian_products(products, tree.leaves(vectors), tree.leaves(tangents))
    results = _detach_unless_nested((outputs, tree.rebuild(outputs, found)), outer)
    return (*results, aux) if has_aux else results


def _select_arguments(args: tuple, argnums: int | tuple[int, ...]) -> tuple[Any, Callable[[Any], tuple]]:
    """Returns the arguments to differentiate, and a function that replaces them in the argument list."""
    positions = [argnums] if isinstance(argnums, int) else list(argnums)
    for position in positions:
        if not -len(args) <= position < len(args):
            raise RuntimeError(f"argnums={argnums} is out of range: the function got {len(args)} arguments")
    positions = [position % len(args) for position in positions]

    def substitute(values: Any) -> tuple:
        replaced = list(args)
        for position, value in zip(positions, [values] if isinstance(argnums, int) else values):
            replaced[position] = value
        return tuple(replaced)

    return (args[positions[0]] if isinstance(argnums, int) else tuple(args[p] for p in positions)), substitute


def grad_and_value(func: Callable, argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Callable:
    """Returns a function that computes (gradient, value) of a scalar function."""

    @wraps(func)
    def differentiated(*args: Any, **kwargs: Any):
        with enable_grad(), _NestingLevel():
            selected, substitute = _select_arguments(args, argnums)
            copies, inputs, outer = _copy_inputs(selected)
            value, aux = _split_aux(func(*substitute(copies), **kwargs), has_aux, "grad")
            if not isinstance(value, Tensor) or value.dim() != 0:
                got = f"a tensor of size {tuple(value.shape)}" if isinstance(value, Tensor) else type(value).__name__
                raise RuntimeError(f"[grad] expected the function to return one number (0 dimensions), got {got}")
            found = tree.rebuild(selected, _vector_jacobian_products(value, inputs, _C.torch.ones_like(value)))
        results = _detach_unless_nested((found, value), outer)
        return (results[0], (results[1], aux)) if has_aux else results

    return differentiated


def grad(func: Callable, argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Callable:
    """Returns a function that computes the gradient of a scalar function."""
    both = grad_and_value(func, argnums, has_aux)

    @wraps(func)
    def differentiated(*args: Any, **kwargs: Any):
        found, value = both(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    return differentiated


def _basis(like: Tensor) -> list[Tensor]:
    return list(_C.torch.eye(like.numel(), dtype=like.dtype, device=like.device).reshape(-1, *like.shape).unbind(0))


def jacrev(
    func: Callable, argnums: int | tuple[int, ...] = 0, has_aux: bool = False, *, chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Callable:  # fmt: skip
    """Returns a function that computes the Jacobian, of size (*output, *input), in one pass per output element.

    ``_preallocate_and_copy`` selects how PyTorch joins the rows.
    """
    check_flags("jacrev", _preallocate_and_copy=_preallocate_and_copy)

    @wraps(func)
    def differentiated(*args: Any):
        selected, substitute = _select_arguments(args, argnums)
        results = vjp(lambda *xs: func(*substitute(xs[0])), selected, has_aux=has_aux)
        output, product = results[0], results[1]

        def rows(o: Tensor, position: int) -> Any:
            zeros = [_C.torch.zeros_like(v) for v in tree.leaves(output)]
            parts = []
            for unit in _basis(o):
                vectors = [*zeros[:position], unit, *zeros[position + 1 :]]
                parts.append(tree.leaves(product(tree.rebuild(output, vectors))[0]))
            pairs = zip(zip(*parts), tree.leaves(selected))
            stacked = [_C.torch.stack(p).reshape(*o.shape, *x.shape) for p, x in pairs]
            return tree.rebuild(selected, stacked)

        found = tree.rebuild(output, [rows(o, i) for i, o in enumerate(tree.leaves(output))])
        return (found, results[2]) if has_aux else found

    return differentiated


def jacfwd(func: Callable, argnums: int | tuple[int, ...] = 0, has_aux: bool = False, *, randomness: str = "error") -> Callable:
    """Same as jacrev, but in one pass for all elements of an input: for functions with fewer inputs than outputs.

    Args:
        randomness: see vmap, which maps over the elements.
    """
    @wraps(func)
    def differentiated(*args: Any):
        selected, substitute = _select_arguments(args, argnums)
        given = tree.leaves(selected)
        columns: list[list[Tensor]] = []  # by input and output, with a dimension of the input's elements
        seen: list[Any] = []  # the structure of the output, and aux

        def derivative(unit: Tensor, position: int) -> tuple:
            zeros = [_C.torch.zeros_like(v) for v in given]
            tangents = tree.rebuild(selected, [*zeros[:position], unit, *zeros[position + 1 :]])
            results = jvp(lambda xs: func(*substitute(xs)), (selected,), (tangents,), has_aux=has_aux)
            aux = results[2] if has_aux else ()
            seen[:] = results[0], aux
            return (*tree.leaves(results[1]), *(a for a in tree.leaves(aux) if isinstance(a, Tensor)))

        for position, x in enumerate(given):
            units = _C.torch.eye(x.numel(), dtype=x.dtype, device=x.device).reshape(-1, *x.shape)
            if len(units) == 0:
                raise RuntimeError("[jacfwd] expected inputs with elements, got an empty tensor")
            columns.append(list(vmap(derivative, (0, None), randomness=randomness)(units, position)))
        output, aux = seen
        count = len(tree.leaves(output))

        def by_inputs(position: int) -> Any:
            rows = [of_input[position].movedim(0, -1) for of_input in columns]
            return tree.rebuild(selected, [row.reshape(*row.shape[:-1], *x.shape) for row, x in zip(rows, given)])

        found = tree.rebuild(output, [by_inputs(i) for i in range(count)])
        if not has_aux:
            return found
        tensors = iter(columns[0][count:])
        return found, tree.map_leaves(lambda a: next(tensors)[0] if isinstance(a, Tensor) else a, aux)

    return differentiated


def hessian(func: Callable, argnums: int | tuple[int, ...] = 0) -> Callable:
    """Returns a function that computes the second derivatives of a scalar function."""
    return jacfwd(jacrev(func, argnums), argnums)


def linearize(func: Callable, *primals: Any):
    """Returns func(*primals) and a function that maps tangents v to J v at the primals."""
    return func(*primals), lambda *tangents: jvp(func, primals, tangents)[1]
