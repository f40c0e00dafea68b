"""torch.utils.backend_registration: renames the device type of a device library and adds methods for it.

The devices are the engine's (``teletensord --devices``, docs/devices.md), which announces their names: a program need
not rename or register anything. ``privateuseone`` denotes the first type.
"""

from __future__ import annotations

from typing import Any

from .. import _C
from .._C import Tensor
from .._plugin_devices import backend_name
from ..nn import Module
from ..nn.utils.rnn import PackedSequence

__all__ = ["generate_methods_for_privateuse1_backend", "rename_privateuse1_backend"]

_name: str | None = None  # as renamed


def rename_privateuse1_backend(backend_name: str) -> None:
    """Renames the engine's first type of devices of a device library in this process; the engine's name remains valid.

    Raises RuntimeError if it was renamed to another name before.
    """
    global _name
    if not isinstance(backend_name, str):
        raise TypeError(f"rename_privateuse1_backend: expected a str, got {type(backend_name).__name__}")
    if _name not in (None, backend_name):
        raise RuntimeError(
            f"torch.register_privateuse1_backend() has already been set! Current backend: {_name}, got {backend_name}"
        )
    _C.rename_plugin_type(backend_name)
    _name = backend_name


def _add(owner: type, name: str, value: Any) -> None:
    if hasattr(owner, name):
        raise RuntimeError(
            f"Can not automatically generate {name}() or {name} method for {owner.__name__}. Because {owner.__name__} has "
            "an existing attribute of that name"
        )
    setattr(owner, name, value)


def _placed(name: str, device: Any) -> _C.device:
    if device is None:
        return _C.device(name)
    return _C.device(name, device) if isinstance(device, int) else _C.device(device)


def _for_tensor(name: str) -> None:
    def to_backend(self: Tensor, device: Any = None, non_blocking: bool = False) -> Tensor:
        """A copy on the device, or the tensor itself if it is there. ``non_blocking`` makes no difference: copies never
        block the program."""
        if not isinstance(non_blocking, bool):
            raise TypeError(f"{name}(): expected non_blocking to be a bool, got {type(non_blocking).__name__}")
        return self.to(_placed(name, device))

    _add(Tensor, f"is_{name}", property(lambda self: self.device.type == name))
    _add(Tensor, name, to_backend)


def _for_module(name: str) -> None:
    def to_backend(self: Module, device: Any = None) -> Module:
        """Moves all parameters and buffers to the device."""
        return self._apply(lambda tensor: tensor.to(_placed(name, device)))

    _add(Module, name, to_backend)


def _for_packed_sequence(name: str) -> None:
    def to_backend(self: PackedSequence, *args: Any, **kwargs: Any) -> PackedSequence:
        """A copy on the device."""
        return self.to(name, *args, **kwargs)

    _add(PackedSequence, f"is_{name}", property(lambda self: self.data.device.type == name))
    _add(PackedSequence, name, to_backend)


def generate_methods_for_privateuse1_backend(
    for_tensor: bool = True, for_module: bool = True, for_packed_sequence: bool = True, for_storage: bool = False,
    unsupported_dtype: list | None = None,
) -> None:  # fmt: skip
    """Adds ``Tensor.mydev()``, ``Tensor.is_mydev``, ``Module.mydev()`` and the same for packed sequences, where mydev is
    the name of the first type of devices of a device library.

    Args:
        for_tensor, for_module, for_packed_sequence: the classes that get methods.
        for_storage: must be False: a storage is copied with its tensor.
        unsupported_dtype: of storages; must be None.

    Raises RuntimeError if a class has an attribute of the name.
    """
    if for_storage or unsupported_dtype is not None:
        raise NotImplementedError(
            "generate_methods_for_privateuse1_backend: for_storage and unsupported_dtype are not implemented: copy a tensor instead"
        )
    name = backend_name()
    for wanted, generate in ((for_tensor, _for_tensor), (for_module, _for_module), (for_packed_sequence, _for_packed_sequence)):
        if wanted:
            generate(name)
