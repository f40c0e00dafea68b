"""prepare_pt2e, convert_pt2e, prepare_qat_pt2e: the graphs and values of PyTorch (torchao)."""

from __future__ import annotations

import copy
import json
import pathlib
import re

import pytest

from tests.python.pt2e import models

RECORDED = json.loads((pathlib.Path(__file__).parent / "data" / "graphs.json").read_text())
_NUMBER = re.compile(r"(?<![\w.])-?\d+\.\d+(?:e-?\d+)?")


def names(torch):
    from teletensor.ao.quantization import quantizer
    from teletensor.ao.quantization.quantizer import x86_inductor_quantizer, xnnpack_quantizer

    return {**vars(quantizer), **vars(x86_inductor_quantizer), **vars(xnnpack_quantizer)}


def prepared(torch, name, kind, is_qat=False):
    from teletensor.ao.quantization.quantize_pt2e import prepare_pt2e, prepare_qat_pt2e

    made = models.model(torch, name).train(is_qat)
    samples = models.inputs(torch, name)
    graph = torch.export.export(made, (samples[0],)).module()
    result = (prepare_qat_pt2e if is_qat else prepare_pt2e)(graph, models.quantizer(names(torch), kind, is_qat))
    return result, samples


def converted(torch, name, kind, is_qat=False):
    from teletensor.ao.quantization.quantize_pt2e import convert_pt2e

    model, samples = prepared(torch, name, kind, is_qat)
    for sample in samples:
        model(sample)
    return convert_pt2e(model), samples


def check_text(found: str, expected: str) -> None:
    """The same text, with equal numbers up to rounding."""
    assert _NUMBER.sub("#", found) == _NUMBER.sub("#", expected)
    numbers = [list(map(float, _NUMBER.findall(text))) for text in (found, expected)]
    assert numbers[0] == pytest.approx(numbers[1], rel=1e-5)


@pytest.mark.parametrize("case", models.CASES)
def test_graph_and_values(torch, case):
    name, kind = models.CASES[case]
    recorded = RECORDED[case]
    model, samples = prepared(torch, name, kind)
    check_text(str(model.graph), recorded["prepared"])
    model, samples = converted(torch, name, kind)
    check_text(str(model.graph), recorded["converted"])
    torch.testing.assert_close(model(samples[0]), torch.tensor(recorded["output"]), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("case", models.QAT)
def test_training_values(torch, case):
    name, kind = models.QAT[case]
    model, samples = converted(torch, name, kind, is_qat=True)
    expected = torch.tensor(RECORDED[f"qat-{case}"]["output"])
    torch.testing.assert_close(model(samples[0]), expected, rtol=1e-3, atol=1e-3)
    operators = {str(n.target) for n in model.graph.nodes if n.op == "call_function"}
    assert "aten.batch_norm.default" not in operators
