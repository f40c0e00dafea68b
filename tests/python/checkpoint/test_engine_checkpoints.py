"""teletensor.checkpoint: files that the engine writes and reads, below a folder that the daemon was given."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import BUILD, IN_PROCESS, client_environment
from tests.sockets import is_listening

from .scripts import addresses, run

pytestmark = [pytest.mark.slow, pytest.mark.skipif(IN_PROCESS, reason="requires an engine in another process")]


SAVE = "ck.save({'x': torch.arange(6.0).reshape(2, 3)}, %r)\n"


def test_paths_are_below_the_root(root):
    assert run(root, SAVE % "run/a.safetensors" + "print(ck.load('run/a.safetensors')['x'].tolist())").strip() == str(
        [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    )
    assert (root / "run/a.safetensors").stat().st_mode & 0o077 == 0
    assert run(root, SAVE % str(root / "b.safetensors")) == ""
    assert (root / "b.safetensors").exists()


@pytest.mark.parametrize(
    "path", ["../out.safetensors", "a/../../out.safetensors", "/tmp/out.safetensors", "link/out.safetensors"]
)
def test_paths_that_leave_the_root_are_refused(root, path):
    run(root, SAVE % "a.safetensors")
    (root / "link").symlink_to(root.parent, target_is_directory=True)
    (root / "file.safetensors").symlink_to("/etc/passwd")
    error = run(root, SAVE % path)
    assert "ValueError: [checkpoint_write" in error, error
    assert any(part in error for part in ("without '..'", "below the checkpoint root", "symbolic link"))
    assert not list(root.parent.glob("out*")) and not Path("/tmp/out.safetensors").exists()
    assert "symbolic link" in run(root, "ck.load('file.safetensors')")


# An expression, the exception, the name of its errno.
PATH_ERRORS = [
    ("ck.load('none.safetensors')", "FileNotFoundError", "ENOENT"),
    ("ck.load('none/x.safetensors')", "FileNotFoundError", "ENOENT"),
    ("ck.load('none')", "FileNotFoundError", "ENOENT"),
    ("ck.load('empty')", "FileNotFoundError", "ENOENT"),
    ("ck.load('none.pt')", "FileNotFoundError", "ENOENT"),
    ("ck.load_into({}, 'none.safetensors')", "FileNotFoundError", "ENOENT"),
    ("ck.names('none.safetensors')", "FileNotFoundError", "ENOENT"),
    ("ck.load('folder.safetensors')", "IsADirectoryError", "EISDIR"),
    ("ck.load('folder.pt')", "IsADirectoryError", "EISDIR"),
    ("ck.save({'x': torch.ones(2)}, 'folder.safetensors')", "IsADirectoryError", "EISDIR"),
    ("ck.load('file/x.safetensors')", "NotADirectoryError", "ENOTDIR"),
    ("ck.load('file')", "NotADirectoryError", "ENOTDIR"),
    ("ck.save({'x': torch.ones(2)}, 'file/x.safetensors')", "NotADirectoryError", "ENOTDIR"),
    ("ck.save_async({'x': torch.ones(2)}, 'file/x.safetensors').result()", "NotADirectoryError", "ENOTDIR"),
    ("ck.load('closed.safetensors')", "PermissionError", "EACCES"),
    ("ck.load('../none.safetensors')", "ValueError", None),
    ("ck.load('/none.safetensors')", "ValueError", None),
]


def test_errors_of_paths_are_those_of_open(root):
    for folder in ("empty", "folder.safetensors", "folder.pt"):
        (root / folder).mkdir()
    (root / "file").write_text("x")
    (root / "closed.safetensors").touch(0)
    rows = [row for row in PATH_ERRORS if os.geteuid() != 0 or row[1] != "PermissionError"]  # root may open every file
    code = f"import errno\nfor call, kind, name in {rows!r}:" + """
    try:
        eval(call)
        print(call, "raises nothing")
    except Exception as e:
        right = type(e).__name__ == kind and (name is None or e.errno == getattr(errno, name)) and "[checkpoint_" in str(e)
        print("ok" if right else (call, kind, e))
