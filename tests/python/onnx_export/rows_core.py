"""Calls of the operators of core ATen, as they are in graphs after run_decompositions().

tests.conformance.onnx_export writes the table in docs/onnx.md from the same rows.
"""

from __future__ import annotations

from typing import Any

from .cases import Case


def _call(name: str, inputs: tuple[str, ...], make: Any, options: dict[str, Any] | None = None, **case: Any) -> Case:
    base, _, overload = name.partition(".")

    def call(t: Any, *given: Any) -> Any:
        operator = getattr(getattr(t.ops.aten, base), overload or "default")
        return operator(*make(t, *given), **(options or {}))

    return Case(call, list(inputs), **case)


def _plain(table: dict[str, tuple]) -> dict[str, Case]:
    """Rows whose entries are inputs (strings) and further arguments."""
    rows = {}
    for name, entry in table.items():
        inputs = tuple(v for v in entry if isinstance(v, str))

        def make(t: Any, *given: Any, entry: tuple = entry) -> tuple:
            tensors = iter(given)
            return tuple(next(tensors) if isinstance(v, str) else v for v in entry)

        rows[name] = _call(name, inputs, make)
    return rows


F, G, P, Q, I, B = "f:n,3", "f:n,4,6", "p:n,3", "q:n,3", "i:n,3", "b:n,3"  # noqa: E741
IMAGE = "f:n,2,6,8"
ROWS: dict[str, Case] = _plain({
    **{name: (F,) for name in """
        abs alias asinh atan any ceil clone cos cosh elu erf exp expm1 floor gelu hardtanh isinf isnan leaky_relu logical_not max min neg
        relu round sigmoid sign sin sinh tan tanh trunc argmax argmin mean prod nonzero
    """.split() if name not in ("max", "min", "nonzero")},
    **{name: (Q,) for name in "acos asin atanh log log10 log1p log2 reciprocal rsqrt sqrt".split()},
    "_log_softmax": (F, 1, False), "_softmax": (F, 1, False), "add.Scalar": (F, 2.5), "add.Tensor": (F, F), "amax": (F, [1]),
    "addmm": ("f:4", F, "f:3,4"), "amin": (F, [0], True), "any.dim": (B, 1), "any.dims": (B, [0, 1]), "atan2": (F, F),
    "avg_pool1d": ("f:n,2,8", [3], [2], [1]), "avg_pool2d": (IMAGE, [3, 3], [2, 2], [1, 1], True, False),
    "avg_pool3d": ("f:n,2,4,4,6", [2, 2, 2]), "adaptive_avg_pool1d": ("f:n,2,9", [3]), "_adaptive_avg_pool2d": (IMAGE, [3, 5]),
    "bitwise_and.Scalar": (I, 3), "bitwise_and.Tensor": (I, I), "bitwise_not": (I,),
    "bitwise_or.Scalar": (I, 3), "bitwise_or.Tensor": (I, I), "bitwise_xor.Scalar": (I, 3), "bitwise_xor.Tensor": (I, I),
    "bmm": ("f:n,2,3", "f:n,3,4"), 
    "clamp": (F, -0.5, 0.5), "clamp.Tensor": (F, "f:3"), 
    "constant_pad_nd": (F, [1, 2], 3.0), "cumsum": (F, 1), "diagonal": (G, 1, 1, 2), "div.Scalar": (F, 3),
    "div.Tensor": (F, P), "div.Scalar_mode": (F, 0.7), "embedding": ("f:5,4", "i5:n,2"),
    "eq.Scalar": (I, 2), "eq.Tensor": (I, I), "expand": ("f:n,1", [-1, 4]), "fill.Scalar": (F, 2.0), "flip": (G, [0, 2]),
    "fmod.Scalar": (F, 0.7), "fmod.Tensor": (F, P), "full_like": (F, 2.0), "gather": ("f:n,5", 1, "i5:n,3"),
    "ge.Scalar": (F, 0.5), "ge.Tensor": (F, F), "grid_sampler_2d": (IMAGE, "f:n,3,3,2", 0, 0, False), "gt.Scalar": (F, 0.5),
    "gt.Tensor": (F, F), "index_select": ("f:n,5", 1, "i5:m"), "le.Scalar": (F, 0.5), "le.Tensor": (F, F), "logical_and": (B, B),
    "logical_or": (B, B), "logical_xor": (B, B), "lt.Scalar": (F, 0.5), "lt.Tensor": (F, F), "max.dim": (F, 1), "min.dim": (F, 1),
    "max_pool2d_with_indices": (IMAGE, [2, 2], [2, 2]), "maximum": (F, F),
    "mean.dim": (G, [1], True), "minimum": (F, F), "mm": (F, "f:3,4"), "mul.Scalar": (F, 2.5), "mul.Tensor": (F, F),
    "ne.Scalar": (I, 2), "ne.Tensor": (I, I), "permute": (G, [2, 0, 1]), "pow.Tensor_Scalar": (P, 1.5), "pow.Tensor_Tensor": (P, F),
    "prod.dim_int": (F, 1), 
    "remainder.Scalar": (F, 0.7), "remainder.Tensor": (F, P),
    "repeat": (F, [2, 1]), 
    "scatter.value": ("f:n,5", 1, "i5:n,3", 2.0), "scatter_add": ("f:n,5", 1, "i5:n,3", "f:n,3"), "select.int": (G, 1, -1),
    "select_scatter": (G, "f:n,6", 1, 2), "slice.Tensor": (G, 2, 1, 5, 2), "slice_scatter": (G, "f:n,4,2", 2, 1, 3),
    "sort": (F, 1, True), "split_with_sizes": (G, [1, 3], 1), "squeeze.dim": ("f:n,1,3", 1), "squeeze.dims": ("f:n,1,1", [1, 2]),
    "sub.Scalar": (F, 2.5), "sub.Tensor": (F, F), "sum.dim_IntList": (G, [0, 2]), "topk": (F, 2), "unsqueeze": (F, 1),
    "var.dim": (F, [1], False), "view": (G, [-1, 24]), "where.self": (B, F, F), "native_layer_norm": (F, [3], None, None, 1e-5),
    "acosh": (P,),
})  # fmt: skip


