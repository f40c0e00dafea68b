"""`python -m benchmarks.steps`: training steps, and their time in matrix products and convolutions.

A step is zero_grad, forward, cross entropy, backward and AdamW, one by one, without a Program. Times are the least of many
steps, each of which waits for its loss. The time of an operator is the least of several profiled steps; the products of
attention are timed alone, as calls of their sizes. --operators lists the operators of a step.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

from rich.console import Console
from rich.table import Table

import teletensor as torch
from benchmarks.gpt import make_gpt

nn, F = torch.nn, torch.nn.functional
PRODUCTS = (
    "aten::mm",
    "aten::addmm",
    "aten::bmm",
    "aten::convolution",
    "teletensor::convolution_input",
    "teletensor::convolution_weight",
)


def small_resnet() -> nn.Module:
    """A ResNet-10 for images of 32 x 32: four stages of one block, with 32 to 256 channels."""

    class Block(nn.Module):
        def __init__(self, channels, out, stride):
            super().__init__()
            self.conv1, self.norm1 = nn.Conv2d(channels, out, 3, stride, 1, bias=False), nn.BatchNorm2d(out)
            self.conv2, self.norm2 = nn.Conv2d(out, out, 3, 1, 1, bias=False), nn.BatchNorm2d(out)
            self.shortcut = None
            if stride != 1 or channels != out:
                self.shortcut = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))

        def forward(self, x):
            identity = x if self.shortcut is None else self.shortcut(x)
            y = F.relu(self.norm1(self.conv1(x)))
            return F.relu(self.norm2(self.conv2(y)) + identity)

    blocks, channels = [], 32
    for out, stride in ((32, 1), (64, 2), (128, 2), (256, 2)):
        blocks.append(Block(channels, out, stride))
        channels = out
    stem = [nn.Conv2d(3, 32, 3, 1, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU()]
    return nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 10))


def attention_products(batches: int, tokens: int, depth: int) -> float:
    """Milliseconds of the seven products of an attention and its gradients, as batches of products."""
    q, w = torch.randn(batches, tokens, depth), torch.randn(batches, tokens, tokens)
    repeats = 20  # so that the time until a number was read counts little

    def repeated(call):
        for _ in range(repeats):
            result = call()
        return result

    with torch.no_grad():
        calls = (2, lambda: q @ q.mT), (5, lambda: w @ q)
        return sum(count * least(lambda call=call: repeated(call), 20) / repeats for count, call in calls)


def least(call: Callable[[], torch.Tensor], count: int) -> float:
    """The least time of several calls until a number of the result was read, in milliseconds."""
    times = []
    for _ in range(count):
        start = time.perf_counter()
        call().flatten()[0].item()
        times.append(time.perf_counter() - start)
    return min(times) * 1e3


def make_step(model: nn.Module, x: torch.Tensor, target: torch.Tensor) -> Callable[[], torch.Tensor]:
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)

    def step():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), target)
        loss.backward()
        optimizer.step()
        return loss

    return step


def operators(step: Callable[[], torch.Tensor], count: int) -> dict[str, tuple[float, int]]:
    """The least time of each operator in a step, in milliseconds, and its calls."""
    best: dict[str, tuple[float, int]] = {}
    for _ in range(count):
        with torch.profiler.profile() as profile:
            step().item()
        for row in profile.key_averages():
            if row.key not in best or row.self_cpu_time_total < best[row.key][0] * 1e3:
                best[row.key] = (row.self_cpu_time_total / 1e3, row.count)
    return best


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--operators", action="store_true", help="list the operators of a step")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    cases = {
        "character GPT, 4 layers, 16 x 64": (
            make_gpt(torch, 65),
            torch.randint(0, 65, (16, 64)),
            torch.randint(0, 65, (1024,)),
        ),
        "ResNet-10, 32 x 3 x 32 x 32": (small_resnet(), torch.randn(32, 3, 32, 32), torch.randint(0, 10, (32,))),
    }
    extra = {"character GPT, 4 layers, 16 x 64": 4 * attention_products(64, 64, 32)}
    table = Table(title=f"Milliseconds per training step, {options.threads} thread(s)")
    for column in ("step", "time", "products", "ratio", "with attention's products", "ratio"):
        table.add_column(column, justify="left" if column == "step" and not table.columns else "right")
    lists = {}
    for name, (model, x, target) in cases.items():
        step = make_step(model, x, target)
        least(step, 8)  # windows are compiled, and memory is allocated
        taken = least(step, options.steps)
        lists[name] = operators(step, 12)
        products = sum(time for key, (time, _) in lists[name].items() if key in PRODUCTS)
        whole = products + extra.get(name, 0)
        table.add_row(
            name, f"{taken:.2f}", f"{products:.2f}", f"{taken / products:.2f}", f"{whole:.2f}", f"{taken / whole:.2f}"
        )
    console = Console(width=140)
    console.print(table)
    for name, best in lists.items() if options.operators else ():
        console.print(name)
        for key, (taken, calls) in sorted(best.items(), key=lambda row: -row[1][0])[:20]:
            console.print(f"  {key:45} {taken:8.3f} {calls:5}")


if __name__ == "__main__":
    main()
