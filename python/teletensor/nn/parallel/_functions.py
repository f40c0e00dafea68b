"""Differentiable copies between devices: Broadcast, ReduceAddCoalesced, Scatter and Gather, called by ``apply``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import _C
from ..._C import Tensor
from ...cuda import device_count
from ...cuda.streams import Stream


def _gpu(device: Any) -> Any:
    """A device; a number names a GPU, -1 the CPU."""
    if isinstance(device, int):
        return _C.device("cpu") if device < 0 else _C.device("cuda", device)
    return _C.device(device)


class Broadcast:
    """Copies tensors to several devices. The gradient is the sum of the copies' gradients."""

    @staticmethod
    def apply(target_gpus: Sequence[Any], *inputs: Tensor) -> tuple[Tensor, ...]:
        """The copies of all tensors on the first device, then on the second, and so on."""
        return tuple(t.to(_gpu(device)) for device in target_gpus for t in inputs)


class ReduceAddCoalesced:
    """Adds tensors of several devices."""

    @staticmethod
    def apply(destination: Any, num_inputs: int, *grads: Tensor) -> tuple[Tensor, ...]:
        """The sums, on one device, of the tensors i, i + num_inputs, ... for i below num_inputs."""
        moved = [g.to(_gpu(destination)) for g in grads]
        return tuple(sum(moved[i + num_inputs :: num_inputs], moved[i]) for i in range(num_inputs))


class Scatter:
    """Divides a tensor between devices. The gradient joins the parts' gradients."""

    @staticmethod
    def apply(target_gpus: Sequence[Any], chunk_sizes: Sequence[int] | None, dim: int, input: Tensor) -> tuple[Tensor, ...]:
        """The parts, of given or equal sizes, each on its device."""
        parts = input.chunk(len(target_gpus), dim) if chunk_sizes is None else input.split(list(chunk_sizes), dim)
        return tuple(part.to(_gpu(device)) for part, device in zip(parts, target_gpus))


class Gather:
    """Joins tensors of several devices. The gradient divides the result's gradient."""

    @staticmethod
    def apply(target_device: Any, dim: int, *inputs: Tensor) -> Tensor:
        """The joined tensor, on one device; tensors without dimensions become a vector."""
        moved = [t.to(_gpu(target_device)) for t in inputs]
        return _C.torch.stack(moved) if all(t.dim() == 0 for t in moved) and dim == 0 else _C.torch.cat(moved, dim)


def _get_stream(device: Any) -> Stream | None:
    """The stream of a GPU; None for the CPU."""
    device = _gpu(device)
    return None if device.type == "cpu" or not device_count() else Stream(device)
