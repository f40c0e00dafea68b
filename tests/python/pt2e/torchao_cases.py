"""Models of torchao.quantization.qat, NF4 and fixed scales: results, gradients, weights. record_torchao.py stores torchao's values.

Each case is a function of the modules torch, torchao.quantization and torchao.quantization.qat.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable
from typing import Any

CASES: dict[str, Callable] = {}


def case(function: Callable) -> Callable:
    CASES[function.__name__] = function
    return function


def pseudo(torch: Any, *size: int, step: int = 7919) -> Any:
    count = 1
    for n in size:
        count *= n
    return ((torch.arange(count) * step % 1009).to(torch.float32) / 504.5 - 1).reshape(size)


def layers(torch: Any, bias: bool = True) -> Any:
    model = torch.nn.Sequential(torch.nn.Linear(64, 16, bias=bias), torch.nn.ReLU(), torch.nn.Linear(16, 8, bias=bias))
    with torch.no_grad():
        for i, p in enumerate(model.parameters()):
            p.copy_(pseudo(torch, *p.shape, step=7919 + 2 * i) * 0.3)
    return model


def trained(torch: Any, model: Any, x: Any) -> list:
    """The result, and the gradients of the parameters."""
    found = model(x)
    (found * pseudo(torch, *found.shape, step=131).to(found.dtype)).sum().backward()
    return [found, *(p.grad for p in model.parameters())]


def prepared_and_converted(torch: Any, quantization: Any, qat: Any, base: Any) -> list:
    model, x = layers(torch), pseudo(torch, 5, 64, step=53) * 2
    quantization.quantize_(model, qat.QATConfig(base, step="prepare"))
    values = [type(model[0]).__name__, *trained(torch, model, x)]
    quantization.quantize_(model, qat.QATConfig(step="convert"))
    return [*values, type(model[0]).__name__, model(x)]


@case
def intx_weight_only(torch, quantization, qat):
    return prepared_and_converted(torch, quantization, qat, quantization.IntxWeightOnlyConfig(torch.int4, quantization.PerGroup(8)))


@case
def int8_dynamic_intx(torch, quantization, qat):
    base = quantization.Int8DynamicActivationIntxWeightConfig(torch.int4, quantization.PerGroup(8))
    return prepared_and_converted(torch, quantization, qat, base)


@case
def int8_dynamic_intx_converted(torch, quantization, qat):
    base = quantization.Int8DynamicActivationIntxWeightConfig(torch.int4, quantization.PerGroup(8))
    model = layers(torch)
    quantization.quantize_(model, qat.QATConfig(base))
    quantization.quantize_(model, qat.QATConfig(base, step="convert"))
    return [type(model[0].weight).__name__.rpartition(".")[2], model[0].weight.dequantize(), model(pseudo(torch, 5, 64, step=53))]


@case
def int4_weight_only(torch, quantization, qat):
    return prepared_and_converted(torch, quantization, qat, quantization.Int4WeightOnlyConfig(group_size=16))


@case
def float8_dynamic(torch, quantization, qat):
    return prepared_and_converted(
        torch, quantization, qat, quantization.Float8DynamicActivationFloat8WeightConfig(granularity=quantization.PerRow())
    )


@case
def configurations(torch, quantization, qat):
    values = []
    x = pseudo(torch, 4, 16, step=97)
    for config in (
        qat.IntxFakeQuantizeConfig(torch.int8, "per_token", is_symmetric=False),
        qat.IntxFakeQuantizeConfig(torch.int8, "per_channel"),
        qat.IntxFakeQuantizeConfig(torch.int4, group_size=8),
        qat.IntxFakeQuantizeConfig(torch.int2, "per_group", group_size=4, is_symmetric=True),
        qat.IntxFakeQuantizeConfig(torch.uint4, group_size=8, is_symmetric=False, zero_point_precision=torch.float32,
                                   zero_point_domain=quantization.ZeroPointDomain.FLOAT),
        qat.IntxFakeQuantizeConfig(torch.int4, group_size=8, is_dynamic=False),
        qat.Float8FakeQuantizeConfig(torch.float8_e5m2, quantization.PerTensor()),
        qat.Float8FakeQuantizeConfig(granularity=quantization.PerRow(), hp_value_ub=0.5),
    ):  # fmt: skip
        fake = qat.FakeQuantizerBase.from_config(config)
        a = x.clone().requires_grad_()
        found = fake(a)
        (found * pseudo(torch, 4, 16, step=131)).sum().backward()
        values += [found, a.grad, fake(x * 2)]
        fake.enabled = False
        values.append(fake(x) is x)
    return values


@case
def range_learning(torch, quantization, qat):
    model, x = layers(torch), pseudo(torch, 5, 64, step=53)
    config = qat.IntxFakeQuantizeConfig(torch.int4, group_size=8, is_dynamic=False, range_learning=True)
    quantization.quantize_(model, qat.QATConfig(weight_config=config))
    qat.initialize_fake_quantizers(model, (x,))
    values = [*trained(torch, model, x), sorted(name for name, _ in model.named_parameters())]
    with torch.no_grad():
        model[0].weight_fake_quantizer.scale.mul_(1.25)
    values.append(model(x))
    base = quantization.IntxWeightOnlyConfig(torch.int4, quantization.PerGroup(8))
    quantization.quantize_(model, qat.QATConfig(base, step="convert"))
    return [*values, model[0].weight.dequantize(), model[2].weight.dequantize(), model(x)]


@case
def embedding(torch, quantization, qat):
    model = torch.nn.Sequential(torch.nn.Embedding(10, 16, padding_idx=3))
    with torch.no_grad():
        model[0].weight.copy_(pseudo(torch, 10, 16))
    ids = torch.tensor([[1, 3, 9], [0, 1, 1]])
    config = qat.QATConfig(weight_config=qat.IntxFakeQuantizeConfig(torch.int4, group_size=8))
    quantization.quantize_(model, config, filter_fn=lambda m, _: isinstance(m, torch.nn.Embedding))
    values = [type(model[0]).__name__, *trained(torch, model, ids)]
    quantization.quantize_(model, qat.QATConfig(step="convert"), filter_fn=lambda m, _: isinstance(m, qat.FakeQuantizedEmbedding))
    quantizer = qat.Int4WeightOnlyEmbeddingQATQuantizer(group_size=8)
    model = quantizer.prepare(model)
    values.append(model(ids))
    model = quantizer.convert(model)
    return [*values, type(model[0]).__name__, model(ids), *model.state_dict().values()]


@case
def int8_dynamic_int4_quantizer(torch, _quantization, qat):
    quantizer = qat.ComposableQATQuantizer([qat.Int8DynActInt4WeightQATQuantizer(groupsize=16)])
    model, x = quantizer.prepare(layers(torch)), pseudo(torch, 5, 64, step=53)
    values = [type(model[0]).__name__, *trained(torch, model, x)]
    model = quantizer.convert(model)
    return [*values, type(model[0]).__name__, model(x), *model.state_dict().values()]


@case
def int4_weight_only_quantizer(torch, _quantization, qat):
    model = torch.nn.Sequential(torch.nn.Linear(64, 16, bias=False)).to(torch.bfloat16)
    with torch.no_grad():
        model[0].weight.copy_(pseudo(torch, 16, 64))
    quantizer = qat.Int4WeightOnlyQATQuantizer(groupsize=32, inner_k_tiles=2)
    x = pseudo(torch, 5, 64, step=53).to(torch.bfloat16)
    model = quantizer.prepare(model)
    values = [type(model[0]).__name__, *trained(torch, model, x)]
    model = quantizer.convert(model)
    return [*values, type(model[0]).__name__, model(x), model[0].scales_and_zeros]


@case
def older_names(torch, quantization, qat):
    model, x = layers(torch), pseudo(torch, 5, 64, step=53)
    activation = qat.FakeQuantizeConfig(torch.int8, "per_token", is_symmetric=False)
    weight = qat.FakeQuantizeConfig(torch.int4, group_size=8)
    quantization.quantize_(model, qat.IntXQuantizationAwareTrainingConfig(activation, weight))
    values = trained(torch, model, x)
    quantization.quantize_(model, qat.FromIntXQuantizationAwareTrainingConfig())
    return [*values, type(model[0]).__name__, model(x)]


@case
def float8_activations_and_int4_weights(torch, _quantization, qat):
    model, x = qat.Float8ActInt4WeightQATQuantizer(group_size=16).prepare(layers(torch)), pseudo(torch, 5, 64, step=53)
    return trained(torch, model, x)


@case
def nf4(torch, quantization, _qat):
    values = []
    for dtype in (torch.float32, torch.bfloat16):
        w = (pseudo(torch, 32, 64) * pseudo(torch, 32, 1, step=31)).to(dtype)
        q = quantization.to_nf4(w, 32, 16)
        x = pseudo(torch, 5, 64, step=53).to(dtype).requires_grad_()
        found = torch.nn.functional.linear(x, q, torch.ones(32, dtype=dtype))
        (found * pseudo(torch, 5, 32, step=131).to(dtype)).sum().backward()
        values += [
            q.quantized_data, q.quantized_scalers, q.quantization_factor, q.scaler_mean, q.get_original_weight(), list(q.shape), found,
            x.grad, q.to(torch.float32), type(q).__name__,
        ]  # fmt: skip
    return values


@case
def nf4_weight_only(torch, quantization, _qat):
    api = importlib.import_module(f"{quantization.__name__.rpartition('.')[0]}.prototype._nf4tensor_api")
    model, config = layers(torch), api.NF4WeightOnlyConfig()
    config.block_size, config.scaler_block_size = 16, 4
    quantization.quantize_(model, config)
    return [type(model[0].weight).__name__.rpartition(".")[2], model(pseudo(torch, 5, 64, step=53))]


@case
def float8_static(torch, quantization, _qat):
    api = importlib.import_module(f"{quantization.__name__.rpartition('.')[0]}.prototype.quantization.quant_api")
    model, x = layers(torch), pseudo(torch, 5, 64, step=53) * 2
    quantization.quantize_(model, api.Float8StaticActivationFloat8WeightConfig(step="prepare"))
    values = [type(model[0]).__name__, model(x), model(x * 0.5)]
    observed = api.Float8ObservedLinear
    step = api.Float8StaticActivationFloat8WeightConfig(step="convert")
    quantization.quantize_(model, step, filter_fn=lambda m, _: isinstance(m, observed))
    model2 = layers(torch)
    quantization.quantize_(model2, api.Float8StaticActivationFloat8WeightConfig(act_quant_scale=torch.tensor([[0.01]])))
    return [*values, type(model[0]).__name__, model(x), model2(x * 3)]


@case
def errors(torch, quantization, qat):
    names = []
    intx, base = qat.IntxFakeQuantizeConfig, quantization.IntxWeightOnlyConfig(torch.int4, quantization.PerGroup(8))
    for call in (
        lambda: intx(torch.float32, "per_token"), lambda: intx(torch.int4), lambda: intx(torch.int4, "per_group"),
        lambda: intx(torch.int4, "row"), lambda: intx(torch.int4, "per_token", group_size=8),
        lambda: intx(torch.int4, quantization.PerAxis(1)), lambda: intx(torch.int4, quantization.PerRow()),
        lambda: intx(torch.int4, group_size=8, mapping_type=quantization.MappingType.SYMMETRIC, is_symmetric=True),
        lambda: intx(torch.int4, group_size=8, range_learning=True), lambda: intx(torch.int4, group_size=8).group_size,
        lambda: intx(torch.int4, "per_channel").group_size, lambda: qat.QATConfig(), lambda: qat.QATConfig(base, step="train"),
        lambda: qat.QATConfig(base, weight_config=intx(torch.int4, group_size=8)),
        lambda: qat.QATConfig(weight_config=intx(torch.int4, group_size=8), step="convert"),
        lambda: qat.QATConfig(intx(torch.int4, group_size=8)), lambda: qat.Float8FakeQuantizeConfig(torch.float32),
        lambda: qat.Float8FakeQuantizeConfig(granularity=quantization.PerRow),
        lambda: qat.FakeQuantizedLinear(10, 4, weight_config=intx(torch.int4, group_size=8)),
        lambda: qat.FakeQuantizerBase.from_config(intx(torch.int4, group_size=8))(torch.ones(3)),
        lambda: qat.FakeQuantizerBase.from_config(intx(torch.int4, group_size=8))(torch.ones(3, 9)),
        lambda: qat.FakeQuantizerBase.from_config(intx(torch.int8, "per_token"))(torch.ones(3, 9)),
        lambda: quantization.to_nf4(torch.ones(3, 5)), lambda: quantization.to_nf4(torch.ones(4, 4, 4)),
        lambda: quantization.to_nf4(torch.ones(64), 32, 4), lambda: quantization.to_nf4(torch.ones(64), 32, 2) is None,
        lambda: quantization.quantize_(torch.nn.Sequential(torch.nn.ReLU()), qat.QATConfig(base), filter_fn=lambda *_: True),
        lambda: qat.FakeQuantizerBase.from_config(intx(torch.int4, group_size=8, is_dynamic=False, range_learning=True))(torch.ones(3, 8)),
    ):  # fmt: skip
        try:
            call()
            names.append(None)
        except Exception as e:  # noqa: BLE001 - any error is a result
            names.append(type(e).__name__)
    return names


def plain(value: Any) -> Any:
    """A value for JSON; tensors become their dtype, sizes and values."""
    if hasattr(value, "detach"):
        value = value.detach()
        return [str(value.dtype).rpartition(".")[2], list(value.shape), value.float().reshape(-1).tolist()]
    return [plain(v) for v in value] if isinstance(value, (list, tuple)) else value


def value_of(name: str, torch: Any, quantization: Any, qat: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return plain(CASES[name](torch, quantization, qat))
