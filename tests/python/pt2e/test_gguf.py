"""GGUF files: values bit for bit those of the gguf package, packed weights, and hostile files."""

from __future__ import annotations

import struct

import numpy as np
import pytest

gguf = pytest.importorskip("gguf")

# The bytes of each block that are float16 numbers, which random bytes would make NaN.
SCALES = {
    "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "Q2_K": [80, 82], "Q3_K": [108], "Q4_K": [0, 2],
    "Q5_K": [0, 2], "Q6_K": [208],
}  # fmt: skip


def blocks(name, shape, rng):
    kind = gguf.GGMLQuantizationType[name]
    elements, nbytes = gguf.GGML_QUANT_SIZES[kind]
    raw = rng.integers(0, 256, (int(np.prod(shape)) // elements, nbytes), dtype=np.uint8)
    for place in SCALES[name]:
        raw[:, place : place + 2] = rng.standard_normal((len(raw), 1)).astype(np.float16).view(np.uint8)
    return raw.reshape(*shape[:-1], -1), kind


def write(path, tensors, **options):
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_uint32("llama.context_length", 7)
    writer.add_array("tokenizer.ggml.tokens", ["a", "bb", "ö"])
    writer.add_float32("llama.scale", 0.5)
    for name, (data, kind) in tensors.items():
        writer.add_tensor(name, data, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_values_are_those_of_the_package(torch, tmp_path):
    from teletensor.ao import gguf as ours

    rng = np.random.default_rng(0)
    tensors = {name: blocks(name, (6, 512), rng) for name in SCALES}
    plain = rng.standard_normal((6, 512)).astype(np.float32)
    bf16 = gguf.GGMLQuantizationType.BF16
    tensors |= {"F32": (plain, None), "F16": (plain.astype(np.float16), None), "BF16": (gguf.quants.quantize(plain, bf16), bf16)}
    path = write(tmp_path / "all.gguf", tensors)
    file = ours.GGUFFile(path)
    assert file.metadata["llama.context_length"] == 7 and file.metadata["tokenizer.ggml.tokens"] == ["a", "bb", "ö"]
    assert file.metadata["llama.scale"] == 0.5 and file.tensors["Q4_K"].shape == (6, 512)
    values, packed = ours.load(path), ours.load(path, packed=True)
    x = torch.randn(2, 3, 512)
    for name, (data, kind) in tensors.items():
        expected = gguf.quants.dequantize(data, kind) if kind is not None else data.astype(np.float32)
        np.testing.assert_array_equal(values[name].float().numpy(), expected.astype(np.float32), err_msg=name)
        if name in SCALES:
            weight = packed[name]
            np.testing.assert_array_equal(weight.dequantize().numpy(), expected, err_msg=name)
            product = torch.nn.functional.linear(x, weight)
            torch.testing.assert_close(product, torch.nn.functional.linear(x, values[name]), rtol=1e-4, atol=1e-3)
    rows = torch.tensor([[1, 5], [0, 1]])
    for name in ("Q4_K", "Q6_K", "Q5_0"):
        found = torch.nn.functional.embedding(rows, packed[name])
        assert torch.equal(found, torch.nn.functional.embedding(rows, values[name]))
    kinds = {name: type(packed[name]).__name__ for name in SCALES}
    assert kinds["Q4_0"] == "Int4Tensor" and kinds["Q8_0"] == "Int8Tensor" and kinds["Q4_K"] == "GGUFTensor"


def test_a_model_from_a_file(torch, tmp_path):
    from teletensor.ao import gguf as ours

    rng = np.random.default_rng(1)
    quantize, kinds = gguf.quants.quantize, gguf.GGMLQuantizationType
    weight = rng.standard_normal((8, 64)).astype(np.float32)
    path = write(tmp_path / "m.gguf", {"out.weight": (quantize(weight, kinds.Q8_0), kinds.Q8_0), "out.bias": (weight[:, 0].copy(), None)})
    model = torch.nn.ModuleDict({"out": torch.nn.Linear(64, 8)})
    model.load_state_dict(ours.load(path, packed=True), assign=True)
    x = torch.randn(3, 64)
    expected = x.numpy() @ weight.T + weight[:, 0]
    np.testing.assert_allclose(model["out"](x).detach().numpy(), expected, atol=0.2)
    assert ours.load(path, names=lambda n: "b" if n.endswith("bias") else None).keys() == {"b"}


def header(entries=b"", count=0, tensors=b"", number=0, version=3):
    return b"GGUF" + struct.pack("<IQQ", version, number, count) + entries + tensors


def text(value):
    return struct.pack("<Q", len(value)) + value


def listed(name=b"w", dims=(32,), kind=8, offset=0):
    return text(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, kind, offset)


HOSTILE = {
    "magic": b"GGML" + bytes(20),
    "empty": b"",
    "version": header(version=1),
    "big endian": b"GGUF" + struct.pack(">IQQ", 3, 0, 0),
    "many tensors": header(number=2**60),
    "many entries": header(count=2**60),
    "truncated": header(count=1),
    "long text": header(text(b"k")[:8].replace(b"\x01", b"\xff") + b"k", 1),
    "unknown type": header(text(b"k") + struct.pack("<I", 99), 1),
    "huge array": header(text(b"k") + struct.pack("<IIQ", 9, 0, 2**40), 1),
    "array of arrays": header(text(b"k") + struct.pack("<I", 9) + struct.pack("<IQ", 9, 1) * 50, 1),
    "twice": header((text(b"k") + struct.pack("<IB", 0, 1)) * 2, 2),
    "alignment": header(text(b"general.alignment") + struct.pack("<II", 4, 3), 1),
    "alignment of text": header(text(b"general.alignment") + struct.pack("<I", 8) + text(b"32"), 1),
    "many dims": header(tensors=listed(dims=(32,) * 9), number=1),
    "unknown format": header(tensors=listed(kind=200), number=1),
    "odd row": header(tensors=listed(dims=(33,)), number=1),
    "outside": header(tensors=listed(dims=(32, 2**30)), number=1),
    "overflow": header(tensors=listed(dims=(2**32, 2**32, 2**32)), number=1),
    "zero times huge": header(tensors=listed(dims=(32, 0, 2**62)), number=1),
    "unaligned": header(tensors=listed(offset=1), number=1) + bytes(200),
    "overlap": header(tensors=listed(b"a", (64,), 0) + listed(b"b", (64,), 0, offset=32), number=2) + bytes(600),
    "the same bytes twice": header(tensors=listed(b"a", (64,), 0) + listed(b"b", (64,), 0), number=2) + bytes(600),
    "two of a name": header(tensors=listed() * 2, number=2) + bytes(200),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files(torch, tmp_path, name):
    from teletensor.ao import gguf as ours

    path = tmp_path / "bad.gguf"
    path.write_bytes(HOSTILE[name])
    with pytest.raises(ours.GGUFError):
        ours.load(path)


def test_random_damage(torch, tmp_path):
    from teletensor.ao import gguf as ours

    rng = np.random.default_rng(2)
    good = write(tmp_path / "good.gguf", {"w": blocks("Q4_K", (2, 256), rng)}).read_bytes()
    path = tmp_path / "damaged.gguf"
    for _ in range(300):
        data = bytearray(good)
        for place in rng.integers(0, 200, 3):
            data[place] = int(rng.integers(0, 256))
        path.write_bytes(data[: int(rng.integers(20, len(good) + 1))])
        try:
            ours.GGUFFile(path)
        except ours.GGUFError:
            pass


def test_layers_read_only_their_rows(torch, tmp_path, monkeypatch):
    from teletensor.ao.gguf import GGUFTensor, load

    rng = np.random.default_rng(0)
    path = tmp_path / "table.gguf"
    tensor = blocks("Q4_K", (8, 256), rng)
    write(path, {"w": tensor})
    values, weight = load(path)["w"], load(path, packed=True)["w"]
    table = torch.nn.Embedding(8, 256)
    table.weight = torch.nn.Parameter(weight, requires_grad=False)
    sizes = []
    original = GGUFTensor.dequantize
    monkeypatch.setattr(GGUFTensor, "dequantize", lambda self, *a: (sizes.append(self.shape[0]), original(self, *a))[1])
    assert torch.equal(table(torch.tensor([[1, 7]])), values[torch.tensor([[1, 7]])]) and sizes == [2]
    x = torch.randn(3, 256).requires_grad_()
    torch.nn.functional.linear(x, weight).sum().backward()
    torch.testing.assert_close(x.grad, values.sum(0).expand(3, 256))
