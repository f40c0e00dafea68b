"""Integers in tensors without dimensions, as indices, where they select a view, and as arguments for ints."""

from __future__ import annotations

import pytest

import teletensor as torch
from tests.conftest import DEVICES, IN_PROCESS
from tests.python.session.test_session import run_script


def cube():
    return torch.arange(24.0).reshape(2, 3, 4)


READS = {  # index, and the equal one of Python's ints
    "i": (lambda i: i, 1),
    "i, i": (lambda i: (i, i), (1, 1)),
    ":, i": (lambda i: (slice(None), i), (slice(None), 1)),
    "..., i": (lambda i: (..., i), (..., 1)),
    "None, i, 1:": (lambda i: (None, i, slice(1, None)), (None, 1, slice(1, None))),
    "i, :, [1, 2]": (lambda i: (i, slice(None), torch.tensor([1, 2])), (1, slice(None), [1, 2])),
    "[0, 1, 1], :, i": (lambda i: (torch.tensor([0, 1, 1]), slice(None), i), ([0, 1, 1], slice(None), 1)),
    "i, :, mask": (lambda i: (i, slice(None), torch.tensor([True, False, True, True])), (1, slice(None), [0, 2, 3])),
    "-1": (lambda i: -i, -1),
}


@pytest.mark.parametrize("dtype", ["int64", "int32", "int8"])
@pytest.mark.parametrize("name", READS)
def test_reads(name, dtype):
    make, expected = READS[name]
    index = make(torch.tensor(1, dtype=getattr(torch, dtype)))
    found = cube()[index]
    assert found.tolist() == cube()[expected].tolist()


@pytest.mark.parametrize("device", DEVICES)
def test_a_selection_is_a_view(torch, device):
    x, i = torch.zeros(3, 4, device=device), torch.tensor(1)
    y = x[i]
    y.add_(1)
    x[:, torch.tensor(2, device=device)].fill_(5)
    assert y._base is x and x.tolist() == [[0, 0, 5, 0], [1, 1, 5, 1], [0, 0, 5, 0]]
    for k in torch.arange(3, device=device):
        x[k][0] = 7
    assert x[:, 0].tolist() == [7, 7, 7]
    with pytest.raises(IndexError, match="index 3 is out of bounds for dimension 0 with size 3"):
        x[torch.tensor(3)]


def test_gradients_of_writes_to_selections():
    p = torch.zeros(4, requires_grad=True)
    b = p * 1
    b[torch.tensor(0)].mul_(2).add_(3)
    (b * b).sum().backward()
    assert b.tolist() == [3, 0, 0, 0] and p.grad.tolist() == [12, 0, 0, 0]


WRITES = {
    "i": lambda i: i, "i, i": lambda i: (i, i), ":, i": lambda i: (slice(None), i),
    "i, :, [1, 2]": lambda i: (i, slice(None), torch.tensor([1, 2])), "[0, 1], i": lambda i: ([0, 1], i),
}  # fmt: skip


@pytest.mark.parametrize("name", WRITES)
def test_writes(name):
    x, y = cube(), cube()
    at, plain = WRITES[name](torch.tensor(1)), WRITES[name](1)
    values = torch.arange(float(y[plain].numel())).reshape(y[plain].shape)
    x[at], y[plain] = values, values
    assert x.tolist() == y.tolist()
    x[at], y[plain] = -1.0, -1.0
    assert x.tolist() == y.tolist()
    x[at] += 2
    y[plain] += 2
    assert x.tolist() == y.tolist()


def test_values_of_another_dtype():
    """A selection is a view, to which values are converted; so is one value for a mask."""
    i, mask, wide = torch.tensor(1), torch.tensor([True, False]), torch.ones(4, dtype=torch.float64)
    for index, total in ((i, 12.0), ((i, i), 4.0), ((slice(None), i), 8.0)):
        x = torch.zeros(2, 3, 4, dtype=torch.float16)
        x[index] = wide
        assert x.sum().item() == total
    x = torch.zeros(2, 3, 4, dtype=torch.float16)
    x[mask] = wide[:1]
    assert x.sum().item() == 12
    with pytest.raises(RuntimeError, match="source and destination dtypes match"):
        x[mask] = wide


