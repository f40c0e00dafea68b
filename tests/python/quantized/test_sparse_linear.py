"""torch.ao.nn.sparse.quantized: linear layers whose weights have blocks of zeros compute what other quantized layers do."""

import copy

import pytest


@pytest.fixture
def weight(torch):
    weight = torch.linspace(-3, 3, 8 * 16).view(8, 16)
    weight[:, 4:8] = 0
    return torch.quantize_per_tensor(weight, 0.05, 0, torch.qint8)


def test_static_layers(torch, weight):
    layer = torch.ao.nn.sparse.quantized.Linear(16, 8, 1, 4)
    bias = torch.linspace(-1, 1, 8)
    layer.set_weight_bias(weight, bias, 1, 4)
    layer.scale, layer.zero_point = 0.25, 60
    x = torch.quantize_per_tensor(torch.linspace(-2, 2, 48).view(3, 16), 0.03, 100, torch.quint8)
    expected = torch.ops.quantized.linear(x, torch.ops.quantized.linear_prepack(weight, bias), 0.25, 60)
    assert layer(x).int_repr().tolist() == expected.int_repr().tolist()
    other = torch.ao.nn.sparse.quantized.Linear(16, 8, 8, 1)
    other.load_state_dict(copy.deepcopy(layer.state_dict()))
    assert other(x).int_repr().tolist() == expected.int_repr().tolist() and other._weight_bias()[2:] == (1, 4)
    assert str(layer).startswith("SparseQuantizedLinear(in_features=16, out_features=8, scale=0.25, zero_point=60")
    with pytest.raises(NotImplementedError, match="Only QINT8"):
        torch.ao.nn.sparse.quantized.Linear(16, 8, 1, 4, dtype=torch.float16)
    with pytest.raises(AssertionError, match="must not be None"):
        layer.set_weight_bias(weight, bias, None, 4)


def test_dynamic_layers(torch, weight):
    layer = torch.ao.nn.sparse.quantized.dynamic.Linear(16, 8, 8, 1, bias=False)
    layer.set_weight_bias(weight, None, 8, 1)
    x = torch.linspace(-2, 2, 48).view(3, 16)
    expected = torch.ops.quantized.linear_dynamic(x, torch.ops.quantized.linear_prepack(weight, None))
    assert layer(x).tolist() == expected.tolist()
    other = torch.ao.nn.sparse.quantized.dynamic.Linear(16, 8, 1, 4)
    other.load_state_dict(copy.deepcopy(layer.state_dict()))
    assert other(x).tolist() == expected.tolist() and other.bias() is None
    with pytest.raises(AssertionError, match="expecting"):
        other.load_state_dict({**layer.state_dict(), "op_type": "sparse"})


def test_sparsified_models_are_converted(torch):
    quantization, pruning = torch.ao.quantization, torch.ao.pruning
    model = torch.nn.Sequential(torch.nn.Linear(16, 8), torch.nn.ReLU())
    sparsifier = pruning.WeightNormSparsifier(sparsity_level=0.5, sparse_block_shape=(1, 4), zeros_per_block=4)
    sparsifier.prepare(model, [{"tensor_fqn": "0.weight"}])
    sparsifier.step()
    sparsifier.squash_mask(params_to_keep=("sparse_block_shape",))
    model.qconfig = quantization.default_qconfig
    x = torch.linspace(-2, 2, 48).view(3, 16)
    observed = quantization.prepare(model)
    observed(x)
    layers = torch.ao.nn.sparse.quantized
    assert pruning.get_static_sparse_quantized_mapping() == {torch.nn.Linear: layers.Linear}
    converted = quantization.convert(observed, mapping=quantization.get_default_static_sparse_quant_module_mappings())
    assert type(converted[0]) is layers.Linear and converted[0]._weight_bias()[2:] == (1, 4)
    assert (converted[0].weight().int_repr() == 0).sum().item() >= 64
    quantized = torch.quantize_per_tensor(x, 4 / 255, 128, torch.quint8)
    torch.testing.assert_close(converted[0](quantized).dequantize(), model[0](x), atol=0.15, rtol=0)
    mapping = pruning.get_dynamic_sparse_quantized_mapping()
    assert mapping == quantization.get_default_dynamic_sparse_quant_module_mappings() == {torch.nn.Linear: layers.dynamic.Linear}
    with layers.LinearBlockSparsePattern(8, 1):
        dynamic = quantization.quantize_dynamic(torch.nn.Sequential(torch.nn.Linear(16, 8)), {torch.nn.Linear}, mapping=mapping)
    assert type(dynamic[0]) is layers.dynamic.Linear and dynamic[0]._weight_bias()[2:] == (8, 1)
    assert layers.LinearBlockSparsePattern.block_size() == (1, 4)
    with pytest.raises(AssertionError, match="Invalid linear block sparse pattern"):
        layers.LinearBlockSparsePattern(2, 2)
