"""torch.utils._foreach_utils: which devices have functions of lists of tensors, for optimizers of other libraries."""

from __future__ import annotations

from typing import TypeAlias

from .. import _C
from .._C import Tensor
from .._grad_mode import no_grad
from ..optim._grouping import Group, group_tensors

TensorListList: TypeAlias = list[list[Tensor | None]]
Indices: TypeAlias = list[int]
_foreach_supported_types = [Tensor]  # libraries add their own classes


def _get_foreach_kernels_supported_devices() -> list[str]:
    """The device types with functions of lists, besides the CPU."""
    return ["cuda"]


def _get_fused_kernels_supported_devices() -> list[str]:
    """The device types with fused optimizer steps."""
    return ["cuda", "cpu"]


@no_grad()
def _group_tensors_by_device_and_dtype(
    tensorlistlist: TensorListList, with_indices: bool = False
) -> dict[tuple[_C.device, _C.dtype], Group]:
    """Divides parallel lists of tensors by the device and dtype of the first list's tensors, with their places if with_indices."""
    return group_tensors(tensorlistlist, with_indices)


def _device_has_foreach_support(device: _C.device) -> bool:
    """Whether functions of lists exist for tensors on a device."""
    return device.type in (*_get_foreach_kernels_supported_devices(), "cpu")


def _has_foreach_support(tensors: list[Tensor], device: _C.device) -> bool:
    """Whether functions of lists exist for these tensors, of which some may be None, on a device."""
    return _device_has_foreach_support(device) and all(t is None or type(t) in _foreach_supported_types for t in tensors)
