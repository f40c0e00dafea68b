"""Operators of the engine that ATen lacks, or that have other arguments there. Their parameters are the engine's, in its order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .._builder import Builder, Value
from .._registry import TRANSLATIONS, Untranslatable, translates
from . import (
    attention,
    convolution,
    creation,
    indexing,
    linear,
    losses,
    pooling,
    recurrent,
    reductions,
    resizing,
    scattering,
    sorting,
)
from .fourier import ON_COMPLEX, Complex, transformed


@translates("teletensor.softsign.default")
def _softsign(b: Builder, input: Value) -> Value:  # noqa: A002 - the engine's names
    return b.op("Softsign", input)


@translates("teletensor.tanhshrink.default")
def _tanhshrink(b: Builder, input: Value) -> Value:  # noqa: A002
    return b.op("Sub", input, b.op("Tanh", input))


@translates("teletensor.logsigmoid.default")
def _logsigmoid(b: Builder, input: Value) -> Value:  # noqa: A002
    return b.op("Neg", b.op("Softplus", b.op("Neg", input)))


@translates("teletensor.normalize.default")
def _normalize(b: Builder, input: Value, p: float = 2.0, dim: Any = 1, eps: float = 1e-12) -> Value:  # noqa: A002
    dims = [dim] if isinstance(dim, int) else list(dim)
    norm = reductions.vector_norm_of(b, input, p, dims, True)
    return b.op("Div", input, b.op("Max", norm, b.const(eps, input.dtype)))


def _first(dim: Any) -> Any:
    return dim[0] if isinstance(dim, (list, tuple)) and len(dim) == 1 else dim


@translates("teletensor.prod.default")
def _prod(b: Builder, input: Value, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Value:  # noqa: A002
    return reductions.product(b, input, _first(dim), keepdim, dtype)


@translates("teletensor.norm_named.default")
def _norm_named(b: Builder, input: Value, p: str, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Value:  # noqa: A002
    del p, dtype
    dims = [] if dim is None else [dim] if isinstance(dim, int) else list(dim)
    return reductions.vector_norm_of(b, b.cast(input, b.dtype), 2, dims, keepdim)


@translates("teletensor.vector_norm.default")
def _vector_norm(
    b: Builder, input: Value, ord: Any = 2, dim: Any = None, keepdim: bool = False, dtype: Any = None
) -> Value:  # noqa: A002
    del dtype
    dims = [] if dim is None else [dim] if isinstance(dim, int) else list(dim)
    return reductions.vector_norm_of(b, b.cast(input, b.dtype), ord, dims, keepdim)


@translates("teletensor.chebyshev_norm.default")
def _chebyshev(b: Builder, input: Value, dim: Any) -> Value:  # noqa: A002
    return reductions.vector_norm_of(b, input, math.inf, [dim] if isinstance(dim, int) else list(dim), False)


def _extreme_all(name: str) -> Any:
    def translate(b: Builder, input: Value) -> Value:  # noqa: A002
        return TRANSLATIONS[f"aten.{name}.default"](b, input)

    return translate


def _extreme_dim(name: str) -> Any:
    def translate(b: Builder, input: Value, dim: int, keepdim: bool = False) -> Any:  # noqa: A002
        return TRANSLATIONS[f"aten.{name}.dim"](b, input, dim, keepdim)

    return translate


def _extreme_other(name: str) -> Any:
    def translate(b: Builder, input: Value, other: Value) -> Value:  # noqa: A002
        return TRANSLATIONS[f"aten.{name}.other"](b, input, other)

    return translate


for _name in ("max", "min"):
    TRANSLATIONS[f"teletensor.{_name}_all.default"] = _extreme_all(_name)
    TRANSLATIONS[f"teletensor.{_name}_dim.default"] = _extreme_dim(_name)
    TRANSLATIONS[f"teletensor.{_name}_other.default"] = _extreme_other(_name)


def _variance(name: str, form: str) -> Any:
    def translate(b: Builder, input: Value, *args: Any, **kwargs: Any) -> Any:  # noqa: A002
        if form == "all":
            amount = int(kwargs.get("unbiased", args[0] if args else True))
            dim, keepdim = None, False
        else:
            names = ("dim", "unbiased" if form == "dim" else "correction", "keepdim")
            given = {**dict(zip(names, args)), **kwargs}
            dim, keepdim = given.get("dim"), given.get("keepdim", False)
            amount = given.get(names[1], 1)
            amount = 1 if amount is None else amount
        return TRANSLATIONS[f"aten.{name}.correction"](
            b, input, dim, None, keepdim, correction=int(amount) if amount in (0, 1) else amount
        )

    return translate


for _name in ("var", "std", "var_mean", "std_mean"):
    for _form in ("all", "dim", "fraction"):
        TRANSLATIONS[f"teletensor.{_name}_{_form}.default"] = _variance(_name, _form)


@translates("teletensor.sort_stable.default")
def _sort_stable(b: Builder, input: Value, stable: Any = None, dim: int = -1, descending: bool = False) -> list[Value]:  # noqa: A002
    del stable  # TopK keeps the order of equal elements
    return sorting.sorted_along(b, input, dim, descending)


@translates("teletensor.median_dim.default")
def _median_dim(b: Builder, input: Value, dim: int, keepdim: bool = False) -> list[Value]:  # noqa: A002
    return TRANSLATIONS["aten.median.dim"](b, input, dim, keepdim)


@translates("teletensor.to_dtype.default teletensor.to_device.default")
def _to(b: Builder, input: Value, *_: Any, **__: Any) -> Value:  # noqa: A002
    """The dtype is the result's; devices are no part of ONNX's graphs."""
    return b.cast(input, b.dtype)


@translates("teletensor.arange_from.default")
def _arange_from(b: Builder, start: Any, end: Any, step: Any = 1, dtype: Any = None, device: Any = None) -> Value:
    del dtype, device
    return creation.range_of(b, start, end, step)


@translates("teletensor.fill_diagonal.default")
def _fill_diagonal(b: Builder, input: Value, fill_value: Any, wrap: bool = False) -> Value:  # noqa: A002
    if wrap or input.rank != 2:
        raise Untranslatable("fill_diagonal of more than two dimensions, or with wrap=True")
    rows, columns = b.arange(b.size(input, 0)), b.arange(b.size(input, 1))
    return b.where(b.op("Equal", b.unsqueeze(rows, [1]), columns), fill_value, input, input.dtype)


@translates("teletensor.index_masked.default")
def _index_masked(b: Builder, input: Value, indices: Any) -> Value:  # noqa: A002
    return indexing.indexed(b, input, indices if isinstance(indices, (list, tuple)) else [indices])


@translates("teletensor.scatter_combine.default")
def _scatter_combine(b: Builder, input: Value, dim: int, index: Value, src: Value, reduce: str) -> Value:  # noqa: A002
    return scattering.combined(b, input, dim, index, src, reduce)


@translates("teletensor.scatter_value.default")
def _scatter_value(b: Builder, input: Value, dim: int, index: Value, value: Any) -> Value:  # noqa: A002
    return TRANSLATIONS["aten.scatter.value"](b, input, dim, index, value)


# ---- Layers


@translates("teletensor.adaptive_max_pool2d.default")
def _adaptive_max_pool2d(b: Builder, input: Value, output_size: Any) -> Value:  # noqa: A002
    return pooling.adaptive_max(2)(b, input, output_size)[0]


@translates("teletensor.adaptive_max_pool2d_with_indices.default")
def _adaptive_max_pool2d_with_indices(b: Builder, input: Value, output_size: Any) -> Any:  # noqa: A002
    return pooling.adaptive_max(2)(b, input, output_size)


@translates("teletensor.im2col.default")
def _im2col(b: Builder, input: Value, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Value:  # noqa: A002
    return convolution.blocks(b, input, kernel_size, dilation, padding, stride)


@translates("teletensor.col2im.default")
def _col2im(
    b: Builder, input: Value, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Value:  # noqa: A002
    return convolution.folded(b, input, output_size, kernel_size, dilation, padding, stride)


@translates("teletensor.attention.default")
def _attention(
    b: Builder, query: Value, key: Value, value: Value, attn_mask: Value | None = None, is_causal: bool = False, *,
    scale: float | None = None, allow_cudnn: bool = False,
) -> Value:  # fmt: skip
    del allow_cudnn
    return attention.attended(b, query, key, value, attn_mask, 0.0, is_causal, scale)


@translates("teletensor.rnn.default")
def _rnn(
    b: Builder, input: Value, hx: Value, params: Sequence[Value], batch_sizes: Sequence[int], nonlinearity: str, has_biases: bool,  # noqa: A002
    num_layers: int, dropout: float, train: bool, bidirectional: bool, batch_first: bool,
) -> list[Value]:  # fmt: skip
    if batch_sizes:
        raise Untranslatable("packed sequences")
    activation = {"tanh": "Tanh", "relu": "Relu"}[nonlinearity]
    return recurrent.layers(
        b, "RNN", input, [hx], params, has_biases, num_layers, dropout, train, bidirectional, batch_first, activation
    )


@translates("teletensor.interpolate.default")
def _interpolate(
    b: Builder, input: Value, size: Sequence[Any], mode: str = "nearest", align_corners: bool = False, scale_factors: Sequence[float] = (),  # noqa: A002
) -> Value:  # fmt: skip
    if mode == "area":
        return TRANSLATIONS[f"aten.adaptive_avg_pool{input.rank - 2}d.default"](b, input, list(size))
    return resizing.resized(b, input, list(size), list(scale_factors) or None, mode, align_corners)


@translates("teletensor.grid_sample.default")
def _grid_sample(
    b: Builder, input: Value, grid: Value, mode: Any, padding_mode: Any, align_corners: bool = False
) -> Value:  # noqa: A002
    return TRANSLATIONS["aten.grid_sampler.default"](b, input, grid, mode, padding_mode, align_corners)


@translates("teletensor.affine_grid.default")
def _affine_grid(b: Builder, theta: Value, size: Sequence[Any], align_corners: bool = False) -> Value:
    return TRANSLATIONS["aten.affine_grid_generator.default"](b, theta, size, align_corners)


@translates("teletensor.addmm_activation.default")
def _addmm_activation(
    b: Builder, input: Value, mat1: Value, mat2: Value, beta: Any = 1, alpha: Any = 1, use_gelu: bool = False
) -> Value:  # noqa: A002
    product = linear.added(b, input, b.op("MatMul", mat1, mat2), beta, alpha)
    return TRANSLATIONS["aten.gelu.default"](b, product, "tanh") if use_gelu else b.op("Relu", product)


@translates("teletensor.lu_factored.default")
def _lu_factored(b: Builder, input: Value, checked_by: Any = None) -> list[None]:  # noqa: A002
    """Nothing: only the determinant of the factors has an ONNX form."""
    del b, input, checked_by
    return [None, None, None]


@translates("teletensor.lu_determinant.default")
def _lu_determinant(b: Builder, A: Value, LU: Any, pivots: Any) -> Value:  # noqa: N803
    del LU, pivots
    return b.op("Det", A)


# ---- Losses


@translates("teletensor.cross_entropy.default")
def _cross_entropy(
    b: Builder, input: Value, target: Value, weight: Value | None = None, *, ignore_index: int = -100, reduction: str = "mean",  # noqa: A002
    label_smoothing: float = 0.0,
) -> Value:  # fmt: skip
    return losses.cross_entropy(b, input, target, weight, reduction, ignore_index, label_smoothing)


@translates("teletensor.gaussian_nll_loss.default")
def _gaussian_nll(
    b: Builder,
    input: Value,
    target: Value,
    var: Value,
    *,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Value:  # noqa: A002
    var = b.op("Max", var, b.const(eps, var.dtype))
    d = b.op("Sub", input, target)
    loss = b.op("Add", b.op("Log", var), b.op("Div", b.op("Mul", d, d), var)) * 0.5
    return losses.reduced(b, loss + 0.5 * math.log(2 * math.pi) if full else loss, reduction)


@translates("teletensor.smooth_l1.default")
def _smooth_l1(b: Builder, input: Value, beta: float) -> Value:  # noqa: A002
    return losses.smooth(b, b.op("Abs", input), beta)


@translates("teletensor.squared_difference.default")
def _squared_difference(b: Builder, input: Value, target: Value) -> Value:  # noqa: A002
    d = b.op("Sub", input, target)
    return b.op("Mul", d, d)


@translates("teletensor.absolute_difference.default")
def _absolute_difference(b: Builder, input: Value, target: Value) -> Value:  # noqa: A002
    return b.op("Abs", b.op("Sub", input, target))


@translates("teletensor.smooth_difference.default")
def _smooth_difference(b: Builder, input: Value, target: Value, beta: float, scale: float) -> Value:  # noqa: A002
    return losses.smooth(b, _absolute_difference(b, input, target), beta) * scale


@translates("teletensor.soft_margin.default")
def _soft_margin(b: Builder, input: Value, target: Value) -> Value:  # noqa: A002
    return b.op("Softplus", b.op("Neg", b.op("Mul", input, b.cast(target, input.dtype))))


@translates("teletensor.margin_ranking.default")
def _margin_ranking(b: Builder, input1: Value, input2: Value, target: Value, margin: float) -> Value:
    return TRANSLATIONS["aten.margin_ranking_loss.default"](b, input1, input2, target, margin, "none")


@translates("teletensor.hinge_embedding.default")
def _hinge_embedding(b: Builder, input: Value, target: Value, margin: float) -> Value:  # noqa: A002
    return TRANSLATIONS["aten.hinge_embedding_loss.default"](b, input, target, margin, "none")


@translates("teletensor.poisson_nll.default")
def _poisson_nll(b: Builder, input: Value, target: Value) -> Value:  # noqa: A002
    return b.op("Sub", b.op("Exp", input), b.op("Mul", target, input))


@translates("teletensor.poisson_nll_of_rate.default")
def _poisson_of_rate(b: Builder, input: Value, target: Value, eps: float) -> Value:  # noqa: A002
    return b.op("Sub", input, b.op("Mul", target, b.op("Log", input + float(eps))))


@translates("teletensor.shifted_difference.default")
def _shifted_difference(b: Builder, input: Value, other: Value, shift: float) -> Value:  # noqa: A002
    return b.op("Sub", input, other) + float(shift)


@translates("teletensor.at_least.default")
def _at_least(b: Builder, input: Value, min: float) -> Value:  # noqa: A002
    return b.op("Max", input, b.const(min, input.dtype))


@translates("teletensor.clamp_between.default")
def _clamp_between(b: Builder, input: Value, min: Value, max: Value) -> Value:  # noqa: A002
    return TRANSLATIONS["aten.clamp.Tensor"](b, input, min, max)


def _with_reduction(name: str) -> Any:
    def translate(b: Builder, *tensors: Value, reduction: str = "mean", **options: Any) -> Value:
        return TRANSLATIONS[f"aten.{name}.default"](b, *tensors, reduction=reduction, **options)

    return translate


for _name in (
    "kl_div", "soft_margin_loss", "margin_ranking_loss", "hinge_embedding_loss", "cosine_embedding_loss", "triplet_margin_loss",
    "poisson_nll_loss", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits",
):  # fmt: skip
    TRANSLATIONS[f"teletensor.{_name}.default"] = _with_reduction(_name)


@translates("teletensor.nll_loss.default")
def _nll_loss(
    b: Builder,
    input: Value,
    target: Value,
    weight: Value | None = None,
    *,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Value:  # noqa: A002
    return TRANSLATIONS["aten.nll_loss.default"](b, input, target, weight, reduction, ignore_index)


@translates("teletensor.tensor_split.default")
def _tensor_split(b: Builder, input: Value, indices_or_sections: int, dim: int = 0) -> list[Value]:  # noqa: A002
    return TRANSLATIONS["aten.tensor_split.sections"](b, input, indices_or_sections, dim)


# ---- Fourier transforms: a scale instead of a norm


def _rescaled(b: Builder, x: Any, factor: Any) -> Any:
    if isinstance(x, Complex):
        return Complex(b.op("Mul", x.pair, b.const(factor, x.pair.dtype), shape=x.pair.shape), x.shape)
    return x * factor


@translates("teletensor.fft_r2c.default")
def _fft_r2c(b: Builder, input: Value, dim: Sequence[int], scale: float = 1.0) -> Any:  # noqa: A002
    made = transformed(b, input, "rfft", None, list(dim), None)
    return made if scale == 1 else _rescaled(b, made, scale)


@translates("teletensor.fft_c2c.default")
def _fft_c2c(b: Builder, input: Any, dim: Sequence[int], scale: float = 1.0, forward: bool = True) -> Any:  # noqa: A002
    made = transformed(b, input, "fft" if forward else "ifft", None, list(dim), None)
    count = 1 if forward else _elements(input, dim)
    return made if scale * count == 1 else _rescaled(b, made, scale * count)


@translates("teletensor.fft_c2r.default")
def _fft_c2r(b: Builder, input: Any, dim: Sequence[int], scale: float, last_size: int) -> Value:  # noqa: A002
    sizes: list[Any] = [None] * (len(dim) - 1) + [last_size]
    made = transformed(b, input, "irfft", sizes, list(dim), None)
    count = _elements(input, list(dim)[:-1]) * last_size
    return made if scale * count == 1 else _rescaled(b, made, scale * count)


def _elements(x: Any, dims: Sequence[int]) -> int:
    sizes = [x.shape[d] for d in dims]
    if any(type(n) is not int for n in sizes):
        raise Untranslatable("an inverse Fourier transform of a dynamic size")
    return math.prod(sizes)


ON_COMPLEX |= {
    "teletensor.fft_c2c.default": _fft_c2c, "teletensor.fft_c2r.default": _fft_c2r,
}  # fmt: skip
