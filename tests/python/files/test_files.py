"""torch.save and torch.load: PyTorch's files are read here, and files of save there; arguments; classes; replacement."""

from __future__ import annotations

import io
import json
import math
import os
import pickle
import signal
import stat
import struct
import subprocess
import sys
import zipfile
from collections import OrderedDict, namedtuple
from pathlib import Path

import pytest

from tests.conftest import IN_PROCESS, ROOT, client_environment
from tests.python.files.cases import CASES, LEGACY, ODD, describe

FIXTURES = Path(__file__).parent / "fixtures"
EXPECTED = json.loads((FIXTURES / "expected.json").read_text())
PEER = ROOT / ".venv-peers/bin/python"


def described(torch, value):
    return json.loads(json.dumps(describe(torch, value)))


def again(torch, value, **options):
    buffer = io.BytesIO()
    torch.save(value, buffer, **options)
    return torch.load(io.BytesIO(buffer.getvalue()))


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_files_of_pytorch(torch, name):
    options = {} if name.startswith(("meta", "tar")) else {"map_location": "cpu"}
    loaded = torch.load(FIXTURES / f"{name}.pt", **options)
    expected = EXPECTED[name]
    if name == "conj":  # conjugation is computed when loading, so that z and its views do not share memory
        values = {k: v.tolist() for k, v in loaded.items()}
        assert values == {"z": [1 + 2j, 3 - 4j], "conj": [1 - 2j, 3 + 4j], "neg": [-1, -2], "part": [3 + 4j]}
        assert loaded["conj"].untyped_storage() == loaded["part"].untyped_storage()
        return
    if name == "tar":  # the view of a storage shares its bytes; in PyTorch it has a storage of its own
        assert loaded["v"].untyped_storage() == loaded["w"].untyped_storage() and loaded["v"].tolist() == [2, 3, 4]
        loaded["v"] = loaded["v"].clone()
    assert described(torch, loaded) == expected
    if not name.startswith("tar") and ".legacy" not in name:
        assert described(torch, torch.load(FIXTURES / f"{name}.pt", mmap=True, **options)) == expected


@pytest.mark.parametrize("name", [*CASES, *ODD])
@pytest.mark.parametrize("options", [{}, {"pickle_protocol": 1}, {"pickle_protocol": 4}, {"pickle_protocol": 5}, {"pickle_protocol": None},
                                     {"_use_new_zipfile_serialization": False}])  # fmt: skip
def test_round_trips(torch, name, options):
    value = {**CASES, **ODD}[name](torch)
    assert described(torch, again(torch, value, **options)) == described(torch, value)


@pytest.mark.skipif(not PEER.exists(), reason="needs PyTorch")
def test_pytorch_reads_the_files(torch, tmp_path):
    names = [*CASES, *ODD]
    for name in names:
        value = {**CASES, **ODD}[name](torch)
        torch.save(value, tmp_path / f"{name}.pt")
        (tmp_path / f"{name}.json").write_text(json.dumps(describe(torch, value)))
        if name in LEGACY:
            torch.save(value, tmp_path / f"{name}.legacy.pt", _use_new_zipfile_serialization=False)
    torch.serialization.set_crc32_options(False)
    try:
        torch.save(CASES["views"](torch), tmp_path / "plain.pt")
    finally:
        torch.serialization.set_crc32_options(True)
    script = """
import json, sys, pathlib, torch
import torch.utils.serialization.config as config
from tests.python.files.cases import describe
folder = pathlib.Path(sys.argv[1])
for name in sys.argv[2:]:
    expected = json.loads((folder / f"{name}.json").read_text())
    for path in (folder / f"{name}.pt", folder / f"{name}.legacy.pt"):
        if path.exists():
            got = json.loads(json.dumps(describe(torch, torch.load(path, weights_only=True))))
            assert got == expected, (path.name, got, expected)
config.load.calculate_storage_offsets = True
assert torch.load(folder / "views.pt", mmap=True)["row"].tolist() == [6, 7, 8, 9, 10, 11]
assert torch.load(folder / "plain.pt")["row"].tolist() == [6, 7, 8, 9, 10, 11]
state = torch.load(folder / "adamw.pt")
model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 2, bias=False))
model.load_state_dict(state["model"])
optimizer = torch.optim.AdamW(model.parameters())
optimizer.load_state_dict(state["optimizer"])
torch.optim.lr_scheduler.StepLR(optimizer, 1).load_state_dict(state["schedule"])
assert optimizer.param_groups[0]["amsgrad"] and float(optimizer.state[model[0].weight]["step"]) == 2
"""
    environment = {**os.environ, "TORCH_SERIALIZATION_DEBUG": "1"}
    run = subprocess.run(
        [PEER, "-c", script, tmp_path, *names], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize("name", ["adamw", "sgd", "adamw.legacy"])
def test_training_goes_on_from_a_file_of_pytorch(torch, name):
    from tests.python.files.cases import model

    state = torch.load(FIXTURES / f"{name}.pt")
    net = model(torch)
    assert str(net.load_state_dict(state["model"])) == "<All keys matched successfully>"
    optimizer = {"adamw": torch.optim.AdamW, "sgd": torch.optim.SGD}[name.partition(".")[0]](net.parameters(), lr=1)
    optimizer.load_state_dict(state["optimizer"])
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 5)
    schedule.load_state_dict(state["schedule"])
    net(torch.ones(2, 3)).sum().backward()
    optimizer.step()
    schedule.step()
    assert schedule.last_epoch == 3 and optimizer.param_groups[0]["lr"] == 0.1 / 8


