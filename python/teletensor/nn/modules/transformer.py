"""Attention layers (Vaswani et al., "Attention is all you need", 2017)."""

from __future__ import annotations

import copy
import math

from ... import _C
from ..._C import Tensor  # noqa: F401 - programs import these from here
from ..._lazy import set_module
from ...backends import mha
from .. import functional as F
from .. import init
from ..init import xavier_uniform_  # noqa: F401 - programs import these from here
from ..parameter import Parameter
from .activation import GELU, ReLU
from .container import ModuleList
from .dropout import Dropout
from .linear import Linear, NonDynamicallyQuantizableLinear
from .module import Module
from .normalization import LayerNorm

__all__ = ["Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder", "TransformerEncoderLayer"]


class MultiheadAttention(Module):
    """Multi-head attention; see torch.nn.MultiheadAttention."""

    def __init__(
        self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True, add_bias_kv: bool = False,
        add_zero_attn: bool = False, kdim: int | None = None, vdim: int | None = None, batch_first: bool = False,
        device=None, dtype=None,
    ):  # fmt: skip
        super().__init__()
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and num_heads={num_heads} instead")
        if embed_dim % num_heads:
            raise AssertionError("embed_dim must be divisible by num_heads")
        make = {"device": device, "dtype": dtype}
        self.embed_dim, self.num_heads, self.dropout, self.batch_first = embed_dim, num_heads, dropout, batch_first
        self.kdim, self.vdim = kdim or embed_dim, vdim or embed_dim
        self.head_dim, self.add_zero_attn = embed_dim // num_heads, add_zero_attn
        self._qkv_same_embed_dim = self.kdim == embed_dim == self.vdim
        widths = {"q_proj_weight": embed_dim, "k_proj_weight": self.kdim, "v_proj_weight": self.vdim}
        same = self._qkv_same_embed_dim
        for name, width in widths.items():
            self.register_parameter(name, None if same else Parameter(_C.torch.empty(embed_dim, width, **make)))
        self.register_parameter("in_proj_weight", Parameter(_C.torch.empty(3 * embed_dim, embed_dim, **make)) if same else None)
        self.register_parameter("in_proj_bias", Parameter(_C.torch.empty(3 * embed_dim, **make)) if bias else None)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias, **make)
        for name in ("bias_k", "bias_v"):
            setattr(self, name, Parameter(_C.torch.empty(1, 1, embed_dim, **make)) if add_bias_kv else None)
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for name in ("in_proj_weight", "q_proj_weight", "k_proj_weight", "v_proj_weight"):
            if getattr(self, name) is not None:
                init.xavier_uniform_(getattr(self, name))
        if self.in_proj_bias is not None:
            init.zeros_(self.in_proj_bias)
            init.zeros_(self.out_proj.bias)
        for name in ("bias_k", "bias_v"):
            if getattr(self, name) is not None:
                init.xavier_normal_(getattr(self, name))

    def forward(
        self, query, key, value, key_padding_mask=None, need_weights=True, attn_mask=None, average_attn_weights=True,
        is_causal=False,
    ):  # fmt: skip
        """Returns (result, attention weights or None). Shapes are (N, L, E) with batch_first, else (L, N, E)."""
        if query.is_nested or key.is_nested or value.is_nested:
            return self._attend_nested(query, key, value, key_padding_mask, need_weights, attn_mask, is_causal), None
        swap = self.batch_first and query.dim() == 3
        if swap:
            query, key, value = (t.transpose(0, 1) for t in (query, key, value))
        result, weights = F.multi_head_attention_forward(
            query, key, value, self.embed_dim, self.num_heads, self.in_proj_weight, self.in_proj_bias, self.bias_k,
            self.bias_v, self.add_zero_attn, self.dropout, self.out_proj.weight, self.out_proj.bias, self.training,
            key_padding_mask, need_weights, attn_mask, not self._qkv_same_embed_dim, self.q_proj_weight,
            self.k_proj_weight, self.v_proj_weight, average_attn_weights=average_attn_weights, is_causal=is_causal,
        )  # fmt: skip
        return (result.transpose(0, 1) if swap else result), weights

    def _attend_nested(self, query, key, value, key_padding_mask, need_weights, attn_mask, is_causal):
        """The result for nested tensors (N, *, E): attention within each constituent, without padding."""
        dropout = self.dropout if self.training else 0.0
        unsupported = {
            "batch_first=False": not self.batch_first, "key_padding_mask": key_padding_mask is not None,
            "attn_mask without is_causal": attn_mask is not None and not is_causal, "need_weights=True": need_weights,
            "dropout in training": dropout > 0, "add_bias_kv": self.bias_k is not None, "add_zero_attn": self.add_zero_attn,
        }  # fmt: skip
        if found := [name for name, given in unsupported.items() if given]:
            raise NotImplementedError(f"[MultiheadAttention] not implemented for nested tensors: {', '.join(found)}")
        if self._qkv_same_embed_dim:
            weights = self.in_proj_weight.chunk(3)
        else:
            weights = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        biases = (None,) * 3 if self.in_proj_bias is None else self.in_proj_bias.chunk(3)
        heads = [
            F.linear(x, w, b).unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
            for x, w, b in zip((query, key, value), weights, biases)
        ]
        attended = F.scaled_dot_product_attention(*heads, is_causal=is_causal)
        return self.out_proj(attended.transpose(1, 2).flatten(-2))


