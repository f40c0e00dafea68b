"""lower_pt2e: integer kernels in place of converted layers."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.python.pt2e import models
from tests.python.pt2e.test_graphs import converted

LOWERED = {
    # case: the operators of the lowered graph
    "mlp-xnnpack": {"int8_linear_quantized": 2},
    "mlp-xnnpack-channels": {"int8_linear_quantized": 2},
    "mlp-xnnpack-dynamic": {"int8_linear_dynamic": 2},
    "mlp-x86": {"int8_linear_quantized": 1, "int8_linear": 1},
    "mlp-x86-dynamic": {"int8_linear_dynamic": 2},
    "conv_bn-xnnpack-channels": {"int8_convolution_quantized": 1, "int8_linear_quantized": 1},
    "residual-x86": {"int8_convolution_quantized": 1, "int8_convolution": 1, "int8_linear": 1},
    "cat-x86": {"int8_convolution_quantized": 2},
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


def _static(torch, x, *arguments):
    d = torch.ops.quantized_decomposed
    return d.dequantize_per_tensor(d.quantize_per_tensor(x, *arguments), *arguments)


def _dynamic(torch, x, read=None, choose=(0, 255), limits=(0, 255), back=(0, 255), smallest=1e-6, swap=False):
    d, dtype = torch.ops.quantized_decomposed, torch.uint8
    scale, point = d.choose_qparams.tensor(x, *choose, smallest, dtype)
    q = d.quantize_per_tensor.tensor(x if read is None else read, scale, point, *limits, dtype)
    scale = scale * 2 if swap else scale
    return d.dequantize_per_tensor.tensor(q, scale, point, *back, dtype)


# name: the input of a linear layer, what follows it, and whether its product is one of integers
NEARLY = {
    "dynamic": (lambda t, x: _dynamic(t, x), None, True),
    "dynamic, of another tensor": (lambda t, x: _dynamic(t, x, read=x * 2), None, False),
    "dynamic, other limits": (lambda t, x: _dynamic(t, x, limits=(0, 100), back=(0, 100)), None, False),
    "dynamic, 7 bits": (lambda t, x: _dynamic(t, x, None, (0, 127), (0, 127), (0, 127)), None, False),
    "dynamic, large scales": (lambda t, x: _dynamic(t, x, smallest=1.0), None, False),
    "dynamic, another scale back": (lambda t, x: _dynamic(t, x, swap=True), None, False),
    "used twice": (lambda t, x: _dynamic(t, x), lambda t, y: t.relu(y) + y, True),
    "relu6": (
        lambda t, x: _static(t, x, 0.05, 3, -128, 127, t.int8),
        lambda t, y: _static(t, t.nn.functional.relu6(y), 0.03, 0, 0, 255, t.uint8), True,
    ),
    "two scales": (
        lambda t, x: _static(t, x, 0.05, 3, -128, 127, t.int8),
        lambda t, y: _static(t, y, 0.3, 0, -128, 127, t.int8) + _static(t, y, 0.1, 0, -128, 127, t.int8), True,
    ),
    "zero below the limits": (
        lambda t, x: _static(t, x, 0.05, 3, -10, 10, t.int8), lambda t, y: _static(t, t.relu(y), 0.3, -120, -100, 90, t.int8), True,
    ),
    "zero above the limits": (
        lambda t, x: _static(t, x, 0.5, 3, 0, 15, t.uint8), lambda t, y: _static(t, t.relu(y), 0.3, 100, -100, 90, t.int8), True,
    ),
    "16 bits": (lambda t, x: _static(t, x, 0.001, 3, -30000, 30000, t.int16), None, False),
}  # fmt: skip


@pytest.mark.parametrize("name", NEARLY)
def test_patterns_that_almost_match(torch, name):
    from teletensor.ao.quantization.pt2e.lowering import lower_pt2e

    before, after, is_lowered = NEARLY[name]

    class Layer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("weight", torch.randint(-128, 128, (8, 8), dtype=torch.int8))
            self.register_buffer("scales", torch.rand(8) * 0.1 + 0.01)
            self.register_buffer("points", torch.randint(-20, 20, (8,)))
            self.register_buffer("bias", torch.randn(8))

        def forward(self, x):
            d = torch.ops.quantized_decomposed
            weight = d.dequantize_per_channel(self.weight, self.scales, self.points, 0, -128, 127, torch.int8)
            y = torch.nn.functional.linear(before(torch, x), weight, self.bias)
            return y if after is None else after(torch, y)

    x = torch.randn(5, 8) * 3
    graph = torch.export.export(Layer(), (x,)).module()
    lowered = lower_pt2e(graph)
    assert ("int8_linear" in str(lowered.graph)) == is_lowered
    expected = graph(x)
    step = 0.31 if after is not None else 1e-3  # a sum next to a tie may become the next integer
    torch.testing.assert_close(lowered(x), expected, rtol=0, atol=step)


def test_files_load_in_other_processes(torch, tmp_path):
    """Where nothing has used torch.ops.quantized_decomposed, as in `teletensor convert` and engines that serve models."""
    from teletensor.ao.quantization.pt2e.lowering import lower_pt2e

    name, kind = models.CASES["mlp-x86"]
    model, samples = converted(torch, name, kind)
    x = samples[1]
    torch.save(x, tmp_path / "input.pt")
    programs = {"converted": model, "lowered": lower_pt2e(model)}
    for path, program in programs.items():
        torch.export.save(torch.export.export(program, (x,)), tmp_path / f"{path}.pt2")
    run = subprocess.run(
        [sys.executable, "-m", "tests.python.pt2e.loaded_elsewhere", tmp_path / "input.pt", *(tmp_path / f"{p}.pt2" for p in programs)],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    for line, program in zip(run.stdout.splitlines(), programs.values(), strict=True):
        assert json.loads(line) == program(x).flatten().tolist()
