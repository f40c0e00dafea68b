"""Writes the ONNX models that onnx_models.py measures, exported from PyTorch, with random weights.

    python benchmarks/onnx_export_models.py FOLDER     # with PyTorch, onnx and onnxscript

resnet18.onnx, mobilenet_v3.onnx (the small one) and minilm.onnx (six layers of all-MiniLM-L6-v2's sizes), each with a
dynamic batch size.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's name
from torch import nn


class Residual(nn.Module):
    def __init__(self, inside: int, out: int, stride: int) -> None:
        super().__init__()
        self.first, self.a = nn.Conv2d(inside, out, 3, stride, 1, bias=False), nn.BatchNorm2d(out)
        self.second, self.b = nn.Conv2d(out, out, 3, 1, 1, bias=False), nn.BatchNorm2d(out)
        self.short = (
            nn.Sequential(nn.Conv2d(inside, out, 1, stride, bias=False), nn.BatchNorm2d(out))
            if stride > 1
            else nn.Identity()
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu(self.b(self.second(F.relu(self.a(self.first(x))))) + self.short(x))


def resnet18() -> nn.Module:
    layers: list[nn.Module] = [
        nn.Conv2d(3, 64, 7, 2, 3, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(),
        nn.MaxPool2d(3, 2, 1),
    ]
    width = 64
    for out, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        layers += [Residual(width, out, stride), Residual(out, out, 1)]
        width = out
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000))


class Squeeze(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        inner = max(width // 4 // 8 * 8, 8)
        self.down, self.up = nn.Conv2d(width, inner, 1), nn.Conv2d(inner, width, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * F.hardsigmoid(self.up(F.relu(self.down(F.adaptive_avg_pool2d(x, 1)))))


class Inverted(nn.Module):
    def __init__(
        self, inside: int, kernel: int, expanded: int, out: int, squeeze: bool, act: type, stride: int
    ) -> None:
        super().__init__()
        parts: list[nn.Module] = []
        if expanded != inside:
            parts += [nn.Conv2d(inside, expanded, 1, bias=False), nn.BatchNorm2d(expanded), act()]
        parts += [
            nn.Conv2d(expanded, expanded, kernel, stride, kernel // 2, groups=expanded, bias=False),
            nn.BatchNorm2d(expanded),
            act(),
        ]
        parts += [Squeeze(expanded)] if squeeze else []
        parts += [nn.Conv2d(expanded, out, 1, bias=False), nn.BatchNorm2d(out)]
        self.block, self.skips = nn.Sequential(*parts), stride == 1 and inside == out

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.block(x) if self.skips else self.block(x)


def mobilenet_v3() -> nn.Module:
    r, h = nn.ReLU, nn.Hardswish
    rows = [(16, 3, 16, 16, True, r, 2), (16, 3, 72, 24, False, r, 2), (24, 3, 88, 24, False, r, 1), (24, 5, 96, 40, True, h, 2),
            (40, 5, 240, 40, True, h, 1), (40, 5, 240, 40, True, h, 1), (40, 5, 120, 48, True, h, 1), (48, 5, 144, 48, True, h, 1),
            (48, 5, 288, 96, True, h, 2), (96, 5, 576, 96, True, h, 1), (96, 5, 576, 96, True, h, 1)]  # fmt: skip
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16), h(), *(Inverted(*row) for row in rows),
        nn.Conv2d(96, 576, 1, bias=False), nn.BatchNorm2d(576), h(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(576, 1024), h(), nn.Linear(1024, 1000),
    )  # fmt: skip


class MiniLM(nn.Module):
    """A BERT encoder of all-MiniLM-L6-v2's sizes with mean pooling."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places, self.norm = nn.Embedding(30522, 384), nn.Embedding(512, 384), nn.LayerNorm(384)
        self.layers = nn.ModuleList(
            nn.ModuleDict({
                "q": nn.Linear(384, 384), "k": nn.Linear(384, 384), "v": nn.Linear(384, 384), "o": nn.Linear(384, 384),
                "up": nn.Linear(384, 1536), "down": nn.Linear(1536, 384), "a": nn.LayerNorm(384), "b": nn.LayerNorm(384),
            }) for _ in range(6)
        )  # fmt: skip

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        batch, length = ids.shape
        x = self.norm(self.words(ids) + self.places(torch.arange(length, device=ids.device)))
        bias = (1.0 - mask[:, None, None, :].to(x.dtype)) * -1e9
        for layer in self.layers:
            q, k, v = (layer[n](x).view(batch, length, 12, 32).transpose(1, 2) for n in "qkv")
            scores = torch.matmul(q, k.transpose(-1, -2)) / 32**0.5 + bias
            mixed = torch.matmul(torch.softmax(scores, -1), v).transpose(1, 2).reshape(batch, length, 384)
            x = layer["a"](x + layer["o"](mixed))
            x = layer["b"](x + layer["down"](F.gelu(layer["up"](x))))
        kept = mask[:, :, None].to(x.dtype)
        return F.normalize((x * kept).sum(1) / kept.sum(1), dim=-1)


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    batch = torch.export.Dim("batch", min=1, max=1024)
    length = torch.export.Dim("length", min=2, max=512)
    image = torch.randn(2, 3, 224, 224)
    ids, mask = torch.randint(0, 30000, (2, 32)), torch.ones(2, 32, dtype=torch.int64)
    for name, model, args, dims in (
        ("resnet18", resnet18(), (image,), ({0: batch},)), ("mobilenet_v3", mobilenet_v3(), (image,), ({0: batch},)),
        ("minilm", MiniLM(), (ids, mask), ({0: batch, 1: length}, {0: batch, 1: length})),
    ):  # fmt: skip
        torch.onnx.export(
            model.eval(), args, folder / f"{name}.onnx", dynamo=True, dynamic_shapes=dims, external_data=False
        )
        print(folder / f"{name}.onnx")


if __name__ == "__main__":
    main()
