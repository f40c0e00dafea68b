"""Modules compiled and exported, beside their own calls. tests/conformance/compiled does so with the samples of PyTorch's module_db."""

from __future__ import annotations

import pytest

import teletensor as torch
from teletensor import nn
from teletensor._dynamo.utils import counters

MODULES = {
    "Linear": (lambda: nn.Linear(4, 3), [(2, 4), (5, 4), (3, 2, 4)]),
    "Conv2d": (lambda: nn.Conv2d(3, 4, 3, padding=1), [(2, 3, 8, 8), (1, 3, 8, 8), (3, 3, 6, 10)]),
    "ConvTranspose1d": (lambda: nn.ConvTranspose1d(3, 2, 3), [(2, 3, 8), (4, 3, 8)]),
    "BatchNorm2d": (lambda: nn.BatchNorm2d(3), [(4, 3, 5, 5), (2, 3, 5, 5), (6, 3, 4, 4)]),
    "LayerNorm": (lambda: nn.LayerNorm(6), [(2, 6), (5, 6)]),
    "GroupNorm": (lambda: nn.GroupNorm(2, 4), [(2, 4, 5), (3, 4, 7)]),
    "GRU": (lambda: nn.GRU(4, 3, batch_first=True), [(2, 5, 4), (3, 5, 4), (3, 6, 4)]),
    "LSTMCell": (lambda: nn.LSTMCell(4, 3), [(2, 4), (5, 4)]),
    "TransformerEncoderLayer": (lambda: nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True), [(2, 5, 8), (3, 5, 8), (2, 7, 8)]),
    "AdaptiveAvgPool2d": (lambda: nn.AdaptiveAvgPool2d(2), [(2, 3, 8, 8), (2, 3, 6, 9)]),
    "MaxPool1d": (lambda: nn.MaxPool1d(2), [(2, 3, 8), (4, 3, 9)]),
    "Upsample": (lambda: nn.Upsample(scale_factor=2, mode="bilinear"), [(2, 3, 4, 4), (2, 3, 5, 6)]),
    "PixelShuffle": (lambda: nn.PixelShuffle(2), [(2, 4, 3, 3), (3, 4, 5, 2)]),
    "Flatten": (lambda: nn.Flatten(), [(2, 3, 4), (5, 3, 4), (5, 2, 4)]),
    "Softmax": (lambda: nn.Softmax(-1), [(2, 3), (4, 3)]),
    "ReflectionPad1d": (lambda: nn.ReflectionPad1d(2), [(2, 3, 6), (2, 3, 8)]),
    "Sequential": (lambda: nn.Sequential(nn.Unflatten(1, (2, 3)), nn.Hardswish(), nn.Flatten()), [(2, 6), (5, 6)]),
}


def values(result):
    return [t for t in torch.utils._pytree.tree_leaves(result) if isinstance(t, torch.Tensor)]


@pytest.mark.slow
@pytest.mark.parametrize("name", MODULES)
def test_module(name):
    make, sizes = MODULES[name]
    torch._dynamo.reset()
    torch.manual_seed(0)
    ours, plain = make(), make()
    plain.load_state_dict(ours.state_dict())
    compiled = torch.compile(ours, fullgraph=True)
    for size in sizes:
        x, y = (torch.arange(float(torch.Size(size).numel())).reshape(size).sin().requires_grad_() for _ in range(2))
        got, want = values(compiled(x)), values(plain(y))
        torch.testing.assert_close(got, want)
        sum(t.sum() for t in got).backward(), sum(t.sum() for t in want).backward()
        torch.testing.assert_close([x.grad, *(p.grad for p in ours.parameters())], [y.grad, *(p.grad for p in plain.parameters())])
        torch.testing.assert_close(list(ours.buffers()), list(plain.buffers()))
    assert not counters["internal"] and counters["engine"]["programs"] <= 3
    x = torch.ones(sizes[0])
    with torch.no_grad():
        exported = torch.export.export(ours.eval(), (x,))
        torch.testing.assert_close(values(exported.module()(x)), values(plain.eval()(x)))