def _get_activation_fn(activation: str):
    """F.relu or F.gelu; libraries use this name too."""
    if activation not in ("relu", "gelu"):
        raise RuntimeError(f"activation should be relu/gelu, not {activation}")
    return getattr(F, activation)


def _get_clones(module: Module, count: int) -> ModuleList:
    """Copies of a module; libraries use this name too."""
    return ModuleList([copy.deepcopy(module) for _ in range(count)])


def _activation(activation):
    return _get_activation_fn(activation) if isinstance(activation, str) else activation


class _TransformerLayerBase(Module):
    """The common base of encoder and decoder layers: self-attention and a feed-forward network, each with a norm."""

    norms: int

    def __init__(
        self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1, activation=F.relu,
        layer_norm_eps: float = 1e-5, batch_first: bool = False, norm_first: bool = False, bias: bool = True, device=None,
        dtype=None,
    ):  # fmt: skip
        super().__init__()
        make = {"device": device, "dtype": dtype}
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first, **make)
        if self.norms == 3:
            self.multihead_attn = MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first, **make)
        self.linear1 = Linear(d_model, dim_feedforward, bias, **make)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, **make)
        self.norm_first, self.activation = norm_first, _activation(activation)
        for i in range(1, self.norms + 1):
            setattr(self, f"norm{i}", LayerNorm(d_model, layer_norm_eps, bias=bias, **make))
        for i in range(1, self.norms + 1):
            setattr(self, f"dropout{i}", Dropout(dropout))

    def _ff_block(self, x):
        return self.linear2(self.dropout(self.activation(self.linear1(x))))

    def _sa_block(self, x, attn_mask, key_padding_mask, is_causal: bool = False):
        return self.self_attn(x, x, x, key_padding_mask, False, attn_mask, is_causal=is_causal)[0]

    def _residual(self, x, i: int, block):
        """Returns x + dropout(block(x)). Applies norm i to the block's input if norm_first is set, else to the sum."""
        norm, dropout = getattr(self, f"norm{i}"), getattr(self, f"dropout{i}")
        if self.norm_first:
            return x + dropout(block(norm(x)))
        return norm(x + dropout(block(x)))


class TransformerEncoderLayer(_TransformerLayerBase):
    """Self-attention and a feed-forward network."""

    norms = 2

    def __init__(
        self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1, activation=F.relu,
        layer_norm_eps: float = 1e-5, batch_first: bool = False, norm_first: bool = False, bias: bool = True, device=None,
        dtype=None,
    ):  # fmt: skip
        super().__init__(
            d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias, device, dtype
        )
        known = ((F.relu, ReLU), (F.gelu, GELU))
        kinds = [i for i, (f, kind) in enumerate(known, 1) if self.activation is f or isinstance(self.activation, kind)]
        self.activation_relu_or_gelu = kinds[0] if kinds else 0

    def forward(self, src, src_mask=None, src_key_padding_mask=None, is_causal: bool = False):
        attend = lambda x: self._sa_block(x, src_mask, src_key_padding_mask, is_causal)  # noqa: E731
        return self._residual(self._residual(src, 1, attend), 2, self._ff_block)


class TransformerDecoderLayer(_TransformerLayerBase):
    """Self-attention, attention to a memory, and a feed-forward network."""

    norms = 3

    def forward(
        self, tgt, memory, tgt_mask=None, memory_mask=None, tgt_key_padding_mask=None, memory_key_padding_mask=None,
        tgt_is_causal: bool = False, memory_is_causal: bool = False,
    ):  # fmt: skip
        attend = lambda x: self._sa_block(x, tgt_mask, tgt_key_padding_mask, tgt_is_causal)  # noqa: E731
        cross = lambda x: self._mha_block(x, memory, memory_mask, memory_key_padding_mask, memory_is_causal)  # noqa: E731
        return self._residual(self._residual(self._residual(tgt, 1, attend), 2, cross), 3, self._ff_block)

    def _mha_block(self, x, mem, attn_mask, key_padding_mask, is_causal: bool = False):
        return self.multihead_attn(x, mem, mem, key_padding_mask, False, attn_mask, is_causal=is_causal)[0]


class _LayerStack(Module):
    """Copies of a layer in sequence, with an optional final norm."""

    def __init__(self, layer, num_layers: int, norm=None):
        super().__init__()
        self.layers = _get_clones(layer, num_layers)
        self.num_layers, self.norm = num_layers, norm

    def _finish(self, x):
        return x if self.norm is None else self.norm(x)


