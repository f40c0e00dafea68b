"""huber_loss without a bound: half the squared differences."""

import math

import pytest

import teletensor as torch
import teletensor.nn.functional as F


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_infinite_delta(reduction):
    input, target = torch.tensor([1.0, -2.0, 3.5], requires_grad=True), torch.tensor([0.5, 1.0, 3.5])
    weight = torch.tensor([1.0, 2.0, 3.0])
    halves = (input.detach() - target) ** 2 / 2
    reduced = {"none": lambda x: x, "mean": torch.mean, "sum": torch.sum}[reduction]
    assert torch.allclose(F.huber_loss(input, target, reduction, math.inf), reduced(halves))
    assert torch.allclose(F.huber_loss(input, target, reduction, math.inf, weight), reduced(halves * weight))
    halves = F.huber_loss(input.double(), target.double(), reduction, math.inf)
    assert torch.allclose(halves, reduced((input.detach().double() - target) ** 2 / 2))
    F.huber_loss(input, target, "sum", math.inf).backward()
    assert input.grad.tolist() == [0.5, -3.0, 0.0]
