"""Helpers of the programs: equal weights and inputs with both libraries, short trainings, gradients."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable
from typing import Any

import numpy
import torch

# Adam's epsilon: large enough that gradients that are zero except for rounding, such as those of keys' biases, have no
# effect
ROUNDING = 3e-6  # relative to the largest gradient
EPSILON = 1e-4


def randn(*size: int, seed: int = 0) -> torch.Tensor:
    """Normally distributed float32 numbers, the same with both libraries."""
    return torch.tensor(numpy.random.default_rng(seed).standard_normal(size, dtype=numpy.float32))


def integers(high: int, *size: int, seed: int = 0) -> torch.Tensor:
    """Numbers from 0 to high - 1, int64."""
    return torch.tensor(numpy.random.default_rng(seed).integers(0, high, size))


def fill(module: torch.nn.Module, scale: float = 1.0) -> torch.nn.Module:
    """Sets the parameters and floating-point buffers by their names: vectors to small numbers (plus 1 for a norm's
    weight), matrices to numbers divided by the square root of the inputs. Running variances become 1 plus a small number.
    """
    with torch.no_grad():
        for name, p in [*module.named_parameters(), *module.named_buffers()]:
            buffer = "running" in name
            if not p.numel() or not p.is_floating_point() or (not isinstance(p, torch.nn.Parameter) and not buffer):
                continue
            values = numpy.random.default_rng(zlib.crc32(name.encode())).standard_normal(
                tuple(p.shape), dtype=numpy.float32
            )
            if p.dim() > 1:
                values *= scale / math.sqrt(p[0].numel())
            elif name.endswith("var"):
                values = 1 + 0.1 * numpy.abs(values)
            else:
                values = 0.1 * values + (1.0 if name.endswith("weight") else 0.0)
            p.copy_(torch.tensor(values).to(p.dtype))
    return module


def gradients(module: torch.nn.Module) -> dict[str, Any]:
    """The parameters' gradients by name; a text for those that are zero but for rounding, such as those of keys' biases."""
    found = {name: p.grad for name, p in module.named_parameters() if p.requires_grad}
    given = [grad for grad in found.values() if grad is not None and grad.numel()]
    if not given:
        return found
    largest = torch.stack([grad.detach().abs().max().float() for grad in given]).tolist()
    tiny = {id(grad) for grad, size in zip(given, largest) if size < ROUNDING * max(largest)}
    return {name: "zero but for rounding" if id(grad) in tiny else grad for name, grad in found.items()}


def backward(module: torch.nn.Module, loss: torch.Tensor) -> list[Any]:
    """The loss and, after backward(), the gradients."""
    loss.backward()
    return [loss.detach(), gradients(module)]


def train(
    module: torch.nn.Module, loss: Callable[[], torch.Tensor], optimizer: Any = None, steps: int = 4
) -> list[Any]:
    """The losses of a few steps, and the parameters after them. AdamW by default."""
    optimizer = optimizer or torch.optim.AdamW(module.parameters(), lr=1e-2, eps=EPSILON)
    losses = []
    for _ in range(steps):
        value = loss()
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        losses.append(value.detach())
    return [losses, {name: p.detach() for name, p in module.named_parameters()}]
