"""The measured programs. Run as a script with an engine's address; prints microseconds per step, by name, as JSON."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable

import numpy as np

import teletensor as torch

F = torch.nn.functional


def per_step(step: Callable[[], object], seconds: float) -> float:
    """Microseconds per call of `step`, over at least `seconds`, including the time until all calls have been executed."""
    for _ in range(20):
        step()
    torch.synchronize()
    count, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        for _ in range(20):
            step()
        count += 20
    torch.synchronize()
    return (time.perf_counter() - start) / count * 1e6


class Training:
    """An MLP with its optimizer, a batch in the engine and one in the client."""

    def __init__(self, *widths: int, batch: int):
        layers: list[torch.nn.Module] = []
        for i, o in zip(widths, widths[1:], strict=False):
            layers += [torch.nn.Linear(i, o), torch.nn.ReLU()]
        self.model = torch.nn.Sequential(*layers[:-1])
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)
        random = np.random.default_rng(0)
        self.batch = random.standard_normal((batch, widths[0]), dtype=np.float32)
        self.labels = random.integers(0, widths[-1], batch)
        self.x, self.y = torch.from_numpy(self.batch), torch.from_numpy(self.labels)

    def step(self, x: torch.Tensor | None = None, y: torch.Tensor | None = None) -> torch.Tensor:
        """One training step; returns the loss."""
        loss = F.cross_entropy(self.model(self.x if x is None else x), self.y if y is None else y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss

    def step_with_upload(self) -> torch.Tensor:
        """One training step on a batch that comes from the client."""
        return self.step(torch.from_numpy(self.batch), torch.from_numpy(self.labels))


def main() -> None:
    """Connects, measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("address")
    parser.add_argument("--seconds", type=float, default=3, help="per workload")
    parser.add_argument("--upload-megabytes", type=int, default=0, help="size of the large upload; 0: none")
    args = parser.parse_args()
    torch.connect(args.address)
    torch.manual_seed(0)
    results = {}
    mlp, tiny = Training(784, 512, 256, 10, batch=128), Training(8, 16, 4, batch=4)
    results["MLP step"] = per_step(mlp.step, args.seconds)
    results["MLP step with upload"] = per_step(mlp.step_with_upload, args.seconds)
    results["tiny MLP step"] = per_step(tiny.step, args.seconds)
    value = torch.ones(())
    results["item()"] = per_step(value.item, min(args.seconds, 1))
    if args.upload_megabytes:
        data = np.ones(args.upload_megabytes << 20, np.uint8)
        start = time.perf_counter()
        tensor = torch.from_numpy(data)
        torch.synchronize()
        results["large upload"] = (time.perf_counter() - start) * 1e6
        del tensor
    print(json.dumps(results))


if __name__ == "__main__":
    main()
