"""teletensor.load of damaged, hostile or foreign files: always LoadError, with memory use limited by the file's
contents."""

from __future__ import annotations

import io
import itertools
import json
import struct
import tracemalloc
import zipfile

import pytest

from tests.fuzz.load_fuzz import archive_of, entries_of, fault_of, mutations, seeds

MIB = 1 << 20
TENSOR = {"tensor": 0, "requires_grad": False, "type": "Tensor", "dtype": "float32", "shape": [2]}


def file_of(value, *tensors: bytes, **header) -> bytes:
    structure = {"format": "teletensor", "version": 1, "value": value, **header}
    return archive_of([("structure.json", json.dumps(structure).encode()), *((f"tensor/{i}", t) for i, t in enumerate(tensors))])


def refuse(torch, data: bytes, match: str = "load") -> None:
    with pytest.raises(torch.serialization.LoadError, match=match) as raised:
        torch.load(io.BytesIO(data))
    assert str(raised.value).startswith("[load] ") and isinstance(raised.value, RuntimeError)


def test_mutations(torch):
    inputs = itertools.islice(mutations(seeds(torch), seed=7), 3000)
    assert [fault for data in inputs if (fault := fault_of(torch, data))] == []


def test_truncated(torch):
    data = seeds(torch)[2]
    for length in range(len(data)):
        refuse(torch, data[:length])


@pytest.mark.parametrize("entry", ["structure.json", "tensor/0"])
def test_compressed_entries(torch, entry):
    """A zip bomb: 64 MB in 64 KB."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        if entry != "structure.json":
            structure = {"format": "teletensor", "version": 1, "value": {**TENSOR, "shape": [1 << 24]}}
            archive.writestr("structure.json", json.dumps(structure), zipfile.ZIP_STORED)
        with archive.open(entry, "w", force_zip64=True) as file:
            for _ in range(64):
                file.write(bytes(MIB))
    tracemalloc.start()
    try:
        refuse(torch, out.getvalue(), "neither compressed")
        assert tracemalloc.get_traced_memory()[1] < 4 * MIB
    finally:
        tracemalloc.stop()


def test_sizes_are_compared_before_they_are_used(torch):
    for shape in ([3], [1 << 40], [1 << 62, 1 << 62, 0], [-1, -2], [2.0], "2", [True, 2], [10**40], [1] * 65, [[2]]):
        refuse(torch, file_of({**TENSOR, "shape": shape}, bytes(8)), "damaged")
    assert torch.load(io.BytesIO(file_of(TENSOR, bytes(8)))).tolist() == [0, 0]


def test_a_tensor_is_loaded_once(torch):
    """Otherwise a million references to one large tensor would exhaust the engine's memory."""
    refuse(torch, file_of({"list": [TENSOR, TENSOR]}, bytes(8)), "not used before")


def test_declared_sizes_beyond_the_file(torch):
    data = file_of(TENSOR, bytes(8))
    place = data.index(b"PK\x01\x02", data.index(b"PK\x01\x02") + 1) + 20  # the sizes of tensor/0
    for size in (2**31, 2**32 - 2):
        refuse(torch, data[:place] + struct.pack("<II", size, size) + data[place + 8 :], "damaged")


def test_overlapping_entries(torch):
    data = file_of({"list": [TENSOR, {**TENSOR, "tensor": 1}]}, bytes(8), bytes(8))
    first = data.rindex(b"PK\x01\x02", 0, data.rindex(b"PK\x01\x02"))
    last = data.rindex(b"PK\x01\x02")
    offset = data[first + 42 : first + 46]
    refuse(torch, data[: last + 42] + offset + data[last + 46 :], "overlap")


def test_names(torch):
    entries = entries_of(file_of(TENSOR, bytes(8)))
    refuse(torch, archive_of([*entries, entries[1]]), "each entry once")
    refuse(torch, archive_of([entries[0], ("/tensor/0", bytes(8))]), "an entry tensor/0")
    refuse(torch, archive_of([entries[0], ("tensor/1", bytes(8))]), "an entry tensor/0")
    refuse(torch, archive_of(entries[1:]), "an entry structure.json")


