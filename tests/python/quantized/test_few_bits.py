"""Tensors of 4 and 2 bits: files, layers with tables of 4 bits, and what cannot be done with them."""

import io

import pytest


@pytest.fixture
def table(torch):
    torch.manual_seed(0)
    x = torch.randn(6, 8)
    observer = torch.ao.quantization.default_float_qparams_observer_4bit()
    observer(x)
    return torch.quantize_per_channel(x, *observer.calculate_qparams(), 0, torch.quint4x2)


def test_files(torch, table):
    one = torch.quantize_per_tensor(torch.arange(7.0), 2.0, 0, torch.quint2x4)
    file = io.BytesIO()
    torch.save({"table": table, "one": one}, file)
    found = torch.load(io.BytesIO(file.getvalue()))
    assert found["table"].dtype is torch.quint4x2 and found["one"].dtype is torch.quint2x4
    assert torch.equal(found["table"].dequantize(), table.dequantize()) and str(found["table"]) == str(table)
    assert found["one"].dequantize().tolist() == one.dequantize().tolist() == [0.0, 0.0, 2.0, 4.0, 4.0, 4.0, 6.0]


@pytest.mark.parametrize(
    ("offset", "size", "stride"),
    [(1, (6, 8), (8, 1)), (0, (6, 8), (1, 6)), (0, (60, 8), (8, 1)), (0, (0, 2**62, 2**62), (2**62, 2**62, 1)), (0, (6, 8), (8,))],
)
def test_damaged_files_are_refused(torch, table, offset, size, stride):
    from teletensor.serialization import _rebuild
    from teletensor.serialization._errors import LoadError
    from teletensor.storage import TypedStorage

    storage = TypedStorage(wrap_storage=table.untyped_storage(), dtype=torch.quint4x2)
    parameters = (torch.per_tensor_affine, 1.0, 0)
    assert _rebuild.rebuild_qtensor(storage, 0, (6, 8), (8, 1), parameters, False, None).shape == (6, 8)
    with pytest.raises(LoadError):
        _rebuild.rebuild_qtensor(storage, offset, size, stride, parameters, False, None)
    with pytest.raises(LoadError):
        _rebuild._view(storage, 0, (3,), (1,))


@pytest.mark.parametrize("kind", ["Embedding", "EmbeddingBag"])
def test_a_layer_with_a_table_of_4_bits(torch, kind):
    q = torch.ao.quantization
    torch.manual_seed(0)
    model = torch.nn.Sequential(getattr(torch.nn, kind)(50, 32, **({"mode": "sum"} if kind == "EmbeddingBag" else {})))
    model[0].qconfig = q.float_qparams_weight_only_qconfig_4bit
    quantized = q.convert(q.prepare(model))
    indices = torch.tensor([[1, 49, 7], [0, 3, 1]])
    expected, found = model(indices), quantized(indices)
    assert "quint4x2" in repr(quantized)
    assert 0 < float((found - expected).abs().max()) < 0.6 * (3 if kind == "EmbeddingBag" else 1)
    file = io.BytesIO()
    torch.save(quantized.state_dict(), file)
    table = quantized[0]._packed_params._packed_weight.unpack()
    assert table.untyped_storage().nbytes() == 50 * 32 // 2
    other = q.convert(q.prepare(model))
    other.load_state_dict(torch.load(io.BytesIO(file.getvalue())))
    assert torch.equal(other(indices), found)


def test_what_writes_is_refused(torch, table):
    for write in (lambda: table.copy_(torch.zeros(6, 8)), lambda: table.fill_(1), lambda: table.__setitem__(0, 1.0)):
        with pytest.raises(NotImplementedError):
            write()
    assert table[2].shape == (8,) and torch.equal(table[2].dequantize(), table.dequantize()[2])
