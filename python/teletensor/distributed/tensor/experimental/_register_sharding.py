"""register_sharding: the placements in which an operator of a program may be computed."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from .... import _C
from ....utils import _pytree as pytree
from ...device_mesh import DeviceMesh
from .._dtensor import DTensor
from .._repeated import forget
from ..placement_types import Partial, Placement, Replicate, Shard

__all__ = ["register_sharding"]


def register_sharding(op: Any) -> Callable:
    """Decorates a function that returns the placements in which an operator, or a list of operators, may be computed.

    The function is called with the operator's arguments. It returns pairs: the placements of the results along one dimension
    of the mesh, and those of the arguments (None for values that are not tensors). Along each dimension of the mesh, a call
    takes the pair that moves the fewest bytes; the operator is computed from the local tensors.

    It applies to custom operators and to operators of ``torch.ops.aten``, also if functions of ``torch`` call them.
    """

    def register(function: Callable) -> Callable:
        for overload in op if isinstance(op, list) else [op]:
            forget()
            overload.sharded = lambda positional, keyword, overload=overload: _run(overload, function, positional, keyword)
        return function

    return register


def _cost(value: DTensor, own: Placement, wanted: Placement) -> float:
    """Bytes to move, roughly; infinite if it is impossible."""
    if own == wanted or (isinstance(own, Replicate) and isinstance(wanted, Shard)):
        return 0
    size = math.prod(value.shape) * value.element_size()
    if isinstance(wanted, Partial):
        return math.inf
    return (2 if isinstance(own, Partial) and isinstance(wanted, Replicate) else 1) * size


def _fits(value: DTensor, wanted: Placement, ranks: int) -> bool:
    return not isinstance(wanted, Shard) or (wanted.dim < value.dim() and value.shape[wanted.dim] % ranks == 0)


def _chosen(flat: list, choices: Sequence[tuple], mesh: DeviceMesh) -> tuple[list[list], list[list]]:
    """The placements of each result and of each argument, by dimension of the mesh."""
    outputs, inputs = [], []
    for m in range(mesh.ndim):
        costs = []
        for _, wanted in choices:
            pairs = [(v, w) for v, w in zip(flat, wanted, strict=False) if isinstance(v, DTensor)]
            possible = all(w is not None and _fits(v, w, mesh.size(m)) for v, w in pairs)
            costs.append(sum(_cost(v, v.placements[m], w) for v, w in pairs) if possible else math.inf)
        best = min(range(len(choices)), key=costs.__getitem__, default=None)
        if best is None or costs[best] == math.inf:
            raise RuntimeError(f"[register_sharding] no registered placements fit dimension {m} of the mesh {mesh}")
        outputs.append(list(choices[best][0]))
        inputs.append(list(choices[best][1]))
    return outputs, inputs


def _run(overload: Any, function: Callable, positional: list, keyword: dict) -> Any:
    """Computes the operator from local tensors, and makes DTensors of its results."""
    flat, spec = pytree.tree_flatten((tuple(positional), dict(keyword)))
    tensors = [v for v in flat if isinstance(v, DTensor)]
    mesh = tensors[0].device_mesh
    flat = [
        DTensor.from_local(v, mesh, [Replicate()] * mesh.ndim) if isinstance(v, _C.Tensor) and not isinstance(v, DTensor) else v
        for v in flat
    ]
    outputs, inputs = _chosen(flat, function(*positional, **keyword), mesh)
    (member,) = mesh._members()
    local = []
    for i, value in enumerate(flat):
        if isinstance(value, DTensor):
            wanted = [of_dim[i] for of_dim in inputs]
            value = value.redistribute(placements=wanted).to_local()
            for m, placement in enumerate(wanted):  # a copy of which each rank uses a part: its gradient is a sum
                divided = any(isinstance(p, (Shard, Partial)) for p in outputs[m])
                if isinstance(placement, Replicate) and divided and value.requires_grad and _C.is_grad_enabled():
                    value = _C.ops.group_gradient_reduced(value, member.groups[m])
        local.append(value)
    args, kwargs = pytree.tree_unflatten(local, spec)
    results, of_results = pytree.tree_flatten(overload(*args, **kwargs))
    made = [
        DTensor.from_local(r, mesh, [of_dim[i] for of_dim in outputs]) if isinstance(r, _C.Tensor) else r
        for i, r in enumerate(results)
    ]
    return pytree.tree_unflatten(made, of_results)