def _ordered(name: str, inputs: tuple[str, ...], make: Any, **options: Any) -> Case:
    """A row whose arguments are made from the inputs."""
    case = {k: options.pop(k) for k in ("random", "opsets") if k in options}
    return _call(name, inputs, make, options=options, **case)


_CONVOLVED = ([2, 1], [1, 0], [1, 1], False, [0, 0], 1)
ROWS |= {
    name: _ordered(name, inputs, make, **(options[0] if options else {}))
    for name, (inputs, make, *options) in {
        "_native_batch_norm_legit_no_training": ((IMAGE,), lambda t, x: (x, None, None, t.ones(2), t.ones(2) * 2, 0.1, 1e-5)),
                "acosh": (("p:n,3",), lambda t, x: (x + 1,)),
        "arange.start_step": ((F,), lambda t, x: (1, 9, 2)),
        "as_strided": (("f:4,3",), lambda t, x: (x, [2, 3], [1, 4], 1)),
        "cat": ((F, "f:m,3"), lambda t, x, y: ([x, y],)),
        "convolution": ((IMAGE, "f:4,2,3,3", "f:4"), lambda t, x, w, b: (x, w, b, *_CONVOLVED)),
        "div.Tensor_mode": ((F, P), lambda t, x, y: (x, y), {"rounding_mode": "floor"}),
        "div.Scalar_mode": ((F,), lambda t, x: (x, 0.7), {"rounding_mode": "trunc"}),
        "full": ((F,), lambda t, x: ([x.shape[0], 2], 3.0)),
        "index.Tensor": (("f:5,5,2", "i5:m"), lambda t, x, i: (x, [i, i])),
        "index_put": (("f:5,5", "i5:m", "f:m"), lambda t, x, i, v: (x, [i, i], v, True)),
        "masked_scatter": ((F, B, F), lambda t, x, m, s: (x, m, s)),
        "native_dropout": ((F,), lambda t, x: (x, 0.5, True), {"random": True, "opsets": (18, 20)}),
        "native_group_norm": (("f:2,6,4",), lambda t, x: (x, None, None, 2, 6, 4, 3, 1e-5)),
        "pow.Scalar": ((F,), lambda t, x: (2.0, x)),
        "rand": ((F,), lambda t, x: ([x.shape[0], 2],), {"random": True, "opsets": (18, 20)}),
        "randn": ((F,), lambda t, x: ([x.shape[0], 2],), {"random": True, "opsets": (18, 20)}),
        "randperm": ((F,), lambda t, x: (5,), {"random": True, "opsets": (18, 20)}),
        "scalar_tensor": ((F,), lambda t, x: (2.5,)),
        "scatter.src": (("f:n,5", "f:n,3"), lambda t, x, s: (x, 1, t.arange(3).expand(x.shape[0], 3), s)),
        "scatter_reduce.two": (("f:n,5", "i5:n,3", "f:n,3"), lambda t, x, i, s: (x, 1, i, s, "amax")),
        "sym_numel": ((F,), lambda t, x: (x,)),
        "sym_is_contiguous": ((F,), lambda t, x: (x,)),
        "sym_storage_offset": ((F,), lambda t, x: (x,)),
        "sym_stride.int": ((F,), lambda t, x: (x, 0)),
        "sym_size.int": ((F,), lambda t, x: (x, 0)),
        "upsample_nearest2d.vec": ((IMAGE,), lambda t, x: (x, [7, 9], None)),
        "var.correction": ((F,), lambda t, x: (x, [1]), {"correction": 2}),
        "empty_strided": ((F,), lambda t, x: ([2, 3], [1, 2]), {"random": True}),
        "empty.memory_format": ((F,), lambda t, x: ([2, 3],), {"random": True}),
    }.items()
}  # fmt: skip

for _name in ("max.dim", "min.dim", "sort", "topk"):
    ROWS[_name].call = lambda t, *x, call=ROWS[_name].call: tuple(call(t, *x))
ROWS["_to_copy"] = Case(lambda t, x: t.ops.aten._to_copy.default(x, dtype=t.float64), [F])
ROWS["nonzero"] = Case(lambda t, x: t.ops.aten.nonzero.default(x), ["b:n,3"])
ROWS["_local_scalar_dense"] = Case(lambda t, x: x * t.ops.aten._local_scalar_dense.default(x.sum()), [F])
