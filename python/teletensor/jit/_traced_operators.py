"""The nodes that PyTorch's traces have for calls of operators: the operator's name and all its arguments with their types."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from .. import _C
from .._C import Tensor
from .._library import aten
from .._library.operators import OpOverload

_REDUCTIONS = ("none", "mean", "sum")  # by PyTorch's number
_GRID_MODES, _GRID_PADDINGS = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")


class Call(NamedTuple):
    """A node's kind, declaration and arguments. An argument is (PyTorch's type, value)."""

    kind: str
    schema: str
    arguments: list[tuple[str, Any]]


def _declared(name: str, overload: str, values: list) -> Call:
    """A call of an operator of PyTorch with values for all its arguments."""
    schema = getattr(aten.packet(name), overload)._schema
    return Call(schema.name, schema.text, list(zip((a.type for a in schema.arguments), values, strict=True)))


def _tensors_and(values: list) -> list[tuple[str, Any]]:
    """Arguments of an operator without a declaration here: their types follow from their values."""
    return [(_type_name(value), value) for value in values]


def _type_name(value: Any) -> str:
    if isinstance(value, Tensor):
        return "Tensor"
    if isinstance(value, (list, tuple)):
        kinds = {_type_name(v) for v in value} - {"None"}
        return f"{kinds.pop() if len(kinds) == 1 else 'float' if kinds == {'int', 'float'} else 'int'}[]"
    if value is None:
        return "None"
    return next((text for kind, text in ((bool, "bool"), (int, "int"), (float, "float"), (str, "str")) if isinstance(value, kind)), "Any")


def _convolution(v: dict[str, Any], transposed: bool, n: int) -> Call:
    """conv1d, conv2d, ...: traces of PyTorch contain the operator that all of them call."""

    def per_dimension(value: Any) -> list[int]:
        return [value] * n if isinstance(value, int) else list(value) * (n if len(value) == 1 else 1)

    stride, padding, dilation = (per_dimension(v[name]) for name in ("stride", "padding", "dilation"))
    output_padding = per_dimension(v.get("output_padding", 0))
    values = [
        v["input"], v["weight"], v["bias"], stride, padding, dilation, transposed, output_padding, v["groups"], False, False, True, True,
    ]  # fmt: skip
    types = ["Tensor", "Tensor", "Tensor?", *["int[]"] * 3, "bool", "int[]", "int", *["bool"] * 4]
    text = (
        "aten::_convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool "
        "transposed, SymInt[] output_padding, SymInt groups, bool benchmark, bool deterministic, bool cudnn_enabled, bool "
        "allow_tf32) -> Tensor"
    )
    return Call("aten::_convolution", text, list(zip(types, values, strict=True)))


def _batch_norm(v: dict[str, Any]) -> Call:
    names = "input weight bias running_mean running_var training momentum eps"
    return _declared("batch_norm", "default", [*(v[name] for name in names.split()), True])


def _attention(v: dict[str, Any]) -> Call:
    mask, scale = v["attn_mask"], v["scale"]
    values = [v["query"], v["key"], v["value"], mask, 0.0, v["is_causal"], scale, False]
    return _declared("scaled_dot_product_attention", "default", values)


def _interpolate(v: dict[str, Any]) -> Call:
    mode, n = v["mode"], v["input"].dim() - 2
    name = {"linear": "linear", "nearest-exact": "_nearest_exact"}.get(mode, mode.replace("-", "_"))
    kind = f"aten::{'_upsample' if name.startswith('_') else 'upsample_'}{name}{n}d"
    scales = list(v["scale_factors"]) or None
    values = [v["input"], None if scales else list(v["size"]), *([] if "nearest" in mode else [v["align_corners"]]), scales]
    return Call(kind, "(no schema)", _tensors_and(values))


def _grid_sampler(v: dict[str, Any]) -> Call:
    mode, padding = _GRID_MODES.index(v["mode"]), _GRID_PADDINGS.index(v["padding_mode"])
    return _declared("grid_sampler", "default", [v["input"], v["grid"], mode, padding, bool(v["align_corners"])])


def _cross_entropy(v: dict[str, Any]) -> Call:
    values = [v["input"], v["target"], v["weight"], _REDUCTIONS.index(v["reduction"]), v["ignore_index"], v["label_smoothing"]]
    return _declared("cross_entropy_loss", "default", values)


def _average_pool(name: str) -> Callable[[dict[str, Any]], Call]:
    names = "padding ceil_mode count_include_pad divisor_override".split()
    return lambda v: _declared(name, "default", [v["input"], v["kernel_size"], v["stride"] or [], *(v[n] for n in names)])


def _pad(v: dict[str, Any]) -> Call:
    return _declared("pad", "default", [v["input"], list(v["pad"]), "constant", float(v["value"]) or None])


def _to(v: dict[str, Any]) -> Call:
    rest = [v["non_blocking"], True, v["memory_format"]]
    if v["device"] is None:
        return _declared("to", "dtype", [v["input"], v["dtype"], *rest])
    return _declared("to", "dtype_layout", [v["input"], v["dtype"], None, v["device"], None, *rest])


def _recurrent(name: str) -> Callable[[dict[str, Any]], Call]:
    def make(v: dict[str, Any]) -> Call:
        operator = name if name != "rnn" else f"rnn_{v['nonlinearity']}"
        packed = bool(v["batch_sizes"])
        names = "hx params has_biases num_layers dropout train bidirectional" + (" batch_first" if not packed else "")
        first = [v["input"], _C.tensor(list(v["batch_sizes"]))] if packed else [v["input"]]
        return _declared(operator, "data" if packed else "input", [*first, *(v[n] for n in names.split())])

    return make


def composite_node(name: str, args: tuple, kwargs: dict[str, Any], function: Callable) -> Call:
    """The node for a call of a function that is one operator in PyTorch (teletensor/_composites.py)."""
    bound = inspect.signature(function).bind(*args, **kwargs)
    bound.apply_defaults()
    v = bound.arguments
    if name == "einsum":
        return _declared(name, "default", [v["equation"], list(v["operands"]), None])
    if name == "dropout":
        return _declared(name, "default", [v["input"], v["p"], v["training"]])
    if name == "scaled_dot_product_attention":
        names = "query key value attn_mask dropout_p is_causal scale"
        return _declared(name, "default", [*(v[n] for n in names.split()), False])
    names = "input weight bias running_mean running_var use_input_stats momentum eps"
    return _declared(name, "default", [*(v[n] for n in names.split()), True])  # instance_norm


def _renamed(kind: str, names: str) -> Callable[[dict[str, Any]], Call]:
    return lambda v: Call(kind, "(no schema)", _tensors_and([v[name] for name in names.split()]))


# By the name of the operator, in the engine or in PyTorch, that the program called.
_NODES: dict[str, Callable[[dict[str, Any]], Call]] = {
    **{f"conv{n}d": lambda v, n=n: _convolution(v, False, n) for n in (1, 2, 3)},
    **{f"conv_transpose{n}d": lambda v, n=n: _convolution(v, True, n) for n in (1, 2, 3)},
    "batch_norm": _batch_norm, "attention": _attention, "interpolate": _interpolate, "grid_sample": _grid_sampler,
    "cross_entropy": _cross_entropy, "constant_pad_nd": _pad, "_to_copy": _to,
    "adaptive_max_pool2d": _renamed("aten::adaptive_max_pool2d", "input output_size"),
    "adaptive_max_pool2d_with_indices": _renamed("aten::adaptive_max_pool2d", "input output_size"),
    **{name: _recurrent(name) for name in ("lstm", "gru", "rnn")},
    "avg_pool2d": _average_pool("avg_pool2d"), "avg_pool3d": _average_pool("avg_pool3d"),
    "logsigmoid": _renamed("aten::log_sigmoid", "input"),
    "im2col": _renamed("aten::im2col", "input kernel_size dilation padding stride"),
    "col2im": _renamed("aten::col2im", "input output_size kernel_size dilation padding stride"),
    "affine_grid": _renamed("aten::affine_grid_generator", "theta size align_corners"),
    "vector_norm": _renamed("aten::linalg_vector_norm", "input ord dim keepdim dtype"),
}  # fmt: skip


def node_of(func: OpOverload, args: tuple, kwargs: dict[str, Any]) -> Call:
    """The node for a call of an operator that a dispatch mode received."""
    schema = func._schema
    arguments = [a for a in schema.arguments if not (a.is_write and a.kwarg_only)]
    order = [a for a in arguments if not a.kwarg_only] + [a for a in arguments if a.kwarg_only]
    values = {a.name: a.default for a in order if a.has_default}
    values.update(zip((a.name for a in order), args))
    written = {a.name: kwargs[a.name] for a in schema.arguments if a.is_write and a.kwarg_only and a.name in kwargs}
    values.update((name, value) for name, value in kwargs.items() if name not in written)
    make = _NODES.get(func._opname)
    if make is not None and not written:
        return make({("input" if name == "self" else name): value for name, value in values.items()})
    if schema.name.startswith("aten::"):
        found = [(a.type, values.get(a.name)) for a in order]
    else:
        found = _tensors_and([values[a.name] for a in order if a.name in values])
    return Call(schema.name, schema.text, found + [("Tensor", value) for value in written.values()])


def is_dtype(value: Any) -> bool:
    """Whether a constant is a dtype, which graphs contain as a number."""
    return isinstance(value, _C.dtype)
