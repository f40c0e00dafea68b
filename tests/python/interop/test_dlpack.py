"""Exchange of tensors with other libraries, through NumPy's implementation of DLPack."""

import numpy as np
import pytest


class OldProducer:
    """A consumer that supports only DLPack's first version."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, stream=None):
        return self.array.__dlpack__()

    def __dlpack_device__(self):
        return 1, 0


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"])
def test_round_trip(torch, dtype):
    values = np.arange(6).reshape(2, 3).astype(dtype)
    tensor = torch.from_dlpack(values)
    assert tensor.dtype is getattr(torch, dtype) and tensor.tolist() == values.tolist()
    lent = np.from_dlpack(tensor)
    assert lent.dtype == values.dtype and lent.tolist() == values.tolist()


def test_strides_and_flags(torch):
    values = np.arange(24.0).reshape(4, 6)
    assert torch.from_dlpack(values[::2, ::-1]).tolist() == values[::2, ::-1].tolist()
    assert np.from_dlpack(torch.from_dlpack(values).T).tolist() == values.T.tolist()
    values.flags.writeable = False
    assert torch.from_dlpack(values).tolist() == values.tolist()
    assert torch.from_dlpack(np.zeros((0, 3))).shape == (0, 3)


def test_exported_tensor_is_a_copy(torch):
    tensor = torch.zeros(3)
    lent = np.from_dlpack(tensor)
    tensor.fill_(1)
    assert lent.tolist() == [0, 0, 0]
    with pytest.raises(BufferError, match="copy is False"):
        tensor.__dlpack__(copy=False)
    with pytest.raises(ValueError, match="copy is False"):
        torch.from_dlpack(np.zeros(2), copy=False)


def test_tensors_are_imported_without_copy(torch):
    tensor = torch.zeros(3)
    torch.from_dlpack(tensor).fill_(1)
    torch.from_dlpack(tensor, copy=True).fill_(2)
    assert tensor.tolist() == [1, 1, 1]


def test_versions_and_capsules(torch):
    values = np.arange(3)
    assert torch.from_dlpack(OldProducer(values)).tolist() == [0, 1, 2]
    capsule = torch.utils.dlpack.to_dlpack(torch.tensor([1, 2]))
    assert "dltensor" in repr(capsule) and "versioned" not in repr(capsule)
    assert torch.utils.dlpack.from_dlpack(capsule).tolist() == [1, 2]
    assert "versioned" in repr(torch.ones(2).__dlpack__(max_version=(1, 0)))


def test_invalid_arguments_are_rejected(torch):
    with pytest.raises(BufferError, match="detach"):
        torch.ones(2, requires_grad=True).__dlpack__()
    with pytest.raises(BufferError, match="bfloat16"):
        torch.ones(2, dtype=torch.bfloat16).__dlpack__()
    with pytest.raises(BufferError, match="to host memory"):
        torch.ones(2).__dlpack__(dl_device=(2, 0))
    with pytest.raises(ValueError, match="meta"):
        torch.ones(2, device="meta").__dlpack_device__()
    assert torch.ones(2).__dlpack_device__() == (1, 0)


def test_from_a_gpu(torch):
    if not torch.cuda.is_available():
        pytest.skip("the engine has no GPU")
    tensor = torch.ones(2, device="cuda")
    assert tensor.__dlpack_device__() == (2, 0)
    with pytest.raises(BufferError, match="dl_device"):
        tensor.__dlpack__()
    assert np.from_dlpack(tensor, device="cpu").tolist() == [1, 1]
    assert torch.from_dlpack(np.ones(2), device="cuda").device.type == "cuda"
