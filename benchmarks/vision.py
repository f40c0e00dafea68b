"""`python -m benchmarks.vision`: inference of image models as Programs, beside the same calls one by one, and beside
PyTorch's, eager and with `torch.compile` (--peers).

Times are medians until a number of the result was read. PyTorch runs in a process of its own, with as many threads. The
models are written here, as their papers and torchvision describe them, with random weights.
"""

from __future__ import annotations

import importlib
import os
import sys

from rich.console import Console
from rich.table import Table

from benchmarks import peers
from benchmarks.programs import median


def resnet18(torch):
    """ResNet-18 (He et al. 2015), as torchvision writes it: in-place activations and sums."""
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self, channels, out, stride):
            super().__init__()
            self.conv1 = nn.Conv2d(channels, out, 3, stride, 1, bias=False)
            self.bn1, self.relu = nn.BatchNorm2d(out), nn.ReLU(inplace=True)
            self.conv2, self.bn2 = nn.Conv2d(out, out, 3, 1, 1, bias=False), nn.BatchNorm2d(out)
            self.downsample = None
            if stride != 1 or channels != out:
                self.downsample = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))

        def forward(self, x):
            identity = x if self.downsample is None else self.downsample(x)
            out = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
            out += identity
            return self.relu(out)

    blocks, channels = [], 64
    for out, stride in ((64, 1), (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1)):
        blocks.append(Block(channels, out, stride))
        channels = out
    stem = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    return nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000))


# MobileNetV3-Small (Howard et al. 2019, table 2): kernel, expanded, out, squeeze and excitation, hardswish, stride.
ROWS = ((3, 16, 16, 1, 0, 2), (3, 72, 24, 0, 0, 2), (3, 88, 24, 0, 0, 1), (5, 96, 40, 1, 1, 2), (5, 240, 40, 1, 1, 1),
        (5, 240, 40, 1, 1, 1), (5, 120, 48, 1, 1, 1), (5, 144, 48, 1, 1, 1), (5, 288, 96, 1, 1, 2), (5, 576, 96, 1, 1, 1),
        (5, 576, 96, 1, 1, 1))  # fmt: skip


def mobilenet_v3(torch):
    """MobileNetV3-Small."""
    nn = torch.nn

    def convolution(channels, out, kernel, stride=1, groups=1, activation=None):
        parts = [nn.Conv2d(channels, out, kernel, stride, kernel // 2, groups=groups, bias=False),
                 nn.BatchNorm2d(out, eps=0.001)]  # fmt: skip
        return nn.Sequential(*parts, *([activation(inplace=True)] if activation else []))

    class Squeeze(nn.Module):
        def __init__(self, channels):
            super().__init__()
            squeezed = max(8, (channels // 4 + 4) // 8 * 8)
            self.pool, self.fc1 = nn.AdaptiveAvgPool2d(1), nn.Conv2d(channels, squeezed, 1)
            self.fc2, self.gate = nn.Conv2d(squeezed, channels, 1), nn.Hardsigmoid()

        def forward(self, x):
            return self.gate(self.fc2(torch.relu(self.fc1(self.pool(x))))) * x

    class Block(nn.Module):
        def __init__(self, channels, kernel, expanded, out, squeezes, swish, stride):
            super().__init__()
            activation = nn.Hardswish if swish else nn.ReLU
            layers = [convolution(channels, expanded, 1, activation=activation)] if expanded != channels else []
            layers.append(convolution(expanded, expanded, kernel, stride, expanded, activation))
            layers += [Squeeze(expanded)] if squeezes else []
            self.block = nn.Sequential(*layers, convolution(expanded, out, 1))
            self.adds = stride == 1 and channels == out

        def forward(self, x):
            result = self.block(x)
            if self.adds:
                result += x
            return result

    layers, channels = [convolution(3, 16, 3, 2, activation=nn.Hardswish)], 16
    for kernel, expanded, out, squeezes, swish, stride in ROWS:
        layers.append(Block(channels, kernel, expanded, out, squeezes, swish, stride))
        channels = out
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(576, 1024), nn.Hardswish(), nn.Linear(1024, 1000)]
    return nn.Sequential(*layers, convolution(96, 576, 1, activation=nn.Hardswish), *head)


MODELS = {"ResNet-18": resnet18, "MobileNetV3-Small": mobilenet_v3}


def measure(package: str) -> dict[str, dict[str, float]]:
    """Milliseconds of all cases in this process."""
    torch = importlib.import_module(package)
    torch.set_num_threads(int(os.environ["BENCH_THREADS"]))
    torch.set_grad_enabled(False)
    rows: dict[str, dict[str, float]] = {}
    for name, make in MODELS.items():
        torch.manual_seed(0)
        model = make(torch).eval()
        for batch in (1, 16):
            x = torch.randn(batch, 3, 224, 224)
            compiled = torch.compile(model) if package == "torch" else torch.compiler.trace(model, x)
            a, b = (f(x).flatten()[:8].tolist() for f in (compiled, model))
            assert max(abs(p - q) for p, q in zip(a, b)) < 1e-3 * max(map(abs, b)), (a, b)
            last = torch.channels_last
            calls = {"eager": lambda: model(x), "compiled": lambda: compiled(x)}
            rows[f"{name}, batch {batch}"] = row = {}
            for kind, call in calls.items():
                row[kind] = median(lambda c=call: c()[0, 0].item(), lambda: None, 3.0) / 1e3
            x = x.to(memory_format=last)
            row["channels last"] = median(lambda: model(x)[0, 0].item(), lambda: None, 3.0) / 1e3
    return rows


def main() -> None:
    """Runs the benchmark."""
    options, ours, theirs = peers.measured(__doc__, "benchmarks.vision", measure)
    columns = ("eager", "channels last", "compiled")
    table = Table(title=f"Milliseconds per call, {options.threads} thread(s)")
    table.add_column("model")
    for column in columns:
        table.add_column(column.replace("compiled", "Program"), justify="right")
    for column in columns if theirs else ():
        table.add_column(f"PyTorch: {column}", justify="right")
    if theirs:
        table.add_column("Program / eager PyTorch", justify="right")
        table.add_column("Program / best of PyTorch", justify="right")
    for name, row in ours.items():
        cells = [name, *(f"{row[c]:,.2f}" for c in columns)]
        if theirs:
            peer = theirs[name]
            cells += [f"{peer[c]:,.2f}" for c in columns]
            cells += [f"{row['compiled'] / peer['eager']:.2f}", f"{row['compiled'] / min(peer.values()):.2f}"]
        table.add_row(*cells)
    Console(width=None if sys.stdout.isatty() else 180).print(table)


if __name__ == "__main__":
    main()