"""
    assert run(root, code).splitlines() == ["ok"] * len(rows)


def test_principals_have_subfolders(tmp_path):
    root, socket = tmp_path / "root", tmp_path / "engine.sock"
    root.mkdir()
    tokens = {"user": tmp_path / "token", "admin": tmp_path / "admin-token"}
    command = [str(BUILD / "bin/teletensord"), "--listen", f"unix:{socket}", "--checkpoint-root", str(root)]
    command += ["--token-file", str(tokens["user"]), "--admin-token-file", str(tokens["admin"])]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as engine:
        try:
            for _ in range(500):
                if is_listening(socket):
                    break
                time.sleep(0.02)
            addresses.append(f"unix:{socket}")
            for name, file in tokens.items():
                token = file.read_text().strip()
                assert run(root, SAVE % "a.safetensors", TELETENSOR_TOKEN=token) == ""
                assert [f.name for f in (root / name).iterdir()] == ["a.safetensors"]
            other = root / "admin/a.safetensors"
            error = run(root, f"ck.load({str(other)!r})", TELETENSOR_TOKEN=tokens["user"].read_text().strip())
            assert "below the checkpoint root" in error
        finally:
            engine.terminate()


def test_an_engine_without_a_root_refuses(torch):
    from teletensor import checkpoint

    with pytest.raises(RuntimeError, match="start teletensord with --checkpoint-root"):
        checkpoint.save({"x": torch.ones(2)}, "x.safetensors")
    with pytest.raises(RuntimeError, match="start teletensord with --checkpoint-root"):
        checkpoint.load("x.safetensors")


NESTED = """
m = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
opt = torch.optim.AdamW(m.parameters(), lr=0.1)
m(torch.randn(5, 3)).sum().backward()
opt.step()
state = {"model": m.state_dict(), "optim": opt.state_dict(), "epoch": 3, "rate": float("inf"), "name": None,
         "range": (1, 2.5, "x"), 7: [b"ab", torch.float16, torch.device("cpu"), {1, 2}, 1j]}
"""


def test_nested_state(root):
    code = (
        NESTED
        + """
ck.save(state, "all")
back = ck.load("all")
assert list(back) == list(state) and type(back["model"]) is type(state["model"])
assert all((back["model"][k] == v).all() for k, v in state["model"].items())
assert back["optim"]["param_groups"] == state["optim"]["param_groups"]
assert (back["optim"]["state"][0]["exp_avg"] == state["optim"]["state"][0]["exp_avg"]).all()
assert [back[k] for k in ("epoch", "rate", "name", "range", 7)] == [3, float("inf"), None, (1, 2.5, "x"), state[7]]
opt.load_state_dict(back["optim"])
print("ok")
"""
    )
    assert run(root, code) == "ok\n"


def test_sparse_and_nested_tensors(root):
    """Tensors of other layouts are stored as their components, beside the others, which keep their names."""
    code = """
m = torch.tensor([[0, 1.0, 0, 2], [2, 0, 3, 0]])
rows = [torch.ones(3, 2), torch.zeros(1, 2)]
state = {
    "coo": m.to_sparse(), "csr": m.to_sparse_csr(), "csc": m.to_sparse_csc(), "bsr": m.to_sparse_bsr((1, 2)),
    "bsc": m.to_sparse_bsc((1, 2)), "jagged": torch.nested.nested_tensor(rows, layout=torch.jagged),
    "nested": torch.nested.nested_tensor(rows), "weight": m, "tensor.2": torch.arange(3),
}
for path in ("a", "a.safetensors", "a.pt"):
    ck.save(state, path)
    back = ck.load(path)
    assert list(back) == list(state)
    for name, t in back.items():
        expected = state[name]
        assert t.layout == expected.layout and t.is_nested == expected.is_nested, name
        assert t.is_nested or t.shape == expected.shape, name
        parts = (t.unbind(), expected.unbind()) if t.is_nested else ([t.to_dense()], [expected.to_dense()])
        assert all(torch.equal(a, b) for a, b in zip(*parts, strict=True)), name
ck.save_async({"layers": [state["csr"]], "step": 3}, "b").result()
assert torch.equal(ck.load("b")["layers"][0].to_dense(), m)
assert {"weight", "tensor.2"} < set(ck.names("a")) and torch.equal(ck.load("a", only=["weight"])["weight"], m)
target = {"weight": torch.zeros(2, 4), "tensor.2": torch.zeros(3)}
missing, unexpected = ck.load_into(target, "a", strict=False)
assert missing == [] and torch.equal(target["weight"], m) and target["tensor.2"].tolist() == [0.0, 1.0, 2.0]

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("graph", state["csr"])
        self.layer = torch.nn.Linear(4, 2)

