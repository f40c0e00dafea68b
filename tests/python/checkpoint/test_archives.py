"""Files in PyTorch's format that the engine writes and reads, and checksums."""

from __future__ import annotations

import io
import json
import shutil
import zipfile

import pytest

from tests.conftest import IN_PROCESS
from tests.python.files.test_files import EXPECTED, FIXTURES, described

from .scripts import run

pytestmark = [pytest.mark.slow, pytest.mark.skipif(IN_PROCESS, reason="requires an engine in another process")]

NAMES = ["views", "containers", "parameters", "adamw", "tensor", "meta", "dtypes", "views.no_checksums", "odd_view", "sgd"]

STATE = """
base = torch.arange(24.0).reshape(4, 6)
net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
for i, p in enumerate(net.parameters()):
    p.data = torch.linspace(-1, 1, p.numel()).reshape(p.shape) * (i + 1)
state = {"model": net.state_dict(), "base": base, "t": base.t(), "row": base[1], "half": base.half(), "f8": base.to(torch.float8_e5m2),
         "epoch": 3, "name": ("x", 1.5), "empty": torch.zeros(0, 3), "p": torch.nn.Parameter(torch.ones(2)), "b": base > 3}
"""


def test_the_client_writes_the_same_file(root):
    """The engine's file has the same bytes as torch.save's, and each side reads the other's."""
    code = """
ck.save(state, "x.pt")
torch.save(state, "root/y/x.pt")
a, b = torch.load("root/x.pt"), ck.load("y/x.pt")
for back in (a, b):
    assert list(back) == list(state) and back["epoch"] == 3 and back["name"] == ("x", 1.5) and back["p"].requires_grad
    assert all(back[k].float().tolist() == state[k].float().tolist() for k in ("base", "t", "row", "half", "f8", "empty", "p", "b"))
    assert back["base"].untyped_storage() == back["t"].untyped_storage() == back["row"].untyped_storage()
    assert all((back["model"][k] == v).all() for k, v in state["model"].items()) and back["model"]._metadata == state["model"]._metadata
print("ok")
"""
    (root / "y").mkdir()
    assert run(root, STATE + code) == "ok\n"
    assert (root / "x.pt").read_bytes() == (root / "y/x.pt").read_bytes()
    assert zipfile.ZipFile(root / "x.pt").testzip() is None


@pytest.mark.parametrize("name", NAMES)
def test_files_of_pytorch(torch, root, name):
    """The engine and the client create the same objects."""
    shutil.copy(FIXTURES / f"{name}.pt", root / "x.pt")
    code = """
import json, sys
sys.path.insert(0, %r)
from tests.python.files.cases import describe
print(json.dumps(describe(torch, ck.load("x.pt"))))
"""
    from tests.conftest import ROOT

    printed = run(root, code % str(ROOT))
    expected = EXPECTED[name]
    if name == "meta":
        expected = described(torch, torch.load(FIXTURES / "meta.pt"))
    assert json.loads(printed) == expected


@pytest.mark.parametrize("name", ["conj", "sparse"])
def test_tensors_that_are_computed_when_they_are_read(root, name):
    """Their storages are read before."""
    shutil.copy(FIXTURES / f"{name}.pt", root / "x.pt")
    code = """
def parts(value):
    if isinstance(value, dict):
        return [part for entry in value.values() for part in parts(entry)]
    return [value.to_dense().tolist(), str(value.layout)]

read, expected = parts(ck.load("x.pt")), parts(torch.load(%r))
print(len(read) > 0, read == expected)
"""
    assert run(root, code % str(FIXTURES / f"{name}.pt")) == "True True\n"


def test_devices_and_asynchronous_saves(root):
    code = """
x = torch.arange(3_000_000.0, device="cuda")
pending = ck.save_async({"x": x, "v": x[5:]}, "x.pth")
x.mul_(2)
pending.result(30)
assert pending.progress() == (12_000_000, 12_000_000)
back = ck.load("x.pth", device="cuda:1")
assert str(back["x"].device) == "cuda:1" and back["v"].untyped_storage() == back["x"].untyped_storage()
assert back["x"].cpu().tolist() == (x / 2).cpu().tolist() and back["v"][0].item() == 5
assert ck.load("x.pth")["x"].device.type == "cpu" and ck.load("x.pth", device="meta")["x"].device.type == "meta"
bad = torch.arange(3)[torch.tensor([7])]
for state, path, kind in (({"x": bad}, "x.pth", IndexError), ({"m": (i for i in ())}, "x.pth", Exception)):
    try:
        ck.save(state, path)
    except kind:
        print(ck.load(path)["v"].shape[0])
for call in (lambda: ck.save({}, "y.pt", metadata={"a": "b"}), lambda: ck.load("x.pth", only=["x"])):
    try:
        call()
    except NotImplementedError as error:
        print("[checkpoint]" in str(error))
"""
    assert run(root, code) == "2999995\n2999995\nTrue\nTrue\n"
    assert sorted(p.name for p in root.iterdir()) == ["x.pth"]


