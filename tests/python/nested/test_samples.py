"""Compares samples of PyTorch's operator database with the results and gradients recorded by record_samples.py."""

from __future__ import annotations

import functools
import json
from pathlib import Path

import numpy as np
import pytest

import teletensor as torch
from teletensor._nested.base import AnyNested

FOLDER = Path(__file__).parent
# Samples are left out in which PyTorch reduces all elements of a tensor with holes, and counts what is in the holes.
FULL_REDUCTIONS = ("sum", "mean", "prod", "max", "min", "amax", "amin", "argmax", "argmin", "all", "any")
SAMPLES = [
    row for row in json.loads((FOLDER / "samples.json").read_text())
    if row[0] != "polygamma"  # its samples are next to poles
    and not (row[0] in FULL_REDUCTIONS and row[2]["list"][0]["nested"][3] is not None and "nested" not in row[4])
]  # fmt: skip
NAMES = sorted({row[0] for row in SAMPLES})


@functools.cache
def arrays() -> dict:
    with np.load(FOLDER / "samples.npz") as file:
        return dict(file)


class Decoder:
    """Tensors of one sample: arguments with the same number have the same offsets."""

    def __init__(self) -> None:
        self.offsets: dict = {}
        self.nested: list = []

    def decode(self, value):
        (kind, content), = value.items()
        if kind == "nested":
            values, number, offsets, lengths, ragged = content
            if number not in self.offsets:
                at = arrays()
                self.offsets[number] = torch.tensor(at[offsets]), None if lengths is None else torch.tensor(at[lengths])
            made = torch.nested.nested_tensor_from_jagged(torch.tensor(arrays()[values]), *self.offsets[number], jagged_dim=ragged)
            self.nested.append(made)
            return made
        if kind == "tensor":
            return torch.tensor(arrays()[content])
        if kind == "dtype":
            return getattr(torch, content)
        return [self.decode(v) for v in content] if kind == "list" else content


def function(name: str):
    """The function of PyTorch's name for an operator, such as "nn.functional.softmax"."""
    owner = torch
    for part in name.split(".")[:-1]:
        owner = getattr(owner, part)
    last = name.split(".")[-1]
    if name == "polygamma":
        return lambda x, n: torch.polygamma(n, x)
    found = getattr(owner, last, None)
    return found if callable(found) else getattr(torch.Tensor, last)


def check(ours, recorded, what: str) -> None:
    """Asserts that a result is what was recorded."""
    (kind, content), = recorded.items()
    if kind == "list":
        assert len(ours) == len(content), what
        for a, b in zip(ours, content):
            check(a, b, what)
    elif kind == "nested":
        values, _, offsets, _, ragged = content
        assert isinstance(ours, AnyNested) and ours._ragged_idx == ragged, what
        np.testing.assert_array_equal(ours.offsets().numpy(), arrays()[offsets], err_msg=what)
        compare(ours.values(), arrays()[values], what)
    elif kind == "tensor":
        assert not ours.is_nested, what
        compare(ours, arrays()[content], what)
    else:
        assert ours == content, what


def compare(ours, array, what: str) -> None:
    assert tuple(ours.shape) == array.shape, (what, ours.shape, array.shape)
    mine = ours.detach().numpy()
    if array.dtype in (np.float32, np.float64):
        np.testing.assert_allclose(mine, array, rtol=3e-4, atol=3e-5, err_msg=what)
    else:
        np.testing.assert_array_equal(mine, array, err_msg=what)


def run(row) -> None:
    name, _, arguments, keywords, result, grads = row
    decoder = Decoder()
    args = decoder.decode(arguments)
    kwargs = {k: decoder.decode(v) for k, v in keywords.items()}
    leaves = [t for t in decoder.nested if t.dtype.is_floating_point]
    wanted = grads is not None and grads["list"]
    for tensor in leaves:
        tensor.requires_grad_(bool(wanted))
    if name == "where":  # where(input, condition, other) in PyTorch's database
        args, kwargs = [kwargs["condition"], args[0], kwargs["other"]], {}
    if name == "nn.functional.embedding_bag":
        args = args[::-1]  # (weight, input) in PyTorch's database
    ours = function(name)(*args, **kwargs)
    if result is None:  # random
        return
    check(ours, result, name)
    if wanted:
        outputs = [t for t in (ours if isinstance(ours, (list, tuple)) else [ours]) if isinstance(t, torch.Tensor) and t.requires_grad]
        total = sum((t.values() if t.is_nested else t).sin().sum() for t in outputs)
        for found, expected in zip(torch.autograd.grad(total, leaves, allow_unused=True), wanted, strict=True):
            if "nested" in expected or "tensor" in expected:
                check(found, expected, f"gradient of {name}")


@pytest.mark.parametrize("name", NAMES)
def test_samples(name):
    for row in SAMPLES:
        if row[0] == name:
            run(row)
