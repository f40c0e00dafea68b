"""torch.distributed.nn.api.remote_module: RemoteModule, a module that is stored and computed on another worker."""

from __future__ import annotations

import re
from typing import Any

from .... import _C
from ....nn.modules.module import Module
from ...rpc import _registry, _values, api
from ...rpc._rref import RRef

__all__ = ["RemoteModule"]

_DEVICE = re.compile(r"(?:rank:(?P<rank>\d+)|(?P<name>[^/]+))(?:/(?P<device>.+))?")
_UNSUPPORTED = (
    "register_buffer", "register_parameter", "add_module", "apply", "cuda", "ipu", "xpu", "cpu", "type", "float", "double", "half",
    "bfloat16", "to", "register_backward_hook", "register_forward_pre_hook", "register_forward_hook", "state_dict",
    "load_state_dict", "parameters", "named_parameters", "buffers", "named_buffers", "children", "named_children", "modules",
    "named_modules", "requires_grad_", "zero_grad", "share_memory", "extra_repr",
)  # fmt: skip


def _create_module(module_cls: type[Module], args: Any, kwargs: Any, device: str) -> Module:
    module = module_cls(*args, **kwargs)
    if not isinstance(module, Module):
        raise ValueError(
            "Expect `module_cls(*args, **kwargs)` returns an instance of <class nn.Module>, but it returns an instance of "
            f"{type(module)}."
        )
    return module.to(device)


def _run_forward(module: Any, device: str, args: Any, kwargs: Any) -> Any:
    """Computes the module's result on its device; the result goes back to the CPU."""

    def moved(value: Any, to: str) -> Any:
        return value.to(to) if isinstance(value, _C.Tensor) else value

    arguments = [moved(a, device) for a in args]
    result = module.local_value()(*arguments, **{k: moved(v, device) for k, v in kwargs.items()})
    return tuple(moved(r, "cpu") for r in result) if isinstance(result, tuple) else moved(result, "cpu")


def _parameters_of(module: Any, recurse: bool) -> list:
    return [RRef(parameter) for parameter in module.local_value().parameters(recurse)]


def _set_training(module: Any, mode: bool) -> None:
    module.local_value().train(mode)


for _function in (_create_module, _run_forward, _parameters_of, _set_training):
    _registry._add(f"torch.distributed.nn:{_function.__name__}", _function)


class RemoteModule(Module):
    """A module on another worker. forward() runs there and waits for the result; forward_async() returns a future.

    Gradients flow through it in a context of torch.distributed.autograd. It may be an argument of a remote call.

    Args:
        remote_device: the worker, and optionally the device there: "trainer0", "trainer0/cuda:0", "rank:1/cpu".
        module_cls: the module's class, which the worker must know: one of torch.nn, or a registered one (rpc.register).
        args, kwargs: arguments of the class.

    Raises:
        ValueError: the worker or device is malformed.
        RuntimeError: RPC is not initialized.
    """

    def __init__(self, remote_device: str, module_cls: type[Module], args: tuple | None = None, kwargs: dict | None = None):
        super().__init__()
        self._bind(remote_device, None)
        self.module_rref = api.remote(self.on, _create_module, (module_cls, tuple(args or ()), dict(kwargs or {}), self.device))

    def _bind(self, remote_device: str, module_rref: Any) -> None:
        if not api._is_current_rpc_agent_set():
            raise AssertionError("RemoteModule only works in RPC.")
        found = _DEVICE.fullmatch(remote_device) if isinstance(remote_device, str) else None
        if found is None:
            raise ValueError(f"Could not parse remote_device: {remote_device}. The valid format is '<workername>/<device>'")
        self.on = found["name"] if found["rank"] is None else int(found["rank"])
        self.device = str(_C.device(found["device"] or "cpu"))
        self.is_scriptable = False
        self.module_rref = module_rref

    @staticmethod
    def init_from_module_rref(remote_device: str, module_rref: Any, _module_interface_cls: Any = None) -> RemoteModule:
        """Returns a RemoteModule for a module that exists already, given its RRef."""
        if _module_interface_cls is not None:
            raise NotImplementedError("[RemoteModule] expected no interface class: there is no TorchScript")
        made = RemoteModule.__new__(RemoteModule)
        Module.__init__(made)
        made._bind(remote_device, module_rref)
        return made

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the module's forward there; waits for the result."""
        return self.forward_async(*args, **kwargs).wait()

    def forward_async(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the module's forward there; returns a future."""
        return api.rpc_async(self.on, _run_forward, (self.module_rref, self.device, args, kwargs))

    def remote_parameters(self, recurse: bool = True) -> list:
        """The parameters as RRefs, for DistributedOptimizer."""
        return api.rpc_sync(self.on, _parameters_of, (self.module_rref, recurse))

    def get_module_rref(self) -> Any:
        """The RRef of the module."""
        return self.module_rref

    def train(self, mode: bool = True) -> RemoteModule:
        """Sets the mode of the module there."""
        api.rpc_sync(self.on, _set_training, (self.module_rref, mode))
        return self

    def eval(self) -> RemoteModule:
        return self.train(False)

    def __getstate__(self) -> dict:
        raise RuntimeError("Cannot pickle RemoteModule in python pickler. RemoteModule can only be pickled when using RPC")

    def __setstate__(self, state: dict) -> None:
        raise RuntimeError("Cannot unpickle RemoteModule in python pickler. RemoteModule can only be unpickled when using RPC")

    def __repr__(self) -> str:
        return f"RemoteModule(on={self.on!r}, device={self.device!r})"


def _unsupported(name: str) -> Any:
    def method(self: RemoteModule, *args: Any, **kwargs: Any) -> Any:
        raise ValueError(f"Method ``{name}`` not supported for RemoteModule")

    method.__name__ = name
    return method


for _name in _UNSUPPORTED:
    setattr(RemoteModule, _name, _unsupported(_name))


_values.remote_module = RemoteModule
