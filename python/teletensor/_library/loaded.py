"""The operators that the engine has loaded from libraries (teletensord --operators), as objects of torch.ops.

They are found by the current session, and asked for once per session. Functions of torch.library add to them what they add to
operators that Python defines: fake kernels, kernels by device, derivatives.
"""

from __future__ import annotations

from typing import Any

from .. import _C, _connection
from .operators import OpOverload, OpOverloadPacket
from .schema import Schema, parse


class LoadedOverload(OpOverload):
    """An operator of a library. The engine computes and differentiates it, unless a kernel or a derivative is registered."""

    def __init__(self, schema: Schema, number: int, doc: str) -> None:
        super().__init__(schema)
        self.number = number
        self.__doc__ = doc or None
        self.kernels["Engine"] = self._in_engine

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        values = (*args, *kwargs.values())
        own = len(self.kernels) > 1 or self.fake is not None or self.backward is not None or self.autocast
        if own or any(isinstance(v, (list, tuple)) for v in values) or _C._has_torch_function(values) or _C._is_dispatched(values):
            return super().__call__(*args, **kwargs)
        try:  # the same, without the objects that nothing needs
            return _C.call_custom(self.number, *args, **kwargs)
        except TypeError:
            self._schema.bind(args, kwargs)  # raises PyTorch's error for missing and unknown arguments
            raise

    def __deepcopy__(self, _: dict[int, Any]) -> LoadedOverload:
        return self

    def _in_engine(self, *args: Any, **kwargs: Any) -> Any:
        return _C.call_custom(self.number, *args, **kwargs)

    def _kernel(self, device: str) -> Any:
        key = {"meta": "Meta"}.get(device, device.upper())
        if key == "Meta" and "Meta" not in self.kernels and self.fake is not None:
            return self.fake
        for name in (*(() if key in self.disabled else (key,)), "CompositeExplicitAutograd", "CompositeImplicitAutograd"):
            if name in self.kernels:
                return self.kernels[name]
        return self.kernels["Engine"]

    def _call(self, device: str, positional: list, keyword: dict) -> Any:
        kernel = self._kernel(device)
        own = self.backward is not None or any(key.startswith("Autograd") for key in self.kernels)
        if kernel is self.kernels["Engine"] and not own:
            return kernel(*positional, **keyword)
        return super()._call(device, positional, keyword)


class LoadedPacket(OpOverloadPacket):
    """The name of an operator of a library, which has one overload."""

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self._overloads["default"](*args, **kwargs)

    def __deepcopy__(self, _: dict[int, Any]) -> LoadedPacket:
        return self


_packets: dict[tuple[str, int], OpOverloadPacket] = {}  # by name and number: engines may have different ones of a name
_of_session: tuple[Any, dict[str, OpOverloadPacket]] = (None, {})  # of the last session that was asked


def _packet_of(number: int, name: str, schema: str, doc: str) -> OpOverloadPacket:
    if (name, number) not in _packets:
        overload = LoadedOverload(parse(schema), number, doc)
        packet = _packets[name, number] = LoadedPacket(name)
        packet.__doc__ = overload.__doc__
        packet._overloads["default"] = overload
        overload.overloadpacket = packet
    return _packets[name, number]


def _packets_of_session() -> dict[str, OpOverloadPacket]:
    """The operators of the current session's engine by name; none without a session: a look does not start an engine."""
    global _of_session
    current = _connection._current
    if current is None:
        return {}
    if _of_session[0] is not current:
        rows = _C.custom_operators()
        _of_session = current, {name: _packet_of(number, name, schema, doc) for number, name, schema, doc, _ in rows}
    return _of_session[1]


def packet(qualified_name: str) -> OpOverloadPacket | None:
    """Returns the operator "namespace::name" of the current session's engine, or None."""
    return _packets_of_session().get(qualified_name)


def names(namespace: str) -> list[str]:
    """The names of a namespace's operators."""
    return [q.partition("::")[2] for q in _packets_of_session() if q.startswith(f"{namespace}::")]
