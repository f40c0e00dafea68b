"""Averages of parameters over a group."""

from __future__ import annotations

from collections.abc import Iterable

from .... import _C
from ...._C import Tensor
from ...._grad_mode import no_grad
from ..._options import AllreduceOptions
from ..._process_group import ProcessGroup
from ..._reduce_op import ReduceOp
from ..._world import _group_or_default_group, _rank_not_in_group

__all__ = ["average_parameters", "average_parameters_or_parameter_groups", "get_params_to_average"]


@no_grad()
def average_parameters(params: Iterable[Tensor], process_group: ProcessGroup | None) -> None:
    """Averages parameters over a group, by default the default group, in one collective per dtype and device.

    Has no effect on ranks that are not members.
    """
    if _rank_not_in_group(process_group):
        return
    group = _group_or_default_group(process_group)
    by_kind: dict[tuple, list[Tensor]] = {}
    for p in params:
        by_kind.setdefault((p.dtype, p.device), []).append(p)
    for tensors in by_kind.values():
        flat = _C.torch.cat([p.detach().reshape(-1) for p in tensors])
        group.allreduce([flat], AllreduceOptions(reduceOp=ReduceOp.AVG)).wait()
        parts = flat.split([p.numel() for p in tensors])
        for p, part in zip(tensors, parts, strict=True):
            p.copy_(part.view_as(p))


def get_params_to_average(params: Iterable) -> list[Tensor]:
    """The parameters with a gradient among parameters or parameter groups.

    Raises:
        NotImplementedError: an entry is neither a parameter nor a dict.
    """
    found = []
    for entry in params:
        if not isinstance(entry, (Tensor, dict)):
            raise NotImplementedError(f"Parameter input of type {type(entry)} is not supported")
        members = entry["params"] if isinstance(entry, dict) else [entry]
        found += [p for p in members if p.grad is not None]
    return found


def average_parameters_or_parameter_groups(params: Iterable, process_group: ProcessGroup | None) -> None:
    """Averages the parameters with a gradient among parameters or parameter groups."""
    if tensors := get_params_to_average(params):
        average_parameters(tensors, process_group)