net, other = Net(), Net()
ck.save(net.state_dict(), "net")
other.load_state_dict(ck.load("net"))
assert torch.equal(other.layer.weight, net.layer.weight) and torch.equal(other.graph.to_dense(), m)
print("ok")
"""
    assert run(root, code) == "ok\n"


def test_every_dtype(root):
    code = """
names = ["bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32",
         "float64", "complex64", "complex128", "float8_e4m3fn", "float8_e5m2"]
state = {n: torch.tensor([[0, 1], [1, 0]]).to(torch.float32).to(getattr(torch, n)) for n in names}
state["empty"], state["scalar"] = torch.zeros(0, 3), torch.tensor(2.5)
state["view"] = torch.arange(12).reshape(3, 4).T[1:, ::2]
ck.save(state, "t.safetensors")
back = ck.load("t.safetensors")
assert list(back) == list(state)
for k, v in state.items():
    assert back[k].dtype is v.dtype and back[k].shape == v.shape, k
    assert back[k].to(torch.complex128).tolist() == v.to(torch.complex128).tolist(), k
print("ok")
"""
    assert run(root, code) == "ok\n"


def test_random_boxes(root):
    code = """
import random
from teletensor._checkpoint import files
rng = random.Random(1)
shapes = [(), (9,), (1000,), (7, 5), (300, 700), (3, 40, 50), (2, 3, 4, 5), (40, 30000), (1, 1, 6), (100000, 4)]
state = {str(s): torch.randn(*s) if s else torch.randn(1)[0] for s in shapes}
files.write_tensors("boxes.safetensors", state)
boxes, expected = [], []
for shape in shapes * 6:
    low = [rng.randint(0, n - 1) for n in shape]
    size = [rng.choice([rng.randint(1, n - o), n - o]) for n, o in zip(shape, low)]
    view = state[str(shape)]
    for d, (o, n) in enumerate(zip(low, size)):
        view = view.narrow(d, o, n)
    output = torch.zeros(*reversed(size)).permute(*reversed(range(len(size)))) if rng.random() < 0.3 and size else torch.zeros(size)
    boxes.append((output, str(shape), low))
    expected.append(view)
for status in files.read_boxes("boxes.safetensors", boxes):
    status.item()
assert all((output == view).all() for (output, _, _), view in zip(boxes, expected))
print(len(boxes))
"""
    assert run(root, code) == "60\n"


def test_sharded_files_have_the_layout_of_hugging_face(root):
    code = """
state = {f"layer.{i}": torch.full((1000,), float(i)) for i in range(10)}
ck.save(state, "model", max_shard_size="10KB", metadata={"note": "x"})
assert all((ck.load("model")[k] == v).all() for k, v in state.items())
print(ck.load("model", only=["layer.7"])["layer.7"][0].item())
import teletensor.distributed.checkpoint as dcp
part = {"layer.3": torch.zeros(1000)}
dcp.load(part, storage_reader=dcp.HuggingFaceStorageReader("model"), no_dist=True)
print(part["layer.3"][5].item())
ck.save({"one": torch.ones(2)}, "model")  # replaces all files
"""
    assert run(root, code.rsplit("\n", 2)[0]) == "7.0\n3.0\n"
    index = json.loads((root / "model/model.safetensors.index.json").read_text())
    assert index["metadata"] == {"total_size": 40000}
    assert sorted(set(index["weight_map"].values())) == [f"model-0000{i}-of-00005.safetensors" for i in range(1, 6)]
    safetensors = pytest.importorskip("safetensors")
    for name, file in index["weight_map"].items():
        with safetensors.safe_open(root / "model" / file, "np") as f:
            metadata = f.metadata()
            assert len(metadata.pop("teletensor.header_crc32")) == 8
            assert len(metadata.pop("teletensor.crc32").split()) == len(f.keys()) and metadata == {"format": "pt", "note": "x"}
            np.testing.assert_array_equal(f.get_tensor(name), np.full(1000, float(name[6:]), "f"))
    assert run(root, code) == "7.0\n3.0\n"
    assert os.listdir(root / "model") == ["model.safetensors"]


def test_files_of_the_safetensors_package(root):
    numpy_files = pytest.importorskip("safetensors.numpy")
    rng = np.random.default_rng(0)
    arrays = {
        "a": rng.standard_normal((3, 4)).astype("f"), "b": np.arange(5), "c": np.zeros((0, 2), "f2"), "d": np.array(1.5),
        "e": np.array([True, False]),
    }  # fmt: skip
    numpy_files.save_file(arrays, root / "x.safetensors", {"k": "v"})
    code = "s = ck.load('x.safetensors')\nprint({k: v.tolist() for k, v in s.items()})\nck.save(s, 'y.safetensors')"
    assert eval(run(root, code)) == {k: v.tolist() for k, v in arrays.items()}
    back = numpy_files.load_file(root / "y.safetensors")
    assert back.keys() == arrays.keys()
    for name, value in arrays.items():
        assert back[name].dtype == value.dtype
        np.testing.assert_array_equal(back[name], value)


def test_load_into_a_module(root):
    code = """
