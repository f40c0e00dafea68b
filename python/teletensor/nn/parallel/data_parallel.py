"""DataParallel: one process, several devices of one engine. Each device computes a part of the batch."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from ... import _C
from ..modules.module import Module


def _devices(devices: Sequence) -> list[_C.device]:
    return [_C.device("cuda", d) if isinstance(d, int) else _C.device(d) for d in devices]


def scatter(inputs: Any, target_gpus: Sequence, dim: int = 0) -> list:
    """Divides tensors, in any nesting, along `dim` and copies each part to a device. Other values are repeated.

    Returns a list with one value per device, or fewer if a tensor has fewer entries. Differentiable.
    """
    devices = _devices(target_gpus)

    def divide(value) -> list:
        if isinstance(value, _C.Tensor):
            return [part.to(device) for part, device in zip(value.chunk(len(devices), dim), devices, strict=False)]
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return [type(value)(*parts) for parts in zip(*map(divide, value), strict=False)]
        if isinstance(value, (tuple, list)) and value:
            return [type(value)(parts) for parts in zip(*map(divide, value), strict=False)]
        if isinstance(value, dict) and value:
            return [type(value)(parts) for parts in zip(*map(divide, value.items()), strict=False)]
        return [value for _ in devices]

    return divide(inputs)


def scatter_kwargs(inputs: tuple, kwargs: dict | None, target_gpus: Sequence, dim: int = 0) -> tuple[tuple, tuple]:
    """Divides positional and keyword arguments; see scatter."""
    parts = scatter(inputs, target_gpus, dim) if inputs else []
    named = scatter(kwargs, target_gpus, dim) if kwargs else []
    count = max(len(parts), len(named))
    parts += [()] * (count - len(parts))
    named += [{}] * (count - len(named))
    return tuple(parts), tuple(named)


def gather(outputs: Sequence, target_device, dim: int = 0) -> Any:
    """Concatenates tensors, in any nesting, along `dim` on one device. Scalars become a vector. Differentiable."""
    device = _devices([target_device])[0]

    def join(values):
        first = values[0]
        if isinstance(first, _C.Tensor):
            return _C.torch.cat([(v.unsqueeze(0) if v.dim() == 0 else v).to(device) for v in values], dim)
        if first is None:
            return None
        if isinstance(first, dict):
            if not all(len(first) == len(v) for v in values):
                raise ValueError("All dicts must have the same number of keys")
            return type(first)((k, join([v[k] for v in values])) for k in first)
        if isinstance(first, tuple) and hasattr(first, "_fields"):
            return type(first)._make(map(join, zip(*values, strict=True)))
        return type(first)(map(join, zip(*values, strict=True)))

    return join(list(outputs))


def replicate(network: Module, devices: Sequence, detach: bool = False) -> list[Module]:
    """Copies a module to devices. The copies' parameters are results of the module's, which receive their gradients.

    Args:
        detach: copy without gradients.
    """

    def copied(module: Module, device: _C.device, memo: dict) -> Module:
        if id(module) in memo:
            return memo[id(module)]
        memo[id(module)] = replica = copy.copy(module)
        replica.__dict__ = {**module.__dict__, "_parameters": {}, "_is_replica": True}
        replica._buffers = {k: None if b is None else b.to(device) for k, b in module._buffers.items()}
        for name, parameter in module._parameters.items():
            moved = None if parameter is None else (parameter.detach() if detach else parameter).to(device)
            replica.__dict__[name] = moved
        replica._modules = {k: None if m is None else copied(m, device, memo) for k, m in module._modules.items()}
        return replica

    return [copied(network, device, {}) for device in _devices(devices)]


def get_a_var(obj: Any) -> _C.Tensor | None:
    """The first tensor in nested lists, tuples and dicts; None if there is none."""
    if isinstance(obj, _C.Tensor):
        return obj
    values = obj.items() if isinstance(obj, dict) else obj if isinstance(obj, (list, tuple)) else ()
    return next((found for found in map(get_a_var, values) if found is not None), None)


def parallel_apply(
    modules: Sequence[Module], inputs: Sequence, kwargs_tup: Sequence[dict] | None = None, devices: Sequence | None = None
) -> list:
    """Calls each module with its inputs and returns the results. The calls do not wait, so the devices run concurrently.

    Args:
        devices: the modules' devices; checked for their number only.
    """
    if len(modules) != len(inputs):
        raise AssertionError(f"The number of modules {len(modules)} is not equal to the number of inputs {len(inputs)}")
    kwargs_tup = [{}] * len(modules) if kwargs_tup is None else kwargs_tup
    if len(modules) != len(kwargs_tup) or (devices is not None and len(devices) != len(modules)):
        raise AssertionError(f"expected {len(modules)} keyword arguments and devices, one of each per module")
    return [
        module(*(values if isinstance(values, (list, tuple)) else (values,)), **kwargs)
        for module, values, kwargs in zip(modules, inputs, kwargs_tup, strict=True)
    ]


class DataParallel(Module):
    """Divides each batch among GPUs of the engine. Without a GPU, and with one, it calls the module.

    Args:
        module: the module, whose parameters are on the first device.
        device_ids: the GPUs; by default all.
        output_device: the GPU of the result; by default the first one.
        dim: the dimension of the batch.
    """

    def __init__(self, module: Module, device_ids: Sequence | None = None, output_device=None, dim: int = 0):
        super().__init__()
        from ... import cuda

        if device_ids is None:
            device_ids = list(range(cuda.device_count())) if cuda.is_available() else []
        self.dim, self.module = dim, module
        self.device_ids = _devices(device_ids)
        self.output_device = (
            None if not self.device_ids else self.device_ids[0] if output_device is None else _devices([output_device])[0]
        )
        if len(self.device_ids) == 1:
            self.module.to(self.device_ids[0])

    def forward(self, *inputs, **kwargs):
        if not self.device_ids:
            return self.module(*inputs, **kwargs)
        for value in [*self.module.parameters(), *self.module.buffers()]:
            if value.device != self.device_ids[0]:
                raise RuntimeError(
                    f"module must have its parameters and buffers on device {self.device_ids[0]} (device_ids[0]) but found one of "
                    f"them on device: {value.device}"
                )
        parts, named = self.scatter(inputs, kwargs, self.device_ids)
        if not parts:
            parts, named = ((),), ({},)
        if len(self.device_ids) == 1:
            return self.module(*parts[0], **named[0])
        replicas = self.replicate(self.module, self.device_ids[: len(parts)])
        return self.gather(self.parallel_apply(replicas, parts, named), self.output_device)

    def replicate(self, module: Module, device_ids: Sequence) -> list[Module]:
        """Copies of the module, one per device. Subclasses may override this method and the following ones."""
        return replicate(module, device_ids, not _C.is_grad_enabled())

    def scatter(self, inputs: tuple, kwargs: dict | None, device_ids: Sequence) -> Any:
        """The arguments divided among the devices."""
        return scatter_kwargs(inputs, kwargs, device_ids, self.dim)

    def parallel_apply(self, replicas: Sequence[Module], inputs: Sequence, kwargs: Any) -> list:
        """The results of the copies."""
        return parallel_apply(replicas, inputs, kwargs)

    def gather(self, outputs: Any, output_device: Any) -> Any:
        """The results on one device."""
        return gather(outputs, output_device, self.dim)


def data_parallel(
    module: Module, inputs: Any, device_ids: Sequence | None = None, output_device=None, dim: int = 0,
    module_kwargs: dict | None = None,
) -> Any:  # fmt: skip
    """Calls a module with a batch that is divided among GPUs; see DataParallel."""
    inputs = inputs if isinstance(inputs, tuple) else () if inputs is None else (inputs,)
    return DataParallel(module, device_ids, output_device, dim)(*inputs, **(module_kwargs or {}))


__all__ = ["DataParallel", "data_parallel"]
