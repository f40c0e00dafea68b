"""`python -m benchmarks.windows [MODEL...]`: how many calls of a loop of inference the engine replaces by compiled ones.

Five models run over 200 inputs each in four ways: a number of every result is read before the next input, of every
tenth result, and none, and with frames that end at random places (after one of 20 modules, the same ones each time that
the benchmark runs). The counts depend on where frames end, and so on the load of the machine; they are of all calls of
the loop, including those before anything is compiled. With TELETENSOR_WINDOWS=0 in the environment nothing is replaced,
and the times are those of single calls. The last column is the processor time of the private engine, with the passes:
the client is often the slower one, so that the loop's time does not show what the engine saves.
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path

import teletensor as torch
import teletensor.nn as nn
import teletensor.nn.functional as F
from examples import char_gpt
from teletensor._connection import connection

INPUTS = 200
READS = {"each": 1, "tenth": 10, "none": 0, "cut": 0}


class Block(char_gpt.Block):
    """The example's block with GELU and the split of heads written out, and dropout."""

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (
            y.view(b, t, self.heads, c // self.heads).transpose(1, 2) for y in self.qkv(self.norm1(x)).split(c, 2)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, c))
        h = self.up(self.norm2(x))
        h = 0.5 * h * (1 + torch.tanh(0.7978845608 * (h + 0.044715 * h * h * h)))
        return x + F.dropout(self.down(h), 0.1, self.training)


class Residual(nn.Module):
    def __init__(self, channels: int, width: int, stride: int):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(channels, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = None
        if stride != 1 or channels != width:
            self.downsample = nn.Sequential(nn.Conv2d(channels, width, 1, stride, bias=False), nn.BatchNorm2d(width))

    def forward(self, x):
        out = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        out += x if self.downsample is None else self.downsample(x)
        return self.relu(out)


class Inverted(nn.Module):
    """A block of MobileNetV2."""

    def __init__(self, channels: int, width: int, stride: int, expansion: int):
        super().__init__()
        inner = channels * expansion
        self.is_residual = stride == 1 and channels == width
        self.conv = nn.Sequential(
            nn.Conv2d(channels, inner, 1, bias=False), nn.BatchNorm2d(inner), nn.ReLU6(inplace=True),
            nn.Conv2d(inner, inner, 3, stride, 1, groups=inner, bias=False), nn.BatchNorm2d(inner), nn.ReLU6(inplace=True),
            nn.Conv2d(inner, width, 1, bias=False), nn.BatchNorm2d(width),
        )  # fmt: skip

    def forward(self, x):
        return x + self.conv(x) if self.is_residual else self.conv(x)


class Cells(nn.Module):
    """An LSTM that is written out."""

    def __init__(self, width: int):
        super().__init__()
        self.width, self.x, self.h = width, nn.Linear(width, 4 * width), nn.Linear(width, 4 * width)

    def forward(self, xs):
        h = c = torch.zeros(xs.shape[1], self.width)
        for x in xs:
            i, f, g, o = (self.x(x) + self.h(h)).chunk(4, 1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
        return h


class Llama(nn.Module):
    """Layers of a Llama that write keys and values of one token to a cache."""

    def __init__(self, width: int, heads: int, layers: int, length: int):
        super().__init__()
        self.heads, self.size, self.length, self.at = heads, width // heads, length, 0
        names = ("q", "k", "v", "o", "gate", "up", "down")
        sizes = dict.fromkeys(names, (width, width)) | {
            "gate": (width, 2 * width),
            "up": (width, 2 * width),
            "down": (2 * width, width),
        }
        self.layers = nn.ModuleList(
            nn.ModuleDict({n: nn.Linear(*sizes[n], bias=False) for n in names}) for _ in range(layers)
        )
        self.norms = nn.ParameterList([nn.Parameter(torch.ones(width)) for _ in range(2 * layers)])
        self.caches = [torch.zeros(2, 1, heads, length, self.size) for _ in range(layers)]
        angles = torch.arange(length)[:, None] * 10000 ** (-torch.arange(0, self.size, 2) / self.size)
        self.cos, self.sin = torch.cat([angles.cos()] * 2, 1), torch.cat([angles.sin()] * 2, 1)

    def rotate(self, x, cos, sin):
        half = self.size // 2
        return x * cos + torch.cat([-x[..., half:], x[..., :half]], -1) * sin

    @staticmethod
    def norm(x, weight):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * weight

    def forward(self, x):
        at, self.at = self.at, (self.at + 1) % self.length
        cos, sin = self.cos[at], self.sin[at]
        for n, layer in enumerate(self.layers):
            y = self.norm(x, self.norms[2 * n])
            q, k, v = (layer[name](y).view(1, 1, self.heads, self.size).transpose(1, 2) for name in "qkv")
            q, k = self.rotate(q, cos, sin), self.rotate(k, cos, sin)
            keys, values = self.caches[n]
            keys[:, :, at : at + 1] = k
            values[:, :, at : at + 1] = v
            y = F.scaled_dot_product_attention(q, keys[:, :, : at + 1], values[:, :, : at + 1])
            x = x + layer["o"](y.transpose(1, 2).reshape(1, 1, -1))
            y = self.norm(x, self.norms[2 * n + 1])
            x = x + layer["down"](F.silu(layer["gate"](y)) * layer["up"](y))
        return x


def gpt():
    return nn.Sequential(*(Block(64, 4) for _ in range(4))), torch.randn(2, 32, 64)


def resnet():
    shapes = [(16, 16, 1), (16, 16, 1), (16, 32, 2), (32, 32, 1), (32, 64, 2), (64, 64, 1), (64, 128, 2), (128, 128, 1)]
    stem = nn.Conv2d(3, 16, 7, 2, 3, bias=False), nn.BatchNorm2d(16), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)
    head = nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 10)
    return nn.Sequential(*stem, *(Residual(*s) for s in shapes), *head), torch.randn(1, 3, 64, 64)


def mobilenet():
    blocks, channels = [nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU6(inplace=True)], 8
    for width, count, stride in ((8, 1, 1), (12, 2, 2), (16, 3, 2), (24, 4, 2), (32, 3, 1), (48, 3, 2)):
        for k in range(count):
            blocks.append(Inverted(channels, width, stride if k == 0 else 1, 6))
            channels = width
    return nn.Sequential(*blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 10)), torch.randn(
        1, 3, 64, 64
    )


def lstm():
    return Cells(64), torch.randn(16, 8, 64)


def llama():
    return Llama(64, 4, 4, 64), torch.randn(1, 1, 64)


MODELS = {f.__name__: f for f in (gpt, resnet, mobilenet, lstm, llama)}


def counts() -> tuple[int, int]:
    """The session's calls so far, and those that were replaced."""
    torch.synchronize()
    windows = torch.compiler.stats().windows
    return connection().counters()["instructions"], sum(w.instructions * w.runs for w in windows)


def engine_seconds() -> float:
    """Processor time of the threads of this process's private engines so far."""
    total = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, fields = stat.read_text().rsplit(")", 1)
            if name.endswith("(teletensord") and int(fields.split()[1]) == os.getpid():
                total += sum(int(times.read_text().split()[0]) for times in stat.parent.glob("task/*/schedstat"))
        except FileNotFoundError:
            continue  # the process or thread has ended
    return total / 1e9


def run(model: Callable, x, every: int) -> None:
    for i in range(INPUTS):
        y = model(x)
        if every and i % every == 0:
            y.sum().item()


def end_frames(model: nn.Module) -> None:
    """Ends the frame after one of 20 modules, at random."""
    numbers = random.Random(0)

    def end(_module, _inputs, _output):
        if numbers.random() < 0.05:
            torch.synchronize()

    for module in model.modules():
        module.register_forward_hook(end)


def main(names: list[str]) -> None:
    torch.set_num_threads(1)
    print("model      read     calls  replaced  share   calls/frame  ms/input  engine")
    for name in names or MODELS:
        for read, every in READS.items():
            torch.disconnect()
            torch.manual_seed(0)
            model, x = MODELS[name]()
            model.eval()
            if read == "cut":
                end_frames(model)
            with torch.inference_mode():
                calls, replaced = counts()
                frames, engine = connection().counters()["frames"], engine_seconds()
                start = time.perf_counter()
                run(model, x, every)
                torch.synchronize()
                seconds, engine = time.perf_counter() - start, engine_seconds() - engine
                frames = connection().counters()["frames"] - frames
                calls, replaced = (now - before for now, before in zip(counts(), (calls, replaced)))
            print(f"{name:10} {read:6} {calls:7} {replaced:9} {replaced / calls:6.1%}  {calls / frames:11.1f}"
                  f"  {seconds / INPUTS * 1e3:8.2f}  {engine / INPUTS * 1e3:6.3f}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1:])
