"""`python -m benchmarks.distributed.dtensor [--peers]`: what an operator with DTensors costs the program.

A mesh of one rank and tensors of 8 x 8, so that neither communication nor arithmetic counts. Microseconds per call, the best
of several rounds; a round of this package ends when the engine is done.
"""

from __future__ import annotations

import importlib
import os
import time
from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.peers import measured

CALLS, ROUNDS = 300, 9


def calls(torch: Any, tensors: dict[str, Any]) -> dict[str, Callable[[], Any]]:
    """The measured calls by name. a, b: divided by rows; r: replicated; g: divided, requires grad."""
    a, b, r, g = (tensors[name] for name in "abrg")
    f = torch.nn.functional
    return {
        "a + b": lambda: a + b, "a * 2": lambda: a * 2, "a @ r": lambda: a @ r, "relu": lambda: torch.relu(a), "a.sum(1)": lambda: a.sum(1),
        "a.t()": lambda: a.t(), "a.add_(b)": lambda: a.add_(b), "a.view(8, 2, 4)": lambda: a.view(8, 2, 4),
        "a.split(4, 1)": lambda: a.split(4, 1), "cat": lambda: torch.cat([a, b], 1), "softmax": lambda: torch.softmax(a, 1),
        "layer_norm": lambda: f.layer_norm(a, (8,)), "linear": lambda: f.linear(a, r), "gelu": lambda: f.gelu(a),
        "zeros_like": lambda: torch.zeros_like(a), "a.detach()": lambda: a.detach(), "g * 2": lambda: g * 2,
        "linear, with gradients": lambda: f.linear(g, r),
    }  # fmt: skip


def measure(package: str) -> dict[str, float]:
    """Microseconds by name of the call."""
    torch = importlib.import_module(package)
    distributed = importlib.import_module(f"{package}.distributed")
    tensor = importlib.import_module(f"{package}.distributed.tensor")
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29919" if package == "torch" else "29920"}
    if package == "torch":
        torch.set_num_threads(1)
    distributed.init_process_group("gloo", rank=0, world_size=1)
    mesh = importlib.import_module(f"{package}.distributed.device_mesh").init_device_mesh("cpu", (1,))
    placements = {"a": tensor.Shard(0), "b": tensor.Shard(0), "r": tensor.Replicate(), "g": tensor.Shard(0)}
    tensors = {name: tensor.distribute_tensor(torch.ones(8, 8), mesh, [p]) for name, p in placements.items()}
    tensors["g"].requires_grad = True
    wait = (lambda: None) if package == "torch" else torch.synchronize
    found = {}
    for name, call in calls(torch, tensors).items():
        times = []
        for _ in range(ROUNDS):
            start = time.perf_counter()
            for _ in range(CALLS):
                call()
            wait()
            times.append(time.perf_counter() - start)
        found[name] = 1e6 * min(times) / CALLS
    distributed.destroy_process_group()
    return found


def main() -> None:
    _, ours, peer = measured(__doc__, "benchmarks.distributed.dtensor", measure)
    table = Table("call", "us", *(["PyTorch", "ratio"] if peer else []))
    for name, spent in ours.items():
        table.add_row(name, f"{spent:.1f}", *([f"{peer[name]:.1f}", f"{spent / peer[name]:.2f}"] if peer else []))
    Console().print(table)


if __name__ == "__main__":
    main()