m = torch.nn.Linear(3, 2)
ck.save(m.state_dict(), "m.safetensors")
other = torch.nn.Linear(3, 2).double()
print(ck.load_into(other.state_dict(), "m.safetensors"))
assert (other.weight == m.weight.double()).all()
print(ck.load_into({"bias": other.bias, "more": torch.ones(1)}, "m.safetensors", strict=False))
try:
    ck.load_into({"bias": torch.zeros(3), "weight": m.weight}, "m.safetensors")
except RuntimeError as error:
    print("size mismatch for bias" in str(error))
try:
    ck.load_into({"bias": torch.zeros(2)}, "m.safetensors")
except RuntimeError as error:
    print("unexpected in it: ['weight']" in str(error))
"""
    assert run(root, code) == "([], [])\n(['more'], ['weight'])\nTrue\nTrue\n"


def test_asynchronous_save(root):
    code = """
x = torch.ones(3_000_000)
pending = ck.save_async({"x": x}, "a")
x.mul_(2)
done, total = pending.progress()
assert total == 12_000_000 and 0 <= done <= total
pending.result(30)
assert pending.done() and pending.progress() == (total, total)
assert ck.load("a")["x"].sum().item() == 3_000_000 and x.sum().item() == 6_000_000
bad = torch.arange(3)[torch.tensor([7])]
pending = ck.save_async({"x": bad}, "a")
try:
    pending.result(30)
except (RuntimeError, IndexError) as error:
    print("7" in str(error))
for _ in range(5):
    ck.save_async({"x": x}, "dropped")
print(ck.load("a")["x"].sum().item())
"""
    assert run(root, code) == "True\n3000000.0\n"


def test_writes_after_an_asynchronous_save(root):
    """The file has the values at the time of the call, whatever writes to the tensors before they are in the file."""
    code = """
import teletensor.nn.functional as F
def rows(): return torch.arange(12.0).reshape(3, 4) + 1
x = {name: rows() for name in ("add", "slice", "mask", "index", "out", "copy", "view", "set", "relu", "random", "fill", "sort",
                               "lerp", "scatter", "load", "data", "reduce", "twice")}
ck.save({"load": rows() * 3}, "other.safetensors")
norm = torch.nn.BatchNorm1d(4)
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
def step():
    loss = model(norm(rows())).square().sum()
    loss.backward()  # without zero_grad(): adds to the gradients
    optimizer.step()
step()
weights = {"model." + name: p for name, p in model.state_dict().items()}
norms = {name: buffer for name, buffer in norm.named_buffers()}
grads = {"grad." + name: p.grad for name, p in model.named_parameters()}
moments = {f"moment.{i}": value["exp_avg"] for i, value in optimizer.state_dict()["state"].items()}
state = {"large": torch.zeros(16_000_000), **x, **weights, **norms, **grads, **moments, "t": x["view"].t()}
expected = {name: value.tolist() for name, value in state.items() if name != "large"}
saves = [ck.save_async(state, "a.safetensors"), ck.save_async(state, "b")]
x["add"].add_(1).mul_(2)
x["slice"][1:, ::2] = 0
x["mask"][x["mask"] > 5] = -1
x["index"][torch.tensor([0, 2])] = torch.zeros(2, 4)
torch.mul(rows(), 7, out=x["out"])
x["copy"].copy_(rows() * 2)
x["view"].t()[1].neg_()
x["set"].set_(rows() * 5)
F.relu_(x["relu"].sub_(5))
x["random"].normal_()
x["fill"].diagonal().fill_(9)
torch.sort(x["sort"], descending=True, out=(x["sort"], torch.zeros(3, 4, dtype=torch.int64)))
torch._foreach_lerp_([x["lerp"]], [rows() * 4], 0.5)
x["scatter"].scatter_add_(1, torch.zeros(3, 4, dtype=torch.int64), rows())
ck.load_into({"load": x["load"]}, "other.safetensors")
x["data"].data = rows() * 8
torch.cumsum(x["reduce"], 1, out=x["reduce"])
x["twice"].add_(1)
step()
changed = {name for name, value in state.items() if name in expected and value.tolist() != expected[name]}
print(sorted(set(expected) - changed))
for save, path in zip(saves, ("a.safetensors", "b")):
    save.result(60)
    back = ck.load(path)
    print([name for name, value in expected.items() if back[name].tolist() != value])
