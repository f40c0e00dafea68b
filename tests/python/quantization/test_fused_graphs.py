"""Which modules prepare_fx fuses, and which operators have an observer of their own."""

from __future__ import annotations

import teletensor as torch
from teletensor import nn
from teletensor.ao.quantization import get_default_qconfig_mapping
from teletensor.ao.quantization.quantize_fx import convert_fx, prepare_fx


def test_relu_after_a_fused_linear_is_fused():
    torch.manual_seed(0)
    model, x = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU()).eval(), torch.randn(16, 6)
    prepared = prepare_fx(model, get_default_qconfig_mapping("x86"), (x,))
    observers = [n for n in prepared.graph.nodes if "activation_post_process" in str(n.target)]
    assert len(observers) == 2  # of the input and of relu's result: none between the layers
    expected = model(x)
    prepared(x)
    assert (convert_fx(prepared)(x) - expected).abs().max() < expected.max() / 60


def test_torch_relu_has_an_observer_of_its_own():
    class Residual(nn.Module):
        def __init__(self):
            super().__init__()
            self.c, self.b = nn.Conv2d(3, 3, 3, padding=1), nn.BatchNorm2d(3)

        def forward(self, x):
            return torch.relu(self.b(self.c(x))) + x

    prepared = prepare_fx(Residual().eval(), get_default_qconfig_mapping("qnnpack"), (torch.randn(2, 3, 5, 5),))
    observers = [n.target for n in prepared.graph.nodes if "activation_post_process" in str(n.target)]
    assert len(observers) == len(set(observers)) == 4
