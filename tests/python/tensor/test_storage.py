"""Addresses of tensors: numbers that identify memory locations, and copies for foreign functions. Also the identity of
storages.
"""

from __future__ import annotations

import copy
import ctypes
import numbers
import pickle
import struct

import pytest

from tests.conftest import DEVICES, IN_PROCESS
from tests.python.session.test_session import run_script


def test_addresses(torch):
    x = torch.ones(2, 3)
    storage = x.untyped_storage()
    with pytest.raises(RuntimeError, match=r"no address in this process.*\.numpy\(\).*is_set_to"):
        storage._cdata  # noqa: B018
    assert not hasattr(x, "__cuda_array_interface__") and not hasattr(x, "__array_interface__")
    with pytest.raises(AttributeError, match="no address"):
        x.__cuda_array_interface__  # noqa: B018


def test_storages(torch):
    x = torch.arange(6.0).reshape(2, 3).clone()
    views = [x.view(3, 2), x.T, x[1], x.detach(), x.reshape(6), x.unsqueeze(0), *x.split(1), x.view(torch.int32)]
    views.append(x.as_strided((2,), (1,), 1))
    for view in [x, *views, views[0][1]]:
        assert view.untyped_storage() == x.untyped_storage() and hash(view.untyped_storage()) == hash(x.untyped_storage())
        assert view.untyped_storage().nbytes() == 24
    for other in (x.clone(), x + 0, torch.zeros(2, 3), x.T.contiguous()):
        assert other.untyped_storage() != x.untyped_storage()
    assert x.is_set_to(x.view(2, 3)) and x.is_set_to(x.detach()) and not x.is_set_to(x.T) and not x.is_set_to(x.clone())
    assert not x[0].is_set_to(x[1])
    number = x.untyped_storage()
    x.add_(1)
    assert x.untyped_storage() == number
    copied = torch.zeros(0)
    copied.set_(x)
    assert copied.is_set_to(x)


def test_numbers_of_storages(torch):
    """data_ptr() of storages identifies them, and is too large for an address."""
    x, y = torch.arange(6.0), torch.arange(6.0)
    assert x.untyped_storage().data_ptr() == x[2:].untyped_storage().data_ptr() == x.storage().data_ptr() > 2**64
    assert x.untyped_storage().data_ptr() != y.untyped_storage().data_ptr()
    assert x.untyped_storage()[4:].data_ptr() == x.untyped_storage().data_ptr() + 4
    assert torch.ones(3, device="meta").untyped_storage().data_ptr() == 0
    assert torch.empty(0).untyped_storage().data_ptr() == 0


def test_numbers_of_tensors(torch):
    """data_ptr() of tensors compares like an address."""
    x = torch.arange(6.0).reshape(2, 3)
    p = x.data_ptr()
    assert p == x.untyped_storage().data_ptr() == x.T.data_ptr() == x.const_data_ptr() and hash(p) == hash(int(p)) and p
    assert x[1].data_ptr() - p == 12 and p + 4 == x[0, 1].data_ptr() and p % 4 == 0 and p < x[1].data_ptr() <= x[1].data_ptr()
    assert sorted([(x[1].data_ptr(), 1), (p, 0)])[0][1] == 0 and torch.empty(0).data_ptr() == 0 and x.clone().data_ptr() != p
    assert not isinstance(p, int) and isinstance(p, numbers.Integral)


def test_foreign_functions_get_a_copy(torch):
    x = torch.arange(6.0).reshape(2, 3)

    def read(tensor, count):
        return ctypes.cast(tensor.data_ptr(), ctypes.POINTER(ctypes.c_float))[:count]

    assert read(x, 6) == read(x.T, 6) == [0, 1, 2, 3, 4, 5] and read(x[1], 3) == [3, 4, 5] and read(x[:, 1:], 5) == [1, 2, 3, 4, 5]
    before = x.data_ptr()
    x.add_(1)
    assert read(x, 6) == [1, 2, 3, 4, 5, 6] and x.data_ptr() == before
    brain = torch.tensor([1.0, 2.0], dtype=torch.bfloat16)
    assert ctypes.cast(brain.data_ptr(), ctypes.POINTER(ctypes.c_uint16))[:2] == [0x3F80, 0x4000]