class TransformerEncoder(_LayerStack):
    """A sequence of encoder layers.

    With ``enable_nested_tensor``, inference without gradients drops padding as PyTorch does: results at the padded positions
    are those of ``norm`` for zeros. PyTorch's conditions for it are those of _drops_padding() and ``mask_check``: the
    padding of each sequence must follow it. The time is that of the padded computation.
    """

    def __init__(self, encoder_layer, num_layers, norm=None, enable_nested_tensor=True, mask_check=True):
        super().__init__(encoder_layer, num_layers, norm)
        self.enable_nested_tensor, self.mask_check = enable_nested_tensor, mask_check
        self.use_nested_tensor = bool(enable_nested_tensor) and _has_fast_path(encoder_layer)

    def forward(self, src, mask=None, src_key_padding_mask=None, is_causal=None):
        dropped = None
        if self._drops_padding(src, mask, src_key_padding_mask):
            padding = src_key_padding_mask.ne(0)
            dropped = padding & _follows_sequences(padding) if self.mask_check else padding
            if src_key_padding_mask.dtype is not _C.bool:
                src_key_padding_mask = src_key_padding_mask.masked_fill(dropped, -math.inf)
            src = src.masked_fill(dropped.unsqueeze(-1), 0.0)
        for layer in self.layers:
            src = layer(src, src_mask=mask, src_key_padding_mask=src_key_padding_mask, is_causal=bool(is_causal))
        return self._finish(src if dropped is None else src.masked_fill(dropped.unsqueeze(-1), 0.0))

    def _drops_padding(self, src, mask, padding) -> bool:
        """Whether PyTorch removes padding from the computation, if it follows each sequence."""
        if not getattr(self, "use_nested_tensor", False) or padding is None or mask is not None or len(self.layers) == 0:
            return False
        if src.is_nested or src.dim() != 3 or tuple(padding.shape) != tuple(src.shape[:2]):
            return False
        layer = self.layers[0]
        if layer.training or not mha.get_fastpath_enabled() or _C.autocast_dtype("cuda") is not None:
            return False
        return not (_C.is_grad_enabled() and (src.requires_grad or any(p.requires_grad for p in layer.parameters())))


def _has_fast_path(layer) -> bool:
    """Whether PyTorch's encoder computes copies of a layer without padding."""
    return (
        isinstance(layer, TransformerEncoderLayer) and not layer.norm_first and layer.self_attn.batch_first
        and layer.self_attn.in_proj_bias is not None and layer.activation_relu_or_gelu != 0
        and layer.norm1.eps == layer.norm2.eps and layer.self_attn.num_heads % 2 == 0
    )  # fmt: skip


def _follows_sequences(padding):
    """Whether the true entries of each row of a mask (N, S) are the last ones: a tensor without dimensions."""
    return (padding[:, :-1] & padding[:, 1:].logical_not()).any().logical_not()


class TransformerDecoder(_LayerStack):
    """A sequence of decoder layers."""

    def __init__(self, decoder_layer, num_layers, norm=None):
        super().__init__(decoder_layer, num_layers, norm)

    def forward(
        self, tgt, memory, tgt_mask=None, memory_mask=None, tgt_key_padding_mask=None, memory_key_padding_mask=None,
        tgt_is_causal=None, memory_is_causal: bool = False,
    ):  # fmt: skip
        for layer in self.layers:
            tgt = layer(
                tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=bool(tgt_is_causal),
                memory_is_causal=memory_is_causal,
            )  # fmt: skip
        return self._finish(tgt)


class Transformer(Module):
    """An encoder and a decoder."""

    def __init__(
        self, d_model: int = 512, nhead: int = 8, num_encoder_layers: int = 6, num_decoder_layers: int = 6,
        dim_feedforward: int = 2048, dropout: float = 0.1, activation=F.relu, custom_encoder=None, custom_decoder=None,
        layer_norm_eps: float = 1e-5, batch_first: bool = False, norm_first: bool = False, bias: bool = True, device=None,
        dtype=None,
    ):  # fmt: skip
        super().__init__()
        options = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias, device, dtype)
        norm = lambda: LayerNorm(d_model, layer_norm_eps, bias=bias, device=device, dtype=dtype)  # noqa: E731
        self.encoder = custom_encoder or TransformerEncoder(TransformerEncoderLayer(*options), num_encoder_layers, norm())
        self.decoder = custom_decoder or TransformerDecoder(TransformerDecoderLayer(*options), num_decoder_layers, norm())
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for p in self.parameters():
            if p.dim() > 1:
                init.xavier_uniform_(p)

    def forward(
        self, src, tgt, src_mask=None, tgt_mask=None, memory_mask=None, src_key_padding_mask=None,
        tgt_key_padding_mask=None, memory_key_padding_mask=None, src_is_causal=None, tgt_is_causal=None,
        memory_is_causal=False,
    ):  # fmt: skip
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal)
        return self.decoder(
            tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=tgt_is_causal, memory_is_causal=memory_is_causal,
        )  # fmt: skip

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device=None, dtype=None):
        """A matrix of -inf above the diagonal and 0 elsewhere."""
        return _C.torch.full((sz, sz), -math.inf, device=device, dtype=dtype).triu(1)


set_module("teletensor.nn.modules.activation", MultiheadAttention)
