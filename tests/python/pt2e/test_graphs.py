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
    from teletensor.ao.quantization.quantizer import arm_inductor_quantizer, x86_inductor_quantizer, xnnpack_quantizer

    names = {name: getattr(quantizer, name) for name in quantizer.__all__}
    return {**names, **vars(arm_inductor_quantizer), **vars(x86_inductor_quantizer), **vars(xnnpack_quantizer)}


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


def canonical(text: str) -> str:
    """The text with copies of dequantize nodes named for what they dequantize: which user has which copy is arbitrary."""
    copies = dict(re.findall(r"%(dequantize\w+) : .*?args = \(%(\w+),", text))
    return re.sub(r"%(dequantize\w+)", lambda m: f"%of_{copies[m[1]]}", text)


def check_text(found: str, expected: str) -> None:
    """The same text, with equal numbers up to rounding. Exported poolings name their default padding here."""
    found, expected = canonical(found.replace("[2, 2], [0, 0], [1, 1])", "[2, 2])")), canonical(expected)
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


def test_dynamic_scales_follow_each_input(torch):
    model, samples = converted(torch, "mlp", "xnnpack-dynamic")
    reference = models.model(torch, "mlp")
    for scale in (0.01, 1.0, 100.0):
        x = samples[0] * scale
        error = (model(x) - reference(x)).abs().max() / reference(x).abs().max()
        assert float(error) < 0.05


def test_a_quantizer_of_a_user(torch):
    from teletensor.ao.quantization import MinMaxObserver
    from teletensor.ao.quantization.quantize_pt2e import convert_pt2e, prepare_pt2e
    from teletensor.ao.quantization.quantizer import (
        DerivedQuantizationSpec,
        FixedQParamsQuantizationSpec,
        QuantizationAnnotation,
        QuantizationSpec,
        Quantizer,
    )

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(8, 4)

        def forward(self, x):
            return torch.sigmoid(self.linear(x))

    class Mine(Quantizer):
        def annotate(self, model):
            observer = MinMaxObserver.with_args(eps=2**-12)
            spec = QuantizationSpec(torch.int8, observer, -128, 127, torch.per_tensor_affine)
            for node in model.graph.nodes:
                if node.target == torch.ops.aten.linear.default:
                    x, w, b = node.args

                    def derive(found):
                        scale = found[0].calculate_qparams()[0] * found[1].calculate_qparams()[0]
                        return scale, torch.zeros_like(scale, dtype=torch.int32)

                    limits = (-(2**31), 2**31 - 1)
                    bias = DerivedQuantizationSpec([(x, node), (w, node)], derive, torch.int32, *limits, torch.per_tensor_symmetric)
                    node.meta["quantization_annotation"] = QuantizationAnnotation({x: spec, w: spec, b: bias}, _annotated=True)
                if node.target == torch.ops.aten.sigmoid.default:
                    fixed = FixedQParamsQuantizationSpec(torch.uint8, 1 / 256, 0, 0, 255, torch.per_tensor_affine)
                    node.meta["quantization_annotation"] = QuantizationAnnotation(output_qspec=fixed, _annotated=True)
            return model

        def validate(self, model):
            self.validated = len(list(model.graph.nodes))

        def prepare_obs_or_fq_callback(self, model, edge_or_node_to_obs_or_fq):
            self.observers = len(edge_or_node_to_obs_or_fq)

    model, x, mine = Model(), torch.randn(16, 8), Mine()
    reference = model(x)
    ready = prepare_pt2e(torch.export.export(model, (x,)).module(), mine)
    ready(x)
    found = convert_pt2e(ready)
    assert mine.validated and mine.observers == 4
    result = found(x)
    torch.testing.assert_close(result, reference, rtol=0, atol=0.03)
    torch.testing.assert_close(result * 256, (result * 256).round())  # the fixed scale
    text = str(found.graph)
    assert text.count("quantize_per_tensor.default") >= 4 and "torch.int32" in text


