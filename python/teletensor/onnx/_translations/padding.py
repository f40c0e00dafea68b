"""Padding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import _C
from .._builder import Builder, Value
from .._registry import TRANSLATIONS, translates


def _pads(pad: Sequence[Any], rank: int) -> list[Any]:
    """ONNX's order, the starts of all dimensions and then the ends, of pairs from the last dimension backwards."""
    starts, ends = [0] * rank, [0] * rank
    for i in range(len(pad) // 2):
        starts[rank - 1 - i], ends[rank - 1 - i] = pad[2 * i], pad[2 * i + 1]
    return [*starts, *ends]


@translates("aten.constant_pad_nd.default")
def _constant_pad(b: Builder, self: Value, pad: Sequence[Any], value: Any = 0) -> Value:
    work = _C.int32 if self.dtype in (_C.int16,) else self.dtype
    x = b.cast(self, work)
    made = b.op("Pad", x, b.ints(_pads(pad, self.rank)), b.value(0 if value is None else value, work), mode="constant")
    return b.cast(made, self.dtype)


def _pad_mode(mode: str) -> Any:
    def translate(b: Builder, self: Value, padding: Sequence[Any]) -> Value:
        if any(type(p) is int and p < 0 for p in padding):
            self = _cropped(b, self, padding)
            padding = [max(p, 0) for p in padding]
        return b.op("Pad", self, b.ints(_pads(padding, self.rank)), mode=mode)

    return translate


def _cropped(b: Builder, x: Value, padding: Sequence[int]) -> Value:
    for i in range(len(padding) // 2):
        dim = x.rank - 1 - i
        before, after = min(padding[2 * i], 0), min(padding[2 * i + 1], 0)
        if before or after:
            x = b.slice(x, dim, -before, after or 2**62)
    return x


for _n in (1, 2, 3):
    TRANSLATIONS[f"aten.reflection_pad{_n}d.default"] = _pad_mode("reflect")
    TRANSLATIONS[f"aten.replication_pad{_n}d.default"] = _pad_mode("edge")


def _circular(b: Builder, x: Value, padding: Sequence[Any]) -> Value:
    """Parts of the other end, concatenated; what is cropped does not reappear there."""
    if any(type(p) is int and p < 0 for p in padding):
        x = _cropped(b, x, padding)
        padding = [max(p, 0) for p in padding]
    for i in range(len(padding) // 2):
        dim, (before, after) = x.rank - 1 - i, padding[2 * i : 2 * i + 2]
        parts = [x]
        if before != 0:
            parts.insert(0, b.slice(x, dim, b.arithmetic("Sub", b.size(x, dim), before), 2**62))
        if after != 0:
            parts.append(b.slice(x, dim, 0, after))
        x = (
            x
            if len(parts) == 1
            else b.op("Concat", *parts, axis=dim, shape=tuple(None if d == dim else n for d, n in enumerate(x.shape)))
        )
    return x


@translates("aten._pad_circular.default")
def _pad_circular(b: Builder, self: Value, pad: Sequence[Any]) -> Value:
    return _circular(b, self, pad)


@translates("teletensor.pad_edges.default")
def _pad_edges(b: Builder, input: Value, pad: Sequence[Any], mode: str) -> Value:  # noqa: A002
    return _circular(b, input, pad) if mode == "circular" else _pad_mode({"reflect": "reflect", "replicate": "edge"}[mode])(b, input, pad)


@translates("aten.pad.default")
def _pad(b: Builder, self: Value, pad: Sequence[Any], mode: str = "constant", value: Any = None) -> Value:
    if mode == "constant":
        return _constant_pad(b, self, pad, value)
    return _pad_edges(b, self, pad, mode)