REFUSED = [
    (
        "module",
        pickle.UnpicklingError,
        "GLOBAL torch.nn.modules.container.Sequential: .* contains a module.*state_dict",
    ),
    ("module.legacy", pickle.UnpicklingError, "contains a module.*state_dict"),
    ("sparse", NotImplementedError, "torch.sparse_coo: sparse tensors are not implemented"),
    ("numpy", pickle.UnpicklingError, r"add_safe_globals\(\[numpy.*_reconstruct\]\)"),
]


@pytest.mark.parametrize(("name", "error", "match"), REFUSED)
def test_refused_files_of_pytorch(torch, name, error, match):
    for weights_only in (None, True, False):
        with pytest.raises(error, match=match) as raised:
            torch.load(FIXTURES / f"{name}.pt", weights_only=weights_only)
        assert isinstance(raised.value, RuntimeError) and str(raised.value).startswith("[load] ")


def test_storages_in_files(torch):
    (typed,) = torch.load(FIXTURES / "typed_storage.pt")
    assert isinstance(typed, torch.FloatStorage) and typed.tolist() == [0, 1, 2]
    (untyped,) = torch.load(FIXTURES / "untyped_storage.pt")
    assert untyped.dtype is torch.uint8 and untyped.tolist() == [0, 1, 2]
    x = torch.arange(4.0)
    loaded = again(torch, {"x": x, "s": x.storage(), "u": torch.ones(2).untyped_storage()})
    assert loaded["x"].untyped_storage() == loaded["s"].untyped() and loaded["u"].tolist() == [0, 0, 128, 63] * 2


Pair = namedtuple("Pair", "a b")


class Point:
    def __init__(self, x):
        self.x = x


class Slots:
    __slots__ = ("y",)


def test_subclasses_of_tensors(torch):
    class Tagged(torch.Tensor):
        pass

    globals()["Tagged"], Tagged.__qualname__ = Tagged, "Tagged"
    tagged = torch.arange(3.0).as_subclass(Tagged)
    tagged.tag = [1]
    buffer = io.BytesIO()
    torch.save([tagged, tagged.as_subclass(torch.Tensor)[1:]], buffer)
    with pytest.raises(pickle.UnpicklingError, match="Tagged was not an allowed global"):
        torch.load(io.BytesIO(buffer.getvalue()))
    with torch.serialization.safe_globals([Tagged]):
        for first, second in (torch.load(io.BytesIO(buffer.getvalue())), pickle.loads(pickle.dumps([tagged, torch.arange(3.0)[1:]]))):
            assert type(first) is Tagged and first.tag == [1] and first.tolist() == [0, 1, 2]
            assert type(second) is torch.Tensor and second.tolist() == [1, 2]
    assert type(torch.empty(0).set_(tagged.untyped_storage())) is torch.Tensor


def test_numpy_arrays(torch):
    """Arrays need the functions of NumPy that pickles of arrays call."""
    import numpy as np

    names = torch.serialization.get_unsafe_globals_in_checkpoint(FIXTURES / "numpy.pt")
    assert len(names) == 3 and all(name.startswith("numpy") for name in names)
    make = next(name for name in names if name.endswith("_reconstruct"))
    reconstruct = np.zeros(1).__reduce__()[0]
    with torch.serialization.safe_globals([(reconstruct, make), np.ndarray, np.dtype, type(np.dtype("int64"))]):
        assert torch.load(FIXTURES / "numpy.pt")["a"].tolist() == [0, 1, 2]


