"""Checks of arguments for which only one value is supported, or which do not change results."""

from __future__ import annotations

from typing import Any

from ._integers import is_int

_MEMORY_FORMATS = (
    "torch.contiguous_format", "torch.channels_last", "torch.channels_last_3d", "torch.preserve_format",
)  # fmt: skip


def check_layout(op: str, layout: Any) -> None:
    """Raises TypeError unless the layout is torch.strided or None: no other layouts are supported."""
    if layout is not None and layout != "torch.strided":
        raise TypeError(f"[{op}] expected layout to be torch.strided, got {layout!r}")


def check_memory_format(op: str, memory_format: Any) -> None:
    """Raises TypeError unless the value is one of PyTorch's formats or None. The format does not change any value."""
    if memory_format is not None and memory_format not in _MEMORY_FORMATS:
        raise TypeError(f"[{op}] expected memory_format to be a torch.memory_format, got {memory_format!r}")


def check_floating(op: str, **tensors: Any) -> None:
    """Raises NotImplementedError unless every tensor has a floating dtype; None is accepted."""
    for name, tensor in tensors.items():
        if tensor is not None and not tensor.is_floating_point():
            raise NotImplementedError(f"[{op}] expected {name} to have a floating dtype, got {tensor.dtype}")


def check_int64(op: str, name: str, tensor: Any) -> None:
    """Raises RuntimeError unless the tensor has the dtype int64."""
    if str(tensor.dtype) != "torch.int64":
        raise RuntimeError(f"[{op}] expected {name} to be of type torch.int64, got {tensor.dtype}")


def check_flags(op: str, **flags: Any) -> None:
    """Raises TypeError unless every flag is a bool."""
    for name, value in flags.items():
        if not isinstance(value, bool):
            raise TypeError(f"[{op}] expected {name} to be a bool, got {type(value).__name__}")


def check_optional_flags(op: str, **flags: Any) -> None:
    """Raises TypeError unless every flag is a bool or None."""
    check_flags(op, **{name: value for name, value in flags.items() if value is not None})


def check_kind(op: str, name: str, value: Any, kind: type) -> None:
    """Raises TypeError unless the value is an instance of the class; any integer is an int."""
    if not (is_int(value) if kind is int else isinstance(value, kind)):
        raise TypeError(f"[{op}] expected {name} to be {kind.__name__}, got {type(value).__name__}")


def reject_values(op: str, why: str, **values: Any) -> None:
    """Raises NotImplementedError if any of the values is not None. `why` is the reason given in the message."""
    for name, value in values.items():
        if value is not None:
            raise NotImplementedError(f"[{op}] expected {name} to be None, got {value!r}: {why}")
