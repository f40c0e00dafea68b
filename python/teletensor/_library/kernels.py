"""Operators by which PyTorch implements its functions (torch.ops.aten.nll_loss_forward, ...), as calls of this package's.

Programs name them in policies, passes over graphs and tables of decompositions.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Sequence
from typing import Any

from .. import _C
from .._C import Tensor
from .places import REDUCTIONS, functional, linalg, public

ops = _C.ops
_PADDING_MODES = ("reflect", "replicate", "circular", "constant")
_DISTANCES = ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist")
_CASTS = {
    "Byte": "uint8", "Char": "int8", "Short": "int16", "Int": "int32", "Long": "int64", "Half": "float16", "Float": "float32",
    "Double": "float64",
}  # fmt: skip


def _into(name: str) -> Callable:
    """The operator that overwrites its input with a function's result."""
    return lambda self, *args, **kwargs: self.copy_(functional(name)(self, *args, **kwargs))


def _elu(self: Tensor, alpha=1, scale=1, input_scale=1) -> Tensor:
    if scale == input_scale == 1:
        return functional("elu")(self, alpha)
    return ops.where(self > 0, self * scale, (self * input_scale).expm1() * (alpha * scale))


def _pad(mode: str) -> Callable:
    return lambda self, padding: functional("pad")(self, list(padding), mode=mode)


def _cast(dtype: str) -> Callable:
    return lambda self, non_blocking=False: self.to(getattr(_C, dtype), non_blocking=non_blocking)


def _safe_softmax(self: Tensor, dim: int, dtype=None) -> Tensor:
    """Softmax with zeros for rows of which all elements are -inf."""
    is_masked = (self == -math.inf).all(dim, keepdim=True)
    return ops.softmax(self.masked_fill(is_masked, 0), dim, dtype=dtype).masked_fill(is_masked, 0.0)  # without NaN in gradients


def _nll_loss(self: Tensor, target: Tensor, weight, reduction: int, ignore_index: int) -> tuple[Tensor, Tensor]:
    """Also returns the sum of the weights of the targets, 0 without a reduction."""
    loss = functional("nll_loss")(self, target, weight, ignore_index=ignore_index, reduction=REDUCTIONS[reduction])
    if reduction == 0:
        return loss, self.new_zeros(())
    counts = target != ignore_index
    if weight is None:
        return loss, counts.sum().to(self.dtype)
    return loss, (weight[target.where(counts, 0)] * counts).sum()


def _rms_norm(input: Tensor, normalized_shape, weight, eps) -> tuple[Tensor, Tensor]:  # noqa: A002
    epsilon = public("finfo")(input.dtype).eps if eps is None else eps
    result, rstd = ops.rms_norm_forward(input, list(normalized_shape), weight, epsilon)
    return result, rstd.reshape((*input.shape[: input.dim() - len(normalized_shape)], *(1 for _ in normalized_shape)))


def _trilinear(i1: Tensor, i2: Tensor, i3: Tensor, expand1, expand2, expand3, sumdim, unroll_dim: int = 1) -> Tensor:
    del unroll_dim  # PyTorch's kernel divides its work along it
    product = None
    for operand, dims in ((i1, expand1), (i2, expand2), (i3, expand3)):
        for d in dims:
            operand = operand.unsqueeze(d)
        product = operand if product is None else product * operand
    return product.sum(list(sumdim)) if len(sumdim) > 0 else product