def test_bytes(torch):
    x = torch.tensor([1.0, 2.0, 3.0])
    s = x.untyped_storage()
    assert (s.nbytes(), s.size(), len(s), s.element_size(), s.device.type) == (12, 12, 12, 1, "cpu") and torch.is_storage(s)
    assert s.tolist() == list(s) == [0, 0, 128, 63, 0, 0, 0, 64, 0, 0, 64, 64] and s[3] == 63 and s[-1] == 64
    part = s[4:8]
    assert part.tolist() == [0, 0, 0, 64] and part.nbytes() == 4 and part != s and part == x[:1].untyped_storage()[4:8]
    part[3] = 65
    assert x.tolist() == [1, 8, 3]
    copy = s.clone()
    assert copy.tolist() == s.tolist() and copy != s
    s.fill_(0)
    assert x.tolist() == [0, 0, 0] and s.copy_(copy) is s and x.tolist() == [1, 8, 3]
    assert torch.UntypedStorage(4).nbytes() == 4 and torch.UntypedStorage([1, 2]).tolist() == [1, 2]
    assert torch.UntypedStorage(3, device="meta").device.type == "meta" and torch.UntypedStorage().nbytes() == 0
    assert s.to(device="meta").nbytes() == 12 and s.cpu() is s and s.untyped() is s
    assert s.resize_(12) is s and not s.resizable()
    with pytest.raises(NotImplementedError, match=r"\[resize_\]"):
        s.resize_(24)
    for wrong, error in ((lambda: torch.UntypedStorage("x", 1), TypeError), (lambda: torch.UntypedStorage(2.5), TypeError),
                         (lambda: s[::2], RuntimeError), (lambda: s.copy_(part), RuntimeError), (lambda: s[20], IndexError)):  # fmt: skip
        with pytest.raises(error):
            wrong()
    swapped = torch.tensor([1, 256], dtype=torch.int16)
    swapped.untyped_storage().byteswap(torch.int16)
    assert swapped.tolist() == [256, 1]
    assert s.float().tolist() == [float(v) for v in s.tolist()]


def test_typed_storages(torch, tmp_path):
    x = torch.arange(4.0)
    s = x.storage()
    assert isinstance(s, torch.FloatStorage) and isinstance(s, torch.TypedStorage) and not isinstance(s, torch.LongStorage)
    assert (s.size(), len(s), s.nbytes(), s.element_size(), s.dtype, s.device.type) == (4, 4, 16, 4, torch.float32, "cpu")
    assert s.tolist() == list(s) == [0, 1, 2, 3] and s[1] == 1 and s == x[1:].storage() and torch.is_storage(s)
    s[0] = 5
    s[1:3] = 7
    assert x.tolist() == [5, 7, 7, 3]
    assert s.long().tolist() == [5, 7, 7, 3] and s.double().dtype is torch.float64 and s.type() == "torch.FloatStorage"
    assert s.type("torch.LongStorage").dtype is torch.int64 and s.pickle_storage_type() == "FloatStorage"
    assert torch.FloatStorage(3).size() == 3 and torch.LongStorage([1, 2]).tolist() == [1, 2]
    assert torch.TypedStorage([1, 2], dtype=torch.int8).nbytes() == 2
    assert torch.TypedStorage(wrap_storage=x.untyped_storage(), dtype=torch.int32)[3] == 0x40400000
    assert torch.FloatStorage(wrap_storage=x.untyped_storage())[3] == 3
    assert torch.ShortStorage.from_buffer(b"\1\2\3\4", "big").tolist() == [0x102, 0x304]
    (tmp_path / "f").write_bytes(b"\1\0\2\0\3\0")
    assert torch.ShortStorage.from_file(tmp_path / "f", False, 2).tolist() == [1, 2]
    assert torch.UntypedStorage.from_file(tmp_path / "f").nbytes() == 6
    assert s.copy_(torch.LongStorage([1, 2, 3, 4])).tolist() == [1, 2, 3, 4] and s.clone() != s and s.fill_(2).tolist() == [2] * 4
    for wrong, error in (
        (lambda: s[4], IndexError), (lambda: s[1:2], RuntimeError), (lambda: torch.TypedStorage(1, 2), RuntimeError),
        (lambda: torch.TypedStorage(wrap_storage=x, dtype=x.dtype), TypeError), (lambda: torch.FloatStorage(1, dtype=3), RuntimeError),
        (lambda: torch.UntypedStorage.from_file(tmp_path / "f", False, 20), RuntimeError),
    ):  # fmt: skip
        with pytest.raises(error):
            wrong()


