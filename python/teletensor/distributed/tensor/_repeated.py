"""Calls with DTensors that were planned before: what a call needs whose local tensors are already where its plan has them.

A call is recognised by its operator, and by the placements, sizes and dtypes of its arguments. Then nothing is planned: the
local tensors are passed to the operator, and the results get the placements that the first such call found. Calls that move
bytes, draw random numbers or run on several engines are not remembered.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ... import _C
from ..._library.engine_operators import Operator
from ._spec import Spec
from ._state import Distributed, make

_MOST = 4096  # calls
_BY_VALUE = frozenset((bool, int, str, type(None), type(_C.float32)))


class Remembered(NamedTuple):
    """What a call does.

    Attributes:
        op: the operator of the local call.
        template: its arguments: the number of the call's argument, or (value,).
        summed: (number of an argument, dimensions of the mesh) whose gradient is the sum of the ranks' gradients.
        outputs: (placements, whether it is a copy instead of a view, sizes) of each result.
    """

    op: Operator
    template: list[int | tuple] | None
    summed: list[tuple[int, list[int]]]
    outputs: list[tuple[tuple, bool, Sequence[int]]]


class Call(NamedTuple):
    """A call's key, its arguments with local tensors instead of DTensors, and the spec of the first DTensor."""

    key: tuple
    local: list[Any]
    spec: Spec


_known: dict[tuple, Remembered] = {}


def recognised(name: str, arguments: list[Any], into: list | None, is_pointwise: bool) -> Call | None:
    """The key of a call; None if it has other tensors than DTensors, subclasses included, which may have a dispatch of their
    own, or DTensors with several local tensors.
    """
    key: list[Any] = [name, into is None, _C.is_grad_enabled()]
    local: list[Any] = []
    first: Spec | None = None
    for value in arguments:
        kind = type(value)
        if kind is Distributed.created:
            own = value._locals
            if len(own) != 1:
                return None
            spec = value._spec
            if first is None:
                first = spec
            key += (spec.number, value.shape, own[0].dtype, own[0].requires_grad)
            local.append(own[0])
        elif isinstance(value, _C.Tensor):
            return None
        elif kind in _BY_VALUE:
            key += (kind, value)
            local.append(value)
        elif kind is list:
            if value and type(value[0]) is Distributed.created:
                inner = recognised("", value, None, False)
                if inner is None:
                    return None
                first = first or inner.spec
                key.append(inner.key)
                local.append(inner.local)
            elif any(isinstance(v, _C.Tensor) for v in value):
                return None
            else:
                key.append(repr(value))
                local.append(value)
        else:
            key.append(kind if kind is float and is_pointwise else repr(value))
            local.append(value)
    for target in into or ():
        if type(target) is not Distributed.created or len(target._locals) != 1:
            return None
        key += (target._spec.number, target.shape, target._locals[0].dtype)
    return None if first is None else Call(tuple(key), local, first)


def known(call: Call) -> Remembered | None:
    """What an equal call did before."""
    return _known.get(call.key)


def remember(call: Call, what: Remembered) -> None:
    """Stores what a call did, for equal calls."""
    if len(_known) >= _MOST:
        _known.clear()
    _known[call.key] = what


def forget() -> None:
    """Removes all calls: operators may have other placements from now on."""
    _known.clear()


def template_of(local: list[Any], values: Sequence[Any]) -> list[int | tuple] | None:
    """How to get the arguments of a local call from those of a call; None if some are tensors that are made for it."""
    template: list[int | tuple] = []
    for value in values:
        if not isinstance(value, (_C.Tensor, list)):
            template.append((value,))
            continue
        place = next((i for i, own in enumerate(local) if own is value), None)
        if place is None and (isinstance(value, _C.Tensor) or any(isinstance(v, _C.Tensor) for v in value)):
            return None
        template.append((value,) if place is None else place)
    return template


def run(what: Remembered, call: Call, into: list | None) -> list:
    """The results of a call that is known."""
    values = call.local
    for place, dims in what.summed:
        if values[place].requires_grad and _C.is_grad_enabled():
            groups = call.spec.mesh._members()[0].groups
            for m in dims:
                values[place] = _C.ops.group_gradient_reduced(values[place], groups[m])
    if what.template is not None:
        values = [values[t] if type(t) is int else t[0] for t in what.template]
    if into is not None:
        what.op.call(values, [t._locals[0] for t in into])
        return into
    results = what.op.call(values)
    mesh = call.spec.mesh
    return [make((r,), Spec(mesh, placements, moved), size) for r, (placements, moved, size) in zip(results, what.outputs, strict=True)]
