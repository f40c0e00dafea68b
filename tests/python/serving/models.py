"""Models of the tests: a small decoder, as in examples/serve_llama.py."""

from __future__ import annotations

import teletensor as torch
from teletensor import nn
from teletensor.nn import functional as F  # noqa: N812


def rotate(x, cos, sin):
    """Rotates pairs of the last dimension, which are its halves, by the angles of their positions."""
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


class Attention(nn.Module):
    """Causal attention with rotary positions; groups of query heads share a head of keys and values."""

    def __init__(self, width: int, heads: int, kv_heads: int):
        super().__init__()
        self.heads, self.kv_heads, self.dim = heads, kv_heads, width // heads
        self.q = nn.Linear(width, width, bias=False)
        self.kv = nn.Linear(width, 2 * kv_heads * self.dim, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def project(self, x, cos, sin):
        """Queries, keys and values of (N, T, width): (N, heads, T, dim)."""
        q = self.q(x).unflatten(-1, (self.heads, self.dim)).transpose(1, 2)
        k, v = self.kv(x).unflatten(-1, (2 * self.kv_heads, self.dim)).transpose(1, 2).chunk(2, 1)
        return rotate(q, cos, sin), rotate(k, cos, sin), v

    def attend(self, q, k, v):
        """Attends to all earlier positions. Returns (N, T, width)."""
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return self.out(y.transpose(1, 2).flatten(2))

    def attend_once(self, q, k, v, mask):
        """One query (N, heads, 1, dim) per row attends to the positions of the mask. Returns (N, 1, width). The heads of a group
        are the queries of their head of keys, so that no keys are repeated."""
        q = q.unflatten(1, (self.kv_heads, self.heads // self.kv_heads)).flatten(2, 3)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.out(y.flatten(1)[:, None])


class Block(nn.Module):
    """Attention and a gated MLP, each after an RMS norm."""

    def __init__(self, width: int, heads: int, kv_heads: int, hidden: int):
        super().__init__()
        self.norm1, self.norm2 = nn.RMSNorm(width, eps=1e-5), nn.RMSNorm(width, eps=1e-5)
        self.attention = Attention(width, heads, kv_heads)
        self.gate, self.up = nn.Linear(width, hidden, bias=False), nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def mlp(self, x):
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Llama(nn.Module):
    """Logits of the next token. `length`: the largest number of tokens of a sequence."""

    def __init__(self, symbols: int, length: int, width: int = 128, heads: int = 4, kv_heads: int = 2, layers: int = 4):
        super().__init__()
        self.length, self.kv_heads, self.dim = length, kv_heads, width // heads
        self.token = nn.Embedding(symbols, width)
        self.blocks = nn.ModuleList(Block(width, heads, kv_heads, width * 8 // 3 // 8 * 8) for _ in range(layers))
        self.norm, self.head = nn.RMSNorm(width, eps=1e-5), nn.Linear(width, symbols, bias=False)
        angles = torch.arange(length)[:, None] / 10000 ** (torch.arange(self.dim // 2) * 2 / self.dim)
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())
        for parameter in self.parameters():
            if parameter.dim() == 2:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, tokens):
        """(N, T) tokens to (N, T, symbols)."""
        x = self.token(tokens)
        cos, sin = self.cos[: tokens.shape[1]], self.sin[: tokens.shape[1]]
        for block in self.blocks:
            attention = block.attention
            x = block.mlp(x + attention.attend(*attention.project(block.norm1(x), cos, sin)))
        return self.head(self.norm(x))

    def cache(self, slots: int) -> torch.Tensor:
        """Room for the keys and values of sequences: (layers, 2, slots, heads, length, dim)."""
        return torch.zeros(len(self.blocks), 2, slots, self.kv_heads, self.length, self.dim)

    def prefill(self, tokens, length, slot, cache):
        """Computes (1, T) tokens of a prompt, of which `length` (1) are not padding, and stores keys and values in a slot (1).
        Returns logits (1, symbols)."""
        x = self.token(tokens)
        count = tokens.shape[1]
        cos, sin = self.cos[:count], self.sin[:count]
        for block, (keys, values) in zip(self.blocks, cache):
            q, k, v = block.attention.project(block.norm1(x), cos, sin)
            keys[slot, :, :count] = k
            values[slot, :, :count] = v
            x = block.mlp(x + block.attention.attend(q, k, v))
        return self.head(self.norm(x[0].index_select(0, length - 1)))

    def step(self, tokens, positions, window, cache):
        """Appends tokens (R) at positions (R) to the first R slots, whose positions are below those of `window` (W), which
        counts from 0. Returns logits (R, symbols)."""
        rows, width = tokens.shape[0], window.shape[0]
        x = self.token(tokens)[:, None]
        cos, sin = self.cos[positions][:, None, None], self.sin[positions][:, None, None]
        mask = (window <= positions[:, None])[:, None, None]
        slots = torch.arange(rows)
        for block, (keys, values) in zip(self.blocks, cache):
            q, k, v = block.attention.project(block.norm1(x), cos, sin)
            keys[slots, :, positions] = k[:, :, 0]
            values[slots, :, positions] = v[:, :, 0]
            x = block.mlp(x + block.attention.attend_once(q, keys[:rows, :, :width], values[:rows, :, :width], mask))
        return self.head(self.norm(x[:, 0]))
