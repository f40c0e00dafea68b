"""Function transforms that differentiate backward, to any order: vjp, grad and jacrev.

They run the function on copies of its arguments and differentiate it with the tape. Forward mode is in forward.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, Callable

from .. import _C, _transforms
from .._C import Tensor
from .._grad_mode import inference_mode, no_grad
from .._options import check_flags
from ..autograd.gradients import grad as _gradients
from . import tree


class NestingLevel:
    """Counts nested derivatives: within another derivative, results must stay differentiable."""

    def __enter__(self) -> None:
        _transforms.running.derivatives += 1

    def __exit__(self, *_) -> None:
        _transforms.running.derivatives -= 1


@contextmanager
def _own_tensors(inputs: list[Tensor], selected: Any, arguments: Any) -> Iterator[list[Tensor]]:
    """A context for the function: it must not write a result that depends on the inputs to tensors that it did not receive.

    Its value is the list of the arguments that are constant. At the end, they lose what the function has recorded for them.

    Args:
        inputs: the copies of the arguments to differentiate.
        selected: these arguments.
        arguments: all arguments.
    """
    first = _parts(inputs[0])[0] if inputs else None
    if first is None or _C._is_wrapper(first):  # of a subclass that records or replaces operators
        yield []
        return
    copied = {id(t) for t in tree.leaves(selected)}
    others = [part for t in tree.leaves(arguments) if isinstance(t, Tensor) and id(t) not in copied for part in _parts(t)]
    constant = [t for t in others if not t.requires_grad]
    _C.push_own_tensors(first, [t for t in others if not _C._is_wrapper(t)])
    try:
        yield constant
    finally:
        _C.pop_own_tensors()
    for t in constant:
        if t.requires_grad and _leaves_of([t]) <= _own_leaves(inputs):  # written by the function; the caller's has no derivative
            _C.detach_in_place(t)


def _apart_from(constant: list[Tensor], output: Any) -> Any:
    """The output of the function, with views in place of the constant arguments to which it has written."""
    written = {id(t) for t in constant if t.requires_grad}
    return tree.map_leaves(lambda v: v.view_as(v) if id(v) in written else v, output) if written else output


def _copy_inputs(args: Any) -> tuple[Any, list[Tensor]]:
    """Copies the inputs to differentiate. Returns args with copies in place of the inputs, and the list of the copies."""
    given = tree.leaves(args)
    for x in given:
        if not isinstance(x, Tensor):
            raise RuntimeError(f"[func] expected tensors as inputs, got {type(x).__name__}")
        if not (x.is_floating_point() or x.is_complex()):
            raise RuntimeError(f"[func] expected floating-point or complex inputs, got {x.dtype}")
    copies = [_transforms.leaf(_transforms.batched(x)) for x in given]
    return tree.rebuild(args, copies), copies


def _parts(tensor: Tensor) -> list[Tensor]:
    """The ordinary tensors inside a tensor that transforms have wrapped: the values, and the tangents of forward mode."""
    if not hasattr(tensor, "as_untaped"):
        return [tensor]
    tangent = getattr(tensor, "tangent", None)
    return _parts(tensor._value) + ([] if tangent is None else _parts(tangent))


def _leaves_of(tensors: list[Tensor]) -> set[int]:
    """The leaves into which gradients of the tensors would be accumulated."""
    roots = [part for t in tensors for part in _parts(t) if part.requires_grad]
    return {leaf._handle for leaf in _C.reached_leaves(roots)} if roots else set()


def _own_leaves(copies: list[Tensor]) -> set[int]:
    return {part._handle for copy in copies for part in _parts(copy)}


def _without_copies(values: Any, copies: list[Tensor], enabled: bool) -> Any:
    """The results of a derivative. They keep their history if it has a leaf other than the copies of the inputs.

    Args:
        enabled: whether the caller records operators; if not, no result has a history.
    """
    tensors = [v for v in tree.leaves(values) if isinstance(v, Tensor)]
    own = _own_leaves(copies)
    # One walk for all results, as mostly none has other leaves.
    some_have_others = enabled and not _leaves_of(tensors) <= own

    def keeps(tensor: Tensor) -> bool:
        return some_have_others and not _leaves_of([tensor]) <= own

    return tree.map_leaves(lambda v: _transforms.untaped(v) if isinstance(v, Tensor) and not keeps(v) else v, values)


@contextmanager
def ordinary_tensors() -> Iterator[None]:
    """Within inference_mode, makes the results of calls ordinary tensors, without recording operators."""
    if not _C.is_inference_mode():
        yield
        return
    with inference_mode(False), no_grad():
        yield


def split_aux(output: Any, has_aux: bool, name: str) -> tuple[Any, Any]:
    if not has_aux:
        return output, None
    if not isinstance(output, tuple) or len(output) != 2:
        raise RuntimeError(f"{name}: expected the function to return (output, aux) because has_aux is set")
    return output


def _vector_jacobian_products(outputs: Any, inputs: list[Tensor], vectors: Any, retain_graph: bool = True) -> list[Tensor]:
    """Returns u^T J for each input, differentiable, with u = `vectors`; zeros for unused inputs."""
    pairs = [(o, u) for o, u in zip(tree.leaves(outputs), tree.leaves(vectors), strict=True) if o.requires_grad]
    if not pairs:
        return [_C.torch.zeros_like(x) for x in inputs]
    roots, given = [o for o, _ in pairs], [u for _, u in pairs]
    return list(_gradients(roots, inputs, given, retain_graph, create_graph=True, materialize_grads=True))


def vjp(func: Callable, *primals: Any, has_aux: bool = False):
    """Returns func(*primals) and a function that maps cotangents u of the outputs to u^T J for each primal."""
    return _vjp(func, primals, has_aux, primals)


def _vjp(func: Callable, primals: tuple, has_aux: bool, arguments: tuple) -> tuple:
    """vjp(). `arguments` are all those of the function, which may write to them."""
    enabled = _C.is_grad_enabled()
    with inference_mode(False), NestingLevel():
        args, inputs = _copy_inputs(primals)
        with _own_tensors(inputs, primals, arguments) as constant:
            outputs, aux = split_aux(func(*args), has_aux, "vjp")
            outputs = _apart_from(constant, outputs)

    def product(*cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        vectors = cotangents[0] if len(cotangents) == 1 else cotangents
        if tree.structure(vectors) != tree.structure(outputs) and len(cotangents) == 1:
            raise RuntimeError(
                "[vjp] Expected pytree structure of cotangents to be the same as pytree structure of outputs to the function, got "
                f"{tree.structure(vectors)} and {tree.structure(outputs)}"
            )
        if len(tree.leaves(vectors)) != len(tree.leaves(outputs)):
            raise RuntimeError(f"[vjp] expected {len(tree.leaves(outputs))} cotangents, got {len(tree.leaves(vectors))}")
        recorded = _C.is_grad_enabled() if create_graph is None else create_graph
        found = _vector_jacobian_products(outputs, inputs, vectors, retain_graph)
        return _without_copies(tree.rebuild(primals, found), inputs, recorded)

    results, aux = _without_copies((outputs, aux), inputs, enabled)
    return (results, product, aux) if has_aux else (results, product)


def select_arguments(args: tuple, argnums: int | tuple[int, ...]) -> tuple[Any, Callable[[Any], tuple]]:
    """Returns the arguments to differentiate, and a function that replaces them in the argument list."""
    positions = [argnums] if isinstance(argnums, int) else list(argnums)
    for position in positions:
        if not -len(args) <= position < len(args):
            raise RuntimeError(f"argnums={argnums} is out of range: the function got {len(args)} arguments")
    positions = [position % len(args) for position in positions]
    if len(set(positions)) < len(positions):
        raise RuntimeError(f"argnums elements must be unique, got {argnums}")

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
        enabled = _C.is_grad_enabled()
        with inference_mode(False), NestingLevel():
            selected, substitute = select_arguments(args, argnums)
            copies, inputs = _copy_inputs(selected)
            with _own_tensors(inputs, selected, (args, kwargs)) as constant:
                value, aux = split_aux(func(*substitute(copies), **kwargs), has_aux, "grad")
                value = _apart_from(constant, value)
            if not isinstance(value, Tensor) or value.dim() != 0:
                got = f"a tensor of size {tuple(value.shape)}" if isinstance(value, Tensor) else type(value).__name__
                raise RuntimeError(f"[grad] expected the function to return one number (0 dimensions), got {got}")
            found = tree.rebuild(selected, _vector_jacobian_products(value, inputs, _C.torch.ones_like(value)))
        found, value, aux = _without_copies((found, value, aux), inputs, enabled)
        return (found, (value, aux)) if has_aux else (found, value)

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
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @wraps(func)
    @ordinary_tensors()
    def differentiated(*args: Any):
        selected, substitute = select_arguments(args, argnums)
        results = _vjp(lambda *xs: func(*substitute(xs[0])), (selected,), has_aux, args)
        output, product = results[0], results[1]
        if any(o.is_complex() for o in tree.leaves(output)) and not any(x.is_complex() for x in tree.leaves(selected)):
            raise RuntimeError("jacrev: expected real outputs of real inputs, got complex ones: view_as_real() gives both parts")

        def rows(o: Tensor, position: int) -> Any:
            zeros = [_C.torch.zeros_like(v) for v in tree.leaves(output)]
            parts = []
            for unit in _basis(o):
                vectors = [*zeros[:position], unit, *zeros[position + 1 :]]
                parts.append(tree.leaves(product(tree.rebuild(output, vectors))[0]))
            pairs = zip(zip(*parts), tree.leaves(selected))
            stacked = [_C.torch.stack(p).reshape((*o.shape, *x.shape)) for p, x in pairs]
            return tree.rebuild(selected, stacked)

        found = tree.rebuild(output, [rows(o, i) for i, o in enumerate(tree.leaves(output))])
        return (found, results[2]) if has_aux else found

    return differentiated