ZERO_DIM_MASKS = {
    "b, i": (lambda b, i: (b, i), (1, 3, 4)), "i, b": (lambda b, i: (i, b), (1, 3, 4)),
    "b, :, i": (lambda b, i: (b, slice(None), i), (1, 2, 4)), "b, [0, 1]": (lambda b, i: (b, [0, 1]), (2, 3, 4)),
    "b, :, [0, 1]": (lambda b, i: (b, slice(None), [0, 1]), (2, 2, 4)), "b": (lambda b, i: b, (1, 2, 3, 4)),
    "True, i": (lambda b, i: (True, i), (1, 3, 4)), "not b, i": (lambda b, i: (~b, i), (0, 3, 4)),
}  # fmt: skip


@pytest.mark.parametrize("name", ZERO_DIM_MASKS)
def test_masks_without_dimensions(name):
    make, shape = ZERO_DIM_MASKS[name]
    found = cube()[make(torch.tensor(True), torch.tensor(1))]
    assert found.shape == shape
    expected = {(1, 3, 4): 210.0, (1, 2, 4): 92.0, (2, 3, 4): 276.0, (2, 2, 4): 152.0, (1, 2, 3, 4): 276.0, (0, 3, 4): 0.0}
    assert found.sum().item() == expected[shape]


ARGUMENTS = {
    "sum": lambda x, i: x.sum(i), "mean": lambda x, i: x.mean(i), "amax": lambda x, i: x.amax(i), "std": lambda x, i: x.std(dim=i),
    "var": lambda x, i: torch.var(x, i), "any": lambda x, i: x.any(i), "logsumexp": lambda x, i: x.logsumexp(i),
    "squeeze": lambda x, i: x.squeeze(i), "roll": lambda x, i: torch.roll(x, i, i), "flip": lambda x, i: x.flip(i),
    "movedim": lambda x, i: x.movedim(0, i), "avg_pool2d": lambda x, i: torch.nn.functional.avg_pool2d(x, i),
    "max_pool1d": lambda x, i: torch.nn.functional.max_pool1d(x, i), "max_pool2d": lambda x, i: torch.nn.functional.max_pool2d(x, i),
    "interpolate": lambda x, i: torch.nn.functional.interpolate(x, size=i),
    "conv1d": lambda x, i: torch.nn.functional.conv1d(x, torch.ones(1, 3, 2), stride=i),
    "conv_transpose1d": lambda x, i: torch.nn.functional.conv_transpose1d(x, torch.ones(3, 1, 2), padding=i),
}  # fmt: skip


@pytest.mark.parametrize("name", ARGUMENTS)
def test_arguments(name):
    call = ARGUMENTS[name]
    found, expected = call(cube(), torch.tensor(1)), call(cube(), 1)
    assert found.shape == expected.shape and found.tolist() == expected.tolist()


def test_arguments_of_other_kinds_are_refused():
    with pytest.raises(TypeError):
        cube().sum(torch.tensor(1.0))
    with pytest.raises(TypeError):
        cube().sum(torch.tensor(True))


@pytest.mark.skipif(IN_PROCESS, reason="the script starts an engine")
def test_after_a_program_has_replaced_getitem():
    """Python then takes tensors for sequences."""
    result = run_script("""
import teletensor as torch
original = torch.Tensor.__getitem__
torch.Tensor.__getitem__ = lambda self, index: original(self, index)
torch.Tensor.__getitem__ = original
x, i = torch.ones(2, 3), torch.tensor(1)
print(x.flip(i).shape, x.sum(i).tolist(), torch.zeros(i, 2).shape, x[i].tolist(), x[i, i].item())
""")
    assert result.stdout == "torch.Size([2, 3]) [3.0, 3.0] torch.Size([1, 2]) [1.0, 1.0, 1.0] 1.0\n", result.stderr