def _attention(
    query: Tensor, key: Tensor, value: Tensor, attn_mask=None, dropout_p=0.0, is_causal=False, dropout_mask=None, *, scale=None,
    enable_gqa=False,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Attention by matrix products; also returns the weights."""
    if dropout_p != 0 or dropout_mask is not None:
        raise NotImplementedError("[aten::_scaled_dot_product_attention_math] expected no dropout; call scaled_dot_product_attention")
    if is_causal and attn_mask is not None:
        raise RuntimeError("_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True")
    if enable_gqa:
        key = key.repeat_interleave(query.size(-3) // key.size(-3), -3)
        value = value.repeat_interleave(query.size(-3) // value.size(-3), -3)
    scores = query @ key.transpose(-2, -1) * (1 / math.sqrt(query.size(-1)) if scale is None else scale)
    if is_causal:
        ones = scores.new_ones(scores.shape[-2:], dtype=_C.bool)
        scores = scores.masked_fill(ones.tril().logical_not(), -math.inf)
    elif attn_mask is not None:
        scores = scores.masked_fill(~attn_mask, -math.inf) if attn_mask.dtype == _C.bool else scores + attn_mask
    weights = _safe_softmax(scores, -1)
    return weights @ value, weights


def _unpool(dims: int) -> Callable:
    def call(self: Tensor, indices: Tensor, output_size, stride=None, padding=None) -> Tensor:
        del stride, padding  # the indices have them
        size = tuple(output_size)
        planes = self.shape[: self.dim() - dims]
        flat = self.new_zeros((*planes, math.prod(size)))
        return flat.scatter(-1, indices.flatten(-dims), self.flatten(-dims)).reshape((*planes, *size))

    return call


def _convolution_mode(input: Tensor, weight: Tensor, bias, stride, padding: str, dilation, groups: int) -> Tensor:  # noqa: A002
    return public(f"conv{weight.dim() - 2}d")(input, weight, bias, tuple(stride), padding, tuple(dilation), groups)


def _sliding_convolution(dims: int) -> Callable:
    def call(self: Tensor, weight: Tensor, kernel_size, bias=None, stride=1, padding=0) -> Tensor:
        sizes = (kernel_size,) * dims if isinstance(kernel_size, int) else tuple(kernel_size)
        if sizes != tuple(weight.shape[-dims:]):
            raise RuntimeError(f"[aten::conv{dims}d] expected kernel_size {tuple(weight.shape[-dims:])}, got {sizes}")
        return public(f"conv{dims}d")(self, weight, bias, stride, padding)

    return call


def _batch_norm(input: Tensor, weight, bias, *rest: Any) -> tuple:  # noqa: A002
    """The overload without statistics has no running_mean and running_var."""
    statistics = (None, None) if len(rest) == 3 else ()
    return public("native_batch_norm")(input, weight, bias, *statistics, *rest)


def _weight_norm(v: Tensor, g: Tensor, dim: int = 0) -> tuple[Tensor, Tensor]:
    norm = public("norm_except_dim")(v, 2, dim)
    return v * (g / norm), norm


def _embedding_bag(
    weight: Tensor, indices: Tensor, offsets: Tensor, scale_grad_by_freq=False, mode=0, sparse=False, per_sample_weights=None,
    include_last_offset=False, padding_idx=-1,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Also returns the bag of each index and the sizes of the bags."""
    if mode == 2:
        raise NotImplementedError("[aten::_embedding_bag] expected mode 0 (sum) or 1 (mean), got 2 (max); call embedding_bag")
    result = functional("embedding_bag")(
        indices, weight, offsets, scale_grad_by_freq=scale_grad_by_freq, mode=("sum", "mean")[mode], sparse=sparse,
        per_sample_weights=per_sample_weights, include_last_offset=include_last_offset,
        padding_idx=None if padding_idx < 0 else padding_idx,
    )  # fmt: skip
    starts = offsets[:-1] if include_last_offset else offsets
    positions = public("arange")(indices.size(0), dtype=starts.dtype, device=starts.device)
    bags = public("searchsorted")(starts, positions, right=True) - 1
    counted = ops.ones_like(bags) if padding_idx < 0 else (indices != padding_idx).to(bags.dtype)
    sizes = starts.new_zeros(starts.shape).index_add(0, bags, counted.to(starts.dtype))
    return result, bags.to(indices.dtype), sizes, starts.new_empty((0,))


def _copy(self: Tensor, src: Tensor, non_blocking: bool = False) -> Tensor:
    return ops.empty_like(self).copy_(src, non_blocking=non_blocking)


def _drawn(name: str) -> Callable:
    """The operator that returns a tensor like its input with the numbers that a method draws."""
    return lambda self, *args, **kwargs: getattr(ops.empty_like(self), name)(*args, **kwargs)


def _over_booleans(name: str) -> Callable:
    def call(self: Tensor) -> Tensor:
        if self.dtype != _C.bool:
            raise RuntimeError(f"[aten::_is_{name}_true] expected a tensor of dtype bool, got {self.dtype}")
        return getattr(self, name)()

    return call


def _unflatten_dense(flat: Tensor, tensors: Sequence[Tensor]) -> list[Tensor]:
    sizes = [t.numel() for t in tensors]
    return [part.view(t.shape) for part, t in zip(flat.split(sizes), tensors)]


def _eigh(A: Tensor, UPLO: str = "L", compute_v: bool = True) -> tuple[Tensor, Tensor]:  # noqa: N803
    if compute_v:
        return tuple(linalg("eigh")(A, UPLO))
    return linalg("eigvalsh")(A, UPLO), A.new_empty((0,))


def _svd(A: Tensor, full_matrices: bool = False, compute_uv: bool = True, *, driver=None) -> tuple[Tensor, ...]:  # noqa: N803
    if driver is not None:
        raise RuntimeError("torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend.")
    if compute_uv:
        return tuple(linalg("svd")(A, full_matrices))
    return A.new_empty((0,)), linalg("svdvals")(A), A.new_empty((0,))


def _determinant(name: str) -> Callable:
    def call(A: Tensor) -> tuple[Tensor, ...]:  # noqa: N803
        found = linalg(name)(A)
        return (*((found,) if isinstance(found, Tensor) else found), *linalg("lu_factor")(A))

    return call


def _solve(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False) -> tuple[Tensor, ...]:  # noqa: N803
    result, info = linalg("solve_ex")(A, B, left=left, check_errors=check_errors)
    return (result, *linalg("lu_factor_ex")(A)[:2], info)


OPERATORS: dict[str, Callable] = {
    "_adaptive_avg_pool3d": lambda self, output_size: functional("adaptive_avg_pool3d")(self, output_size),
    "_cdist_forward": lambda x1, x2, p, mode: public("cdist")(x1, x2, p, _DISTANCES[mode or 0]),
    "_convolution": lambda *args: public("convolution")(*args[:9]),  # the rest is of PyTorch's GPU kernels
    "_convolution_mode": _convolution_mode,
    "_dim_arange": lambda like, dim: public("arange")(like.size(dim), device=like.device),
    "_embedding_bag": _embedding_bag,
    "_embedding_bag_forward_only": _embedding_bag,
    "_euclidean_dist": lambda x1, x2: public("cdist")(x1, x2),
    "_foreach_copy": lambda self, src, non_blocking=False: [_copy(a, b, non_blocking) for a, b in zip(self, src, strict=True)],
    "_foreach_zero": lambda self: [ops.zeros_like(t) for t in self],
    "_fused_rms_norm": _rms_norm,
    "_index_put_impl_": lambda self, indices, values, accumulate=False, unsafe=False: self.index_put_(indices, values, accumulate),  # noqa: ARG005 - indices are always checked
    "_is_all_true": _over_booleans("all"),
    "_is_any_true": _over_booleans("any"),
    "_linalg_det": _determinant("det"),
    "_linalg_eigh": _eigh,
    "_linalg_slogdet": _determinant("slogdet"),
    "_linalg_solve_ex": _solve,
    "_linalg_svd": _svd,
    "_native_batch_norm_legit": _batch_norm,
    "_pad_circular": _pad("circular"),
    "_pad_enum": lambda self, pad, mode, value=None: functional("pad")(self, list(pad), _PADDING_MODES[mode], value),
    "_pdist_forward": lambda self, p=2.0: functional("pdist")(self, p),
    "_prelu_kernel": lambda self, weight: ops.where(self > 0, self, weight * self),
    "_reshape_copy": lambda self, size: self.reshape(tuple(size)).clone(memory_format=public("contiguous_format")),
    "_safe_softmax": _safe_softmax,
    "_scaled_dot_product_attention_math": _attention,
    "_stack": lambda tensors, dim=0: public("stack")(tensors, dim),
    "_trilinear": _trilinear,
    "_unsafe_index": lambda self, indices: self[tuple(slice(None) if i is None else i for i in indices)],
    "_unsafe_index_put": lambda self, indices, values, accumulate=False: self.clone().index_put_(indices, values, accumulate),
    "_version": lambda self: self._version,
    "_weight_norm_interface": _weight_norm,
    "copy": _copy,
    "data": lambda self: self.data,
    "elu": _elu,
    "elu_": lambda self, *args: self.copy_(_elu(self, *args)),
    "flatten_dense_tensors": lambda tensors: public("cat")([t.reshape(-1) for t in tensors]),
    "is_leaf": lambda self: self.is_leaf,
    "log_sigmoid_forward": lambda self: (functional("logsigmoid")(self), self.abs().neg().exp()),
    "mH": lambda self: self.mH,
    "mT": lambda self: self.mT,
    "matrix_H": lambda self: self.H,
    "max_pool3d_with_indices": lambda self, kernel_size, stride=(), padding=0, dilation=1, ceil_mode=False: functional("max_pool3d")(
        self, kernel_size, stride or None, padding, dilation, ceil_mode=ceil_mode, return_indices=True
    ),
    "max_unpool2d": _unpool(2),
    "max_unpool3d": _unpool(3),
    "nll_loss2d_forward": _nll_loss,
    "nll_loss_forward": _nll_loss,
    "nonzero_numpy": lambda self: list(self.nonzero(as_tuple=True)),
    "normal_functional": _drawn("normal_"),
    "output_nr": lambda self: self.output_nr,
    "pad_sequence": lambda *args: importlib.import_module("teletensor.nn.utils.rnn").pad_sequence(*args),
    "retains_grad": lambda self: self.retains_grad,
    "slow_conv3d": _sliding_convolution(3),
    "thnn_conv2d": _sliding_convolution(2),
    "unflatten_dense_tensors": _unflatten_dense,
    "zero": lambda self: ops.zeros_like(self),
    **{f"_cast_{name}": _cast(dtype) for name, dtype in _CASTS.items()},
    **{f"reflection_pad{n}d": _pad("reflect") for n in (1, 2, 3)},
    **{f"replication_pad{n}d": _pad("replicate") for n in (1, 2, 3)},
    **{f"{name}_": _into(name) for name in ("gelu", "hardsigmoid", "hardswish", "hardtanh", "leaky_relu", "mish", "relu6", "silu")},
    **{name: _drawn(f"{name}_") for name in ("cauchy", "exponential", "geometric", "log_normal", "random", "uniform")},
}  # fmt: skip
