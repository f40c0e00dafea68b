"""Quantized weights in functions: gradients, writes, views, copies, conversions, and arguments that must not be lost."""

from __future__ import annotations

import numpy as np
import pytest


def layer_of(torch, config, inputs=32, outputs=16, bias=True):
    import teletensor.torchao.quantization as q

    rng = np.random.default_rng(3)
    made = torch.nn.Linear(inputs, outputs, bias=bias)
    with torch.no_grad():
        made.weight.copy_(torch.tensor(rng.standard_normal((outputs, inputs)).astype(np.float32)))
    q.quantize_(made, config)
    return made


def configs(torch):
    import teletensor.torchao.quantization as q

    asymmetric = q.MappingType.ASYMMETRIC
    return {
        "int8": q.Int8WeightOnlyConfig(),
        "int8_group": q.Int8WeightOnlyConfig(granularity=q.PerGroup(16)),
        "int4_plain": q.Int4WeightOnlyConfig(group_size=32),
        "int4": q.IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=q.PerGroup(16)),
        "float8": q.Float8WeightOnlyConfig(),
        "int8_dynamic": q.Int8DynamicActivationInt8WeightConfig(),
        "int8_dynamic_asymmetric": q.Int8DynamicActivationInt8WeightConfig(act_mapping_type=asymmetric),
        "float8_dynamic": q.Float8DynamicActivationFloat8WeightConfig(),
    }


