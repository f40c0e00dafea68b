"""PyTorch's operators for calls of the engine's own ones, for files that PyTorch reads: one call or several."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from .._C import Tensor
from .._library import aten
from .._library.dispatch import EngineOverload
from .._library.engine_operators import operator_named
from ..fx.node import Node
from ..overrides import documented_parameters

_REDUCTIONS = ("none", "mean", "sum")
_MODES, _PADDINGS = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")


class Ref(NamedTuple):
    """The result of an earlier call of the same form."""

    name: str


class Call(NamedTuple):
    """A call of an overload of aten.

    Attributes:
        sizes: of its result, by dimension, if it is not the node's; a dynamic size is text.
        unused: results after the first one that nothing uses: dtypes.
    """

    overload: Any
    args: tuple
    kwargs: dict[str, Any]
    sizes: list[Any] | None = None
    unused: tuple[str, ...] = ()


def _overload(name: str) -> Any:
    base, _, overload = name.partition(".")
    return getattr(aten.packet(base), overload or "default")


def _call(name: str, *args: Any, unused: tuple[str, ...] = (), **kwargs: Any) -> list[Call]:
    return [Call(_overload(name), args, kwargs, None, unused)]


def _sizes(node: Node) -> list[Any]:
    symbolic = node.meta.get("symbolic_sizes", {})
    return [symbolic.get(d, int(n)) for d, n in enumerate(tuple(node.meta["val"].shape))]


def _norm(_node: Node, a: dict[str, Any]) -> list[Call] | None:
    p = 2 if a["p"] in (None, "fro") else a["p"]
    if isinstance(p, str):
        return None
    dtype = {} if a["dtype"] is None else {"dtype": a["dtype"]}
    return _call("linalg_vector_norm", a["input"], p, a["dim"], bool(a["keepdim"]), **dtype)


def _normalize(node: Node, a: dict[str, Any]) -> list[Call] | None:
    sizes = _sizes(node)
    dims = [a["dim"]] if isinstance(a["dim"], int) else list(a["dim"])
    reduced = [1 if d in {i % len(sizes) for i in dims} else n for d, n in enumerate(sizes)]
    return [
        Call(_overload("linalg_vector_norm"), (a["input"], a["p"], dims, True), {}, reduced),
        Call(_overload("clamp_min"), (Ref("0"), a["eps"]), {}, reduced),
        Call(_overload("expand_as"), (Ref("1"), a["input"]), {}, sizes),
        Call(_overload("div.Tensor"), (a["input"], Ref("2")), {}),
    ]


def _kl_div(_node: Node, a: dict[str, Any]) -> list[Call] | None:
    log = {"log_target": True} if a["log_target"] else {}
    if a["reduction"] in _REDUCTIONS:
        return _call("kl_div", a["input"], a["target"], _REDUCTIONS.index(a["reduction"]), **log)
    count = _sizes(a["input"])[0]
    if not isinstance(count, int):
        return None
    return [
        Call(_overload("kl_div"), (a["input"], a["target"], 2), log, []),
        Call(_overload("div.Scalar"), (Ref("0"), count), {}),
    ]


def _grid_sample(_node: Node, a: dict[str, Any]) -> list[Call] | None:
    places = _MODES.index(a["mode"]), _PADDINGS.index(a["padding_mode"])
    return _call("grid_sampler", a["input"], a["grid"], *places, bool(a["align_corners"]))


def _rnn(_node: Node, a: dict[str, Any]) -> list[Call] | None:
    if a["batch_sizes"]:
        return None
    order = "input hx params has_biases num_layers dropout train bidirectional batch_first".split()
    return _call(f"rnn_{a['nonlinearity']}.input", *(a[n] for n in order))


def _prod(_node: Node, a: dict[str, Any]) -> list[Call] | None:
    dtype = {} if a.get("dtype") is None else {"dtype": a["dtype"]}
    dims = a["dim"]
    if dims is None or dims == []:
        return _call("prod", a["input"], **dtype)
    if isinstance(dims, (list, tuple)) and len(dims) != 1:
        return None
    return _call("prod.dim_int", a["input"], dims if isinstance(dims, int) else dims[0], bool(a["keepdim"]), **dtype)


def _tensor_split(_node: Node, a: dict[str, Any]) -> list[Call] | None:
    given = a["indices_or_sections"]
    return _call(f"tensor_split.{'sections' if isinstance(given, (int, Node)) else 'indices'}", a["input"], given, a["dim"])


def _interpolate(_node: Node, a: dict[str, Any]) -> list[Call] | None:
    dims = len(_sizes(a["input"])) - 2
    names = {"nearest": f"upsample_nearest{dims}d.vec", "nearest-exact": f"_upsample_nearest_exact{dims}d.vec",
             "linear": "upsample_linear1d.vec", "bilinear": "upsample_bilinear2d.vec", "bicubic": "upsample_bicubic2d.vec",
             "trilinear": "upsample_trilinear3d.vec"}  # fmt: skip
    if a["mode"] not in names:
        return None
    scales = a["scale_factors"] or None
    align = [] if a["mode"].startswith("nearest") else [bool(a["align_corners"])]
    if scales is not None:
        return _call(names[a["mode"]], a["input"], None, *align, [float(s) for s in scales])
    return _call(names[a["mode"]], a["input"], list(a["size"]), *align, None)


def _im2col(_node: Node, a: dict[str, Any]) -> list[Call] | None:
    return _call("im2col", a["input"], *(list(a[n]) for n in ("kernel_size", "dilation", "padding", "stride")))


def _adaptive_max_pool(_node: Node, a: dict[str, Any]) -> list[Call] | None:
    return _call("adaptive_max_pool2d", a["input"], list(a["output_size"]), unused=("int64",))


def _adaptive_max_pool_indices(_node: Node, a: dict[str, Any]) -> list[Call] | None:
    return _call("adaptive_max_pool2d", a["input"], list(a["output_size"]))


def _pad_edges(_node: Node, a: dict[str, Any]) -> list[Call] | None:
    return _call("pad", a["input"], list(a["pad"]), a["mode"])


def _unique(_node: Node, a: dict[str, Any]) -> list[Call] | None:
    return _call("_unique2", a["input"], True, True, True)


def _unique_rows(_node: Node, a: dict[str, Any]) -> list[Call] | None:
    if a["consecutive"]:
        return _call("unique_consecutive", a["input"], True, True, 0)
    return _call("unique_dim", a["input"], 0, True, True, True)


def normalization(scale: float, count: int) -> int | None:
    """PyTorch's number of a normalization of Fourier transforms, whose factor is `scale` for `count` elements."""
    factors = (1.0, 1 / math.sqrt(count), 1 / count)
    return next((i for i, f in enumerate(factors) if math.isclose(scale, f, rel_tol=1e-12)), None)


