"""The names that rows of code use."""

import pytest


@pytest.fixture
def names(torch):
    x = torch.tensor([[1.0, 2.0], [3.0, 5.0]])
    return {
        "torch": torch, "F": torch.nn.functional, "x": x, "y": torch.tensor([[2.0, 0.5], [1.0, 4.0]]), "v": torch.tensor([1.0, 2.0]),
        "i": torch.tensor([0, 1]),
    }  # fmt: skip
