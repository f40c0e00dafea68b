"""The measured programs. Run as a script with an engine's address and a link; prints the results as JSON.

Results are microseconds per step, by name, except where the name has another unit.
"""

from __future__ import annotations

import argparse
import collections
import json
import threading
import time
from collections.abc import Callable

import numpy as np

import teletensor as torch
from tests.relay.process import RelayProcess

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


class Logged:
    """Training steps whose losses are requested without waiting, and used when they have arrived."""

    def __init__(self, training: Training):
        self.training = training
        self.losses: collections.deque = collections.deque()
        self.last = 0.0

    def step(self) -> None:
        """One training step."""
        self.losses.append(self.training.step().item_async())
        while self.losses and self.losses[0].done():
            self.last = self.losses.popleft().wait()


def instruction_latency(stop: Callable[[int, float], bool]) -> dict[str, float]:
    """Microseconds from a call to its value, which the client reads: median and 99th percentile.

    Measures until `stop(count, seconds)` is true.
    """
    x = torch.ones(())
    x.item()
    samples: list[float] = []
    start = time.perf_counter()
    while not stop(len(samples), time.perf_counter() - start):
        before = time.perf_counter()
        (x + 1).item()
        samples.append(time.perf_counter() - before)
    samples.sort()
    return {"p50": samples[len(samples) // 2] * 1e6, "p99": samples[len(samples) * 99 // 100] * 1e6}


def latency_during_upload(megabytes: int) -> dict[str, float]:
    """The instruction latency while another thread uploads `megabytes` MiB, and the upload's seconds."""
    data = np.ones(megabytes << 20, np.uint8)
    seconds: list[float] = []

    def upload() -> None:
        start = time.perf_counter()
        tensor = torch.from_numpy(data)
        seconds.append(time.perf_counter() - start)
        del tensor

    thread = threading.Thread(target=upload)
    thread.start()
    latency = instruction_latency(lambda count, _: count > 0 and not thread.is_alive())
    thread.join()
    return {**latency, "seconds": seconds[0]}


def bytes_per_instruction(relay: RelayProcess, step: Callable[[], object]) -> tuple[float, float]:
    """Bytes on the wire per instruction of `step`, to the engine and back."""
    before, instructions = relay.stats()["bytes"], torch.connection().counters()["instructions"]
    for _ in range(500):
        step()
    torch.synchronize()
    after, count = relay.stats()["bytes"], torch.connection().counters()["instructions"] - instructions
    return (after[0] - before[0]) / count, (after[1] - before[1]) / count


def main() -> None:
    """Connects through a relay, measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("engine", help="address")
    parser.add_argument("--round-trip", type=float, default=0, help="milliseconds")
    parser.add_argument("--rate", type=float, default=0, help="megabits per second; 0: unlimited")
    parser.add_argument("--seconds", type=float, default=3, help="per workload")
    parser.add_argument("--upload-megabytes", type=int, default=0, help="size of the large upload; 0: none")
    args = parser.parse_args()
    with RelayProcess(args.engine, delay=args.round_trip / 2, rate=args.rate) as relay:
        torch.connect(relay.address)
        torch.manual_seed(0)
        results = {}
        mlp, tiny = Training(784, 512, 256, 10, batch=128), Training(8, 16, 4, batch=4)
        results["MLP step"] = per_step(mlp.step, args.seconds)
        results["MLP step with upload"] = per_step(mlp.step_with_upload, args.seconds)
        results["tiny MLP step"] = per_step(tiny.step, args.seconds)
        results["tiny MLP step, loss logged"] = per_step(Logged(tiny).step, args.seconds)
        sent, received = bytes_per_instruction(relay, tiny.step)
        results["bytes sent per instruction"], results["bytes received per instruction"] = sent, received
        idle = instruction_latency(lambda count, seconds: count >= 10 and seconds >= args.seconds)
        results["instruction, p50"], results["instruction, p99"] = idle["p50"], idle["p99"]
        if args.upload_megabytes:
            busy = latency_during_upload(args.upload_megabytes)
            results["instruction during upload, p50"] = busy["p50"]
            results["instruction during upload, p99"] = busy["p99"]
            results["seconds of upload"] = busy["seconds"]
        torch.disconnect()
    print(json.dumps(results))


if __name__ == "__main__":
    main()
