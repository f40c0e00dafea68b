"""Passes operator calls to dispatch modes and to __torch_dispatch__ of tensors; called by bindings/tensor/torch_dispatch.h.

An operator of the engine reaches handlers as PyTorch's operator (torch.ops.aten) with the same name and arguments, else as
an operator of the namespace teletensor. Handlers run above autocast and above the engine's recording of gradients: a
gradient is recorded for the operators that a handler calls, and the operators of a backward pass do not reach handlers.
"""

from __future__ import annotations

import functools
import threading
from typing import Any

from .. import _C
from .._C import Tensor
from .._declarations import ATEN_NAMES
from ..overrides import documented_parameters
from . import aten
from .handlers import call_dispatch_handlers, flat
from .operators import OpOverload
from .schema import Argument, Schema

# Parameters of the engine's operators that have another name in PyTorch's.
_RENAMED = {
    "vander": {"x": "input"},
    "split": {"split_size_or_sections": "split_size"}, "split_with_sizes": {"split_size_or_sections": "split_sizes"},
    "dropout": {"training": "train"}, "uniform_like": {"from_": "from"}, "random_like": {"from_": "from"},
}  # fmt: skip
# Operators whose number arguments are tensors in PyTorch's: x + 1 is add.Tensor(x, 1).
_NUMBERS_AS_TENSORS = frozenset(("add", "sub", "mul", "div", "add_", "sub_", "mul_", "div_"))
_WITH_OTHER_RESULTS = frozenset(["adaptive_max_pool2d"])  # aten's operator of this name returns the indices, too


@functools.cache
def _parameters(name: str) -> tuple[tuple[str, Any, bool], ...]:
    """An operator's parameters: name, default, keyword only."""
    renamed = _RENAMED.get(name, {})
    return tuple((renamed.get(p, p), default, only) for p, default, only in documented_parameters(getattr(_C.ops, name)))


class EngineOverload(OpOverload):
    """An operator of the engine that PyTorch does not have, in the namespace teletensor."""

    def __init__(self, name: str) -> None:
        arguments = tuple(Argument(p, "Any", default, only) for p, default, only in _parameters(name))
        text = f"teletensor::{name}({', '.join(a.name for a in arguments)}) -> Any"
        super().__init__(Schema(f"teletensor::{name}", "", arguments, text, "Any"))
        self.has_out = False

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return getattr(_C.ops, self._opname)(*args, **kwargs)


_engine_overload = functools.cache(EngineOverload)


class EnginePacket:
    """An operator of the engine, with its one overload."""

    def __init__(self, overload: EngineOverload) -> None:
        self.default, self.__name__ = overload, overload._opname

    def overloads(self) -> list[str]:
        """The names of the overloads."""
        return ["default"]

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self.default(*args, **kwargs)


@functools.cache
def engine_names() -> list[str]:
    """The names of the engine's operators."""
    return [name for name in vars(_C.ops) if not name.startswith("__")]


def engine_packet(name: str) -> EnginePacket | None:
    """The engine's operator of this name, or None."""
    return EnginePacket(_engine_overload(name)) if hasattr(_C.ops, name) and not name.startswith("__") else None


def _name(argument: Argument) -> str:
    """The name of a declaration's argument in the engine."""
    return "input" if argument.name in ("self", "x") else argument.name


# For each argument of an overload that is no output: its name, whether it is keyword only, the position of its value among the
# arguments of the engine's operator, and its default.
Sources = list[tuple[str, bool, int | None, Any]]
_overloads: dict[tuple, tuple[OpOverload, Sources] | None] = {}  # by everything that the choice of an overload depends on


def _kind(value: Any, parameter: tuple[str, Any, bool]) -> Any:
    """The properties of an argument that the choice of an overload depends on."""
    if isinstance(value, Tensor):
        return Tensor
    if isinstance(value, (list, tuple)):
        return type(value), frozenset(Tensor if isinstance(v, Tensor) else type(v) for v in value)
    return type(value), value == parameter[1]