def test_set_to_a_storage(torch):
    x = torch.arange(12.0)
    y = torch.empty(0)
    assert y.set_(x.untyped_storage(), 2, (2, 3), (1, 2)).tolist() == [[2, 4, 6], [3, 5, 7]]
    assert y.untyped_storage() == x.untyped_storage() and y.set_(x.storage()).is_set_to(x)
    assert torch.empty(0).set_(x.untyped_storage()[8:20]).tolist() == [2, 3, 4]
    assert torch.empty(0, dtype=torch.int16).set_(x.untyped_storage(), 2, (2,)).tolist() == [0, 0x3F80]
    for wrong in (
        lambda: torch.empty(0).set_(x.untyped_storage(), 10, (3,), (1,)), lambda: torch.empty(0).set_(x.untyped_storage()[2:], 0, (1,)),
        lambda: torch.empty(0).long().set_(x.storage()), lambda: torch.empty(0).set_(x.untyped_storage()[:8], 0, (3,)),
        lambda: torch.empty(0, device="meta").set_(x.untyped_storage()), lambda: torch.empty(0).set_(x.untyped_storage(), -1, (3,)),
    ):  # fmt: skip
        with pytest.raises(RuntimeError):
            wrong()


def test_frombuffer(torch):
    data = bytearray(struct.pack("<4f", 1, 2, 3, 4))
    assert torch.frombuffer(data, dtype=torch.float32).tolist() == [1, 2, 3, 4]
    x = torch.frombuffer(data, dtype=torch.float32, count=2, offset=4, requires_grad=True)
    assert x.tolist() == [2, 3] and x.requires_grad
    assert torch.frombuffer(memoryview(data)[8:], dtype=torch.bfloat16).shape == (4,)
    for options in ({"count": 5}, {"offset": 16}, {"offset": -1}, {"offset": 1}, {"count": 0}):
        with pytest.raises(ValueError, match="buffer"):
            torch.frombuffer(data, dtype=torch.float32, **options)


def test_pickles(torch):
    """Values, sharing, parameters and modules survive pickle.dumps, for worker processes; so do copies."""
    base = torch.arange(6.0)
    base.note = "kept"
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    meta = torch.ones(2, device="meta")
    value = [base, base[1:4], base.reshape(2, 3).t(), model, torch.tensor([1 + 2j]), meta, torch.zeros(0, 3), base.storage()]
    for protocol in (2, 4, 5):
        got = pickle.loads(pickle.dumps(value, protocol))
        assert [t.tolist() for t in (*got[:3], got[4], got[6], got[7])] == [t.tolist() for t in (*value[:3], value[4], value[6], value[7])]
        assert got[0].untyped_storage() == got[1].untyped_storage() == got[2].untyped_storage() == got[7].untyped()
        assert got[0].untyped_storage() != base.untyped_storage()
        assert got[0].note == "kept" and got[2].stride() == (1, 3) and got[5].device.type == "meta"
        assert type(got[3][0].weight) is torch.nn.Parameter and got[3][0].weight.requires_grad
        assert got[3].eval()(torch.ones(2, 2)).tolist() == model.eval()(torch.ones(2, 2)).tolist()
    assert copy.copy(base).untyped_storage() == base.untyped_storage() and copy.deepcopy(base).untyped_storage() != base.untyped_storage()
    plain = [torch.float32, torch.device("cuda:1"), torch.Size([1])]
    assert pickle.loads(pickle.dumps(plain)) == plain
    result = pickle.loads(pickle.dumps(torch.ones(1, requires_grad=True) * 2))  # becomes a leaf, as in PyTorch
    assert result.is_leaf and result.requires_grad and result.tolist() == [2.0]
    if len(DEVICES) > 1:
        assert pickle.loads(pickle.dumps(torch.ones(2, device="cuda:1"))).device == torch.device("cuda:1")