@pytest.mark.parametrize(
    "value",
    [
        {"unknown": 1}, {}, [1], {"list": 1}, {"dict": [1]}, {"dict": [[1, 2, 3]], "ordered": False}, {"dict": [[{"list": []}, 1]]},
        {"set": [{"list": []}]}, {"dtype": "Tensor"}, {"dtype": "__class__"}, {"device": "nowhere"}, {"device": 3.5}, {"float": "1e400"},
        {**TENSOR, "dtype": "connect"}, {**TENSOR, "type": "object"}, {**TENSOR, "requires_grad": 1}, {**TENSOR, "tensor": -1},
        {**TENSOR, "tensor": "0/../0"}, {**TENSOR, "dtype": "int64", "shape": [1], "requires_grad": True},
        {**TENSOR, "dtype": "bool", "shape": [8]}, {"set": [2**64]}, {k: v for k, v in TENSOR.items() if k != "shape"},
    ],
)  # fmt: skip
def test_structures(torch, value):
    refuse(torch, file_of(value, b"\2" * 8))


def test_json(torch):
    deep = "[" * 200_000 + "]" * 200_000
    head = '{"format": "teletensor", "version": 1, "value": '
    for text in ("", "{", "nul", "[1]", deep, head + "NaN}", head + "9" * 5000 + "}", head + '{"list": ' * 50_000, '{"format": "x"}'):
        refuse(torch, archive_of([("structure.json", text.encode())]))
    refuse(torch, archive_of([("structure.json", b"\xff\xfe\x00")]))
    nested = head + '{"list": [' * 900 + "1" + "]}" * 900 + "}"
    refuse(torch, archive_of([("structure.json", nested.encode())]), "nested too deeply")


def test_memory_of_the_structure(torch):
    text = '{"format": "teletensor", "version": 1, "value": {"list": [' + "{}," * 300_000 + "{}]}}"
    data = archive_of([("structure.json", text.encode())])
    tracemalloc.start()
    try:
        refuse(torch, data, "a known kind")
        assert tracemalloc.get_traced_memory()[1] < 40 * len(data)
    finally:
        tracemalloc.stop()


def test_files_of_other_libraries(torch, tmp_path):
    with zipfile.ZipFile(tmp_path / "weights.pt", "w") as archive:
        archive.writestr("weights/data.pkl", b"\x80\x02}q\x00.")
        archive.writestr("weights/version", b"3\n")
    (tmp_path / "old.pt").write_bytes(b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.")
    (tmp_path / "w.safetensors").write_bytes(struct.pack("<Q", 2) + b"{}")
    (tmp_path / "object.pickle").write_bytes(b"\x80\x04N.")
    (tmp_path / "text").write_text("hello")
    for name, says in (
        ("weights.pt", "PyTorch's torch.save.*numpy.savez"), ("old.pt", "PyTorch's torch.save.*numpy.savez"),
        ("w.safetensors", "safetensors"), ("object.pickle", "a pickle"), ("text", "not a zip archive"),
    ):  # fmt: skip
        refuse(torch, (tmp_path / name).read_bytes(), says)
        with pytest.raises(torch.serialization.LoadError, match=says):
            torch.load(tmp_path / name)


def test_valid_files_load(torch, tmp_path):
    with pytest.raises(FileNotFoundError):
        torch.load(tmp_path / "nothing")
    with pytest.raises(TypeError, match="a path or a seekable binary file"):
        torch.load(7)
    with pytest.raises(RuntimeError, match="map_location") as raised:
        torch.load(io.BytesIO(file_of({**TENSOR, "device": "cuda:90"}, bytes(8))))
    assert not isinstance(raised.value, torch.serialization.LoadError)