def test_registered_classes(torch):
    serialization = torch.serialization
    slots = Slots()
    slots.y = torch.ones(1)
    value = [Point(torch.ones(2)), Pair(1, [2]), slots]
    buffer = io.BytesIO()
    torch.save(value, buffer)
    names = [f"{__name__}.{n}" for n in ("Pair", "Point", "Slots")]
    assert serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(buffer.getvalue())) == names
    with pytest.raises(
        pickle.UnpicklingError, match=rf"GLOBAL {__name__}.Point was not an allowed global.*add_safe_globals"
    ):
        torch.load(io.BytesIO(buffer.getvalue()))
    with serialization.safe_globals([Point, (Pair, f"{__name__}.Pair"), Slots]):
        assert serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(buffer.getvalue())) == []
        point, pair, slots = torch.load(io.BytesIO(buffer.getvalue()))
        assert set(serialization.get_safe_globals()) == {Point, Slots, (Pair, f"{__name__}.Pair")}
    assert point.x.tolist() == [1, 1] and pair == Pair(1, [2]) and slots.y.item() == 1
    assert serialization.get_safe_globals() == []
    serialization.add_safe_globals([os.system, Point])
    serialization.clear_safe_globals()
    assert serialization.get_safe_globals() == []
    with pytest.raises(ValueError, match="tuple of length 2"):
        serialization.add_safe_globals([(1, 2, 3)])
    with pytest.raises(ValueError, match="Expected input to be a checkpoint"):
        serialization.get_unsafe_globals_in_checkpoint(FIXTURES / "tensor.legacy.pt")


def test_blocked_modules(torch):
    data = b"\x80\x02cposix\nsystem\nX\x02\x00\x00\x00id\x85R."
    with (
        torch.serialization.safe_globals([os.system]),
        pytest.raises(pickle.UnpicklingError, match="module posix is blocked"),
    ):
        torch.load(io.BytesIO(archive_of(data)))


