"""lower_pt2e: integer kernels in place of converted layers."""

from __future__ import annotations

import pytest

from tests.python.pt2e import models
from tests.python.pt2e.test_graphs import converted

LOWERED = {
    # case: the operators of the lowered graph
    "mlp-xnnpack": {"int8_linear": 2, "requantize": 2},
    "mlp-xnnpack-channels": {"int8_linear": 2, "requantize": 2},
    "mlp-xnnpack-dynamic": {"int8_linear_dynamic": 2},
    "mlp-x86": {"int8_linear": 2, "requantize": 1},
    "mlp-x86-dynamic": {"int8_linear_dynamic": 2},
    "conv_bn-xnnpack-channels": {"int8_convolution": 1, "int8_linear": 1, "requantize": 2},
    "residual-x86": {"int8_convolution": 2, "int8_linear": 1, "requantize": 1},
    "cat-x86": {"int8_convolution": 2, "requantize": 2},
}


@pytest.mark.parametrize("case", LOWERED)
def test_operators_and_values(torch, case):
    from teletensor.ao.quantization.pt2e.lowering import lower_pt2e

    name, kind = models.CASES[case]
    model, samples = converted(torch, name, kind)
    expected = model(samples[1])
    lowered = lower_pt2e(model)
    found: dict[str, int] = {}
    for node in lowered.graph.nodes:
        operator = str(node.target).split(".")
        if operator[0] == "teletensor":
            found[operator[1]] = found.get(operator[1], 0) + 1
    assert found == LOWERED[case]
    result = lowered(samples[1])
    step = float(expected.abs().max()) / 100
    torch.testing.assert_close(result, expected, rtol=0, atol=step)
    assert torch.equal(model(samples[1]), expected)  # a copy was lowered
    torch.testing.assert_close(torch.compile(lowered)(samples[1]), result)
    names = dict([*lowered.named_parameters(), *lowered.named_buffers()])
    assert not any(t.dtype == torch.float32 and t.dim() > 3 for t in names.values())  # the weights in float32 are gone


def test_layout_operators_compute_with_integers(torch):
    from teletensor.ao.quantization.pt2e.lowering import lower_pt2e

    model, samples = converted(torch, "residual", "x86")
    lowered = lower_pt2e(model)
    text = str(lowered.graph)
    before, after = (str(m.graph).count("quantize_per_tensor.default") for m in (model, lowered))
    assert after < before and "flatten" in text
    torch.testing.assert_close(lowered(samples[0]), model(samples[0]), rtol=0, atol=0.05)


def test_names_of_torchao(torch):
    from teletensor.torchao.quantization.pt2e.lowering import lower_pt2e_quantized_to_x86
    from teletensor.torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
    from teletensor.torchao.quantization.pt2e.quantizer.x86_inductor_quantizer import (
        X86InductorQuantizer,
        get_default_x86_inductor_quantization_config,
    )

    x = models.inputs(torch, "mlp")[0]
    net = models.model(torch, "mlp")
    quantizer = X86InductorQuantizer().set_global(get_default_x86_inductor_quantization_config())
    ready = prepare_pt2e(torch.export.export(net, (x,)).module(), quantizer)
    ready(x)
    lowered = lower_pt2e_quantized_to_x86(convert_pt2e(ready), (x,))
    torch.testing.assert_close(lowered(x), net(x), rtol=0, atol=0.05)
    with pytest.raises(TypeError, match="convert_pt2e"):
        lower_pt2e_quantized_to_x86(net, (x,))


@pytest.mark.parametrize("case", ["mlp-xnnpack-channels", "conv_bn-x86", "mlp-x86-dynamic"])
def test_files(torch, tmp_path, case):
    from teletensor.ao.quantization.pt2e.lowering import lower_pt2e

    model, samples = converted(torch, *models.CASES[case])
    for module in (model, lower_pt2e(model)):
        torch.export.save(torch.export.export(module, (samples[0],)), tmp_path / "model.pt2")
        loaded = torch.export.load(tmp_path / "model.pt2").module()
        torch.testing.assert_close(loaded(samples[1]), module(samples[1]))
