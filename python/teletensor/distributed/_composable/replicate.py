"""torch.distributed._composable.replicate: averages a module's gradients over ranks without another module around it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ...nn.modules.module import Module
from ...nn.parallel.distributed import DistributedDataParallel
from .contract import _get_registry, _State, contract


class _Parameters(Module):
    """The parameters and buffers that a DistributedDataParallel averages, and the forward function that it calls."""

    def __init__(self, module: Module, ignored: set):
        super().__init__()
        self.__dict__["_source"], self.__dict__["_ignored"], self.__dict__["_forward"] = module, ignored, module.forward

    def named_parameters(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Any]]:
        return ((name, p) for name, p in self._source.named_parameters(*args, **kwargs) if p not in self._ignored)

    def named_buffers(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Any]]:
        return self._source.named_buffers(*args, **kwargs)

    def modules(self) -> Iterator[Module]:
        return self._source.modules()

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self._forward(*args, **kwargs)


class _ReplicateState(_State):
    """Of a replicated module: its DistributedDataParallel, which the first forward pass creates."""

    def __init__(self) -> None:
        self.parameters: _Parameters | None = None
        self.options: dict[str, Any] = {}
        self.hooks: list[tuple] = []
        self.synchronizes = True
        self.ddp: DistributedDataParallel | None = None

    def run(self, *args: Any, **kwargs: Any) -> Any:
        if self.ddp is None:
            self.ddp = DistributedDataParallel(self.parameters, **self.options)
            for hook in self.hooks:
                self.ddp.register_comm_hook(*hook)
        self.ddp.require_backward_grad_sync = self.synchronizes
        return self.ddp(*args, **kwargs)


class DDP:
    """The methods that replicate() adds to a module."""

    def set_requires_gradient_sync(self, requires_gradient_sync: bool) -> None:
        """Whether backward averages the gradients of the following forward passes."""
        replicate.state(self).synchronizes = requires_gradient_sync

    def register_comm_hook(self, state: object, hook: Any) -> None:
        """See DistributedDataParallel.register_comm_hook(). Call it before the first forward pass."""
        replicate.state(self).hooks.append((state, hook))

    def __deepcopy__(self, memo: dict) -> Any:
        raise AssertionError("DDP does not support deepcopy. Please use state dict for serialization.")


@contract(state_cls=_ReplicateState)
def replicate(module: Module, ignored_modules: Iterable[Module] | None = None, **kwargs: Any) -> Module:
    """Averages the gradients of a module's parameters over the ranks, as DistributedDataParallel. Returns the module.

    Names of parameters and of the state dict do not change.

    Args:
        ignored_modules: submodules whose parameters are left out.
        kwargs: options of DistributedDataParallel; ``device_id`` instead of ``device_ids``.

    Raises:
        RuntimeError: `device_id` is neither an int, a device nor None, or the module is divided by fully_shard().
    """
    if "device_id" in kwargs:
        device = kwargs.pop("device_id")
        if device is not None and not isinstance(device, (int, str)) and not hasattr(device, "type"):
            raise RuntimeError(f"Expected device_id to be int or torch.device, but got {type(device)}")
        on_cpu = device is None or getattr(device, "type", device) == "cpu"
        kwargs["device_ids"] = None if on_cpu else [device]
    if "fully_shard" in (_get_registry(module) or {}) or hasattr(module, "unshard"):
        raise RuntimeError("Cannot apply `replicate()` on a Module already managed by `fully_shard`")
    state = replicate.state(module)
    ignored = {p for each in ignored_modules or () for p in each.parameters()}
    state.parameters, state.options = _Parameters(module, ignored), kwargs
    module.forward = state.run
    module.__class__ = type(f"DDP{type(module).__name__}", (DDP, type(module)), {})
    return module
