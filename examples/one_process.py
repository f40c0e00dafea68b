"""Trains a character GPT on several engines from one process, which controls them all.

    python examples/one_process.py                                     # two private engines on this machine
    python examples/one_process.py --addresses host-a:7070 host-b:7070

The layers are divided among the engines (tensor parallelism, M. Shoeybi et al., "Megatron-LM", 2019), and so are the
activations between them, along the sequence. No statement in the loop waits for an engine; the tensors' bytes move between the
engines. Afterwards the same model is trained on one engine, and the losses are compared.
"""

from __future__ import annotations

import argparse
import copy
import time
from pathlib import Path

import numpy as np
from char_gpt import find_text, read_text
from rich.console import Console
from rich.progress import track
from rich.table import Table

import teletensor as torch
import teletensor.nn as nn
import teletensor.nn.functional as F
from teletensor.distributed.device_mesh import init_device_mesh
from teletensor.distributed.tensor import Replicate, Shard, distribute_tensor
from teletensor.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)

LENGTH, WIDTH, HEADS = 64, 128, 4


class Block(nn.Module):
    """Causal attention and an MLP, each after a layer norm."""

    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.query, self.key, self.value, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        y = self.norm1(x)
        # With divided layers, each engine has some of the heads.
        q, k, v = (f(y).unflatten(-1, (-1, WIDTH // HEADS)).transpose(1, 2) for f in (self.query, self.key, self.value))
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class GPT(nn.Module):
    def __init__(self, symbols: int, layers: int = 2):
        super().__init__()
        self.token, self.position = nn.Embedding(symbols, WIDTH), nn.Parameter(torch.randn(1, LENGTH, WIDTH) * 0.02)
        self.blocks = nn.Sequential(*(Block() for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, symbols)

    def forward(self, tokens):
        return self.head(self.norm(self.blocks(self.token(tokens) + self.position)))


def divided(model: nn.Module, mesh) -> nn.Module:
    """Divides the model's layers among the engines of a mesh."""
    inside = {"use_local_output": False}
    plan = {
        "token": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1), **inside),
        **{f"blocks.*.{name}": SequenceParallel() for name in ("norm1", "norm2")},
        **{f"blocks.*.{name}": ColwiseParallel(**inside) for name in ("query", "key", "value", "up")},
        **{f"blocks.*.{name}": RowwiseParallel(output_layouts=Shard(1), **inside) for name in ("out", "down")},
        "norm": SequenceParallel(),
        "head": ColwiseParallel(**inside),
    }
    model.position = nn.Parameter(distribute_tensor(model.position.detach(), mesh, [Shard(1)]))
    return parallelize_module(model, mesh, plan)


def train(model: nn.Module, batches, place, title: str) -> tuple[float, float]:
    """Returns the mean loss of the last ten steps, and the seconds per step."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    losses = []
    started = 0.0
    for step, text in enumerate(track(batches, description=title)):
        tokens, targets = place(text[:, :-1]), place(text[:, 1:])
        loss = F.cross_entropy(model(tokens).flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
        if step == 2:
            loss.item()
            started = time.perf_counter()
    last = [loss.item() for loss in losses[-10:]]
    return sum(last) / len(last), (time.perf_counter() - started) / max(len(batches) - 3, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--addresses", nargs="*", help="of the engines; default: private engines")
    parser.add_argument("--engines", type=int, default=2, help="number of private engines")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--data", type=Path, help="a text; by default tinyshakespeare, downloaded once")
    args = parser.parse_args()

    symbols, text = read_text(find_text(args.data))
    starts = np.random.default_rng(0).integers(0, len(text) - LENGTH - 1, (args.steps, args.batch))
    batches = [text[s[:, None] + np.arange(LENGTH + 1)] for s in starts]

    engines = torch.connect_all(args.addresses or args.engines)
    mesh = init_device_mesh("cpu", (len(engines),))
    torch.manual_seed(0)
    single = GPT(len(symbols))
    model = divided(copy.deepcopy(single), mesh)

    table = Table("engines", "loss", "seconds per step")
    for count, net, place in (
        (
            len(engines),
            model,
            lambda a: distribute_tensor(torch.from_numpy(np.ascontiguousarray(a)), mesh, [Replicate()]),
        ),
        (1, single, lambda a: torch.from_numpy(np.ascontiguousarray(a))),
    ):
        loss, seconds = train(net, batches, place, f"{count} engine{'s' if count > 1 else ''}")
        table.add_row(str(count), f"{loss:.4f}", f"{seconds:.4f}")
    Console().print(table)


if __name__ == "__main__":
    main()
