"""Activations: a table of functions and the arguments that their modules keep."""

from __future__ import annotations

from .. import functional as F
from ... import _C
from ..parameter import Parameter
from .module import Module

# module -> (function, the arguments it keeps with their defaults, in order)
_TABLE = {
    "ReLU": (F.relu, {"inplace": False}),
    "ReLU6": (F.relu6, {"inplace": False}),
    "LeakyReLU": (F.leaky_relu, {"negative_slope": 0.01, "inplace": False}),
    "ELU": (F.elu, {"alpha": 1.0, "inplace": False}),
    "SELU": (F.selu, {"inplace": False}),
    "CELU": (F.celu, {"alpha": 1.0, "inplace": False}),
    "GELU": (F.gelu, {"approximate": "none"}),
    "SiLU": (F.silu, {"inplace": False}),
    "Mish": (F.mish, {"inplace": False}),
    "Hardtanh": (F.hardtanh, {"min_val": -1.0, "max_val": 1.0, "inplace": False}),
    "Hardsigmoid": (F.hardsigmoid, {"inplace": False}),
    "Hardswish": (F.hardswish, {"inplace": False}),
    "Hardshrink": (F.hardshrink, {"lambd": 0.5}),
    "Softshrink": (F.softshrink, {"lambd": 0.5}),
    "Sigmoid": (F.sigmoid, {}),
    "Tanh": (F.tanh, {}),
    "Tanhshrink": (F.tanhshrink, {}),
    "Softsign": (F.softsign, {}),
    "LogSigmoid": (F.logsigmoid, {}),
    "Softplus": (F.softplus, {"beta": 1, "threshold": 20}),
    "Threshold": (F.threshold, {"threshold": 0.0, "value": 0.0, "inplace": False}),
    "Softmax": (F.softmax, {"dim": None}),
    "LogSoftmax": (F.log_softmax, {"dim": None}),
    "Softmin": (F.softmin, {"dim": None}),
    "GLU": (F.glu, {"dim": -1}),
}

__all__ = [*_TABLE, "PReLU", "RReLU", "Softmax2d", "MultiheadAttention"]


def _make(name: str, function, kept: dict) -> type:
    def __init__(self, *args, **kwargs):
        Module.__init__(self)
        values = {**kept, **dict(zip(kept, args)), **kwargs}
        unknown = [k for k in values if k not in kept]
        if unknown or len(args) > len(kept):
            raise TypeError(f"{name}.__init__() got an unexpected argument {(unknown or [args[-1]])[0]!r}")
        for key, value in values.items():
            setattr(self, key, value)

    def forward(self, input):
        return function(input, **{key: getattr(self, key) for key in kept})

    def extra_repr(self) -> str:
        shown = {k: getattr(self, k) for k in kept if k != "inplace" or self.inplace}
        return ", ".join(f"{k}={v}" for k, v in shown.items())

    doc = f"The module of functional.{getattr(function, '__name__', name.lower())}."
    members = {"__init__": __init__, "forward": forward, "extra_repr": extra_repr, "__doc__": doc, "__module__": __name__}
    return type(name, (Module,), members)


globals().update({name: _make(name, *row) for name, row in _TABLE.items()})


class PReLU(Module):
    """Leaky relu with learned slopes, one or one a channel."""

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device=None, dtype=None):
        super().__init__()
        self.num_parameters = num_parameters
        self.weight = Parameter(_C.torch.full((num_parameters,), init, device=device, dtype=dtype))

    def forward(self, input):
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class RReLU(Module):
    """Leaky relu with random slopes in training."""

    def __init__(self, lower: float = 1 / 8, upper: float = 1 / 3, inplace: bool = False):
        super().__init__()
        self.lower, self.upper, self.inplace = lower, upper, inplace

    def forward(self, input):
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)


class Softmax2d(Module):
    """softmax over the channels of images."""

    def forward(self, input):
        return F.softmax(input, -3)


class MultiheadAttention(Module):
    """Attention in several subspaces (Vaswani et al., "Attention is all you need", 2017)."""

    def __init__(self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True, batch_first: bool = False):
        super().__init__()
        if embed_dim % num_heads:
            raise ValueError(f"embed_dim must be divisible by num_heads, got {embed_dim} and {num_heads}")
        from .linear import Linear
        from .. import init

        self.embed_dim, self.num_heads, self.dropout, self.batch_first = embed_dim, num_heads, dropout, batch_first
        self.in_proj_weight = Parameter(_C.torch.empty(3 * embed_dim, embed_dim))
        self.register_parameter("in_proj_bias", Parameter(_C.torch.zeros(3 * embed_dim)) if bias else None)
        self.out_proj = Linear(embed_dim, embed_dim, bias)
        init.xavier_uniform_(self.in_proj_weight)
        if bias:
            init.zeros_(self.out_proj.bias)

    def forward(self, query, key, value, key_padding_mask=None, need_weights=True, attn_mask=None, average_attn_weights=True, is_causal=False):  # fmt: skip
        """(result, weights or None); shapes (batch, length, embed) with batch_first, else (length, batch, embed)."""
        if not self.batch_first and query.dim() == 3:
            query, key, value = (t.transpose(0, 1) for t in (query, key, value))
        single = query.dim() == 2
        if single:
            query, key, value = (t.unsqueeze(0) for t in (query, key, value))
        weights = self.in_proj_weight.chunk(3)
        biases = self.in_proj_bias.chunk(3) if self.in_proj_bias is not None else (None,) * 3
        q, k, v = (
            F.linear(t, w, b).unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
            for t, w, b in zip((query, key, value), weights, biases)
        )
        scores = q @ k.transpose(-2, -1) * (self.embed_dim // self.num_heads) ** -0.5
        for mask in (attn_mask if attn_mask is None or attn_mask.dim() < 3 else attn_mask.unflatten(0, (-1, self.num_heads)),
                     key_padding_mask[:, None, None, :] if key_padding_mask is not None else None):  # fmt: skip
            if mask is not None:
                scores = scores.masked_fill(mask, float("-inf")) if mask.dtype is _C.bool else scores + mask
        attention = F.dropout(F.softmax(scores, -1), self.dropout, self.training)
        result = self.out_proj((attention @ v).transpose(1, 2).flatten(2))
        if single:
            result, attention = result.squeeze(0), attention.squeeze(0)
        if not self.batch_first and not single:
            result = result.transpose(0, 1)
        if not need_weights:
            return result, None
        return result, attention.mean(-3) if average_attn_weights else attention
