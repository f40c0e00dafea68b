"""The modules of the engine's device libraries: `torch.mydev` for a type of devices that is named "mydev".

An engine adds such devices with ``teletensord --devices FILE.so`` (docs/devices.md). The names are the engine's; a
program may rename the first one with ``torch.utils.rename_privateuse1_backend``.
"""

from __future__ import annotations

from collections import OrderedDict
from types import ModuleType
from typing import Any

from . import _C, _connection, _random
from .cuda import memory, streams

_registered: dict[str, ModuleType] = {}  # by torch._register_device_module
_made: dict[str, DeviceModule] = {}


class DeviceModule(ModuleType):
    """The functions of torch.cuda that apply to every device, for one type of devices."""

    def __init__(self, name: str) -> None:
        super().__init__(f"teletensor.{name}", f"The engine's {name} devices.")
        self._type = name
        self._current = 0

    def _entries(self) -> list[dict]:
        """The engine's descriptions of the devices, in the order of their indices."""
        devices = _connection.connection().engine()["devices"]
        name = _C.device(self._type, 0).type  # as it is shown now
        return [each for each in devices if each["device"].partition(":")[0] == name]

    def _index(self, device: Any) -> int:
        if device is None:
            return self._current
        if isinstance(device, int):
            return device
        placed = _C.placed(device)
        if placed.type != _C.device(self._type, 0).type:
            raise ValueError(f"Expected a {self._type} device, but got: {placed}")
        return placed.index

    def _entry(self, device: Any) -> dict:
        index, entries = self._index(device), self._entries()
        if not 0 <= index < len(entries):
            raise RuntimeError(
                f"invalid device ordinal: expected an index below {len(entries)}, the number of the engine's {self._type} "
                f"devices, got {index}"
            )
        return entries[index]

    def _code(self, device: Any) -> int:
        return _C.device_code(f"{self._type}:{self._index(device)}")

    def device_count(self) -> int:
        """The number of the engine's devices of this type."""
        return len(self._entries())

    def is_available(self) -> bool:
        """Whether the engine has such a device."""
        return self.device_count() > 0

    def is_initialized(self) -> bool:
        """Whether there is a connection to an engine that has such a device."""
        return _connection._current is not None and self.is_available()

    def init(self) -> None:
        """Connects to the engine if there is no connection yet."""
        _connection.connection()

    def current_device(self) -> int:
        """The index that the type's name without a number denotes."""
        return self._current

    def set_device(self, device: Any) -> None:
        """Makes the type's name denote the given device. A negative number has no effect."""
        index = self._index(device)
        if index >= 0:
            _C.swap_current_plugin(self._type, index)
            self._current = index

    def get_device_name(self, device: Any = None) -> str:
        """The device's name, as its library reports it."""
        return self._entry(device)["name"]

    def get_device_properties(self, device: Any = None) -> dict[str, Any]:
        """The device's name, memory in bytes, and its library's version."""
        entry = self._entry(device)
        return {"name": entry["name"], "total_memory": entry["total_memory"], "version": entry["driver"]}

    def synchronize(self, device: Any = None) -> None:
        """Waits until the device has completed all work issued so far; raises the errors of this work."""
        _C.torch.empty((1,), device=self._entry(device)["device"]).tolist()  # the read is ordered after all issued work

    def memory_stats(self, device: Any = None) -> OrderedDict[str, int]:
        """The statistics of the device's pool under PyTorch's names, and ``session_bytes``. Waits for the engine."""
        return memory.stats_of(self._code(device))

    def memory_allocated(self, device: Any = None) -> int:
        """Bytes of this session's tensors on the device."""
        return self.memory_stats(device)["session_bytes.current"]

    def max_memory_allocated(self, device: Any = None) -> int:
        """The maximum of ``memory_allocated`` since ``reset_peak_memory_stats``."""
        return self.memory_stats(device)["session_bytes.peak"]

    def reset_peak_memory_stats(self, device: Any = None) -> None:
        """Resets ``max_memory_allocated``. The pool's peaks are shared by all sessions and are not reset."""
        _C.ops.reset_peak_memory(self._code(device))

    def reset_accumulated_memory_stats(self, device: Any = None) -> None:
        """Makes the counters of ``memory_stats``, such as ``num_ooms``, start at 0 for this process; see torch.cuda."""
        memory.reset_accumulated(self._code(device))

    def memory_reserved(self, device: Any = None) -> int:
        """Bytes that the engine has reserved on the device, for all sessions."""
        return self.memory_stats(device)["reserved_bytes.all.current"]

    def max_memory_reserved(self, device: Any = None) -> int:
        """The maximum of ``memory_reserved`` since the engine started."""
        return self.memory_stats(device)["reserved_bytes.all.peak"]

    def mem_get_info(self, device: Any = None) -> tuple[int, int]:
        """Free and total bytes of the device, as its library reports them."""
        return self.memory_stats(device)["free_bytes"], self._entry(device)["total_memory"]

    def empty_cache(self) -> None:
        """Releases unused memory that is cached for this session's streams. Does not wait for the engine."""
        for index in range(self.device_count()):
            _C.ops.empty_cache(self._code(index))

    def manual_seed(self, seed: int) -> None:
        """``torch.manual_seed``: a session has one generator for all devices."""
        _random.manual_seed(seed)

    manual_seed_all = manual_seed

    def get_rng_state(self, device: Any = None):
        """The state of the session's generator. Raises if there is no such device."""
        self._entry(device)
        return _random.get_rng_state()

    def set_rng_state(self, new_state, device: Any = None) -> None:
        """Restores a state returned by get_rng_state, for every device."""
        self._entry(device)
        _random.set_rng_state(new_state)

    def current_stream(self, device: Any = None) -> streams.Stream:
        """The device's stream. A session has one per device."""
        return PluginStream(self, self._index(device))

    default_stream = current_stream

    def set_stream(self, stream: streams.Stream) -> None:
        """Makes the stream's device the current one."""
        self.set_device(stream.device)


