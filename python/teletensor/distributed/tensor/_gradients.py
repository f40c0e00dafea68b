"""Backward passes from DTensors, and the placement of their gradients."""

from __future__ import annotations

from collections.abc import Sequence

from ... import _C
from ._redistribute import on_first_rank, summed_gradients
from ._spec import Spec
from ._state import Distributed, make
from .placement_types import Partial, Replicate


def gradient_spec(spec: Spec) -> Spec:
    """The placement of a tensor's gradient: that of a Partial tensor is replicated.

    Raises:
        NotImplementedError: a placement is Partial with another operation than sum. The ranks' gradients of the local tensors
            are not the gradient of the tensor then.
    """
    if any(isinstance(p, Partial) and p.reduce_op != "sum" for p in spec.placements):
        raise NotImplementedError(f"[DTensor] the gradient of a tensor with placements {spec} is not supported: use redistribute()")
    return Spec(spec.mesh, [Replicate() if isinstance(p, Partial) else p for p in spec.placements])


def _locals_of(op: str, tensors: Sequence[_C.Tensor]) -> list[tuple[_C.Tensor, ...]]:
    """The local tensors of each DTensor, all of which must be of one mesh."""
    for tensor in tensors:
        if not isinstance(tensor, Distributed):
            raise RuntimeError(f"[{op}] expected only DTensors, got a Tensor too")
        mesh, own = tensors[0]._spec.mesh, tensor._spec.mesh
        if own != mesh:
            raise RuntimeError(f"[{op}] expected DTensors of one device mesh, got {mesh} and {own}: run a backward pass for each mesh")
    return [t._locals for t in tensors]


def _summed(root):
    """The root, whose local tensors are copies, parts or summands: the gradient of each is the root's."""
    spec = root._spec
    if all(not isinstance(p, Partial) or p.reduce_op == "sum" for p in spec.placements):
        return root
    return root.redistribute(placements=[Replicate() if isinstance(p, Partial) else p for p in spec.placements])


def _placed(roots, gradients) -> list:
    """The local gradients of each root, in the placement of its gradient; None for ones."""
    placed = []
    for root, gradient in zip(roots, gradients, strict=True):
        if gradient is None:
            if root.numel() != 1:
                raise RuntimeError(f"grad can be implicitly created only for scalar outputs, got {list(root.shape)}")
            placed.append(None)
            continue
        if not isinstance(gradient, Distributed):
            raise RuntimeError("[backward] expected a DTensor as the gradient of a DTensor, got a Tensor")
        spec = gradient_spec(root._spec)
        locals_ = gradient.redistribute(placements=spec.placements).to_locals()
        placed.append(summed_gradients(locals_, root._spec))
    return placed


def gradient_of(tensor, grads: Sequence[_C.Tensor]):
    """The gradient of a DTensor as one, from those of its local tensors.

    If it is differentiable, the gradients of a Partial tensor are copies, and the graph of each contains a summand of
    the derivative: the first rank's copy replaces all others.
    """
    spec = tensor._spec
    wanted = gradient_spec(spec)
    if wanted != spec and any(g.requires_grad for g in grads):
        return make(on_first_rank(grads, spec), spec, tensor.shape).redistribute(placements=wanted.placements)
    return make(grads, wanted, tensor.shape)


def run_backward(roots, gradients, retain_graph: bool, create_graph: bool, inputs) -> None:
    """Runs a backward pass from DTensors, on each rank that this process drives."""
    _locals_of("backward", [*roots, *inputs])
    roots = [_summed(t) for t in roots]
    tensors, given, into = _locals_of("backward", roots), _placed(roots, gradients), _locals_of("backward", inputs)
    for k in range(len(tensors[0])):
        _C.backward([t[k] for t in tensors], [g and g[k] for g in given], retain_graph, create_graph, [t[k] for t in into])


def run_grad(outputs, gradients, inputs, retain_graph: bool, create_graph: bool, allow_unused: bool) -> list:
    """Returns the gradients of DTensors with respect to DTensors."""
    _locals_of("grad", [*outputs, *inputs])
    for tensor in inputs:
        gradient_spec(tensor._spec)
    outputs = [_summed(t) for t in outputs]
    tensors, given, into = _locals_of("grad", outputs), _placed(outputs, gradients), _locals_of("grad", inputs)
    found = [
        _C.grad(
            [t[k] for t in tensors], [g and g[k] for g in given], [t[k] for t in into], retain_graph, create_graph, allow_unused
        )
        for k in range(len(tensors[0]))
    ]
    return [
        None if any(g is None for g in grads) else gradient_of(t, grads)
        for t, grads in zip(inputs, zip(*found, strict=True), strict=True)
    ]