def test_tied_weights_are_found(torch):
    """Shared weights are found by comparing storages; with PyTorch, libraries compare data_ptr()."""
    first, second = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)
    second.weight = first.weight
    names = {}
    for name, value in torch.nn.Sequential(first, second).state_dict().items():
        names.setdefault(value.untyped_storage(), []).append(name)
    assert sorted(map(sorted, names.values())) == [["0.bias"], ["0.weight", "1.weight"], ["1.bias"]]


# Operators that take shape and dtype from a tensor run on the device of the result.
LIKES = [
    ("zeros_like", (), 0), ("ones_like", (), 1), ("full_like", (3,), 3), ("empty_like", (), None), ("rand_like", (), None),
    ("randn_like", (), None), ("randint_like", (5, 6), 5), ("randint_like", (1,), 0),
]  # fmt: skip


@pytest.mark.parametrize(("name", "arguments", "value"), LIKES)
@pytest.mark.parametrize("source", ["meta", "cpu"])
def test_like_functions_with_another_device(torch, name, arguments, value, source):
    like = torch.ones(2, 3, device=source)
    for device in [*DEVICES, "meta"]:
        result = getattr(torch, name)(like, *arguments, device=device)
        assert result.device.type == device and result.shape == (2, 3) and result.dtype is torch.float32
        if device != "meta":
            values = result.cpu()
            assert values.isfinite().numel() == 6 and (value is None or values.tolist() == [[value] * 3] * 2)
        assert getattr(torch, name)(like, *arguments, device=device, requires_grad=True).requires_grad


@pytest.mark.parametrize(("name", "arguments"), [("zeros", ((2,),)), ("ones", ((2,),)), ("empty", ((2,),)), ("full", ((2,), 7)),
                                                 ("tensor", ([1.0, 2.0],)), ("empty_strided", ((2,), (1,)))])  # fmt: skip
def test_new_functions_of_meta_tensors(torch, name, arguments):
    result = getattr(torch.ones(3, device="meta"), f"new_{name}")(*arguments, device="cpu")
    assert result.device.type == "cpu" and len(result.tolist()) == 2


def test_meta_has_no_values(torch):
    meta = torch.ones(1, device="meta")
    with pytest.raises(RuntimeError, match=r"Tensor.item\(\) cannot be called on meta tensors"):
        meta.item()
    with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor; no data!"):
        meta.to("cpu")
    with pytest.raises(TypeError, match="can't convert meta device type tensor to numpy"):
        meta.numpy()