@pytest.mark.parametrize("rows", [3, 40])
@pytest.mark.parametrize("name", ["int8", "int8_group", "int4_plain", "int4", "float8"])
def test_gradients_of_activations(torch, name, rows):
    layer = layer_of(torch, configs(torch)[name])
    x = torch.randn(rows, 32).requires_grad_()
    (layer(x) * 2).sum().backward()
    expected = (2 * layer.weight.dequantize().sum(0)).expand(rows, 32)
    torch.testing.assert_close(x.grad, expected, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(layer.bias.grad, torch.full((16,), 2.0 * rows))


@pytest.mark.parametrize("name", ["int8_dynamic", "int8_dynamic_asymmetric", "float8_dynamic"])
def test_rounded_activations_have_no_gradients_and_the_bias_has(torch, name):
    layer = layer_of(torch, configs(torch)[name])
    x = torch.randn(3, 32).requires_grad_()
    layer(x).sum().backward()  # torchao: the gradient of x is None
    assert x.grad is None
    torch.testing.assert_close(layer.bias.grad, torch.full((16,), 3.0))
    assert not layer_of(torch, configs(torch)[name], bias=False)(x).requires_grad


WRITES = {
    "number": lambda torch, w: w.__setitem__(0, 0.0),
    "rows": lambda torch, w: w.__setitem__(slice(2, 4), torch.ones(2, 32)),
    "out": lambda torch, w: torch.add(torch.ones(16, 32), 1, out=w),
    "row": lambda torch, w: w[0].zero_(),
    "view": lambda torch, w: w.view(-1).zero_(),
    "transposed": lambda torch, w: w.t().zero_(),
    "chunk": lambda torch, w: w.chunk(2)[0].zero_(),
    "zero_": lambda torch, w: w.zero_(),
    "init": lambda torch, w: torch.nn.init.ones_(w),
}


@pytest.mark.parametrize("write", WRITES)
def test_writes_are_not_lost(torch, write):
    weight = layer_of(torch, configs(torch)["int8"]).weight
    with torch.no_grad(), pytest.raises(NotImplementedError, match="cannot write|no views"):
        WRITES[write](torch, weight)


@pytest.mark.parametrize("name", ["int8", "int4_plain", "int4", "float8"])
def test_data_of_a_weight_is_a_weight(torch, name):
    weight = layer_of(torch, configs(torch)[name]).weight
    assert type(weight.data) is type(weight) and not weight.data.requires_grad
    assert torch.equal(weight.data.dequantize(), weight.dequantize())


@pytest.mark.parametrize("name", ["int8", "int4_plain", "int4", "float8"])
def test_other_functions_return_ordinary_tensors(torch, name):
    weight = layer_of(torch, configs(torch)[name]).weight
    values, x = weight.dequantize(), torch.randn(2, 16)
    pairs = {"sum": (weight.sum(), values.sum()), "matmul": (x @ weight, x @ values), "product": (weight * 2, values * 2)}
    for found, expected in pairs.values():
        assert type(found) is torch.Tensor
        torch.testing.assert_close(found, expected)
    x = torch.randn(2, 32)
    by_name = torch.nn.functional.linear(input=x, weight=weight, bias=None)
    torch.testing.assert_close(by_name, torch.nn.functional.linear(x, weight))


def test_arguments_by_name_quantize_activations_too(torch):
    weight = layer_of(torch, configs(torch)["int8_dynamic"]).weight
    x = torch.randn(2, 32)
    assert torch.equal(torch.nn.functional.linear(x, weight=weight), torch.nn.functional.linear(x, weight))
    with pytest.raises(AssertionError, match="Unsupported input dtype"):
        torch.nn.functional.linear(x.to(torch.int64), weight)


def test_other_kinds_of_weights_are_not_copied(torch):
    import teletensor.torchao.quantization as q

    kinds = {
        **configs(torch), "tensor": q.Int8WeightOnlyConfig(granularity=q.PerTensor()),
        "int8_in_groups": q.IntxWeightOnlyConfig(weight_dtype=torch.int8, granularity=q.PerGroup(16)),
        "e5m2": q.Float8WeightOnlyConfig(weight_dtype=torch.float8_e5m2),
    }  # fmt: skip
    pairs = (
        ("int8", "int8_dynamic"), ("int8_dynamic_asymmetric", "int8_dynamic"), ("tensor", "int8"), ("int4", "int8_in_groups"),
        ("e5m2", "float8"), ("int8", "int8_group"),
    )  # fmt: skip
    for source, target in pairs:
        mine = layer_of(torch, kinds[target])
        before = mine.weight.dequantize()
        with pytest.raises(RuntimeError, match="copying the parameter"):
            mine.load_state_dict(layer_of(torch, kinds[source]).state_dict())
        assert torch.equal(mine.weight.dequantize(), before)


@pytest.mark.parametrize("name", ["int8", "int8_dynamic", "int4", "float8"])
def test_models_change_their_dtype(torch, name):
    model = torch.nn.Sequential(layer_of(torch, configs(torch)[name]))
    x = torch.randn(3, 32)
    expected = model(x)
    model.to(torch.bfloat16)
    assert model[0].weight.dtype == torch.bfloat16 and model[0].weight is model.state_dict(keep_vars=True)["0.weight"]
    result = model(x.to(torch.bfloat16))
    assert result.dtype == torch.bfloat16
    torch.testing.assert_close(result.to(torch.float32), expected, rtol=0.02, atol=0.3)


@pytest.mark.parametrize("rows", [3, 40])
def test_float16_does_not_overflow(torch, rows):
    layer = torch.nn.Linear(4096, 8, bias=False)
    with torch.no_grad():
        layer.weight.copy_(torch.full((8, 4096), 0.01))
    layer = layer.to(torch.float16)
    import teletensor.torchao.quantization as q

    q.quantize_(layer, q.Int8WeightOnlyConfig())
    result = layer(torch.ones(rows, 4096, dtype=torch.float16))  # the integers' sum is 4096 * 127
    torch.testing.assert_close(result.to(torch.float32), torch.full((rows, 8), 40.96), rtol=0.01, atol=0)


def test_scales_of_another_dtype_are_torchaos(torch):
    import teletensor.torchao.quantization as q

    config = q.IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=q.PerGroup(16), scale_dtype=torch.bfloat16)
    weight = torch.tensor(np.random.default_rng(3).standard_normal((16, 32)).astype(np.float32))
    found = layer_of(torch, config).weight
    assert found.scale.dtype == torch.bfloat16
    inverse = (1.0 / found.scale).to(torch.float32).repeat_interleave(16, dim=1)  # torchao divides in the scale's dtype
    assert torch.equal(found.qdata.to(torch.float32), (weight * inverse).round().clamp(-8, 7))


def test_names_of_parameters_and_layers_of_attention(torch):
    import teletensor.torchao.quantization as q

    config = q.Int8WeightOnlyConfig()

    def names(keys):
        model = torch.nn.Sequential(
            torch.nn.Linear(8, 8), torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Conv1d(1, 1, 1)), torch.nn.Embedding(4, 8)
        )
        q.quantize_(model, q.FqnToConfig(keys), filter_fn=None)
        return [n for n, p in model.named_parameters() if isinstance(p, q.Int8Tensor)]

    assert names({"0.weight": config}) == ["0.weight"]
    assert names({r"re:.*\.weight": config}) == ["0.weight", "1.0.weight", "1.1.weight", "2.weight"]
    assert names({"0": config, "0.weight": None}) == []
    assert names({"re:0.weight": None, "_default": config}) == ["1.0.weight"]
    assert names({r"re:1\..": config, "2": config}) == ["1.0.weight", "1.1.weight", "2.weight"]
    block = torch.nn.TransformerEncoderLayer(16, 2, 32)
    q.quantize_(block, config)
    assert [n for n, p in block.named_parameters() if isinstance(p, q.Int8Tensor)] == ["linear1.weight", "linear2.weight"]


