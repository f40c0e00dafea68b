"""Strides of results, as PyTorch has them (layouts.json) and equal in client and engine, and the values of row-major tensors."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from .layouts_cases import EXPRESSIONS, KEPT, ORDERS, RANDOM, names, tensors
from .test_memory_format import bytes_by_strides

WANTED = json.loads(Path(__file__).with_name("layouts.json").read_text())["results"]


def _results(torch, expression, values):
    torch.manual_seed(0)
    return tensors(eval(expression, values), torch)


def _significant(sizes, strides):
    return [s for n, s in zip(sizes, strides, strict=True) if n != 1]


@pytest.mark.parametrize("expression", EXPRESSIONS)
@pytest.mark.parametrize("order", ORDERS)
def test_strides_and_values(torch, expression, order):
    results = [t.detach() for t in _results(torch, expression, names(torch, order))]
    plain = [t.detach() for t in _results(torch, expression, names(torch, "row_major"))]
    assert len(results) == len(WANTED[expression][ORDERS.index(order)])
    for result, wanted, expected in zip(results, WANTED[expression][ORDERS.index(order)], plain, strict=True):
        if expression not in KEPT:
            assert _significant(result.shape, result.stride()) == _significant(result.shape, wanted)
        np.testing.assert_array_equal(bytes_by_strides(torch, result), result.numpy())
        if not any(word in expression for word in RANDOM):
            np.testing.assert_allclose(result.numpy(), expected.numpy(), rtol=1e-4, atol=1e-4)


WITHOUT_GRADIENT = ("torch.special.zeta", "torch.igamma")


@pytest.mark.parametrize("expression", [e for e in EXPRESSIONS if not any(word in e for word in (*RANDOM, *WITHOUT_GRADIENT))])
def test_gradients_in_channels_last(torch, expression):
    """The gradients are those of row-major inputs."""
    found = []
    for order in ("channels_last", "row_major"):
        values = names(torch, order)
        leaves = [values[name].requires_grad_() for name in ("x", "z", "w")]
        results = [t for t in _results(torch, expression, values) if t.requires_grad]
        if not results:
            return
        gradients = [(torch.arange(float(t.numel())) % 7).reshape(t.shape).to(t.dtype) for t in results]
        found.append(torch.autograd.grad(results, leaves, gradients, allow_unused=True))
    for a, b in zip(*found, strict=True):
        if a is not None:
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-3, atol=1e-3)


def test_ravel_copies_what_is_not_contiguous(torch):
    whole = torch.arange(5.0)
    part = whole[::2]
    flat = part.ravel()
    flat.zero_()
    assert flat.is_contiguous() and whole.tolist() == [0, 1, 2, 3, 4]
    whole.view(5, 1).ravel().zero_()
    assert not whole.any()
