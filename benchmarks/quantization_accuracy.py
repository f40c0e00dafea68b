"""Test accuracy of a Fashion-MNIST network in float32, quantized after training, and trained with quantization.

    PYTHONPATH=build/python .venv/bin/python -m benchmarks.quantization_accuracy

Trains examples/fashion_mnist.py's network once, quantizes it in the ways of torch.ao.quantization, and prints a table. Goals:
static quantization within 0.5 % of float32, quantization-aware training within 0.1 %.
"""

from __future__ import annotations

import argparse
import copy
import io
import time
from pathlib import Path
from typing import Any

import teletensor as torch
import teletensor.ao.quantization as tq
import teletensor.nn.functional as F
from examples.fashion_mnist import Net, load
from teletensor import nn
from teletensor.ao.quantization.quantize_fx import convert_fx, prepare_fx

FUSED = [["conv1", "norm1", "relu1"], ["conv2", "norm2", "relu2"], ["fc1", "relu3"]]


class Quantizable(nn.Module):
    """The example's network with modules in place of functions, so that eager mode can observe them."""

    def __init__(self, net: Net):
        super().__init__()
        self.quant, self.dequant = tq.QuantStub(), tq.DeQuantStub()
        for name in ("conv1", "norm1", "conv2", "norm2", "fc1", "drop", "fc2"):
            setattr(self, name, copy.deepcopy(getattr(net, name)))
        self.relu1, self.relu2, self.relu3 = nn.ReLU(), nn.ReLU(), nn.ReLU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.quant(x)
        x = F.max_pool2d(self.relu1(self.norm1(self.conv1(x))), 2)
        x = F.max_pool2d(self.relu2(self.norm2(self.conv2(x))), 2)
        x = self.relu3(self.fc1(x.flatten(1)))
        return self.dequant(self.fc2(self.drop(x)))


def train(model: nn.Module, images: torch.Tensor, labels: torch.Tensor, epochs: float, lr: float, batch: int = 128) -> nn.Module:
    """Trains with AdamW, with a learning rate that falls to 0."""
    steps = int(epochs * (len(images) // batch))
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, lr, total_steps=steps)
    model.train()
    order = torch.randperm(len(images))
    for step in range(steps):
        start = step * batch % (len(images) - batch + 1)
        chosen = order[start : start + batch]
        loss = F.cross_entropy(model(images[chosen]), labels[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return model


@torch.no_grad()
def accuracy(model: nn.Module, images: torch.Tensor, labels: torch.Tensor) -> float:
    """The share of correct classes."""
    model.eval()
    return torch.cat([model(chunk).argmax(1) for chunk in images.split(1000)]).eq(labels).float().mean().item()


def size(model: nn.Module) -> int:
    """The bytes of the model's saved state."""
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    return len(file.getvalue())


def static(net: Net, qconfig: Any, images: torch.Tensor) -> nn.Module:
    """Quantized after training, module by module."""
    model = tq.fuse_modules(Quantizable(net).eval(), FUSED)
    model.qconfig = qconfig
    observed = tq.prepare(model)
    with torch.no_grad():
        for chunk in images[:2000].split(200):
            observed(chunk)
    return tq.convert(observed)


def by_graph(net: Net, images: torch.Tensor) -> nn.Module:
    """Quantized after training, by the graph of the unchanged network."""
    observed = prepare_fx(copy.deepcopy(net).eval(), tq.get_default_qconfig_mapping("x86"), (images[:2],))
    with torch.no_grad():
        for chunk in images[:2000].split(200):
            observed(chunk)
    return convert_fx(observed)


def aware(net: Net, images: torch.Tensor, labels: torch.Tensor, epochs: float, lr: float) -> nn.Module:
    """Trained further with rounded weights and activations, then quantized."""
    model = tq.fuse_modules_qat(Quantizable(net).train(), FUSED)
    model.qconfig = tq.get_default_qat_qconfig("x86")
    prepared = tq.prepare_qat(model)
    train(prepared, images, labels, epochs, lr)
    return tq.convert(prepared.eval())


def main() -> None:
    parser = argparse.ArgumentParser(description="Accuracy of quantized networks on Fashion-MNIST.")
    parser.add_argument("--epochs", type=float, default=4)
    parser.add_argument("--aware-epochs", type=float, default=1)
    parser.add_argument("--data", type=Path, default=Path("/usr/share/datasets/fashion-mnist"))
    args = parser.parse_args()
    torch.manual_seed(0)
    images, labels = load(args.data, "train", "cpu")
    tests = load(args.data, "t10k", "cpu")
    started = time.perf_counter()
    net = train(Net(), images, labels, args.epochs, 2e-3)
    base = accuracy(net, *tests)
    print(f"trained for {args.epochs:g} epochs in {time.perf_counter() - started:.0f} s")
    print("| model | test accuracy | minus float32 | state, KiB |\n|---|---|---|---|")
    print(f"| float32 | {base:.4f} | | {size(net) / 1024:.0f} |", flush=True)
    for name, make in (
        ("static, per channel", lambda: static(net, tq.get_default_qconfig("x86"), images)),
        ("static, per tensor", lambda: static(net, tq.get_default_qconfig("qnnpack"), images)),
        ("static, graph mode", lambda: by_graph(net, images)),
        ("dynamic (linear layers)", lambda: tq.quantize_dynamic(net)),
        (f"aware, {args.aware_epochs:g} epochs", lambda: aware(net, images, labels, args.aware_epochs, 2e-4)),
    ):
        model = make()
        found = accuracy(model, *tests)
        print(f"| {name} | {found:.4f} | {found - base:+.4f} | {size(model) / 1024:.0f} |", flush=True)


if __name__ == "__main__":
    main()
