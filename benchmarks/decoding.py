"""`python -m benchmarks.decoding`: a small Llama writes tokens with a cache of keys and values: tokens per second.

One Program per token (torch.compiler.trace) beside the same calls one by one, and beside PyTorch's, eager and with
`torch.compile` (--peers). The model (RMS norms, rotary positions, SwiGLU, grouped keys) has random weights and chooses
the most probable token; the cache has a fixed size, and the position is a tensor, so that every step is the same.
PyTorch runs in a process of its own, with as many threads.
"""

from __future__ import annotations

import importlib
import os
import sys
import time

from rich.console import Console
from rich.table import Table

from benchmarks import peers

SIZES = {"6 x 288 (15 million)": (6, 288, 6, 6, 768, 32000), "8 x 512 (27 million)": (8, 512, 8, 4, 1376, 4096)}
LENGTH = 256


def make_decoder(torch, layers: int, width: int, heads: int, groups: int, hidden: int, words: int):
    """A function of the last token (1) and its position (1) that returns the next token and changes its cache."""
    nn, F = torch.nn, torch.nn.functional
    size = width // heads

    class RMSNorm(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(width))

        def forward(self, x):
            return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self.weight

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = RMSNorm(), RMSNorm()
            self.q, self.o = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
            self.k, self.v = (nn.Linear(width, groups * size, bias=False) for _ in range(2))
            self.gate, self.up = (nn.Linear(width, hidden, bias=False) for _ in range(2))
            self.down = nn.Linear(hidden, width, bias=False)
            self.register_buffer("keys", torch.zeros(1, groups, LENGTH, size))
            self.register_buffer("values", torch.zeros(1, groups, LENGTH, size))

        def forward(self, x, position, cos, sin, mask):
            h = self.norm1(x)
            q, k, v = (f(h).view(1, 1, -1, size).transpose(1, 2) for f in (self.q, self.k, self.v))

            def rotated(t):
                a, b = t[..., : size // 2], t[..., size // 2 :]
                return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)

            self.keys.index_copy_(2, position, rotated(k))
            self.values.index_copy_(2, position, v)
            keys, values = (t.repeat_interleave(heads // groups, 1) for t in (self.keys, self.values))
            y = F.scaled_dot_product_attention(rotated(q), keys, values, attn_mask=mask)
            x = x + self.o(y.transpose(1, 2).reshape(1, 1, width))
            h = self.norm2(x)
            return x + self.down(F.silu(self.gate(h)) * self.up(h))

    class Llama(nn.Module):
        def __init__(self):
            super().__init__()
            self.words = nn.Embedding(words, width)
            self.layers, self.norm = nn.ModuleList(Layer() for _ in range(layers)), RMSNorm()
            self.head = nn.Linear(width, words, bias=False)
            angles = torch.arange(LENGTH).float()[:, None] / 10000 ** (torch.arange(0, size, 2).float() / size)
            self.register_buffer("cos", angles.cos())
            self.register_buffer("sin", angles.sin())
            self.register_buffer("places", torch.arange(LENGTH))

        def forward(self, token, position):
            cos, sin = self.cos[position], self.sin[position]
            mask = torch.where(self.places <= position, 0.0, float("-inf")).view(1, 1, 1, LENGTH)
            x = self.words(token).view(1, 1, width)
            for layer in self.layers:
                x = layer(x, position, cos, sin, mask)
            return self.head(self.norm(x)).argmax(-1).view(1)

    torch.manual_seed(0)
    return Llama()


def measure(package: str) -> dict[str, dict[str, float]]:
    """Tokens per second of all cases in this process."""
    torch = importlib.import_module(package)
    torch.set_num_threads(int(os.environ["BENCH_THREADS"]))
    torch.set_grad_enabled(False)
    rows: dict[str, dict[str, float]] = {}
    for name, sizes in SIZES.items():
        model = make_decoder(torch, *sizes)
        positions = [torch.tensor([i]) for i in range(LENGTH)]
        token = torch.tensor([1])
        compiled = torch.compile(model) if package == "torch" else torch.compiler.trace(model, token, positions[0])
        written = {}
        rows[name] = row = {}
        for kind, step in (("eager", model), ("compiled", compiled)):
            for count in (16, LENGTH):  # the first ones are not timed
                for layer in model.layers:
                    layer.keys.zero_()
                    layer.values.zero_()
                token, tokens = torch.tensor([1]), []
                start = time.perf_counter()
                for position in positions[:count]:
                    token = step(token, position)
                    tokens.append(token)
                written[kind] = torch.cat(tokens).tolist()
                row[kind] = count / (time.perf_counter() - start)
        assert written["eager"][:32] == written["compiled"][:32], name
    return rows


def main() -> None:
    """Runs the benchmark."""
    options, ours, theirs = peers.measured(__doc__, "benchmarks.decoding", measure)
    table = Table(title=f"Tokens per second, {options.threads} thread(s)")
    columns = ["model", "eager", "Program"]
    if theirs:
        columns += ["PyTorch: eager", "PyTorch: compiled", "Program / eager PyTorch", "Program / best of PyTorch"]
    for column in columns:
        table.add_column(column, justify="left" if column == "model" else "right")
    for name, row in ours.items():
        cells = [name, f"{row['eager']:.1f}", f"{row['compiled']:.1f}"]
        if theirs:
            peer = theirs[name]
            cells += [f"{peer['eager']:.1f}", f"{peer['compiled']:.1f}"]
            cells += [f"{row['compiled'] / peer['eager']:.2f}", f"{row['compiled'] / max(peer.values()):.2f}"]
        table.add_row(*cells)
    Console(width=None if sys.stdout.isatty() else 160).print(table)


if __name__ == "__main__":
    main()
