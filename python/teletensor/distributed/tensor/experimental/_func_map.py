"""local_map: functions of the ranks' local tensors that are called with DTensors."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from .... import _C
from ....utils import _pytree as pytree
from ...device_mesh import DeviceMesh
from .._dtensor import DTensor
from ..placement_types import Placement

__all__ = ["local_map"]

PlacementType = Sequence[Placement] | None


def _is_placements(value: Any) -> bool:
    return value is not None and len(value) > 0 and isinstance(value[0], Placement)


def _local(argument: DTensor, wanted: PlacementType, of_gradient: PlacementType, moves: bool) -> _C.Tensor:
    """The local tensor of an argument, which must have the placements `wanted` unless `moves`."""
    if wanted is not None and argument.placements != tuple(wanted):
        if not moves:
            raise ValueError(
                f"arg {argument} in local_map has a mismatched placements: arg placements is {argument.placements} but the input "
                f"placements is {tuple(wanted)}! If redistribute_inputs is wanted, set redistribute_inputs=True to local_map."
            )
        argument = argument.redistribute(placements=wanted)
    return argument.to_local(grad_placements=of_gradient)


def _arguments(args: tuple, mesh: DeviceMesh | None, placements, of_gradients, moves: bool) -> tuple[tuple, DeviceMesh | None, bool]:
    """The arguments with local tensors, the mesh, and whether there was a DTensor."""
    flat, spec = pytree.tree_flatten(args)
    if placements is not None and len(placements) != len(flat):
        raise AssertionError(f"in_placements length {len(placements)} does not match the number of input args {len(flat)}!")
    found, values = False, []
    for i, value in enumerate(flat):
        wanted = None if placements is None else placements[i]
        if isinstance(value, DTensor):
            if placements is not None and wanted is None:
                raise AssertionError(f"DTensor input {value} expects placements but received {wanted}!")
            found, mesh = True, mesh or value.device_mesh
            value = _local(value, wanted, None if of_gradients is None else of_gradients[i], moves)
        elif wanted is not None and not isinstance(value, _C.Tensor):
            raise AssertionError(f"Non-Tensor input {value} expects None placements but received {wanted}!")
        values.append(value)
    return pytree.tree_unflatten(values, spec), mesh, found


def _results(results: Any, mesh: DeviceMesh | None, placements: Any) -> Any:
    """The results with DTensors in these placements."""
    flat, spec = pytree.tree_flatten(results)
    each = [placements] * len(flat) if placements is None or _is_placements(placements) else list(placements)
    if len(each) != len(flat):
        raise AssertionError(
            f"local_map requires one PlacementType be provided for each output value, received {len(each)} out_placements but "
            f"{len(flat)} is expected!"
        )
    values = []
    for value, wanted in zip(flat, each, strict=True):
        if isinstance(value, _C.Tensor):
            if isinstance(value, DTensor):
                raise AssertionError(f"torch.Tensor output expected but received {value}")
            value = value if wanted is None else DTensor.from_local(value, mesh, tuple(wanted), run_check=False)
        elif wanted is not None:
            raise AssertionError(f"Non-tensor output {value} expects None placements but received {wanted}!")
        values.append(value)
    return pytree.tree_unflatten(values, spec)


def local_map(
    func: Callable | None = None, out_placements: Any = None, in_placements: tuple[PlacementType, ...] | None = None,
    in_grad_placements: tuple[PlacementType, ...] | None = None, device_mesh: DeviceMesh | None = None, *,
    redistribute_inputs: bool = False, spmd_types: bool = False,
) -> Callable:  # fmt: skip
    """Returns a function that calls `func` with the local tensors of its DTensor arguments, and makes DTensors of its
    results. A decorator if `func` is None. Without DTensor arguments, the results stay as they are.

    Args:
        out_placements: placements of the results: one for all of them, or a tuple with one per result; None: a value that
            is not a tensor, or a local tensor.
        in_placements: placements of the arguments, flattened, None for those that are no tensors; by default any.
        in_grad_placements: placements of their gradients; by default those of the arguments.
        device_mesh: the mesh of the results; by default that of the first DTensor.
        redistribute_inputs: whether arguments in other placements are redistributed.

    Raises:
        AssertionError: the number of placements is wrong, or one is given for a value that is not a tensor.
        ValueError: an argument has other placements, and `redistribute_inputs` is False.
    """
    if spmd_types:
        raise NotImplementedError("[local_map] spmd_types=True is not supported: it needs the package spmd_types")
    if func is None:
        return functools.partial(
            local_map, out_placements=out_placements, in_placements=in_placements, in_grad_placements=in_grad_placements,
            device_mesh=device_mesh, redistribute_inputs=redistribute_inputs,
        )  # fmt: skip

    @functools.wraps(func)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        values, mesh, found = _arguments(args, device_mesh, in_placements, in_grad_placements, redistribute_inputs)
        results = func(*values, **kwargs)
        return _results(results, mesh, out_placements) if found else results

    return mapped
