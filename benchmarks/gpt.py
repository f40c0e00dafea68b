"""The character GPT of the benchmarks, for teletensor and for PyTorch."""

from __future__ import annotations

from typing import Any


def make_gpt(torch: Any, symbols: int, length: int = 64, width: int = 128, heads: int = 4, layers: int = 4) -> Any:
    """A GPT without dropout: (N, T) tokens to (N * T, symbols) logits. Matrices are drawn with a deviation of 0.02."""
    nn, F = torch.nn, torch.nn.functional

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            q, k, v = (t.unflatten(-1, (heads, -1)).transpose(1, 2) for t in self.qkv(self.norm1(x)).chunk(3, -1))
            x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
            return x + self.down(F.gelu(self.up(self.norm2(x))))

    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.token, self.position = nn.Embedding(symbols, width), nn.Embedding(length, width)
            self.blocks = nn.Sequential(*(Block() for _ in range(layers)))
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, symbols)
            for p in self.parameters():
                if p.dim() == 2:
                    nn.init.normal_(p, std=0.02)

        def forward(self, tokens):
            x = self.token(tokens) + self.position.weight[: tokens.shape[1]]
            return self.head(self.norm(self.blocks(x))).flatten(0, 1)

    return GPT()