"""
    assert run(root, code) == "[]\n[]\n[]\n"


def test_tensors_on_gpus(root):
    code = """
x = torch.arange(6000.0, device="cuda").reshape(60, 100)
ck.save({"x": x, "t": x.T[3:], "cpu": torch.ones(3), "b": x > 7}, "g")
pending = ck.save_async({"x": x * 2}, "h")
x.add_(1)
pending.result()
back = ck.load("g", device="cuda")
assert all(t.is_cuda for t in back.values())
assert (back["x"] == x - 1).all() and (back["t"] == (x - 1).T[3:]).all() and (back["b"] == (x > 8)).all()
transposed = torch.zeros(100, 60, device="cuda").T
ck.load_into({"x": transposed}, "g", strict=False)
assert (transposed == x - 1).all()
into = {"x": torch.zeros(60, 100, device="cuda:1", dtype=torch.float64)}
ck.load_into(into, "h")
assert (into["x"].cpu() == 2 * (x.cpu() - 1)).all()
import teletensor.distributed.checkpoint as dcp
dcp.save({"x": x}, checkpoint_id="d", no_dist=True)
state = {"x": torch.zeros(60, 100, device="cuda")}
dcp.load(state, checkpoint_id="d", no_dist=True)
assert (state["x"] == x).all()
bad = x[torch.tensor([60], device="cuda")]
try:
    ck.save({"bad": bad}, "g")
except IndexError as error:
    print("out of bounds" in str(error))
print(ck.load("g")["cpu"].tolist())
"""
    assert run(root, code) == "True\n[1.0, 1.0, 1.0]\n"


def test_a_folder_with_other_files_is_not_replaced(root):
    (root / "home").mkdir()
    (root / "home/thesis.txt").write_text("text")
    assert "expected only files of a checkpoint in it, got 'thesis.txt'" in run(root, SAVE % "home")
    assert (root / "home/thesis.txt").read_text() == "text"


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        (b"", "it has 0 bytes"),
        (b"\xff" * 8 + b"{}", "its header would have 18446744073709551615 bytes"),
        (b"\x40" + b"\0" * 7 + b'{"a":' + b"[" * 59, "malformed"),
        (b"\x02" + b"\0" * 7 + b"{}" + b"more", "unused bytes at the end"),
    ],
)
def test_damaged_files(root, contents, message):
    (root / "x.safetensors").write_bytes(contents)
    error = run(root, "ck.load('x.safetensors')")
    assert "ValueError: [checkpoint_header]" in error and message in error, error


@pytest.mark.parametrize(
    "index", ["[]", "{}", '{"weight_map": {"a": "../x.safetensors"}}', '{"weight_map": {"a": 1}}', "[" * 100_000, "{"]
)
def test_damaged_indices(root, index):
    (root / "x").mkdir()
    (root / "x/model.safetensors.index.json").write_text(index)
    (root / "x/index.json").write_text(index)
    assert "is damaged" in run(root, "ck.load('x')")
    code = "import teletensor.distributed.checkpoint as dcp\ndcp.load({'a': torch.ones(1)}, checkpoint_id='x', no_dist=True)"
    assert "is damaged" in run(root, code)


FLIPPED = """
import random
state = {"step": 12345, "weights": torch.arange(6.0), "names": ["alpha", "beta"], "rate": 0.25, "bias": torch.ones(3).half()}
ck.save(state, "x", max_shard_size=16)
import teletensor.distributed.checkpoint as dcp
dcp.save({"a": torch.arange(4.0), "n": 77}, checkpoint_id="y", no_dist=True)
def same(loaded):
    return str(loaded) == str(state)
