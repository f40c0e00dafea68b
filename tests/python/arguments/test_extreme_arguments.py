"""Zero-dim tensors and extreme integers: PyTorch's results or exceptions, and the engine stays usable."""

import pytest


def test_movedim_of_a_zero_dim_tensor(torch):
    x = torch.tensor(1.0, requires_grad=True)
    y = torch.movedim(x, 0, -1)
    assert y.shape == () and y.item() == 1
    y.backward()
    assert x.grad.item() == 1
    assert torch.moveaxis(torch.tensor(2), (0,), (0,)).item() == 2


@pytest.mark.parametrize(
    "call",
    [
        lambda torch: torch.movedim(torch.tensor(1.0), (0, -1), (0, -1)),
        lambda torch: torch.tensor(1.0).unfold(0, -1, 1),
        lambda torch: torch.diag_embed(torch.ones(2), -(2**63)),
        lambda torch: torch.ones(4).unflatten(0, (2**32, 2**32)),
        lambda torch: torch.nn.functional.pad(torch.ones(2), (-(2**63), -(2**63))),
        lambda torch: torch.zeros(1).expand(2**40).split(1),
        lambda torch: torch.zeros(0).chunk(2**62),
        lambda torch: torch.zeros(2).as_strided((2,), (2**63 - 1,)),
    ],
)
def test_invalid_arguments_raise(torch, call):
    with pytest.raises(RuntimeError):
        call(torch)
    assert torch.ones(2).sum().item() == 2  # the session stays usable


def test_integers_beyond_division(torch):
    least = torch.tensor(-(2**63))
    assert torch.lcm(least, torch.tensor(-1)).item() == -(2**63)
    assert (least // -1).item() == -(2**63)
    assert torch.round(torch.tensor(1.5), decimals=-(2**63)).isnan().item()


def test_list_of_many_tensors_takes_linear_time(torch):
    assert len(torch.arange(16_000).split(1)) == 16_000


def test_from_bytes_checks_the_sizes(torch):
    from teletensor import _C

    with pytest.raises((RuntimeError, ValueError)):
        _C.from_bytes(b"", torch.float32, [2**32, 2**32], None)
