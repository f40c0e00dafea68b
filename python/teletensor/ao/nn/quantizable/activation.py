"""MultiheadAttention made of linear layers and operators that can be observed and quantized."""

from __future__ import annotations

from typing import Any

from .... import _C, nn
from ...._C import Tensor
from ...._lazy import set_module
from ...._quantized import create
from ....nn import functional as F
from ...quantization._stubs import DeQuantStub, QuantStub
from .. import _steps
from ..quantized.functional_modules import FloatFunctional

_PARTS = ("linear_Q", "linear_K", "linear_V")


def _mask(mask: Tensor | None) -> Tensor | None:
    """A mask as float or bool."""
    if mask is None:
        return None
    if mask.dtype == _C.uint8:
        return mask.to(_C.bool)
    if not mask.is_floating_point() and mask.dtype != _C.bool:
        raise AssertionError(f"Only float and bool types are supported for attn_mask, not {mask.dtype}")
    return mask


class MultiheadAttention(nn.MultiheadAttention):
    """Attention made of modules. Arguments and results as of torch.nn.MultiheadAttention, without ``is_causal``."""

    _FLOAT_MODULE: type[nn.Module] = nn.MultiheadAttention

    def __init__(
        self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True, add_bias_kv: bool = False,
        add_zero_attn: bool = False, kdim: int | None = None, vdim: int | None = None, batch_first: bool = False, device: Any = None,
        dtype: Any = None,
    ):  # fmt: skip
        super().__init__(
            embed_dim, num_heads, dropout, bias, add_bias_kv, add_zero_attn, kdim, vdim, batch_first, device=device, dtype=dtype
        )
        made = {"bias": bias, "device": device, "dtype": dtype}
        self.linear_Q = nn.Linear(self.embed_dim, self.embed_dim, **made)
        self.linear_K = nn.Linear(self.kdim, self.embed_dim, **made)
        self.linear_V = nn.Linear(self.vdim, self.embed_dim, **made)
        self.out_proj = nn.Linear(self.embed_dim, self.embed_dim, **made)
        self.q_scaling_product = FloatFunctional()
        self.quant_attn_output, self.quant_attn_output_weights = QuantStub(), QuantStub()
        self.dequant_q, self.dequant_k, self.dequant_v = DeQuantStub(), DeQuantStub(), DeQuantStub()

    def _get_name(self) -> str:
        return "QuantizableMultiheadAttention"

    @classmethod
    def from_float(cls, other: nn.Module) -> MultiheadAttention:
        """The prepared module of a MultiheadAttention with a QConfig."""
        if type(other) is not cls._FLOAT_MODULE:
            raise AssertionError(f"Expected type {cls._FLOAT_MODULE}, got {type(other)}")
        if not hasattr(other, "qconfig"):
            raise AssertionError("The float module must have 'qconfig'")
        made = cls(
            other.embed_dim, other.num_heads, other.dropout, other.in_proj_bias is not None, other.bias_k is not None,
            other.add_zero_attn, other.kdim, other.vdim, other.batch_first,
        )  # fmt: skip
        made.bias_k, made.bias_v, made.qconfig = other.bias_k, other.bias_v, other.qconfig
        made.out_proj.weight, made.out_proj.bias = other.out_proj.weight, other.out_proj.bias
        if other._qkv_same_embed_dim:
            weights = other.in_proj_weight.chunk(3, 0)
        else:
            weights = (other.q_proj_weight, other.k_proj_weight, other.v_proj_weight)
        biases = (None,) * 3 if other.in_proj_bias is None else other.in_proj_bias.chunk(3, 0)
        for name, weight, bias in zip(_PARTS, weights, biases):
            layer = getattr(made, name)
            layer.weight = nn.Parameter(weight.detach(), weight.requires_grad)
            layer.bias = None if bias is None else nn.Parameter(bias.detach(), bias.requires_grad)
        return _steps.prepare(made.eval(), inplace=True)

    @classmethod
    def from_observed(cls, other: nn.Module) -> MultiheadAttention:
        """Raises NotImplementedError: an observed module becomes a torch.ao.nn.quantized.MultiheadAttention."""
        raise NotImplementedError(
            f"It looks like you are trying to prepare an MHA module ({type(other).__name__}). Please, see the examples on quantizable MHAs."
        )

    @staticmethod
    def _converted(other: MultiheadAttention) -> MultiheadAttention:
        """A copy whose modules are quantized."""
        return _steps.convert(other, inplace=False, remove_qconfig=True)

    def dequantize(self) -> nn.Module:
        """A float module with the weights of this quantized one."""
        layers = [getattr(self, name)._weight_bias() for name in _PARTS]
        has_bias = layers[0][1] is not None
        made = self._FLOAT_MODULE(
            self.embed_dim, self.num_heads, self.dropout, has_bias, self.bias_k is not None, self.add_zero_attn, self.kdim, self.vdim,
            self.batch_first,
        )  # fmt: skip
        for name in ("bias_k", "bias_v"):
            if getattr(self, name) is not None:
                setattr(made, name, nn.Parameter(getattr(self, name).dequantize()))
        weight, bias = self.out_proj._weight_bias()
        made.out_proj.weight = nn.Parameter(weight.dequantize())
        if bias is not None:
            made.out_proj.bias = nn.Parameter(bias)
        weights = [w.dequantize() for w, _ in layers]
        if made._qkv_same_embed_dim:
            made.in_proj_weight = nn.Parameter(_C.torch.cat(weights))
        else:
            made.q_proj_weight, made.k_proj_weight, made.v_proj_weight = (nn.Parameter(w) for w in weights)
        if has_bias:
            made.in_proj_bias = nn.Parameter(_C.torch.cat([b for _, b in layers]))
        return made

    def _heads(self, x: Tensor, batch: int) -> Tensor:
        """(length, batch, embed) as (batch * heads, length, embed / heads)."""
        return x.contiguous().view(-1, batch * self.num_heads, self.embed_dim // self.num_heads).transpose(0, 1)

    def _with_zero(self, x: Tensor) -> Tensor:
        """A sequence with a row of zeros at its end."""
        zeros = _C.torch.zeros(x.shape[0], 1, x.shape[2])
        if x.is_quantized:
            zeros = create.quantize_per_tensor(zeros, x.q_scale(), x.q_zero_point(), x.dtype)
        return _C.torch.cat([x, zeros], dim=1)

    def _masked(self, weights: Tensor, attn_mask: Tensor | None, padding: Tensor | None, batch: int) -> Tensor:
        """Scores (batch * heads, target, source) with -inf where a mask excludes a pair."""
        if attn_mask is not None:
            attn_mask = attn_mask.unsqueeze(0) if attn_mask.dim() == 2 else attn_mask
            if attn_mask.dim() != 3 or attn_mask.shape[1:] != weights.shape[1:] or attn_mask.shape[0] not in (1, weights.shape[0]):
                raise RuntimeError(f"expected attn_mask to broadcast to {list(weights.shape)}, got {list(attn_mask.shape)}")
            masked = attn_mask.dtype == _C.bool
            weights = weights.masked_fill(attn_mask, float("-inf")) if masked else weights + attn_mask
        if padding is None:
            return weights
        if list(padding.shape) != [batch, weights.shape[2]]:
            raise AssertionError(f"expected key_padding_mask of sizes {[batch, weights.shape[2]]}, got {list(padding.shape)}")
        split = weights.view(batch, self.num_heads, *weights.shape[1:])
        return split.masked_fill(padding.unsqueeze(1).unsqueeze(2), float("-inf")).view(weights.shape)

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None = None, need_weights: bool = True,
        attn_mask: Tensor | None = None, average_attn_weights: bool = True, is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:  # fmt: skip
        if is_causal:
            raise AssertionError("causal mask not supported by AO MHA module")
        if self.batch_first:
            query, key, value = (x.transpose(0, 1) for x in (query, key, value))
        length, batch, size = query.shape
        if size != self.embed_dim or key.shape[:2] != value.shape[:2]:
            raise AssertionError(f"expected queries of size {self.embed_dim} and as many keys as values, got {size}, {key.shape[:2]}")
        attn_mask, padding = _mask(attn_mask), _mask(key_padding_mask)
        q, k, v = self.linear_Q(query), self.linear_K(key), self.linear_V(value)
        q = self.q_scaling_product.mul_scalar(q, float(self.embed_dim // self.num_heads) ** -0.5)
        added = 0
        if self.bias_k is not None:
            k, v = _C.torch.cat([k, self.bias_k.repeat(1, batch, 1)]), _C.torch.cat([v, self.bias_v.repeat(1, batch, 1)])
            added += 1
        q, k, v = (self._heads(x, batch) for x in (q, k, v))
        if self.add_zero_attn:
            k, v, added = self._with_zero(k), self._with_zero(v), added + 1
        if added:
            attn_mask, padding = (None if m is None else F.pad(m, (0, added)) for m in (attn_mask, padding))
        q, k, v = self.dequant_q(q), self.dequant_k(k), self.dequant_v(v)
        weights = self._masked(_C.torch.bmm(q, k.transpose(1, 2)), attn_mask, padding, batch)
        weights = F.dropout(F.softmax(weights, dim=-1), p=self.dropout, training=self.training)
        result = _C.torch.bmm(weights, v)
        if self.batch_first:  # PyTorch's order of numbers
            result = result.reshape(batch, length, self.embed_dim)
        else:
            result = result.transpose(0, 1).contiguous().view(length, batch, self.embed_dim)
        result = self.out_proj(self.quant_attn_output(result))
        weights = self.quant_attn_output_weights(weights)
        if not need_weights:
            return result, None
        weights = weights.view(batch, self.num_heads, length, weights.shape[-1])
        return result, weights.mean(dim=1) if average_attn_weights else weights


set_module("teletensor.ao.nn.quantizable.modules.activation", MultiheadAttention)
