"""Arguments and settings of torch.save and torch.load: locations, byte order, checksums, and what is refused."""

from __future__ import annotations

import io
import os
import pickle
import struct
import zipfile

import pytest

from tests.conftest import IN_PROCESS
from tests.python.files.test_files import FIXTURES, archive_of

MAPS = [
    ("cpu", "cpu"), ("meta", "meta"), ({"cpu": "meta"}, "meta"), ({"cuda:0": "cpu"}, "cpu"), (lambda storage, place: None, "cpu"),
    (lambda storage, place: storage, "cpu"), (lambda storage, place: storage.to(device="meta"), "meta"), (b"cpu", "cpu"),
]  # fmt: skip


@pytest.mark.parametrize(("where", "device"), MAPS)
@pytest.mark.parametrize("legacy", [False, True])
def test_map_location(torch, where, device, legacy):
    buffer = io.BytesIO()
    base = torch.arange(4.0)
    torch.save([base, base[1:], torch.tensor([1])], buffer, _use_new_zipfile_serialization=not legacy)
    x, y, n = torch.load(io.BytesIO(buffer.getvalue()), where)
    assert {t.device.type for t in (x, y, n)} == {device} and x.untyped_storage() == y.untyped_storage()
    if device == "cpu":
        assert x.tolist() == [0, 1, 2, 3] and y.tolist() == [1, 2, 3] and n.tolist() == [1]


def test_map_location_is_called_once_per_storage(torch):
    calls = []
    buffer = io.BytesIO()
    base = torch.arange(4.0)
    torch.save([base, base[1:], torch.ones(2).int()], buffer)
    torch.load(io.BytesIO(buffer.getvalue()), lambda storage, place: calls.append((storage.nbytes(), place)))
    assert calls == [(16, "cpu"), (8, "cpu")]
    assert torch.load(io.BytesIO(buffer.getvalue()), torch.device("meta"))[0].device.type == "meta"
    for wrong, error in ((3.5, TypeError), (lambda s, p: 5, TypeError), ("nowhere", RuntimeError)):
        with pytest.raises(error):
            torch.load(io.BytesIO(buffer.getvalue()), wrong)


@pytest.mark.skipif(IN_PROCESS, reason="needs simulated GPUs")
def test_gpus(torch):
    buffer = io.BytesIO()
    torch.save({"a": torch.arange(3.0, device="cuda:0"), "b": torch.arange(3.0, device="cuda:1")[1:]}, buffer)
    rows = [
        (None, "cuda:0", "cuda:1"), ("cuda:1", "cuda:1", "cuda:1"), ("cuda", "cuda:0", "cuda:0"), (1, "cuda:1", "cuda:1"),
        ({"cuda:1": "cuda:0"}, "cuda:0", "cuda:0"), (lambda s, p: s.cuda(1) if p == "cuda:0" else s, "cuda:1", "cpu"),
    ]  # fmt: skip
    for where, a, b in rows:
        loaded = torch.load(io.BytesIO(buffer.getvalue()), where)
        assert (str(loaded["a"].device), str(loaded["b"].device)) == (a, b)
        assert loaded["a"].tolist() == [0, 1, 2] and loaded["b"].tolist() == [1, 2]
    with pytest.raises(RuntimeError, match="on CUDA device 7 but torch.cuda.device_count"):
        torch.load(io.BytesIO(buffer.getvalue()), "cuda:7")
    assert torch.serialization.validate_cuda_device("cuda:1") == 1
    with pytest.raises(ValueError, match="Expected a cuda device"):
        torch.serialization.validate_cuda_device("cpu")
    with pytest.raises(RuntimeError, match="HPU"):
        torch.serialization.validate_hpu_device("hpu")
    assert isinstance(torch.ones(1, device="cuda").storage(), torch.cuda.FloatStorage)
    assert torch.serialization.storage_to_tensor_type(torch.ones(1, device="cuda").storage()) is torch.cuda.FloatTensor


def test_packages(torch):
    serialization = torch.serialization
    from teletensor.serialization import _locations

    kept = list(_locations._registry)
    try:
        serialization.register_package(
            5, lambda s: "attic" if s.nbytes() == 12 else None, lambda s, place: s.clone() if place == "attic" else None
        )
        assert serialization.location_tag(torch.ones(3).untyped_storage()) == "attic"
        assert serialization.location_tag(torch.ones(2).untyped_storage()) == "cpu"
        buffer = io.BytesIO()
        torch.save([torch.ones(3), torch.zeros(2)], buffer)
        assert torch.load(io.BytesIO(buffer.getvalue()))[0].tolist() == [1, 1, 1]
    finally:
        _locations._registry[:] = kept
    with pytest.raises(RuntimeError, match="don't know how to restore data location .*tagged with attic"):
        torch.load(io.BytesIO(buffer.getvalue()))
    storage = torch.ones(2).untyped_storage()
    assert serialization.default_restore_location(storage, "cpu") is storage


