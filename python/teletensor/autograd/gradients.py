"""backward() and grad(), computed by the engine's tape."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable

from .. import _C
from .._C import Tensor
from .._gradients import SparsePass, forget_leaves
from ._graph_names import GradientEdge, tensor_of
from ._node_creation import has_hooks, leaves_below, report_gradients
from ._passes import run_pass

# Called after each backward pass that accumulates gradients was issued, without arguments. Not after a pass that a function
# of another pass starts: the outer pass has more gradients to come.
after_backward: list[Callable[[], None]] = []
# Called before each such pass, with whether it accumulates into all leaves.
before_backward: list[Callable[[bool], None]] = []
_passes = threading.local()  # depth, grads: the numbers of passes of backward() and grad() in progress in this thread


def is_in_pass() -> bool:
    """Whether this thread is in a function that a backward pass calls, of backward() or grad()."""
    return getattr(_passes, "depth", 0) + getattr(_passes, "grads", 0) > 0


def _sequence(value) -> list:
    """The tensors of a tensor, a gradient edge, or a sequence of them."""
    single = value is None or isinstance(value, (Tensor, GradientEdge))
    return [tensor_of(value)] if single else [tensor_of(v) for v in value]


def _gradients(given, count: int) -> list:
    return [None] * count if given is None else _sequence(given)


def _wrapper(tensors: list) -> Tensor | None:
    """The first tensor whose class runs the backward passes of the tensors inside it, such as a DTensor."""
    for tensor in tensors:
        if _C._is_wrapper(tensor):
            return tensor
    return None


def _check_no_dispatch_mode(name: str) -> None:
    depth = _C._len_torch_dispatch_stack()
    if depth == 0:
        return
    modes = map(_C._get_dispatch_stack_at, range(depth))
    if not all(getattr(mode, "runs_backward", False) for mode in modes):
        raise NotImplementedError(
            f"[{name}] the operators of a backward pass run in the engine and do not reach the active TorchDispatchMode; leave "
            "the mode before the pass"
        )


def backward(
    tensors, grad_tensors=None, retain_graph=None, create_graph: bool = False, grad_variables=None, inputs=None
) -> None:
    """Accumulates the gradients of the tensors into the leaves of their graphs.

    Args:
        tensors: one tensor or several.
        grad_tensors: the gradients with respect to the tensors; None is allowed for a tensor with one element.
        retain_graph: whether the graph is kept for another backward pass; by default the value of create_graph.
        create_graph: whether the computation of the gradients is recorded.
        grad_variables: the old name of grad_tensors.
        inputs: the tensors into which gradients are accumulated; by default all leaves.
    """
    if grad_variables is not None:
        warnings.warn("`grad_variables` is deprecated. Use `grad_tensors` instead.", FutureWarning, stacklevel=2)
        if grad_tensors is not None:
            raise RuntimeError(
                "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to `backward()`. Please only use `grad_tensors`."
            )
        grad_tensors = grad_variables
    roots = _sequence(tensors)
    retain = create_graph if retain_graph is None else retain_graph
    into = [] if inputs is None else _sequence(inputs)
    if inputs is not None and not into:
        raise RuntimeError("`inputs` argument to `backward` cannot be empty.")
    _check_no_dispatch_mode("backward")
    run = getattr(_wrapper([*roots, *into]), "run_backward", _C.backward)
    given = _gradients(grad_tensors, len(roots))
    depth = getattr(_passes, "depth", 0) + 1
    if depth == 1:
        forget_leaves()
        for call in list(before_backward):
            call(inputs is None)
    _passes.depth = depth
    try:
        with SparsePass(True) as sparse:

            def accumulated(*args) -> None:
                run(*args)
                sparse.accumulate(None if inputs is None else into)

            run_pass(accumulated, roots, given, retain, create_graph, into, into=None if inputs is None else into)
    finally:
        _passes.depth = depth - 1
    if depth == 1:
        for call in list(after_backward):
            call()
    if create_graph and has_hooks():
        report_gradients([leaf.grad for leaf in (leaves_below(roots) if inputs is None else into)])


def _grad_of_each(roots, targets, given, retain_graph, create_graph, unused, materialize) -> tuple[Tensor, ...]:
    """A backward pass for each entry of the gradients' first dimension; the results are stacked."""
    batches = [g for g in given if g is not None]
    if not batches or any(g.dim() == 0 for g in batches):
        raise RuntimeError("[grad] is_grads_batched=True requires grad_outputs with a first dimension of gradients")
    count = len(batches[0])
    rows = []
    for i in range(count):
        gradients = [g if g is None else g[i] for g in given]
        retain = retain_graph or create_graph or i + 1 < count
        rows.append(grad(roots, targets, gradients, retain, create_graph, allow_unused=unused, materialize_grads=materialize))
    return tuple(None if any(g is None for g in column) else _C.torch.stack(column) for column in zip(*rows))


def grad(
    outputs, inputs, grad_outputs=None, retain_graph=None, create_graph: bool = False, only_inputs: bool = True,
    allow_unused: bool | None = None, is_grads_batched: bool = False, materialize_grads: bool = False,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Returns the gradients of the outputs with respect to the inputs, without accumulating them.

    With is_grads_batched, each of grad_outputs has a first dimension of gradients; so have the results.

    Raises:
        RuntimeError: no output depends on one of the inputs, and allow_unused is not set.
    """
    if not only_inputs:
        warnings.warn("only_inputs argument is deprecated and is ignored now (defaults to True).", FutureWarning, stacklevel=2)
    if materialize_grads and allow_unused is not None and not allow_unused:
        raise ValueError(
            f"Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused={allow_unused}."
        )
    roots, targets = _sequence(outputs), _sequence(inputs)
    retain = create_graph if retain_graph is None else retain_graph
    unused = materialize_grads if allow_unused is None else allow_unused
    _check_no_dispatch_mode("grad")
    given = _gradients(grad_outputs, len(roots))
    if is_grads_batched:
        return _grad_of_each(roots, targets, given, retain_graph, create_graph, unused, materialize_grads)
    run = getattr(_wrapper([*roots, *targets, *given]), "run_grad", _C.grad)
    _passes.grads = grads = getattr(_passes, "grads", 0) + 1
    try:
        with SparsePass(False) as sparse:
            gradients = run_pass(run, roots, given, targets, retain, create_graph, True, into=())
    finally:
        _passes.grads = grads - 1
    if sparse.found:
        sparse.call_hooks()
        gradients = [sparse.of(target, g) for target, g in zip(targets, gradients)]
    if not unused and any(g is None for g in gradients):
        raise RuntimeError(
            "One of the differentiated Tensors appears to not have been used in the graph. Set allow_unused=True if this is the "
            "desired behavior."
        )
    if materialize_grads:
        gradients = [_C.torch.zeros_like(x) if g is None else g for g, x in zip(gradients, targets)]
    if create_graph and has_hooks():
        report_gradients(gradients)
    return tuple(gradients)