def test_arguments_that_would_be_lost(torch):
    import teletensor.torchao.quantization as q

    table = torch.nn.Embedding(10, 8, max_norm=1.0)
    q.quantize_(table, q.IntxWeightOnlyConfig(torch.int8, q.PerGroup(4)), filter_fn=lambda m, _: isinstance(m, torch.nn.Embedding))
    with pytest.raises(NotImplementedError, match="max_norm"):
        table(torch.tensor([1]))
    point = torch.tensor([[5]], dtype=torch.int8)
    with pytest.raises(ValueError, match="ASYMMETRIC"):
        q.Int8StaticActivationInt8WeightConfig(torch.tensor([[0.1]]), point, granularity=q.PerTensor())
    with pytest.raises(ValueError, match="PerRow"):  # one scale per input would multiply the outputs
        q.Int8DynamicActivationInt8WeightConfig(granularity=[q.PerRow(), q.PerRow(0)])


@pytest.mark.parametrize("name", ["int8", "int4_plain", "int8_dynamic", "int8_dynamic_asymmetric", "float8_dynamic"])
def test_exported_and_compiled_layers_quantize_activations_too(torch, name):
    model = torch.nn.Sequential(layer_of(torch, configs(torch)[name]))
    x = torch.randn(3, 32)
    program = torch.export.export(model, (x,))
    assert torch.equal(program.module()(x), model(x))
    assert torch.equal(torch.compile(model)(x), model(x))
    assert torch.equal(torch.ops.aten.linear.default(x, model[0].weight, model[0].bias), model(x))


def test_positional_arguments_are_torchaos(torch):
    import teletensor.torchao.quantization as q

    symmetric = q.MappingType.SYMMETRIC
    assert q.Int8DynamicActivationInt8WeightConfig(symmetric, False, q.PerRow(), True).reduce_range is False
    assert q.Int8DynamicActivationInt8WeightConfig(symmetric, False, q.PerRow(), True, 2, True).reduce_range is True
    assert q.Int8StaticActivationInt8WeightConfig(None, None, q.PerRow(), symmetric, True, 1, True).reduce_range is True
    assert q.Int4WeightOnlyConfig(64, True, "plain").int4_packing_format == "plain"
    assert q.Float8WeightOnlyConfig(torch.float8_e5m2, True, 2, q.PerTensor()).granularity == q.PerTensor()
    keys = {"a": None}
    assert q.FqnToConfig(module_fqn_to_config=keys).fqn_to_config == keys
    with pytest.raises(ValueError, match="not equal"):
        q.FqnToConfig(keys, {"b": None})
    with pytest.raises(AssertionError, match="version"):
        q.quantize_(torch.nn.Linear(4, 4), q.Int8WeightOnlyConfig(version=1))


@pytest.mark.parametrize("rows", [3, 40])
@pytest.mark.parametrize("rounded", [False, True])
def test_zero_points_of_weights_count(torch, rows, rounded):
    import teletensor.torchao.quantization as q
    from teletensor.torchao.quantization.quantize_.workflows.int8.int8_tensor import QuantizeTensorToInt8Kwargs

    values, x = torch.rand(16, 32) + 1, torch.randn(rows, 32)
    options = QuantizeTensorToInt8Kwargs(q.PerRow()) if rounded else None
    weight = q.Int8Tensor.from_hp(values, q.PerRow(), q.MappingType.ASYMMETRIC, act_quant_kwargs=options)
    state = {n: getattr(weight, n) for n in ("qdata", "scale", "block_size", "dtype", "zero_point", "act_quant_kwargs")}
    other = q.Int8Tensor.from_hp(torch.randn(16, 32), q.PerRow(), act_quant_kwargs=options)
    torch.nn.functional.linear(x, other)
    for found in (weight, q.Int8Tensor(**state), other.copy_(weight)):
        result = torch.nn.functional.linear(x, found)
        torch.testing.assert_close(result, torch.nn.functional.linear(x, values), rtol=0.03, atol=0.3)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("group", [8, 32, 64])
@pytest.mark.parametrize("rows", [3, 40])
def test_4_bits_of_other_dtypes(torch, dtype, group, rows):
    import teletensor.torchao.quantization as q

    dtype = getattr(torch, dtype)
    layer = torch.nn.Linear(64, 16, bias=False).to(dtype)
    q.quantize_(layer, q.Int4WeightOnlyConfig(group_size=group))
    x = torch.randn(rows, 64).to(dtype)
    result = layer(x)
    assert result.dtype == dtype and layer.weight.dequantize().dtype == dtype
    expected = torch.nn.functional.linear(x.to(torch.float32), layer.weight.dequantize(torch.float32))
    torch.testing.assert_close(result.to(torch.float32), expected, rtol=0.02, atol=0.02)