assert same(ck.load("x"))
draw = random.Random(0)
import pathlib
wrong = found = 0
for file in sorted(pathlib.Path(ROOT).glob("[xy]*/*")) + [f for f in sorted(pathlib.Path(ROOT).glob("x*")) if f.is_file()]:
    data = file.read_bytes()
    for _ in range(60):
        at = draw.randrange(len(data))
        file.write_bytes(data[:at] + bytes([data[at] ^ 1 << draw.randrange(8)]) + data[at + 1 :])
        try:
            if file.parent.name.startswith("y"):
                target = {"a": torch.zeros(4), "n": 0}
                dcp.load(target, checkpoint_id="y", no_dist=True)
                # It reads parts of tensors and does not check their bytes (docs/checkpoints.md).
                wrong += target["n"] != 77 or target["a"].shape != (4,)
            else:
                wrong += not same(ck.load("x"))
        except (Exception, dcp.CheckpointException):  # the latter is no Exception, as in PyTorch
            found += 1
    file.write_bytes(data)
print(f"{wrong} wrong, {found > 100} found")
"""


def test_metadata_of_another_checkpoint(root):
    code = """
ck.save({"a": torch.ones(2), "b": torch.ones(3)}, "a.safetensors", metadata={"note": "x"})
import safetensors
metadata = safetensors.safe_open(ROOT + "/a.safetensors", "np").metadata()
ck.save({"c": torch.arange(3.0)}, "b.safetensors", metadata=metadata)  # with the checksums of the first one
print(ck.load("b.safetensors")["c"].tolist(), safetensors.safe_open(ROOT + "/b.safetensors", "np").metadata()["note"])
"""
    assert run(root, f"ROOT = {str(root)!r}\n" + code).strip() == "[0.0, 1.0, 2.0] x"


def test_flipped_bits_are_detected(root):
    assert "0 wrong, True found" in run(root, f"ROOT = {str(root)!r}\n" + FLIPPED)


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a file system")
def test_full_disk(root):
    if (
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(root)], capture_output=True).returncode
        != 0
    ):
        pytest.skip("cannot mount a tmpfs")
    try:
        code = """
import teletensor.distributed.checkpoint as dcp
for path in ("a.safetensors", "a.pt", "folder"):
    ck.save({"x": torch.ones(100_000)}, path)
    for save in (ck.save, lambda state, path: ck.save_async(state, path).result()):
        try:
            save({"x": torch.zeros(2_000_000)}, path)
        except RuntimeError as error:
            print("No space left on device" in str(error))
    print(ck.load(path)["x"].sum().item())
dcp.save({"x": torch.ones(100_000)}, checkpoint_id="d", no_dist=True)
try:
    dcp.save({"x": torch.zeros(2_000_000)}, checkpoint_id="d", no_dist=True)
except dcp.CheckpointException as error:
    print("No space left on device" in str(error))
state = {"x": torch.zeros(100_000)}
dcp.load(state, checkpoint_id="d", no_dist=True)
print(state["x"].sum().item())
"""
        assert run(root, code).split() == (["True", "True", "100000.0"] * 3) + ["True", "100000.0"]
        assert not [f for f in root.rglob("*") if f.name.endswith(".tmp")]
    finally:
        subprocess.run(["umount", str(root)], check=True)


def test_killed_engine_leaves_the_previous_checkpoint(tmp_path):
    """A private engine, which accepts all paths of its user."""
    code = f"""
import os, pathlib, signal, time
import teletensor as torch, teletensor.checkpoint as ck
os.chdir({str(tmp_path)!r})
ck.save({{"x": torch.ones(10)}}, "model")
ck.save({{"x": torch.ones(10)}}, "one.safetensors")
ck.save({{"x": torch.ones(10)}}, "one.pt")
children = pathlib.Path(f"/proc/{{os.getpid()}}/task/{{os.getpid()}}/children").read_text().split()
pending = [ck.save_async({{"x": torch.zeros(25_000_000)}}, path) for path in ("model", "one.safetensors", "one.pt")]
while pending[0].progress()[0] == 0:
    pass
os.kill(int(children[0]), signal.SIGKILL)
for p in pending:
    try:
        p.result(20)
    except (RuntimeError, ConnectionError):
        print("failed")
torch.disconnect()
print(ck.load("model")["x"].sum().item(), ck.load("one.safetensors")["x"].sum().item(), ck.load("one.pt")["x"].sum().item())
ck.save({{"x": torch.ones(20)}}, "model")
print(ck.load("model")["x"].sum().item())
"""
    environment = client_environment(TELETENSOR_ADDRESS="")
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60)
    assert done.stdout == "failed\nfailed\nfailed\n10.0 10.0 10.0\n20.0\n", done.stderr
