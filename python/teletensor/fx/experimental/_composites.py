"""The operators that PyTorch's dispatcher divides into others before a recording sees them (CompositeImplicitAutograd)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..._C import Tensor
from ..._layouts import contiguous_format
from ..._library import aten
from ...func._batch_composites import correlation, covariance, slice_norms
from ._numbers import is_number
from ._recorded import is_dense
from ._recording import call_one, can_view, note_reshape
from ._sizes import RecordedSize

COMPOSITES: dict[Any, Callable] = {}


def _rule(*names: str) -> Callable:
    def register(function: Callable) -> Callable:
        for name in names:
            base, _, overload = name.partition(".")
            packet = aten.packet(base)
            if packet is not None and overload in packet.overloads():
                COMPOSITES[getattr(packet, overload)] = function
        return function

    return register


@_rule("linear.default")
def _linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:  # noqa: A002 - PyTorch's name
    if input.dim() < 2 or weight.dim() != 2:
        return NotImplemented
    if bias is None:
        return call_one("matmul.default", input, call_one("t.default", weight))
    flat = input if input.dim() == 2 else call_one("view.default", input, [-1, input.size(-1)]) if is_dense(input) else None
    if flat is None:
        return call_one("add.Tensor", call_one("matmul.default", input, call_one("t.default", weight)), bias)
    result = call_one("addmm.default", bias, flat, call_one("t.default", weight))
    return result if input.dim() == 2 else call_one("view.default", result, [*input.shape[:-1], weight.size(0)])


@_rule("matmul.default")
def _matmul(self: Tensor, other: Tensor) -> Tensor:
    a, b = self.dim(), other.dim()
    if (a, b) == (1, 1):
        return call_one("dot.default", self, other)
    if (a, b) == (2, 1):
        return call_one("mv.default", self, other)
    if (a, b) == (2, 2):
        return call_one("mm.default", self, other)
    if (a, b) == (3, 3) and self.size(0) == other.size(0):
        return call_one("bmm.default", self, other)
    if a >= 3 and b == 2 and is_dense(self):
        flat = call_one("view.default", self, [-1, self.size(-1)])
        return call_one("_unsafe_view.default", call_one("mm.default", flat, other), [*self.shape[:-1], other.size(-1)])
    return NotImplemented


def _convolution(n: int) -> Callable:
    def rule(input: Tensor, weight: Tensor, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1) -> Any:  # noqa: A002
        if input.dim() != n + 2 or isinstance(padding, str):
            return NotImplemented
        stride, padding, dilation = (list(v) if isinstance(v, (list, tuple)) and len(v) == n else [v if isinstance(v, int) else v[0]] * n
                                     for v in (stride, padding, dilation))  # fmt: skip
        return call_one("convolution.default", input, weight, bias, stride, padding, dilation, False, [0] * n, groups)

    return rule


for _n in (1, 2, 3):
    _rule(f"conv{_n}d.default")(_convolution(_n))


def _transposed(n: int) -> Callable:
    def rule(
        input: Tensor, weight: Tensor, bias: Any = None, stride: Any = 1, padding: Any = 0, output_padding: Any = 0, groups: int = 1,  # noqa: A002
        dilation: Any = 1,
    ) -> Any:  # fmt: skip
        if input.dim() != n + 2:
            return NotImplemented
        stride, padding, output_padding, dilation = (
            list(v) if isinstance(v, (list, tuple)) and len(v) == n else [v if isinstance(v, int) else v[0]] * n
            for v in (stride, padding, output_padding, dilation)
        )
        return call_one("convolution.default", input, weight, bias, stride, padding, dilation, True, output_padding, groups)

    return rule


_rule("conv_transpose1d.default")(_transposed(1))
for _n in (2, 3):
    _rule(f"conv_transpose{_n}d.input")(_transposed(_n))


@_rule("chunk.default")
def _chunk(self: Tensor, chunks: int, dim: int = 0) -> Any:
    size = self.size(dim)
    if is_number(size) or is_number(chunks) or size == 0:
        return NotImplemented
    part = -(-size // chunks)
    if type(size) is RecordedSize and type(chunks) is int and size > (chunks - 1) ** 2:  # then there are as many as requested
        size.log.assume_equal(-(-size // part), chunks)
    return call_one("split.Tensor", self, part, dim)


@_rule("softmax.int")
def _softmax(self: Tensor, dim: int, dtype: Any = None) -> Tensor:
    return NotImplemented if dtype is not None else call_one("_softmax.default", self, dim, False)


@_rule("log_softmax.int")
def _log_softmax(self: Tensor, dim: int, dtype: Any = None) -> Tensor:
    return NotImplemented if dtype is not None else call_one("_log_softmax.default", self, dim, False)


@_rule("layer_norm.default")
def _layer_norm(
    input: Tensor, normalized_shape: list, weight: Any = None, bias: Any = None, eps: float = 1e-5, *_: Any,  # noqa: A002
) -> Tensor:  # fmt: skip
    return call_one("native_layer_norm.default", input, normalized_shape, weight, bias, eps)[0]


@_rule("group_norm.default")
def _group_norm(
    input: Tensor, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5, *_: Any,  # noqa: A002
) -> Tensor:  # fmt: skip
    n, c = input.shape[:2]
    return call_one("native_group_norm.default", input, weight, bias, n, c, input.numel() // max(n * c, 1), num_groups, eps)[0]


@_rule("batch_norm.default")
def _batch_norm(
    input: Tensor, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool, momentum: float, eps: float,  # noqa: A002
    *_: Any,
) -> Any:  # fmt: skip
    return call_one("native_batch_norm.default", input, weight, bias, running_mean, running_var, training, momentum, eps)[0]


@_rule("reshape.default")
def _reshape(self: Tensor, shape: list) -> Tensor:
    if can_view(self, shape):
        made = call_one("view.default", self, shape)
    else:
        copied = call_one("clone.default", self, memory_format=contiguous_format)
        made = call_one("_unsafe_view.default", copied, shape)
    note_reshape(self, made)
    return made


@_rule("flatten.using_ints")
def _flatten(self: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    if not is_dense(self) or self.dim() == 0:
        return NotImplemented
    start, end = start_dim % self.dim(), end_dim % self.dim()
    if start == end:
        return self
    product: int = 1
    for n in self.shape[start : end + 1]:
        product = n * product
    return call_one("view.default", self, [*self.shape[:start], product, *self.shape[end + 1 :]])


@_rule("dropout.default")
def _dropout(input: Tensor, p: float, train: bool) -> Tensor:  # noqa: A002
    if not train or p == 0:
        return input
    return call_one("native_dropout.default", input, p, True)[0] if p < 1 else NotImplemented


@_rule("max_pool2d.default")
def _max_pool2d(self: Tensor, kernel_size: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False) -> Tensor:
    return call_one("max_pool2d_with_indices.default", self, kernel_size, stride, padding, dilation, ceil_mode)[0]


@_rule("adaptive_avg_pool2d.default")
def _adaptive_avg_pool2d(self: Tensor, output_size: Any) -> Tensor:
    size = [output_size] * 2 if isinstance(output_size, int) else list(output_size)
    if size == [1, 1]:
        return call_one("mean.dim", self, [-1, -2], True)
    return call_one("_adaptive_avg_pool2d.default", self, size)


@_rule("expand_as.default")
def _expand_as(self: Tensor, other: Tensor) -> Tensor:
    return call_one("expand.default", self, list(other.shape))


@_rule("view_as.default")
def _view_as(self: Tensor, other: Tensor) -> Tensor:
    return call_one("view.default", self, list(other.shape))


@_rule("square.default")
def _square(self: Tensor) -> Tensor:
    return call_one("pow.Tensor_Scalar", self, 2)


@_rule("type_as.default")
def _type_as(self: Tensor, other: Tensor) -> Tensor:
    return self if self.dtype == other.dtype else call_one("_to_copy.default", self, dtype=other.dtype)


# Their operators are recorded one by one.
_rule("cov.default")(lambda self, *, correction=1, fweights=None, aweights=None: covariance(self, correction, fweights, aweights))
_rule("corrcoef.default")(correlation)
_rule("diagflat.default")(lambda self, offset=0: self.reshape([self.numel()]).diag_embed(offset))
_rule("norm_except_dim.default")(lambda v, pow=2, dim=0: slice_norms(v, pow, dim))  # noqa: A006 - PyTorch's name
