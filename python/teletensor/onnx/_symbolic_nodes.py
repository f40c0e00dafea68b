"""Operators that stand for any node of ONNX: their attributes are lists, which graphs can contain."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from .. import _C
from .._C import Tensor
from ..library import custom_op
from ._dtypes import dtype_of

_ENCODED = (
    "str[] attr_keys, str[] attr_types, int[] attr_starts, int[] attr_ints, float[] attr_floats, str[] attr_strs, "
    "str[] metadata_props_keys, str[] metadata_props_values, str domain='', int? version=None"
)  # fmt: skip
_KINDS = {int: ("i", "attr_ints"), bool: ("i", "attr_ints"), float: ("f", "attr_floats"), str: ("s", "attr_strs")}


def encoded(domain_op: str, attrs: dict[str, Any], version: int | None, metadata: dict[str, str]) -> dict[str, Any]:
    """The operators' keyword arguments.

    Raises:
        ValueError: an attribute is no number, string or list of them.
    """
    domain, _, name = domain_op.rpartition("::")
    made: dict[str, Any] = {"attr_ints": [], "attr_floats": [], "attr_strs": []}
    types, starts = [], []
    for key, value in attrs.items():
        many = isinstance(value, Sequence) and not isinstance(value, str)
        items = list(value) if many else [value]
        if not items or any(type(v) not in _KINDS for v in items):
            raise ValueError(f"Unsupported attribute type for {key}: {value!r}")
        kind = float if any(isinstance(v, float) for v in items) else type(items[0])
        letter, place = _KINDS[kind]
        starts.append(len(made[place]))
        made[place] += [int(v) if letter == "i" else float(v) if letter == "f" else v for v in items]
        types.append(letter + ("s" if many else "") + (f"{len(items)}" if many else ""))
    return {
        "op_type": name, "attr_keys": list(attrs), "attr_types": types, "attr_starts": starts, **made,
        "metadata_props_keys": list(metadata), "metadata_props_values": list(metadata.values()), "domain": domain, "version": version,
    }  # fmt: skip


def decoded(options: dict[str, Any]) -> dict[str, Any]:
    """The attributes of a call."""
    found: dict[str, Any] = {}
    for key, kind, start in zip(options["attr_keys"], options["attr_types"], options["attr_starts"], strict=True):
        values = options[{"i": "attr_ints", "f": "attr_floats", "s": "attr_strs"}[kind[0]]]
        found[key] = list(values[start : start + int(kind[2:])]) if len(kind) > 1 else values[start]
    return found


def _zeros(inputs: Sequence[Tensor | None], shape: Sequence[int], number: int, device: str) -> Tensor:
    first = next((v for v in inputs if v is not None), None)
    return _C.torch.zeros(list(shape), dtype=dtype_of(number), device=device if first is None else first.device)


@functools.cache
def single() -> Any:
    """The operator with one result."""
    schema = f"(Tensor?[] inputs, str op_type, int onnx_dtype, *, SymInt[] shape, {_ENCODED}) -> Tensor"

    def zeros(inputs: Any, op_type: str, onnx_dtype: int, *, shape: Any, **_: Any) -> Tensor:
        del op_type
        return _zeros(inputs, shape, onnx_dtype, "cpu")

    made = custom_op("onnx_symbolic::_symbolic", mutates_args=(), schema=schema)(zeros)
    made.register_fake(lambda inputs, op_type, onnx_dtype, *, shape, **_: _zeros(inputs, shape, onnx_dtype, "meta"))
    return made


@functools.cache
def several() -> Any:
    """The operator with several results, whose sizes are in one list, `ranks` sizes for each."""
    schema = (
        f"(Tensor?[] inputs, str op_type, int[] onnx_dtypes, *, int[] ranks, SymInt[] shape, {_ENCODED}) -> Tensor[]"
    )

    def parts(
        inputs: Any, numbers: Sequence[int], ranks: Sequence[int], shape: Sequence[int], device: str
    ) -> list[Tensor]:
        made, start = [], 0
        for number, rank in zip(numbers, ranks):
            made.append(_zeros(inputs, shape[start : start + rank], number, device))
            start += rank
        return made

    def zeros(inputs: Any, op_type: str, onnx_dtypes: Any, *, ranks: Any, shape: Any, **_: Any) -> list[Tensor]:
        del op_type
        return parts(inputs, onnx_dtypes, ranks, shape, "cpu")

    made = custom_op("onnx_symbolic::_symbolic_multi_out", mutates_args=(), schema=schema)(zeros)
    made.register_fake(
        lambda inputs, op_type, onnx_dtypes, *, ranks, shape, **_: parts(inputs, onnx_dtypes, ranks, shape, "meta")
    )
    return made
