"""`python -m benchmarks.compile_memory`: memory of the client's process for capturing and compiling ResNet-50.

Prints resident memory before and after the first compiled call (training and inference), its peak in between, the memory that a
second model takes, and the cost of a call of a function of 100 operators with its guards. The engine is another process.
"""

from __future__ import annotations

import gc
import resource
import time

import teletensor as torch
from teletensor import nn


class Bottleneck(nn.Module):
    """1x1, 3x3 and 1x1 convolutions with a shortcut."""

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        outputs = 4 * width
        sizes = ((inputs, width, 1, 1), (width, width, 3, stride), (width, outputs, 1, 1))
        self.convs = nn.ModuleList(nn.Conv2d(a, b, k, s, k // 2, bias=False) for a, b, k, s in sizes)
        self.norms = nn.ModuleList(nn.BatchNorm2d(b) for _, b, _, _ in sizes)
        self.shortcut = None
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.norms[0](self.convs[0](x)))
        y = torch.relu(self.norms[1](self.convs[1](y)))
        y = self.norms[2](self.convs[2](y))
        return torch.relu(y + (x if self.shortcut is None else self.shortcut(x)))


def resnet50() -> nn.Module:
    """ResNet-50 of 1000 classes."""
    layers: list[nn.Module] = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    inputs = 64
    for width, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for i in range(count):
            layers.append(Bottleneck(inputs, width, stride if i == 0 else 1))
            inputs = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 1000))


def resident() -> float:
    """Megabytes of this process."""
    gc.collect()
    with open("/proc/self/status") as file:  # noqa: PTH123
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS")) / 1024


def measure(model: nn.Module, x: torch.Tensor, name: str) -> None:
    """Prints what the first compiled call of a model takes."""
    before = resident()
    start = time.perf_counter()
    result = torch.compile(model)(x)
    seconds = time.perf_counter() - start
    result.sum().item()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    after = resident()
    print(f"{name}: {before:.1f} MB before, {after:.1f} MB after: {after - before:.1f} MB; peak {peak - before:.1f} MB; {seconds:.2f} s")


def main() -> None:
    x = torch.randn(1, 3, 64, 64)
    models = [resnet50() for _ in range(2)]
    with torch.no_grad():
        for model in models:
            model.eval()(x).sum().item()
        torch.compile(lambda t: t + 1)(x)  # imports the compiler
        measure(models[0], x, "ResNet-50, inference")
        measure(models[1], x, "a second one")
    measure(models[0].train(), torch.randn(2, 3, 64, 64), "ResNet-50, training")

    def chain(t: torch.Tensor) -> torch.Tensor:
        for _ in range(50):
            t = torch.relu(t + 1)
        return t

    compiled, small = torch.compile(chain), torch.randn(8, 8)
    compiled(small)
    times = []
    for _ in range(2000):
        start = time.perf_counter()
        compiled(small)
        times.append(time.perf_counter() - start)
        if len(times) % 100 == 0:
            compiled(small).sum().item()
    print(f"a call of 100 operators: {sorted(times)[len(times) // 2] * 1e6:.2f} us")


if __name__ == "__main__":
    main()