def test_shared_specification_without_annotation_raises(torch):
    from teletensor.ao.quantization.quantize_pt2e import prepare_pt2e
    from teletensor.ao.quantization.quantizer import QuantizationAnnotation, Quantizer, SharedQuantizationSpec

    class Wrong(Quantizer):
        def annotate(self, model):
            x, node = next((n.args[0], n) for n in model.graph.nodes if n.target == torch.ops.aten.linear.default)
            node.meta["quantization_annotation"] = QuantizationAnnotation({x: SharedQuantizationSpec(x)})
            return model

        def validate(self, model):
            pass

    graph = torch.export.export(models.model(torch, "mlp"), (models.inputs(torch, "mlp")[0],)).module()
    with pytest.raises(ValueError, match="has no quantization annotation"):
        prepare_pt2e(graph, Wrong())


def test_module_names_and_types(torch):
    from teletensor.ao.quantization.quantize_pt2e import prepare_pt2e
    from teletensor.ao.quantization.quantizer.xnnpack_quantizer import (
        XNNPACKQuantizer,
        get_symmetric_quantization_config,
    )

    config = get_symmetric_quantization_config()
    x = models.inputs(torch, "mlp")[0]
    count = {}
    for kind, quantizer in {
        "name": XNNPACKQuantizer().set_module_name("second", config),
        "type": XNNPACKQuantizer().set_module_type(torch.nn.Linear, config),
        "operator": XNNPACKQuantizer().set_operator_type(torch.ops.aten.linear.default, config),
    }.items():
        graph = torch.export.export(models.model(torch, "mlp"), (x,)).module()
        ready = prepare_pt2e(graph, quantizer)
        count[kind] = sum(n.op == "call_module" for n in ready.graph.nodes)
    assert count["name"] == 3 and count["type"] == count["operator"] > 3


def test_training_and_evaluation_modes(torch):
    from teletensor.ao.quantization.pt2e import (
        allow_exported_model_train_eval,
        model_is_exported,
        move_exported_model_to_eval,
        move_exported_model_to_train,
    )

    net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout(0.5))
    x = torch.ones(64, 4)
    graph = torch.export.export(net.train(), (x,)).module()
    assert model_is_exported(graph) and not model_is_exported(net)
    assert not torch.equal(graph(x), graph(x))
    move_exported_model_to_eval(graph)
    torch.testing.assert_close(graph(x), net.eval()(x))
    move_exported_model_to_train(graph)
    assert (graph(x) == 0).any()
    with pytest.raises(NotImplementedError):
        prepared(torch, "mlp", "xnnpack")[0].eval()
    allow_exported_model_train_eval(graph).eval()
    torch.testing.assert_close(graph(x), net.eval()(x))


def test_training_improves_the_quantized_model(torch):
    from teletensor.ao.quantization.pt2e import move_exported_model_to_eval
    from teletensor.ao.quantization.quantize_pt2e import convert_pt2e

    model, samples = prepared(torch, "conv_bn", "xnnpack-channels", is_qat=True)
    target = torch.randn(2, 5)
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.2)
    losses = []
    for _ in range(30):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(samples[0]), target)
        loss.backward()
        optimizer.step()
        losses.append(float(loss))
    assert losses[-1] < losses[0] * 0.9
    move_exported_model_to_eval(model)
    trained = copy.deepcopy(model)(samples[0])
    torch.testing.assert_close(convert_pt2e(model)(samples[0]), trained, rtol=0, atol=0.05)


def test_concatenation_has_one_scale(torch):
    model, samples = converted(torch, "cat", "xnnpack-channels")
    quantized = [n for n in model.graph.nodes if "quantize_per_tensor" in str(n.target)]
    scales = {n.args[1] for n in quantized if str(n.args[0]) in ("conv2d", "conv2d_1", "cat")}
    assert len(scales) == 1
    torch.testing.assert_close(model(samples[0]), models.model(torch, "cat")(samples[0]), rtol=0, atol=0.03)