def _transform(name: str, last: Callable[[dict[str, Any]], Any], of_input: bool) -> Callable:
    def form(node: Node, a: dict[str, Any]) -> list[Call] | None:
        whole = _sizes(a["input"] if of_input else node)
        sizes = [whole[d] for d in a["dim"]]
        if not all(isinstance(n, int) for n in sizes):
            return None
        number = normalization(a["scale"], math.prod(sizes))
        return None if number is None else _call(name, a["input"], list(a["dim"]), number, last(a))

    return form


_FORMS: dict[str, Callable[[Node, dict[str, Any]], list[Call] | None]] = {
    "adaptive_max_pool2d": _adaptive_max_pool, "adaptive_max_pool2d_with_indices": _adaptive_max_pool_indices,
    "fft_c2c": _transform("_fft_c2c", lambda a: bool(a["forward"]), True),
    "fft_c2r": _transform("_fft_c2r", lambda a: a["last_size"], False),
    "fft_r2c": _transform("_fft_r2c", lambda a: True, True),
    "grid_sample": _grid_sample, "im2col": _im2col, "interpolate": _interpolate, "kl_div": _kl_div, "norm_named": _norm,
    "normalize": _normalize, "pad_edges": _pad_edges, "prod": _prod, "rnn": _rnn, "tensor_split": _tensor_split,
    "unique_rows": _unique_rows, "unique_values": _unique,
}  # fmt: skip


def in_aten(node: Node) -> list[Call] | None:
    """The calls of aten that compute a node's result; None if the node's target is no operator of the engine with such a form."""
    target = node.target
    if not isinstance(target, EngineOverload) or target._opname not in _FORMS or node.kwargs.get("out") is not None:
        return None
    operator = operator_named(target._opname)
    values = {n: d for n, d, _ in documented_parameters(operator.function)}
    values |= dict(zip(operator.names, node.args)) | dict(node.kwargs)
    if any(n not in values for n in operator.names):
        return None
    return _FORMS[target._opname](node, values)


def example(value: Tensor, sizes: list[Any]) -> Tensor:
    """A tensor like another one with other sizes; dynamic ones have any size."""
    return value.new_empty([n if isinstance(n, int) else 2 for n in sizes])
