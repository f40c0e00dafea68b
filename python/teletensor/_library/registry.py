"""The custom operators of this process by qualified name; torch.ops reads this table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import loaded
from .operators import OpOverload, OpOverloadPacket
from .schema import Schema

ENGINE_NAMESPACES = ("aten", "prims")  # of the engine's operators

_packets: dict[str, OpOverloadPacket] = {}
# Of operators that are not defined, by qualified name: fake implementations, and kernels by dispatch key.
_early_fakes: dict[str, Callable] = {}
_early_kernels: dict[str, dict[str, Callable]] = {}


def packet(namespace: str, name: str) -> OpOverloadPacket | None:
    """Returns the operator namespace::name, or None if it is not defined."""
    return _packet(f"{namespace}::{name}")


def _packet(qualified_name: str) -> OpOverloadPacket | None:
    """An operator that this process has defined, or one that the engine has loaded, with what was registered before."""
    found = _packets.get(qualified_name)
    if found is None and (found := loaded.packet(qualified_name)) is not None:
        _apply_early(found.default, qualified_name)
    return found


def _apply_early(operator: OpOverload, qualified_name: str) -> None:
    """Adds what was registered before the operator existed."""
    if qualified_name in _early_fakes:
        operator.fake = _early_fakes.pop(qualified_name)
    if qualified_name in _early_kernels:
        operator.kernels.update(_early_kernels.pop(qualified_name))


def namespaces() -> set[str]:
    """The namespaces that have operators."""
    return {name.partition("::")[0] for name in _packets}


def names(namespace: str) -> list[str]:
    """The names of a namespace's operators."""
    own = [q.partition("::")[2] for q in _packets if q.startswith(f"{namespace}::")]
    return own + [name for name in loaded.names(namespace) if name not in own]


def find(qualified_name: str) -> OpOverload:
    """Returns the overload "ns::name" or "ns::name.overload". Raises RuntimeError if it is not defined."""
    base, _, overload = qualified_name.partition(".")
    found = _packet(base)
    if found is None or (overload or "default") not in found._overloads:
        raise RuntimeError(f"[library] expected an operator defined by custom_op() or define(), got {qualified_name!r}")
    return found._overloads[overload or "default"]


def kernels(qualified_name: str) -> dict[str, Callable]:
    """The kernels of an overload by dispatch key. Those of an operator that is not defined are kept until it is.

    Raises:
        ValueError: the name has no namespace.
        NotImplementedError: the operator is PyTorch's.
    """
    if "::" not in qualified_name:
        raise ValueError(f'Expected `qualname` to be of the form "namespace::name", but got {qualified_name}.')
    if qualified_name.partition("::")[0] in ENGINE_NAMESPACES:
        raise NotImplementedError(f"[Library] the kernels of {qualified_name} are in the engine and cannot be replaced")
    name = qualified_name.removesuffix(".default")
    base, _, overload = name.partition(".")
    found = _packet(base)
    if found is None or (overload or "default") not in found._overloads:
        return _early_kernels.setdefault(name, {})
    return found._overloads[overload or "default"].kernels


def set_early_fake(qualified_name: str, fake: Callable) -> None:
    """Keeps the fake implementation of an operator until it is defined."""
    _early_fakes[qualified_name] = fake


def define(schema: Schema, tags: Any = ()) -> OpOverload:
    """Adds an overload. Raises RuntimeError if it exists."""
    operator = OpOverload(schema)
    operator.tags = list(tags) if isinstance(tags, (list, tuple)) else [tags]
    found = _packets.setdefault(schema.name, OpOverloadPacket(schema.name))
    if operator._overloadname in found._overloads:
        previous = found._overloads[operator._overloadname]._schema
        raise RuntimeError(
            f"Tried to register an operator ({schema}) with the same name and overload name multiple times. Each overload's "
            f"schema should only be registered with a single call to def(). It was registered as {previous}"
        )
    _apply_early(operator, operator.name())
    found._overloads[operator._overloadname] = operator
    operator.overloadpacket = found
    return operator


def remove(operator: OpOverload) -> None:
    """Removes an overload, and its name with the last one."""
    found = operator.overloadpacket
    if found._overloads.get(operator._overloadname) is operator:
        del found._overloads[operator._overloadname]
        if not found._overloads:
            _packets.pop(found._qualified_op_name, None)