def _matching(packet: aten.AtenPacket, given: dict[str, Any], defaults: dict[str, Any], has_out: bool) -> OpOverload | None:
    """The smallest overload that accepts the given arguments by name, or None."""
    numbers = packet.__name__ in _NUMBERS_AS_TENSORS
    found: list[tuple[int, OpOverload]] = []
    for name in packet.overloads():
        overload = getattr(packet, name)
        arguments = [a for a in overload._schema.arguments if not (a.is_write and a.kwarg_only)]
        known = {_name(a) for a in arguments}
        unknown = any(n not in known and not _same(value, defaults[n]) for n, value in given.items())
        if overload.has_out != has_out or unknown:
            continue
        if all(aten.accepts(a.type, given[_name(a)], numbers) if _name(a) in given else a.has_default for a in arguments):
            found.append((len(arguments), overload))
    return min(found, key=lambda pair: pair[0])[1] if found else None


def _same(value: Any, default: Any) -> bool:
    return value is None or (not isinstance(value, (Tensor, list)) and value == default)


def _found(base: str, names: tuple, arguments: list[Any], has_out: bool) -> tuple[OpOverload, Sources] | None:
    """The overload of aten::base that accepts a call of the engine's operator with these parameters, or None."""
    packet = None if base in _WITH_OTHER_RESULTS else aten.packet(base)
    given = {p: value for (p, _, _), value in zip(names, arguments)}
    overload = packet and _matching(packet, given, {p: default for p, default, _ in names}, has_out)
    if overload is None:
        return None
    places = {p: i for i, p in enumerate(given)}
    inputs = [a for a in overload._schema.arguments if not (a.is_write and a.kwarg_only)]
    return overload, [(a.name, a.kwarg_only, places.get(_name(a)), a.default) for a in inputs]


def _arguments(sources: Sources, arguments: list[Any]) -> tuple[tuple, dict[str, Any]]:
    """The arguments of a call in the declaration's order, without trailing defaults."""
    args: list[Any] = []
    kept = 0
    kwargs = {}
    for parameter, keyword_only, place, default in sources:
        value = default if place is None else arguments[place]
        is_default = value is default or (not isinstance(value, Tensor) and value == default)
        if not keyword_only:
            args.append(value)
            kept = kept if is_default else len(args)
        elif not is_default:
            kwargs[parameter] = value
    return tuple(args[:kept]), kwargs


def resolve(name: str, arguments: list[Any], out: list | None, in_place: bool) -> tuple[OpOverload, tuple, dict[str, Any]]:
    """Returns PyTorch's operator for a call of an operator of the engine, and its arguments."""
    if name == "assign" and (in_place or out is not None):
        return aten.packet("copy_").default, tuple(arguments), {}
    if name == "full_like" and out is not None and out[0] is arguments[0]:
        return aten.packet("fill_").Scalar, tuple(arguments[:2]), {}
    if name == "sub" and not isinstance(arguments[0], Tensor):  # 1 - x
        return aten.packet("rsub").Scalar, (arguments[1], arguments[0]), {}
    names = _parameters(name)
    base = ATEN_NAMES.get(name, name)
    if out is not None and len(out) == 1 and out[0] is arguments[0]:
        in_place, out = True, None  # the methods written in Python
    key = (name, in_place, out is None, *map(_kind, arguments, names))
    if key not in _overloads:
        _overloads[key] = _found(f"{base}_" if in_place else base, names, arguments, out is not None)
    if (found := _overloads[key]) is None:
        overload = _engine_overload(name)
        keywords = {p: value for (p, _, only), value in zip(names, arguments) if only}
        arguments = [value for (_, _, only), value in zip(names, arguments) if not only]
        if in_place:
            keywords["out"] = arguments[0]
        elif out is not None:
            keywords["out"] = out[0] if len(out) == 1 else tuple(out)
        return overload, tuple(arguments), keywords
    overload, sources = found
    args, kwargs = _arguments(sources, arguments)
    if out is not None:
        targets = [a.name for a in overload._schema.arguments if a.is_write and a.kwarg_only]
        kwargs.update(zip(targets, out))
    return overload, args, kwargs


