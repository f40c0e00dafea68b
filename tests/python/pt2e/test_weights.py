"""quantize_(): the values of torchao, files, devices of names, and errors."""

from __future__ import annotations

import copy
import io
import pathlib
import pickle

import numpy as np
import pytest

DATA = pathlib.Path(__file__).parent / "data"


def recorded():
    return np.load(DATA / "weights.npz")


def configs(torch):
    import teletensor.torchao.quantization as q

    return {
        "int8": q.Int8WeightOnlyConfig(),
        "int8_tensor": q.Int8WeightOnlyConfig(granularity=q.PerTensor()),
        "int8_group": q.Int8WeightOnlyConfig(granularity=q.PerGroup(16)),
        "int8_dynamic": q.Int8DynamicActivationInt8WeightConfig(),
        "int8_dynamic_asymmetric": q.Int8DynamicActivationInt8WeightConfig(act_mapping_type=q.MappingType.ASYMMETRIC),
        "int8_static": q.Int8StaticActivationInt8WeightConfig(act_quant_scale=torch.tensor([[0.03]]), granularity=q.PerTensor()),
        "int4": q.IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=q.PerGroup(16)),
        "int3_axis": q.IntxWeightOnlyConfig(weight_dtype=torch.int3, mapping_type=q.MappingType.ASYMMETRIC),
        "int8_int4": q.Int8DynamicActivationIntxWeightConfig(weight_dtype=torch.int4, weight_granularity=q.PerGroup(16)),
        "float8": q.Float8WeightOnlyConfig(),
        "float8_group": q.Float8WeightOnlyConfig(granularity=q.PerGroup(16)),
    }


NAMES = (
    "int8 int8_tensor int8_group int8_dynamic int8_dynamic_asymmetric int8_static int4 int3_axis int8_int4 float8 float8_group"
).split()


def quantized(torch, name):
    from teletensor.torchao.quantization import quantize_

    data = recorded()
    layer = torch.nn.Linear(32, 24)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor(data["w"]))
        layer.bias.copy_(torch.tensor(data["b"]))
    quantize_(layer, configs(torch)[name])
    return layer, torch.tensor(data["x"]), data


