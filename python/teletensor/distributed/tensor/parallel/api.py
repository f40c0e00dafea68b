"""parallelize_module: applies parallel styles to a module and its submodules."""

from __future__ import annotations

import warnings
from fnmatch import fnmatch

from ....nn.modules.module import Module
from ...device_mesh import DeviceMesh
from .._dtensor import _mesh_or_default
from .style import ParallelStyle


def parallelize_module(
    module: Module, device_mesh: DeviceMesh | None = None, parallelize_plan: ParallelStyle | dict[str, ParallelStyle] | None = None,
    *, src_data_rank: int | None = 0,
) -> Module:  # fmt: skip
    """Divides the parameters of a module among the ranks of a mesh of one dimension, in place; returns the module.

    Args:
        module: the module.
        device_mesh: a mesh with one dimension; by default that of the default group.
        parallelize_plan: a style, or a dict of styles by the submodules' names, in which ``*`` matches one part of a name.
        src_data_rank: the rank whose parameters are used; with None each rank uses its own, which must be equal.

    Raises:
        TypeError: the plan is neither a style nor a dict.
        ValueError: the mesh has several dimensions, or a name is empty.
    """
    mesh = _mesh_or_default(device_mesh)
    if parallelize_plan is None:
        warnings.warn(
            "No parallelize_plan is provided and auto-parallel is not supported at the moment, so this parallelize_module call will "
            "do nothing.",
            stacklevel=2,
        )
        return module
    if mesh.ndim != 1:
        raise ValueError(f"parallelize_module expects a mesh with one dimension, got {mesh.ndim}: slice the mesh by a name")
    if isinstance(parallelize_plan, ParallelStyle):
        parallelize_plan.src_data_rank = src_data_rank
        return parallelize_plan._apply(module, mesh)
    if not isinstance(parallelize_plan, dict):
        raise TypeError(
            f"Expect Union[ParallelStyle, Dict[str, ParallelStyle]] for parallelize_plan, {type(parallelize_plan)} found!"
        )
    for path, style in parallelize_plan.items():
        matched = _submodules(module, path)
        if not matched:
            warnings.warn(
                f"Parallelize plan key '{path}' could not be resolved: no submodule matching token", stacklevel=2
            )
        for submodule in matched:
            parallelize_module(submodule, mesh, style, src_data_rank=src_data_rank)
    return module


def _submodules(module: Module, path: str) -> list[Module]:
    """The submodules whose names match a path part by part; the module itself for an empty path."""
    matched = [module]
    for part in path.split(".") if path else []:
        matched = [child for m in matched for name, child in m.named_children() if fnmatch(name, part)]
    return matched


__all__ = ["parallelize_module"]