class _Running(threading.local):
    args: tuple | None = None  # the arguments that the handlers of this thread's innermost call receive
    call: tuple[str, list[Any], list | None] | None = None


_running = _Running()


def engine_call(args: tuple) -> tuple[str, list[Any], list | None] | None:
    """The engine's operator, its arguments and the tensors that receive the results, for a handler that received `args`.

    Returns None if `args` are not those that the dispatch passed to the handlers of the current call.
    """
    return _running.call if _running.args is args else None


def in_format(tensor: Tensor, memory_format: Any) -> Tensor:
    """The tensor, or a copy, in a memory format, by operators that have no format among their arguments."""
    if tensor.is_contiguous(memory_format=memory_format):
        return tensor
    dims = {"torch.channels_last": 4, "torch.channels_last_3d": 5}.get(str(memory_format))
    if dims is None:
        return tensor.contiguous()
    if tensor.dim() != dims:
        raise RuntimeError(f"required rank {dims} tensor to use {str(memory_format).removeprefix('torch.')} format")
    return tensor.movedim(1, -1).contiguous().movedim(-1, 1)


def _direct(name: str, arguments: list[Any], into: list | None, memory_format: Any) -> Any:
    """The result of a handler that receives the engine's operators themselves, by ``run_engine_call``, which function
    transforms have; NotImplemented if the first handler is another one. The handler's ``laid_out``, or ``in_format``,
    converts the result to a memory format."""
    result, handler = _handled(name, arguments, into)
    if memory_format is None or result is NotImplemented:
        return result
    laid_out = getattr(handler, "laid_out", None)
    return laid_out(name, result, memory_format) if laid_out else in_format(result, memory_format)


def _handled(name: str, arguments: list[Any], into: list | None) -> tuple[Any, Any]:
    """The result of ``run_engine_call``, or NotImplemented, and the mode or class that has it."""
    if _C._len_torch_dispatch_stack():
        mode = _C._get_dispatch_stack_at(_C._len_torch_dispatch_stack() - 1)
        if (run := getattr(mode, "run_engine_call", None)) is None:
            return NotImplemented, mode
        _C._pop_torch_dispatch_stack()
        try:
            return run(name, arguments, into), mode
        finally:
            _C._push_on_torch_dispatch_stack(mode)
    run = kind = None
    for value in flat((*arguments, *(into or ()))):
        if _C._handles_dispatch(value) and (run := getattr(kind := type(value), "run_engine_call", None)) is None:
            return NotImplemented, kind
    return NotImplemented if run is None else run(name, arguments, into), kind


def call(name: str, arguments: list[Any], out: list | None, in_place: bool, requires_grad: bool, memory_format: Any = None) -> Any:
    """Passes a call of an operator of the engine to the handlers.

    Args:
        name: the operator's name in the engine.
        arguments: a value for each of its parameters.
        out: the tensors that receive the results, or None.
        in_place: whether the first argument receives the result.
        requires_grad: whether the results require gradients, for operators that create tensors.
        memory_format: that of the result, for operators that create or copy tensors, or None.
    """
    into = arguments[:1] if in_place else out
    result = _direct(name, arguments, into, memory_format)
    if result is NotImplemented:
        overload, args, kwargs = resolve(name, arguments, out, in_place)
        if memory_format is not None:
            kwargs["memory_format"] = memory_format
        before = _running.args, _running.call
        _running.args, _running.call = args, (name, arguments, into)
        try:
            result = call_dispatch_handlers(overload, args, kwargs)
        finally:
            _running.args, _running.call = before
    if requires_grad:
        for tensor in (result,) if isinstance(result, Tensor) else result:
            tensor.requires_grad_()
    return result