def test_damaged_archives(root):
    run(root, STATE + 'ck.save(state, "x.pt")')
    data = (root / "x.pt").read_bytes()
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        info = archive.getinfo("x/data/0")
    begin = data.index(b"Z" * 8, info.header_offset)
    place = begin + len(data[begin:]) - len(data[begin:].lstrip(b"Z"))
    rows = [
        (data[: place + 5] + b"\x07" + data[place + 6 :], "checksum"), (data[:-30], "central directory"),
        (data[: len(data) // 2], "central directory"),
        (b"", "central directory"), (data.replace(b"_rebuild_tensor_v2", b"_rebuild_tensor_v9"), "checksum"),
        (b"PK\3\4" + bytes(40), "central"),
    ]  # fmt: skip
    for content, match in rows:
        (root / "x.pt").write_bytes(content)
        error = run(root, "ck.load('x.pt')")
        assert "LoadError: [load]" in error and match in error, (match, error)
    refused = "import pickle, zipfile\nck.load('x.pt')"
    with zipfile.ZipFile(root / "x.pt", "w") as archive:
        archive.writestr("x/data.pkl", b"\x80\x02cos\nsystem\nX\x02\x00\x00\x00id\x85R.")
    assert "module os is blocked" in run(root, refused)
    assert "No such file" in run(root, "ck.load('none.pt')")


def test_checksums_of_safetensors(root):
    code = """
x = torch.arange(1000.0)
ck.save({"a": x, "e": torch.zeros(0), "b": x.int(), "c": x.reshape(10, 100).t()}, "x.safetensors")
back = ck.load("x.safetensors")
assert back["a"].equal(x) and back["c"].shape == (100, 10) and back["e"].numel() == 0
"""
    assert run(root, code) == ""
    data = bytearray((root / "x.safetensors").read_bytes())
    data[-4005] ^= 1  # in b
    (root / "x.safetensors").write_bytes(data)
    assert "wrong checksums of 'b'" in run(root, "ck.load('x.safetensors')")
    assert "wrong checksums" in run(root, "ck.load_into({'b': torch.zeros(1000).int()}, 'x.safetensors', strict=False)")
    assert run(root, "print(ck.load('x.safetensors', only=['a', 'c'])['a'][3].item())") == "3.0\n"
    (root / "x.safetensors").write_bytes(bytes(data).replace(b'crc32":"', b'crc32":"zz', 1))
    assert "Error" in run(root, "ck.load('x.safetensors')")


def test_invalid_parts(root):
    """The engine checks the positions of tensors and checksums."""
    code = """
from teletensor import _C
data, x = torch.zeros(20, dtype=torch.uint8), torch.ones(2)
def write(positions, places, hexadecimal=False):
    try:
        _C.ops.checkpoint_write_parts(data, [x], path="p.bin", positions=positions, places=places, hexadecimal=hexadecimal, work=0).item()
        return "written"
    except ValueError as error:
        return "ValueError"
print([write([20], []), write([0], [0, 16]), write([0], [0, 0]), write([20], [0, 3]), write([20], [0, 12], True)])
print([write(*row) for row in (([21], []), ([-1], []), ([], []), ([0, 1], []), ([0], [0]), ([0], [1, 0]), ([0], [0, 17]),
                               ([0], [0, 13], True), ([0], [-1, 0]), ([0], [0, -1]), ([10], [0, 8]))])
for offsets in ([], [-1], [100], None):
    try:
        if offsets is None:
            _C.ops.checkpoint_read_range("p.bin", offset=0, size=-1).tolist()
        else:
            _C.ops.checkpoint_read_parts([x], path="p.bin", offsets=offsets).tolist()
    except (ValueError, RuntimeError) as error:
        print("error")
print(*(bytes(_C.ops.checkpoint_read_range("p.bin", offset=offset, size=9).tolist()) for offset in (-3, 26)))
"""
    size = bytes([28, 0, 0, 0, 0, 0, 0, 0])
    assert run(root, code).splitlines() == [
        str(["written"] * 5), str(["ValueError"] * 11), *["error"] * 4, f"{size + bytes([0, 128, 63])!r} {size + bytes([128, 63])!r}",
    ]  # fmt: skip


def test_folders_of_hugging_face(root):
    """The layout before safetensors: pytorch_model.bin, or several files and an index."""
    code = """
import json, os
first, second = (f"pytorch_model-0000{i}-of-00002.bin" for i in (1, 2))
parts = {first: {"a": torch.ones(2), "b": torch.arange(3)}, second: {"c": torch.zeros(1)}}
os.makedirs("root/m"), os.makedirs("root/s")
for name, state in parts.items():
    torch.save(state, "root/m/" + name)
torch.save({"a": torch.ones(4)}, "root/s/pytorch_model.bin")
weights = {key: name for name, state in parts.items() for key in state}
def index(weights):
    with open("root/m/pytorch_model.bin.index.json", "w") as file:
        json.dump({"weight_map": weights}, file)
index(weights)
print({k: v.tolist() for k, v in ck.load("m").items()}, ck.load("s")["a"].tolist())
for wrong in ({"d": "pytorch_model-00001-of-00002.bin"}, {"a": "../x.bin"}, []):
    index(wrong)
    try:
        ck.load("m")
    except ValueError as error:
        print("[checkpoint]" in str(error))
for call in (lambda: ck.names("s/pytorch_model.bin"), lambda: ck.load_into({}, "s/pytorch_model.bin")):
    try:
        call()
    except NotImplementedError as error:
        print("as a whole" in str(error))
"""
    values = "{'a': [1.0, 1.0], 'b': [0, 1, 2], 'c': [0.0]} [1.0, 1.0, 1.0, 1.0]"
    assert run(root, code).splitlines() == [values, *["True"] * 5]
