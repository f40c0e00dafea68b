"""interpolate(mode="lanczos"): values printed by PyTorch 2.15, accepted dtypes and errors."""

from __future__ import annotations

import pytest

CALLS = [  # arguments; the first four values, and the sum of all
    ({"size": (4, 5)}, [0.379944, 0.511802, 0.458899, 0.513065], 59.9679),
    ({"size": (17, 20)}, [-0.150719, 0.233045, 0.832724, 1.054908], 1018.9466),
    ({"scale_factor": 0.4}, [0.420737, 0.499219, 0.458442, 0.571028], 36.085),
    ({"scale_factor": 0.4, "recompute_scale_factor": True}, [0.449458, 0.480993, 0.491672, 0.576616], 35.9511),
]


def image(torch):
    return (torch.arange(594, dtype=torch.float64) * 7919 % 1009 / 1009).reshape(2, 3, 9, 11)


@pytest.mark.parametrize(("arguments", "first", "total"), CALLS)
def test_values(torch, arguments, first, total):
    result = torch.nn.functional.interpolate(image(torch), mode="lanczos", antialias=True, **arguments)
    assert result.flatten()[:4].tolist() == pytest.approx(first, abs=1e-5)
    assert result.sum().item() == pytest.approx(total, abs=1e-3)


def test_images_of_bytes(torch):
    """In PyTorch's and Pillow's integer arithmetic, in the format of the input."""
    x = (image(torch) * 255).to(torch.uint8).contiguous(memory_format=torch.channels_last)
    result = torch.nn.functional.interpolate(x, size=(4, 4), mode="lanczos", antialias=True)
    assert result.dtype == torch.uint8 and result.is_contiguous(memory_format=torch.channels_last)
    assert result.flatten()[:8].tolist() == [104, 126, 121, 150, 137, 112, 133, 134]
    assert torch.equal(torch._C._nn._upsample_lanczos2d_aa(x, (4, 4), False, None), result)


def test_gradient(torch):
    x = image(torch).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: torch.nn.functional.interpolate(x, size=(4, 5), mode="lanczos", antialias=True), x[:1, :1])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "Lanczos mode requires antialias=True"), ({"antialias": True, "align_corners": True}, "does not support align_corners=True"),
    ],
)  # fmt: skip
def test_errors(torch, arguments, message):
    with pytest.raises(ValueError, match=message):
        torch.nn.functional.interpolate(image(torch), size=(4, 4), mode="lanczos", **arguments)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic", "lanczos"])
@pytest.mark.parametrize("dtype", ["int16", "int64", "complex64"])
def test_antialiasing_refuses_integers(torch, mode, dtype):
    """It would round the weights to integers."""
    with pytest.raises(NotImplementedError, match="expected input to have a floating dtype"):
        torch.nn.functional.interpolate(image(torch).to(getattr(torch, dtype)), size=(4, 4), mode=mode, antialias=True)
