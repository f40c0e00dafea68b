"""Files of torch.save and torch.load: PyTorch's are read here, and ours there; classes that files name."""

from __future__ import annotations

import io
import json
import math
import os
import pickle
import struct
import subprocess
import zipfile
from collections import OrderedDict, namedtuple
from pathlib import Path

import pytest

from tests.conftest import ROOT
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


@pytest.mark.slow
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
    ("module.legacy", pickle.UnpicklingError, "contains a module.*state_dict|Sequential was not an allowed global"),
]


@pytest.mark.parametrize(("name", "error", "match"), REFUSED)
def test_refused_files_of_pytorch(torch, name, error, match):
    for weights_only in (None, True, False):
        with pytest.raises(error, match=match) as raised:
            torch.load(FIXTURES / f"{name}.pt", weights_only=weights_only)
        assert isinstance(raised.value, RuntimeError) and str(raised.value).startswith("[load] ")


def test_sparse_tensor_of_pytorch(torch):
    loaded = torch.load(FIXTURES / "sparse.pt")
    assert loaded.layout == torch.sparse_coo and torch.equal(loaded.to_dense(), torch.eye(3))


def test_module_of_pytorch(torch):
    with pytest.raises(pickle.UnpicklingError, match="GLOBAL torch.nn.modules.container.Sequential was not an allowed global"):
        torch.load(FIXTURES / "module.pt")
    assert type(torch.load(FIXTURES / "module.pt", weights_only=False)) is torch.nn.Sequential


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
        for first, second in (
            torch.load(io.BytesIO(buffer.getvalue())),
            pickle.loads(pickle.dumps([tagged, torch.arange(3.0)[1:]])),
        ):
            assert type(first) is Tagged and first.tag == [1] and first.tolist() == [0, 1, 2]
            assert type(second) is torch.Tensor and second.tolist() == [1, 2]
    assert type(torch.empty(0).set_(tagged.untyped_storage())) is torch.Tensor


def test_numpy_arrays(torch):
    """With weights_only, arrays need the functions of NumPy that pickles of arrays call."""
    import numpy as np

    with pytest.raises(pickle.UnpicklingError, match=r"add_safe_globals\(\[numpy.*_reconstruct\]\)"):
        torch.load(FIXTURES / "numpy.pt")
    assert torch.load(FIXTURES / "numpy.pt", weights_only=False)["a"].tolist() == [0, 1, 2]
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
