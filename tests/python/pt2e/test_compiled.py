"""torch.compile captures quantized models whole: lowered graphs, and models with quantized weights of torchao."""

from __future__ import annotations

import pytest

from tests.python.pt2e import models
from tests.python.pt2e.test_graphs import converted


@pytest.mark.parametrize("case", ["mlp-xnnpack", "mlp-x86", "mlp-x86-dynamic", "residual-x86"])
def test_lowered_graphs(torch, case):
    from teletensor.ao.quantization.pt2e.lowering import lower_pt2e

    name, kind = models.CASES[case]
    model, samples = converted(torch, name, kind)
    model = lower_pt2e(model)
    expected = model(samples[1])
    compiled = torch.compile(model, fullgraph=True)
    for _ in range(3):
        assert torch.equal(compiled(samples[1]), expected)


def int8_model(torch):
    from teletensor.torchao.quantization import Int8DynamicActivationInt8WeightConfig, MappingType, quantize_

    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(24, 32), torch.nn.GELU(), torch.nn.Linear(32, 8))
    quantize_(model, Int8DynamicActivationInt8WeightConfig(act_mapping_type=MappingType.ASYMMETRIC))
    return model


def test_quantized_weights(torch):
    model = int8_model(torch)
    x = torch.randn(5, 24)
    compiled = torch.compile(model, fullgraph=True)
    with torch.no_grad():
        expected = model(x)
        for _ in range(3):
            assert torch.allclose(compiled(x), expected, atol=1e-6)


def test_a_replaced_weight_is_read(torch):
    model, other = int8_model(torch), int8_model(torch)
    x = torch.randn(5, 24)
    compiled = torch.compile(model, fullgraph=True)
    with torch.no_grad():
        first = compiled(x)
        other[0].weight.qdata.neg_()
        model[0].weight = other[0].weight
        expected = model(x)
        assert not torch.allclose(expected, first)
        assert torch.allclose(compiled(x), expected, atol=1e-6)
        model[0].weight.scale.mul_(2)  # in place
        assert torch.allclose(compiled(x), model(x), atol=1e-6)
        assert not torch.allclose(compiled(x), expected)


def test_functions_without_an_implementation_run_plainly(torch):
    model = int8_model(torch)

    def function(x):
        return x + (model[0].weight * 2).sum()

    x = torch.randn(5, 24)
    with torch.no_grad():
        assert torch.allclose(torch.compile(function)(x), function(x))
