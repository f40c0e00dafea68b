"""Addresses of tensors are not exposed: access raises an error with an alternative. Also the identity of storages."""

from __future__ import annotations

import pytest

from tests.conftest import DEVICES, IN_PROCESS
from tests.python.session.test_session import run_script


def test_addresses(torch):
    x = torch.ones(2, 3)
    storage = x.untyped_storage()
    for ask in (x.data_ptr, x.const_data_ptr, storage.data_ptr, lambda: storage._cdata, x.storage().data_ptr, x[0].data_ptr):
        with pytest.raises(RuntimeError, match=r"no address in this process.*\.numpy\(\).*is_set_to"):
            ask()
    assert not hasattr(x, "__cuda_array_interface__") and not hasattr(x, "__array_interface__") and not hasattr(x, "_cdata")
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
        meta.to("cpu").tolist()
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
