"""Trains a small network on the example device and on the CPU, and compares them.

    python test_device.py build/libexample_device.so

Needs the package teletensor, which starts a private engine with the library.
"""

from __future__ import annotations

import os
import sys


def losses(torch, device: str) -> list[float]:
    """The losses of twenty steps on a device."""
    torch.manual_seed(0)
    x = torch.randn(64, 8)
    y = x[:, :1] * x[:, 1:2]
    model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1)).to(device)
    x, y = x.to(device), y.to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    found = []
    for _ in range(20):
        optimizer.zero_grad()
        loss = ((model(x) - y) ** 2).mean()
        loss.backward()
        optimizer.step()
        found.append(loss)
    return [loss.item() for loss in found]


def main() -> None:
    """Runs the comparison; raises AssertionError if it fails."""
    os.environ["TELETENSOR_DEVICES"] = os.path.abspath(sys.argv[1])
    import teletensor as torch

    assert torch.device("example:0").type == "example", "the engine has no example device"
    here, there = losses(torch, "cpu"), losses(torch, "example")
    for i, (cpu, device) in enumerate(zip(here, there)):
        assert abs(cpu - device) < 1e-4, f"step {i}: {device} on the device, {cpu} on the CPU"
    assert torch.example.memory_allocated() == 0
    print(f"loss {there[0]:.4f} -> {there[-1]:.4f} on {torch.example.get_device_name()}, as on the CPU")


if __name__ == "__main__":
    main()