class PluginStream(streams.Stream):
    """The session's work on a device of a device library."""

    def __init__(self, module: DeviceModule, index: int) -> None:
        self._module = module
        self.device = _C.device(module._type, index)

    def synchronize(self) -> None:
        """Waits until everything issued so far has been executed."""
        self._module.synchronize(self.device.index)

    def __repr__(self) -> str:
        return f"<{self._module.__name__}.Stream device={self.device}>"


def backend_name() -> str:
    """The name of the first type of devices of a device library; "privateuseone" if no engine has announced one."""
    return next(iter(_C.plugin_types()), "privateuseone")


def device_module(name: str) -> ModuleType | None:
    """The module of a type of devices: the registered one, else one made for the name if an engine has announced it or
    the program has renamed to it; else None."""
    if name in _registered:
        return _registered[name]
    return _made_module(name) if name in _C.plugin_types() else None


def _made_module(name: str) -> DeviceModule:
    if name not in _made:
        _made[name] = DeviceModule(name)
    return _made[name]


def accelerator_module() -> ModuleType | None:
    """The module of the engine's accelerator: torch.cuda if it has GPUs, else that of its first type of devices of a
    device library; None: it has neither."""
    from . import cuda

    if cuda.is_available():
        return cuda
    # A registered module need not have the functions of an accelerator.
    return next((module for module in map(_made_module, _C.plugin_types()) if module.is_available()), None)


def register_device_module(device_type: str, module: ModuleType) -> None:
    """Makes a module the attribute of torch for a type of devices (``torch._register_device_module``)."""
    import sys

    package = sys.modules["teletensor"]
    name = _C.device(device_type).type
    if hasattr(package, name) and device_module(name) is not getattr(package, name):
        raise RuntimeError(f"The runtime module of '{name}' has already been registered with '{getattr(package, name)}'")
    _registered[name] = module
    setattr(package, name, module)
    sys.modules[f"teletensor.{name}"] = module
