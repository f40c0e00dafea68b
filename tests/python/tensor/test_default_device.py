"""The default device: which functions it concerns, as in PyTorch."""

from __future__ import annotations

import numpy as np
import pytest


@pytest.fixture(params=["set_default_device", "with"])
def meta(torch, request):
    """Makes "meta" the default device."""
    if request.param == "with":
        with torch.device("meta"):
            yield
    else:
        torch.set_default_device("meta")
        yield
        torch.set_default_device(None)


def test_functions_of_other_memory_are_on_the_cpu(torch, meta):
    array = np.arange(3.0)
    made = (
        torch.from_numpy(array), torch.from_dlpack(array), torch.FloatTensor(2), torch.LongTensor([1, 2]),
        torch.UntypedStorage(2), torch.UntypedStorage([1, 2]), torch.TypedStorage(2), torch.FloatStorage(2),
    )  # fmt: skip
    assert {str(value.device) for value in made} == {"cpu"}
    assert made[0].tolist() == made[1].tolist() == [0.0, 1.0, 2.0]


def test_functions_with_a_device_follow_it(torch, meta):
    given = torch.ones(2, device="cpu")
    for function in (torch.tensor, torch.as_tensor, torch.asarray):
        assert function([1.0]).device.type == function(np.arange(3.0)).device.type == "meta"
        assert function(given).device.type == "meta"  # also of a tensor on another device
        assert function(given, device="cpu").device.type == "cpu"
    assert torch.tensor(given.untyped_storage()).device.type == torch.zeros(2).device.type == "meta"
    assert torch.zeros_like(given).device.type == given.new_zeros(2).device.type == "cpu"


def test_blocks_restore_the_default(torch):
    given = torch.ones(2)
    with torch.device("meta"), torch.device("cpu"):
        assert torch.tensor(given).device.type == "cpu"
    assert torch.tensor(given).device.type == "cpu"
    assert torch.as_tensor(given.to("meta")).device.type == "meta"
    assert torch.as_tensor(given) is given


def test_constructors_are_on_the_device_of_the_default_tensor_type(torch, meta):
    given = torch.ones(2, device="cpu")
    made = torch.Tensor(2), torch.Tensor(), torch.Tensor([1, 2]), torch.Tensor(np.ones(2)), torch.Tensor(torch.Size([2]))
    assert {t.device.type for t in (*made, torch.Tensor(2, device="cpu"), torch.Tensor(given))} == {"cpu"}
    assert made[2].tolist() == [1.0, 2.0] and torch.Tensor(torch.ones(2)).device.type == "meta"
    with pytest.raises(RuntimeError, match="legacy constructor expects device type: cpu but device type: meta was passed"):
        torch.Tensor(2, device="meta")


def test_the_default_device_precedes_the_default_tensor_types(torch):
    assert torch._C.swap_tensor_type_device(torch.device("meta")) is None
    try:
        assert torch.Tensor(2).device.type == torch.zeros(2).device.type == torch.get_default_device().type == "meta"
        assert torch.as_tensor(np.ones(2)).device.type == "meta" and torch.from_numpy(np.ones(2)).device.type == "cpu"
        with torch.device("cpu"):
            assert torch.Tensor(2).device.type == "meta" and torch.zeros(2).device.type == "cpu"
    finally:
        torch._C.swap_tensor_type_device(None)


def test_keyword_arguments_of_the_constructor(torch):
    """They were ignored, or replaced the data."""
    assert torch.Tensor(data=[1.0, 2.0]).tolist() == torch.Tensor(other=torch.tensor([1.0, 2.0])).tolist() == [1.0, 2.0]
    assert torch.Tensor(size=(2, 3)).shape == (2, 3)
    refused = ({"dtype": torch.int64}, "got dtype"), ({"data": 5}, "data must be a sequence"), ({"size": 5}, "sizes as ints")
    for kwargs, message in refused:
        with pytest.raises(TypeError, match=message):
            torch.Tensor(**kwargs)
    with pytest.raises(UnicodeEncodeError):
        torch.Tensor(**{"\ud800": 1})
    with pytest.raises(RuntimeError, match="Legacy tensor constructor"):
        torch.Tensor(torch.ones(2), device="cpu")


def test_storages_are_the_elements_of_the_constructor(torch):
    x = torch.ones(2)
    for storage in (x.untyped_storage(), x.storage()):
        made = torch.Tensor(storage)
        made[0] = 3
        assert made.tolist() == x.tolist() == [3.0, 1.0]
        x.fill_(1)
    with pytest.raises(RuntimeError, match="Expected a Storage of type"):
        torch.Tensor(torch.tensor([1, 2]).storage())


def test_compiled_functions_notice_a_default_device(torch):
    """Also one that is the device of tensors without it."""
    compiled, given = torch.compile(torch.as_tensor, backend="eager"), torch.ones(1, device="meta")
    assert compiled(given).device.type == "meta"
    with torch.device("cpu"), pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor"):
        compiled(given)
    make = torch.compile(lambda: torch.Tensor(2), backend="eager")
    assert make().device.type == "cpu"
    before = torch._C.swap_tensor_type_device(torch.device("meta"))
    try:
        assert make().device.type == "meta"
    finally:
        torch._C.swap_tensor_type_device(before)