@pytest.mark.parametrize("name", NAMES)
def test_values(torch, name):
    layer, x, data = quantized(torch, name)
    stored = layer.weight.qdata.to(torch.float32).numpy()
    np.testing.assert_array_equal(stored, data[f"{name}.data"])
    np.testing.assert_allclose(layer.weight.dequantize().numpy(), data[f"{name}.weight"], rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(layer(x).detach().numpy(), data[f"{name}.output"], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(torch.compile(layer)(x), layer(x))


@pytest.mark.parametrize("name", [*NAMES, "int4_plain", "float8_dynamic"])
def test_files_copies_and_outputs_near_float(torch, name):
    import teletensor.torchao.quantization as q

    x = torch.randn(3, 2, 32)
    layer = torch.nn.Sequential(torch.nn.Linear(32, 24), torch.nn.ReLU(), torch.nn.Linear(24, 32, bias=False))
    reference = layer(x)
    extra = {"int4_plain": q.Int4WeightOnlyConfig(group_size=8), "float8_dynamic": q.Float8DynamicActivationFloat8WeightConfig()}
    config = extra[name] if name in extra else configs(torch)[name]
    if name.endswith("group") or name in ("int4", "int8_int4"):
        layer = layer[:1]
        reference = layer(x)
    q.quantize_(layer, config)
    result = layer(x)
    assert float(q.compute_error(reference, result)) > (8 if "int3" in name else 15)
    file = io.BytesIO()
    torch.save(layer.state_dict(), file)
    file.seek(0)
    fresh = torch.nn.Sequential(*(copy.deepcopy(m) for m in layer))
    fresh.load_state_dict(torch.load(file), assign=True)
    assert torch.equal(fresh(x), result)
    assert torch.equal(copy.deepcopy(layer)(x), result)
    layer.load_state_dict(fresh.state_dict())
    assert torch.equal(layer(x), result)


def test_a_file_of_torchao(torch):
    import teletensor.torchao.quantization as q

    state = torch.load(DATA / "int8_dynamic.pt")
    data = recorded()
    assert isinstance(state["weight"], q.Int8Tensor) and state["weight"].act_quant_kwargs.granularity == q.PerRow()
    layer = torch.nn.Linear(32, 24)
    layer.load_state_dict(state, assign=True)
    np.testing.assert_allclose(layer(torch.tensor(data["x"])).detach().numpy(), data["int8_dynamic.output"], rtol=1e-4, atol=1e-5)


def test_hostile_attributes_of_weights(torch, monkeypatch):
    import teletensor.torchao.quantization as q

    monkeypatch.setattr(q.Int4Tensor, "_original", q.Int4Tensor._file_state, raising=False)

    layer, _, _ = quantized(torch, "int8")
    weight = layer.weight.detach()
    weight.qdata = torch.zeros(2, 2, dtype=torch.int8)  # another shape than the file says
    file = io.BytesIO()
    torch.save({"w": weight}, file)
    file.seek(0)
    with pytest.raises(Exception, match="expected data of shape"):
        torch.load(file)
    good = q.Int4Tensor.from_hp(torch.randn(4, 8), [1, 4])
    for change in ({"evil": 1}, {"qdata": 3}, {"block_size": [1, 3]}, {"scale": torch.zeros(1, 1)}):
        monkeypatch.setattr(q.Int4Tensor, "_file_state", lambda self, c=change: {**self._original(), **c})
        file = io.BytesIO()
        torch.save({"w": good}, file)
        file.seek(0)
        with pytest.raises(pickle.UnpicklingError):
            torch.load(file)


def test_primitives(torch):
    import teletensor.torchao.quantization as q
    from teletensor.torchao.quantization import quant_primitives

    data = recorded()
    w = torch.tensor(data["w"])
    for key in [k for k in data.files if k.startswith("affine.") and k.endswith(".scale")]:
        _, mapping, bits, _ = key.split(".")
        low, high = {"8": (-128, 127), "4": (-8, 7), "u4": (0, 15)}[bits]
        dtype = torch.uint8 if low == 0 else torch.int8
        scale, point = q.choose_qparams_affine(w, q.MappingType[mapping], (1, 8), dtype, low, high, 1e-6)
        values = q.quantize_affine(w, (1, 8), scale, point, dtype, low, high)
        back = q.dequantize_affine(values, (1, 8), scale, point, dtype, low, high)
        for part, found in {"scale": scale, "point": point, "values": values, "back": back}.items():
            np.testing.assert_allclose(found.numpy(), data[f"affine.{mapping}.{bits}.{part}"], rtol=1e-6)
    scale, point = quant_primitives.choose_qparams_affine_tinygemm(w, (1, 16))
    np.testing.assert_allclose(scale.numpy(), data["tinygemm.scale"], rtol=1e-6)
    np.testing.assert_allclose(point.numpy(), data["tinygemm.point"], rtol=1e-5, atol=1e-6)
    values = quant_primitives.quantize_affine_tinygemm(w, (1, 16), scale, point)
    np.testing.assert_array_equal(values.numpy(), data["tinygemm.values"])


def test_int4_weights_are_those_of_tinygemm(torch):
    import teletensor.torchao.quantization as q

    data = recorded()
    weight = q.Int4Tensor.from_hp(torch.tensor(data["w"]), [1, 16])
    scale, point = (data[f"tinygemm.{n}"].reshape(24, 2) for n in ("scale", "point"))
    expected = (data["tinygemm.values"].reshape(24, 2, 16) - 8.0) * scale[..., None] + point[..., None]
    np.testing.assert_allclose(weight.dequantize().numpy(), expected.reshape(24, 32), rtol=1e-5, atol=1e-6)
    assert weight.qdata.nbytes * 8 == 24 * 32 * 4


def test_filters_names_and_errors(torch):
    import teletensor.torchao.quantization as q

    def net():
        return torch.nn.ModuleDict({"a": torch.nn.Linear(8, 8), "b": torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Conv1d(1, 1, 1))})

    model = net()
    q.quantize_(model, q.int8_weight_only(), filter_fn=lambda m, name: isinstance(m, torch.nn.Linear) and name != "a")
    assert not isinstance(model["a"].weight, q.Int8Tensor) and isinstance(model["b"][0].weight, q.Int8Tensor)
    assert "Int8Tensor" in repr(model)
    model = net()
    q.quantize_(model, q.FqnToConfig({"re:b.*0": None, "_default": q.Int8WeightOnlyConfig()}), filter_fn=None)
    assert isinstance(model["a"].weight, q.Int8Tensor) and not isinstance(model["b"][0].weight, q.Int8Tensor)
    with pytest.raises(AssertionError, match="configuration"):
        q.quantize_(net(), lambda m: m)
    with pytest.raises(NotImplementedError, match="GPUs"):
        q.Int4WeightOnlyConfig(int4_packing_format="preshuffled")
    with pytest.raises(NotImplementedError, match="cannot write"):
        quantized(torch, "int8")[0].weight.add_(1)
    with pytest.raises(AssertionError, match="multiple"):
        q.quantize_(torch.nn.Linear(10, 4), q.Int8WeightOnlyConfig(granularity=q.PerGroup(4)))


def test_embedding_of_packed_rows(torch):
    import teletensor.torchao.quantization as q

    table = torch.nn.Embedding(10, 8)
    rows = table(torch.tensor([[1, 3]]))
    q.quantize_(table, q.IntxWeightOnlyConfig(torch.int8, q.PerGroup(4)), filter_fn=lambda m, _: isinstance(m, torch.nn.Embedding))
    found = table(torch.tensor([[1, 3]]))
    assert found.shape == (1, 2, 8)
    torch.testing.assert_close(found, rows, rtol=0, atol=0.02)


@pytest.mark.parametrize("name", ["int8", "int8_dynamic_asymmetric", "int4"])
def test_many_and_few_rows_are_equal(torch, name):
    import teletensor.torchao.quantization as q

    layer = torch.nn.Linear(64, 48)
    q.quantize_(layer, q.Int4WeightOnlyConfig(group_size=32) if name == "int4" else configs(torch)[name])
    x = torch.randn(40, 64)
    torch.testing.assert_close(layer(x), torch.cat([layer(x[:10]), layer(x[10:20]), layer(x[20:])]), rtol=1e-4, atol=1e-4)
