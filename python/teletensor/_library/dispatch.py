"""Passes operator calls to dispatch modes and to __torch_dispatch__ of tensors; called by bindings/tensor/torch_dispatch.h.

An operator of the engine reaches handlers as PyTorch's operator (torch.ops.aten) with the same name and arguments, else as
an operator of the namespace teletensor. Handlers run above autocast and above the engine's recording of gradients: a
gradient is recorded for the operators that a handler calls, and the operators of a backward pass do not reach handlers.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .. import _C
from .._C import Tensor
from .._declarations import ATEN_NAMES
from ..overrides import documented_parameters
from . import aten
from .handlers import call_dispatch_handlers
from .operators import OpOverload
from .schema import Argument, Schema

# Parameters of the engine's operators that have another name in PyTorch's.
_RENAMED = {
    "split": {"split_size_or_sections": "split_size"}, "split_with_sizes": {"split_size_or_sections": "split_sizes"},
    "dropout": {"training": "train"}, "uniform_like": {"from_": "from"}, "random_like": {"from_": "from"},
}  # fmt: skip
# Operators whose number arguments are tensors in PyTorch's: x + 1 is add.Tensor(x, 1).
_NUMBERS_AS_TENSORS = frozenset(("add", "sub", "mul", "div", "add_", "sub_", "mul_", "div_"))


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


def _name(argument: Argument) -> str:
    """The name of a declaration's argument in the engine."""
    return "input" if argument.name in ("self", "x") else argument.name


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


def _arguments(overload: OpOverload, given: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
    """The arguments of a call in the declaration's order, without trailing defaults."""
    args: list[Any] = []
    kept = 0
    kwargs = {}
    for a in overload._schema.arguments:
        if a.is_write and a.kwarg_only:
            continue
        value = given.get(_name(a), a.default)
        is_default = a.has_default and not isinstance(value, Tensor) and value == a.default
        if a.kwarg_only:
            if not is_default:
                kwargs[a.name] = value
            continue
        args.append(value)
        kept = kept if is_default else len(args)
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
    given = {p: value for (p, _, _), value in zip(names, arguments)}
    defaults = {p: default for p, default, _ in names}
    base = ATEN_NAMES.get(name, name)
    if out is not None and len(out) == 1 and out[0] is arguments[0]:
        in_place, out = True, None  # the methods written in Python
    packet = aten.packet(f"{base}_" if in_place else base)
    overload = packet and _matching(packet, given, defaults, out is not None)
    if overload is None:
        overload = _engine_overload(name)
        keywords = {p: value for (p, _, only), value in zip(names, arguments) if only}
        arguments = [value for (_, _, only), value in zip(names, arguments) if not only]
        if in_place:
            keywords["out"] = arguments[0]
        elif out is not None:
            keywords["out"] = out[0] if len(out) == 1 else tuple(out)
        return overload, tuple(arguments), keywords
    args, kwargs = _arguments(overload, given)
    if out is not None:
        targets = [a.name for a in overload._schema.arguments if a.is_write and a.kwarg_only]
        kwargs.update(zip(targets, out))
    return overload, args, kwargs


def call(name: str, arguments: list[Any], out: list | None, in_place: bool, requires_grad: bool) -> Any:
    """Passes a call of an operator of the engine to the handlers.

    Args:
        name: the operator's name in the engine.
        arguments: a value for each of its parameters.
        out: the tensors that receive the results, or None.
        in_place: whether the first argument receives the result.
        requires_grad: whether the results require gradients, for operators that create tensors.
    """
    result = call_dispatch_handlers(*resolve(name, arguments, out, in_place))
    if requires_grad:
        for tensor in (result,) if isinstance(result, Tensor) else result:
            tensor.requires_grad_()
    return result


def _is_mask(value: Any) -> bool:
    return isinstance(value, Tensor) and value.dtype in (_C.bool, _C.uint8)


def _indexed(x: Tensor, index: Any) -> tuple[Tensor, list[Tensor | None]]:
    """The view that slices, ints, None and ... select, and the index tensors that remain, one per dimension."""
    items = list(index) if isinstance(index, tuple) else [index]
    used = sum(i.dim() if _is_mask(i) else 1 for i in items if i is not None and i is not Ellipsis)
    tensors: list[Tensor | None] = []
    dim = 0
    for item in items:
        if item is Ellipsis:
            dim += x.dim() - used
        elif item is None:
            x = _C.ops.unsqueeze(x, dim)
            dim += 1
            used += 1
        elif isinstance(item, bool):
            raise NotImplementedError("[__getitem__] a bool as an index does not reach __torch_dispatch__; use a mask")
        elif isinstance(item, slice):
            start, stop, step = item.indices(x.shape[dim])
            if (start, stop, step) != (0, x.shape[dim], 1):
                x = _C.ops.slice(x, dim, start, stop, step)
            dim += 1
        elif isinstance(item, (Tensor, list)) or hasattr(item, "__array__"):
            chosen = item if isinstance(item, Tensor) else _C.tensor(item)
            tensors += [None] * (dim - len(tensors)) + [chosen] + [None] * (chosen.dim() - 1 if _is_mask(chosen) else 0)
            dim = len(tensors)
        else:
            x = _C.ops.select(x, dim, item.__index__())
            used -= 1
    return x, tensors


def _entries(tensors: list[Tensor | None]) -> list[Tensor | None]:
    """The list argument of operator `index`: a mask of several dimensions is one entry."""
    entries, skipped = [], 0
    for tensor in tensors:
        if skipped:
            skipped -= 1
            continue
        entries.append(tensor)
        skipped = tensor.dim() - 1 if _is_mask(tensor) else 0
    return entries


def get_item(x: Tensor, index: Any) -> Tensor:
    """x[index] as calls of operators."""
    view, tensors = _indexed(x, index)
    if not tensors:
        return _C.ops.alias(view) if view is x else view
    function: Callable = _C.ops.index_masked if any(map(_is_mask, tensors)) else _C.ops.index
    return function(view, _entries(tensors))


def set_item(x: Tensor, index: Any, value: Any) -> None:
    """x[index] = value as calls of operators."""
    view, tensors = _indexed(x, index)
    if not isinstance(value, Tensor):
        value = _C.tensor(value, dtype=view.dtype, device=view.device)
    if tensors:
        _C.ops.index_put(view, _entries(tensors), value, False, out=view)
    else:
        _C.ops.assign(view, value, out=view)


def get_T(x: Tensor) -> Tensor:  # noqa: N802 - the attribute's name
    """The tensor with its dimensions reversed."""
    return _C.ops.permute(x, tuple(range(x.dim() - 1, -1, -1)))


def get_mT(x: Tensor) -> Tensor:  # noqa: N802 - the attribute's name
    """The tensor with its last two dimensions exchanged."""
    return _C.ops.transpose(x, -2, -1)
