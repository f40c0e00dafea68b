"""The measured programs. Run as a script with an engine's address and a link; prints the results as JSON.

Two objects of results by name: over the link, and over loopback through the same kind of relay. Both run alternately,
because other load on the machine changes within seconds. Results are microseconds per step unless the name has another
unit.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator

import numpy as np

import teletensor as torch
from tests.relay.process import RelayProcess

F = torch.nn.functional


def per_step(step: Callable[[], object], seconds: float, warm_up: float) -> float:
    """Microseconds per call of `step`, over at least `seconds`, including the time until all calls have been executed.

    Runs for `warm_up` seconds before.
    """

    def run(seconds: float) -> tuple[int, float]:
        count, start = 0, time.perf_counter()
        while time.perf_counter() - start < seconds:
            for _ in range(20):
                step()
            count += 20
        torch.synchronize()
        return count, time.perf_counter() - start

    run(warm_up)
    count, duration = run(seconds)
    return duration / count * 1e6


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
    data = np.random.default_rng(0).integers(0, 256, megabytes << 20, np.uint8)  # not compressible
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


def build_mlp() -> Training:
    """The MLP of the measurements."""
    return Training(784, 512, 256, 10, batch=128)


def build_tiny() -> Training:
    """An MLP whose step takes less time than sending it."""
    return Training(8, 16, 4, batch=4)


STEPS: dict[str, Callable[[], Callable[[], object]]] = {
    "MLP step": lambda: build_mlp().step,
    "MLP step with upload": lambda: build_mlp().step_with_upload,
    "tiny MLP step": lambda: build_tiny().step,
    "tiny MLP step, loss logged": lambda: Logged(build_tiny()).step,
}


@contextlib.contextmanager
def session(relay: RelayProcess) -> Iterator[None]:
    """A session through the relay."""
    torch.connect(relay.address)
    torch.manual_seed(0)
    try:
        yield
    finally:
        torch.disconnect()


def main() -> None:
    """Connects through relays, measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("engine", help="address")
    parser.add_argument("--round-trip", type=float, default=0, help="milliseconds")
    parser.add_argument("--rate", type=float, default=0, help="megabits per second; 0: unlimited")
    parser.add_argument("--seconds", type=float, default=3, help="per workload")
    parser.add_argument("--upload-megabytes", type=int, default=0, help="size of the large upload; 0: none")
    args = parser.parse_args()
    with (
        RelayProcess(args.engine, delay=args.round_trip / 2, rate=args.rate) as link,
        RelayProcess(args.engine) as base,
    ):
        relays = {"link": link} if args.round_trip == 0 and args.rate == 0 else {"link": link, "base": base}
        results: dict[str, dict[str, float]] = {which: {} for which in relays}
        warm_up = 0.5 + 8 * args.round_trip / 1e3  # a session's window doubles per round trip
        for name, build in STEPS.items():
            for which, relay in relays.items():
                with session(relay):
                    results[which][name] = per_step(build(), args.seconds, warm_up)
        with session(link):
            row = results["link"]
            tiny = build_tiny()
            row["bytes sent per instruction"], row["bytes received per instruction"] = bytes_per_instruction(
                link, tiny.step
            )
            idle = instruction_latency(lambda count, seconds: count >= 10 and seconds >= args.seconds)
            row["instruction, p50"], row["instruction, p99"] = idle["p50"], idle["p99"]
            if args.upload_megabytes:
                busy = latency_during_upload(args.upload_megabytes)
                row["instruction during upload, p50"] = busy["p50"]
                row["instruction during upload, p99"] = busy["p99"]
                row["seconds of upload"] = busy["seconds"]
    print(json.dumps([results["link"], results.get("base", results["link"])]))


if __name__ == "__main__":
    main()