def archive_of(data: bytes, **entries: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in {"data.pkl": data, **entries}.items():
            archive.writestr(f"archive/{name}", content)
    return out.getvalue()


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


def test_objects_with_code(torch):
    model = torch.nn.Linear(2, 2)
    for value, advice in (
        (model, "state_dict"), ({"model": [model]}, "state_dict"), (torch.optim.SGD(model.parameters(), lr=1), "state_dict"),
        (torch.Generator(), "get_state"),
    ):  # fmt: skip
        with pytest.raises(NotImplementedError, match=rf"\[save\].*{advice}"):
            torch.save(value, io.BytesIO())
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


def test_files(torch, tmp_path):
    """Files that only write, files that begin elsewhere, buffers, and paths of other types."""

    class WriteOnly:
        def __init__(self):
            self.data = b""

        def write(self, data):
            self.data += bytes(data)

    out = WriteOnly()
    torch.save({"x": torch.arange(3)}, out)
    assert torch.load(io.BytesIO(out.data))["x"].tolist() == [0, 1, 2]
    for options in ({}, {"_use_new_zipfile_serialization": False}):
        shifted = io.BytesIO(b"12345")
        shifted.seek(5)
        torch.save(torch.arange(3), shifted, **options)
        shifted.seek(5)
        assert torch.load(shifted).tolist() == [0, 1, 2]
    torch.save(torch.ones(1), str(tmp_path / "käse.pt"))
    assert torch.load(tmp_path / "käse.pt").item() == 1
    with open(tmp_path / "b", "wb") as file:
        torch.save(torch.ones(2), file)
    with open(tmp_path / "b", "rb") as file:
        assert torch.load(file).tolist() == [1, 1]
    torch.save(torch.ones(1), "/dev/null")
    large = torch.arange(3 << 20)  # several pieces, and more than are requested ahead
    torch.save([large, large.double(), large.clone()], tmp_path / "large")
    assert all(t.equal(large) for t in torch.load(tmp_path / "large", mmap=True))
    assert zipfile.ZipFile(tmp_path / "large").namelist()[0] == "large/data.pkl"


def test_safetensors(torch, tmp_path):
    header = b'{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"__metadata__":{"a":"b"}}'
    path = tmp_path / "w.safetensors"
    data = struct.pack("<Q", len(header)) + header + struct.pack("<2f", 1, 2)
    path.write_bytes(data)
    assert torch.load(path)["w"].tolist() == [1, 2] and torch.load(path, "meta")["w"].device.type == "meta"
    with pytest.raises(NotImplementedError, match="map_location"):
        torch.load(path, {"cpu": "meta"})
    for damaged in (
        data[:-1],
        data + b"x",
        data.replace(b"[0,8]", b"[0,9]"),
        data.replace(b"[2]", b"[3]"),
        data[:5],
        b"\xff" * 20,
    ):
        path.write_bytes(damaged)
        with pytest.raises(torch.serialization.LoadError):
            torch.load(path)


def test_values(torch):
    nan = again(torch, [float("nan"), b"", frozenset([1]), {torch.float16: 1}, ...][:4])
    assert math.isnan(nan[0]) and nan[1:] == [b"", frozenset([1]), {torch.float16: 1}]
    state = torch.nn.BatchNorm1d(2).state_dict()
    assert again(torch, state)._metadata == state._metadata == OrderedDict({"": {"version": 2}})
    lazy = again(torch, torch.nn.LazyLinear(2).state_dict())
    assert type(lazy["weight"]) is torch.nn.parameter.UninitializedParameter
    loaded = again(torch, {"g": torch.ones(2, requires_grad=True)})["g"]
    (loaded * 3).sum().backward()
    assert loaded.grad.tolist() == [3, 3] and loaded._base is None
    with torch.no_grad():
        assert loaded.add_(1).tolist() == [2, 2]
    cycle: list = [1]
    cycle.append(cycle)
    assert again(torch, cycle)[1][1][0] == 1
    state = torch.Generator().manual_seed(5).get_state()
    assert again(torch, state).tolist() == state.tolist()
    for restore in (torch.set_rng_state, torch.Generator().set_state):
        with pytest.raises(RuntimeError, match="states of other libraries"):
            restore(torch.zeros(5056, dtype=torch.uint8))


def test_failed_tensors(torch, tmp_path):
    torch.save(1, tmp_path / "x")
    failed = torch.arange(3)[torch.tensor([7])]
    with pytest.raises(IndexError):
        torch.save([torch.ones(3), failed], tmp_path / "x")
    assert torch.load(tmp_path / "x") == 1 and os.listdir(tmp_path) == ["x"]


def test_replacement(torch, tmp_path):
    """Permissions and links are kept, and nothing is left beside the file."""
    path = tmp_path / "x"
    torch.save(1, path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~os.umask(os.umask(0o22) or 0o22) or True
    path.chmod(0o640)
    (tmp_path / "link").symlink_to("x")
    torch.save(2, tmp_path / "link")
    assert torch.load(path) == 2 and (tmp_path / "link").is_symlink() and stat.S_IMODE(path.stat().st_mode) == 0o640
    assert sorted(os.listdir(tmp_path)) == ["link", "x"]
    os.mkfifo(tmp_path / "pipe")
    reader = subprocess.Popen(["cat", tmp_path / "pipe"], stdout=subprocess.PIPE)
    torch.save(3, tmp_path / "pipe")
    assert torch.load(io.BytesIO(reader.communicate()[0])) == 3 and stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


KILLED = """
import os, signal, sys
import teletensor as torch
from teletensor.serialization import _archive_writer, _replacement
stage, path = sys.argv[1:]
def kill(*_): os.kill(os.getpid(), signal.SIGKILL)
if stage == "entry":
    _archive_writer.Layout.descriptor = kill
elif stage == "directory":
    _archive_writer.Layout.directory = kill
elif stage == "sync":
    _replacement.os.fsync = kill
elif stage == "rename":
    _replacement.os.replace = kill
elif stage == "after":
    _replacement._sync_folder = kill
torch.save({"x": torch.ones(100)}, path)
"""


@pytest.mark.parametrize("stage", ["entry", "directory", "sync", "rename", "after"])
def test_killed_while_saving(torch, tmp_path, stage):
    path = tmp_path / "x.pt"
    torch.save({"x": torch.zeros(100)}, path)
    environment = client_environment()
    run = subprocess.run([sys.executable, "-c", KILLED, stage, path], env=environment, capture_output=True, text=True)
    assert run.returncode == -signal.SIGKILL, run.stderr
    assert torch.load(path)["x"].sum().item() == (100 if stage == "after" else 0)


def test_a_full_disk(torch, tmp_path):
    if not os.path.exists("/dev/full"):
        pytest.skip("needs /dev/full")
    with pytest.raises(OSError, match="No space left"):
        torch.save(torch.ones(1 << 19), "/dev/full")


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