@pytest.mark.skipif(IN_PROCESS, reason="needs a daemon")
def test_missing_gpu(own_daemon):
    script = """
import pytest
import teletensor as torch
for make in (
    lambda: torch.ones(2).cuda(), lambda: torch.ones(2).to("cuda"), lambda: torch.ones(2, device="cuda"),
    lambda: torch.nn.Linear(2, 2).cuda(), lambda: torch.tensor([1.0], device="cuda:3"), lambda: torch.ones(2).new_ones(2, device="cuda"),
    lambda: torch.zeros_like(torch.ones(2), device=0), lambda: torch.full((2,), 1.0, device=torch.device("cuda", 1)),
):
    with pytest.raises(RuntimeError, match="No CUDA GPUs are available: expected cpu"):
        make()
torch.set_default_device("cuda")
with pytest.raises(RuntimeError, match="No CUDA GPUs are available"):
    torch.zeros(2)
torch.set_default_device(None)
print(torch.zeros(2).tolist())
"""
    daemon = own_daemon(TELETENSOR_CUDA_PLUGIN="/nowhere")
    run = run_script(script, daemon)
    assert run.stdout.strip() == "[0.0, 0.0]", run.stderr


def test_functions_that_pickles_of_pytorch_name(torch):
    """pickle.load() of a file of PyTorch's pickle.dump(), which contains storages as files of torch.save()."""
    import io

    from teletensor import _torch_pickles, _utils, storage

    _torch_pickles.provide()
    file = io.BytesIO()
    torch.save(torch.arange(6.0).storage(), file)
    elements = storage._load_from_bytes(file.getvalue())
    tensor = _utils._rebuild_tensor_v2(elements, 0, (2, 3), (3, 1), False, {})
    assert tensor.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert isinstance(_utils._rebuild_parameter(tensor, True, {}), torch.nn.Parameter)
    with pytest.raises(AttributeError, match="_rebuild_nothing"):
        _utils._rebuild_nothing  # noqa: B018


def test_tensors_of_storages_and_of_tensors_share_bytes(torch):
    a = torch.arange(4.0)
    untyped, typed = a.untyped_storage(), a.storage()
    for made in (
        torch.tensor(untyped, dtype=torch.float32), torch.tensor(typed), torch.as_tensor(typed), torch.FloatTensor(untyped),
        torch.FloatTensor(a), a.new(a), a.new(typed),
    ):  # fmt: skip
        assert torch.equal(made, a) and made.dtype == torch.float32
        made.add_(1)
    assert a.tolist() == [7, 8, 9, 10]
    assert torch.tensor(untyped).dtype == torch.int64 and torch.tensor(untyped, dtype=torch.uint8).shape == (16,)
    with pytest.raises(RuntimeError, match="Expected a Storage of type torch.float64"):
        torch.tensor(typed, dtype=torch.float64)
    copy = torch.tensor(a)
    copy.add_(1)
    assert a.tolist() == [7, 8, 9, 10]


def test_shared_files_are_read_only(torch, tmp_path):
    """No write is lost, and none that should create a file."""
    path = tmp_path / "f"
    path.write_bytes(bytes(range(16)))
    with pytest.warns(UserWarning, match="read-only copy of the file"):
        x = torch.from_file(str(path), shared=True, size=2, dtype=torch.int32)
    with pytest.warns(UserWarning, match="read-only copy of the file"):
        storage = torch.UntypedStorage.from_file(path, True, 8)
    assert x.tolist() == [0x03020100, 0x07060504] and storage.tolist() == list(range(8))
    for write in (lambda: x.add_(1), lambda: x[:1].zero_(), lambda: torch.add(x, 1, out=x), lambda: storage.fill_(0)):
        with pytest.raises(RuntimeError, match="read-only"):
            write()
    assert x.clone().add_(1).tolist() == [0x03020101, 0x07060505] and path.read_bytes() == bytes(range(16))
    for shared, name, error, message in (
        (True, path, NotImplementedError, "at least 400 bytes"), (True, tmp_path / "new", NotImplementedError, "at least 400 bytes"),
        (False, path, RuntimeError, "size <16> is smaller than the required mapping size <400>"),
        (False, tmp_path / "new", RuntimeError, r"unable to open file <.*new> in read-only mode: No such file or directory \(2\)"),
    ):  # fmt: skip
        with pytest.raises(error, match=message):
            torch.from_file(str(name), shared=shared, size=100)
    assert not (tmp_path / "new").exists()
    assert torch.from_file(str(path), size=0).shape == (0,)