def with_byte_order(torch, order: bytes | None) -> bytes:
    """A file of numbers in big endian order."""
    buffer = io.BytesIO()
    torch.save(
        [
            torch.tensor([1.5, -2]),
            torch.tensor([1, 2**40]),
            torch.tensor([1 + 2j]),
            torch.tensor([7], dtype=torch.uint8),
        ],
        buffer,
    )
    out = io.BytesIO()
    with zipfile.ZipFile(buffer) as source, zipfile.ZipFile(out, "w") as target:
        for name in source.namelist():
            data = source.read(name)
            size = {"data/0": 4, "data/1": 8, "data/2": 4}.get(name.partition("/")[2])
            if size:
                data = b"".join(data[i : i + size][::-1] for i in range(0, len(data), size))
            if not name.endswith("/byteorder"):
                target.writestr(name, data)
            elif order is not None:
                target.writestr(name, order)
    return out.getvalue()


def test_byte_order(torch):
    s = torch.serialization
    expected = [[1.5, -2], [1, 2**40], [1 + 2j], [7]]
    assert [t.tolist() for t in torch.load(io.BytesIO(with_byte_order(torch, b"big")))] == expected
    data = with_byte_order(torch, None)
    assert [t.tolist() for t in torch.load(io.BytesIO(data))] != expected
    assert s.get_default_load_endianness() is None
    for order, same in (
        (s.LoadEndianness.BIG, True),
        (s.LoadEndianness.LITTLE, False),
        (s.LoadEndianness.NATIVE, False),
        (None, False),
    ):
        s.set_default_load_endianness(order)
        assert s.get_default_load_endianness() is order
        assert ([t.tolist() for t in torch.load(io.BytesIO(data))] == expected) is same
    with pytest.raises(TypeError, match="expected LoadEndianness"):
        s.set_default_load_endianness("big")
    with pytest.raises(RuntimeError, match="Unknown endianness"):
        torch.load(io.BytesIO(with_byte_order(torch, b"middle")))
    buffer = io.BytesIO()
    torch.save(torch.ones(1), buffer, _disable_byteorder_record=True)
    assert (
        not any("byteorder" in name for name in zipfile.ZipFile(buffer).namelist())
        and torch.load(buffer.seek(0) or buffer).item() == 1
    )


def test_names_of_python_2(torch):
    data = archive_of(b"\x80\x02}q\x00(U\x01ac__builtin__\nset\n]K\x01a\x85RU\x02\xc3\xa9I01\nu.")
    assert torch.load(io.BytesIO(data)) == {"a": {1}, "é": True}
    assert torch.load(io.BytesIO(data), encoding="bytes") == {b"a": {1}, b"\xc3\xa9": True}
    assert torch.load(io.BytesIO(data), encoding="latin1") == {"a": {1}, "Ã©": True}
    with pytest.raises(RuntimeError, match="UnicodeDecodeError"):
        torch.load(io.BytesIO(data), encoding="ascii")
    assert torch.load(io.BytesIO(data), encoding="ascii", errors="ignore") == {"a": {1}, "": True}


def test_settings(torch, tmp_path):
    import mmap

    s = torch.serialization
    x = torch.arange(1000.0)
    assert s.get_crc32_options() is True
    with pytest.raises(TypeError):
        s.set_crc32_options("no")
    torch.save(x, tmp_path / "x")
    assert zipfile.ZipFile(tmp_path / "x").testzip() is None
    assert all(info.CRC for info in zipfile.ZipFile(tmp_path / "x").infolist())
    s.set_crc32_options(False)
    try:
        torch.save(x, tmp_path / "y")
    finally:
        s.set_crc32_options(True)
    assert not any(info.CRC for info in zipfile.ZipFile(tmp_path / "y").infolist()) and torch.load(
        tmp_path / "y"
    ).equal(x)
    assert s.get_default_mmap_options() == mmap.MAP_PRIVATE
    with s.set_default_mmap_options(mmap.MAP_SHARED):
        assert s.get_default_mmap_options() == mmap.MAP_SHARED and torch.load(tmp_path / "x", mmap=True).equal(x)
    assert s.get_default_mmap_options() == mmap.MAP_PRIVATE
    with pytest.raises(ValueError, match="MAP_PRIVATE"):
        s.set_default_mmap_options(17)
    config = torch.utils.serialization.config
    config.save.storage_alignment = 4096
    try:
        torch.save([x, x.int()], tmp_path / "z")
    finally:
        config.save.storage_alignment = 64
    assert [t.tolist() for t in torch.load(tmp_path / "z")] == [x.tolist()] * 2
    data = (tmp_path / "z").read_bytes()
    assert data.find(struct.pack("<3f", 0, 1, 2)) % 4096 == 0


