"""``python -m benchmarks.profiler``: a training step without a profile and while one is recorded.

The modes (none; events; events with shapes, memory and lines) alternate in one process. Prints medians of the rounds.
"""

from __future__ import annotations

import argparse
import statistics
import time

from rich.console import Console
from rich.table import Table

import teletensor as torch
from teletensor.profiler import profile

nn = torch.nn


def mlp():
    """An MLP's step with Adam: many small operators."""
    model = nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10))
    return model, torch.rand(64, 784), torch.randint(0, 10, (64,))


def convolutions():
    """A small convolutional net's step: few large operators."""
    model = nn.Sequential(nn.Conv2d(1, 16, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3), nn.ReLU(), nn.MaxPool2d(2),
                          nn.Flatten(), nn.Linear(800, 10))  # fmt: skip
    return model, torch.rand(64, 1, 28, 28), torch.randint(0, 10, (64,))


def seconds_per_step(model, x, y, optimizer, steps: int) -> float:
    """Runs steps and waits for their result."""
    start = time.perf_counter()
    for _ in range(steps):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
    loss.item()
    return (time.perf_counter() - start) / steps


def main() -> None:
    """Measures and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--steps", type=int, default=40)
    args = parser.parse_args()
    table = Table(title="microseconds per step", title_justify="left")
    for name in ("step", "none", "events", "all", "events, ratio", "all, ratio"):
        table.add_column(name, justify="left" if name == "step" else "right")
    modes = [None, {}, {"record_shapes": True, "profile_memory": True, "with_stack": True}]
    for workload in (mlp, convolutions):
        model, x, y = workload()
        optimizer = torch.optim.Adam(model.parameters())
        seconds_per_step(model, x, y, optimizer, args.steps)
        rounds: list[list[float]] = [[] for _ in modes]
        for _ in range(args.rounds):
            for mode, found in zip(modes, rounds, strict=True):
                if mode is None:
                    found.append(seconds_per_step(model, x, y, optimizer, args.steps))
                else:
                    with profile(**mode):
                        found.append(seconds_per_step(model, x, y, optimizer, args.steps))
        off, events, everything = (statistics.median(found) for found in rounds)
        table.add_row(workload.__name__, *(f"{t * 1e6:,.0f}" for t in (off, events, everything)), f"{events / off:.3f}",
                      f"{everything / off:.3f}")  # fmt: skip
    Console().print(table)


if __name__ == "__main__":
    main()