def test_skip_data(torch):
    buffer = io.BytesIO()
    with torch.serialization.skip_data():
        torch.save(torch.ones(3), buffer)
        with pytest.raises(RuntimeError, match="skip_data"):
            torch.save(1, io.BytesIO(), _use_new_zipfile_serialization=False)
    assert torch.load(io.BytesIO(buffer.getvalue())).tolist() == [0, 0, 0]
    with torch.serialization.skip_data():
        assert torch.load(FIXTURES / "tensor.pt").tolist() == [0, 0, 0]
    with pytest.raises(NotImplementedError, match="fake"):
        torch.serialization.skip_data(True)


def test_objects_that_load_cannot_create_are_refused(torch):
    values = (
        torch.channels_last, torch.finfo(torch.float32), torch.iinfo(torch.int8), torch.AcceleratorError("x"), torch.Event(),
        torch.IntType.get(), torch.BenchmarkConfig(),
    )  # fmt: skip
    for value in values:
        with pytest.raises(NotImplementedError, match=r"\[save\] cannot save an object of type teletensor\."):
            torch.save({"x": value}, io.BytesIO())


def test_objects_with_code(torch):
    with pytest.raises(NotImplementedError, match=r"\[save\].*get_state"):
        torch.save(torch.Generator(), io.BytesIO())
    with pytest.raises((AttributeError, pickle.PicklingError)):
        torch.save(lambda: 1, io.BytesIO())


def test_arguments(torch, tmp_path):
    import types

    path = tmp_path / "x"
    torch.save(5, path, pickle, 2)
    assert torch.load(path, None, None) == 5 and torch.load(path, pickle_module=pickle, weights_only=False) == 5
    other = types.ModuleType("dill")
    rows = [
        (lambda: torch.save(1, path, pickle_module=other), NotImplementedError, "dill"),
        (lambda: torch.save(1, path, pickle_protocol=0), NotImplementedError, "pickle_protocol"),
        (lambda: torch.save(1, path, pickle_protocol=9), ValueError, "protocol"),
        (lambda: torch.save(1, 5), AttributeError, "'write'"),
        (lambda: torch.save(1, tmp_path / "none" / "x"), RuntimeError, "Parent directory .* does not exist"),
        (lambda: torch.save(1, tmp_path), OSError, "folder|directory"),
        (lambda: torch.load(path, pickle_module=other), NotImplementedError, "dill"),
        (lambda: torch.load(path, pickle_module=pickle, weights_only=True), RuntimeError, "pickle_module"),
        (lambda: torch.load(path, fix_imports=True), TypeError, "fix_imports"),
        (lambda: torch.load(path, encoding="zip"), ValueError, "encoding"),
        (lambda: torch.load(io.BytesIO(path.read_bytes()), mmap=True), ValueError, "file path"),
        (lambda: torch.load(FIXTURES / "tensor.legacy.pt", mmap=True), RuntimeError, "mmap can only be used"),
        (lambda: torch.load(5), AttributeError, "seek"),
        (lambda: torch.load(os.fdopen(os.pipe()[0], "rb")), io.UnsupportedOperation, "BytesIO"),
        (lambda: torch.load(tmp_path / "nothing"), FileNotFoundError, "nothing"),
        (lambda: torch.save(views_of_two_dtypes(torch), path), RuntimeError, "different types"),
    ]  # fmt: skip
    for call, error, match in rows:
        with pytest.raises(error, match=match):
            call()
    assert torch.load(path) == 5


def views_of_two_dtypes(torch):
    x = torch.ones(2)
    return [x, x.view(torch.int32)]


def test_versions(torch):
    import types

    check = torch.serialization.check_module_version_greater_or_equal
    module = types.ModuleType("m")
    module.__version__ = "1.10.x"
    assert check(module, (1, 9)) and not check(module, (1, 11)) and check(module, (1, 10))
    with pytest.raises(RuntimeError, match="malformed"):
        check(module, (1, 10, 0))
    with pytest.warns(UserWarning, match="malformed"):
        assert check(module, (1, 10, 0), False)
    with torch.serialization.mkdtemp() as folder:
        assert os.path.isdir(folder)
    assert not os.path.exists(folder)
    assert torch.serialization.normalize_storage_type(torch.FloatStorage) is torch.FloatStorage
    assert str(torch.serialization.StorageType("FloatStorage")) == "StorageType(dtype=torch.float32)"
