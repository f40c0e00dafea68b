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


# Integers that become a loop or a list in the client. Each raises at the call, before 2**31 steps are taken.
@pytest.mark.parametrize(
    "call",
    [
        lambda torch: torch.tensordot(torch.ones(2, 3), torch.ones(3, 2), 2**31),
        lambda torch: torch.tensordot(torch.ones(2, 3), torch.ones(3, 2), -1),
        lambda torch: torch.combinations(torch.ones(3), 2**31, True),
        lambda torch: torch.combinations(torch.ones(1), 2**31, True),
        lambda torch: torch.combinations(torch.ones(100), 50),
        lambda torch: torch.special.multigammaln(torch.ones(2), 2**31),
        lambda torch: torch.zeros(1).expand(2**31).unbind(),
        lambda torch: torch.zeros(1).expand(2**31).chunk(2**31),
        lambda torch: torch.zeros(2).tensor_split(2**31),
        lambda torch: list(torch.zeros(1).expand(2**31)),
        lambda torch: torch.nn.functional.pad(torch.ones(1, 1, 4), (2**31, 0), "circular"),
        lambda torch: torch.nn.functional.pad(torch.ones(1, 1, 4), (2**31, 0), "reflect"),
        lambda torch: torch.nn.functional.interpolate(
            torch.ones(1, 1, 4, 4), size=(2**31, 4), mode="bilinear", antialias=True
        ),
        lambda torch: torch.nn.functional.interpolate(
            torch.ones(1, 1, 4, 4, dtype=torch.uint8), size=(2**31, 4), mode="bilinear"
        ),
        lambda torch: torch.nn.init.dirac_(torch.empty(6, 2, 3), 2**31),
        lambda torch: torch.utils.checkpoint.checkpoint_sequential([abs, abs], 2**31, torch.ones(2)),
        lambda torch: torch.distributions.Independent(torch.distributions.Normal(torch.ones(2), 1.0), 2**31),
        lambda torch: torch.distributions.utils.vec_to_tril_matrix(torch.ones(3), -(2**31)),
    ],
)
def test_count_is_checked_at_the_call(torch, call):
    with pytest.raises((RuntimeError, ValueError)):
        call(torch)
    assert torch.ones(2).sum().item() == 2  # the session stays usable


# The same with results that the engine can compute, or refuses because of their memory.
@pytest.mark.parametrize(
    "call",
    [
        lambda torch: torch.repeat_interleave(torch.ones(2), torch.tensor([2**40, 1])),
        lambda torch: torch.repeat_interleave(torch.tensor([2**40])),
        lambda torch: torch.linalg.vander(torch.ones(2), N=2**40),
        lambda torch: torch.vander(torch.ones(2), 2**40),
        lambda torch: torch.nn.functional.pad(torch.ones(1, 1, 4), (2**40, 0), "replicate"),
        lambda torch: torch.distributions.LKJCholesky(2**40)._beta.mean,
        lambda torch: torch.nn.functional.one_hot(torch.tensor([0]), 2**40),
    ],
)
def test_count_is_limited_by_memory(torch, call):
    with pytest.raises(RuntimeError):
        torch.sum(call(torch)).item()
    assert torch.ones(2).sum().item() == 2


def test_counts_that_need_no_loop(torch):
    assert torch.combinations(torch.ones(3), 2**31).shape == (0, 2**31)
    assert torch.rot90(torch.ones(2, 3), 2**31).shape == (2, 3)
    assert torch.linalg.matrix_power(torch.eye(2), 2**31).sum().item() == 2
    assert torch.nn.init.dirac_(torch.empty(0, 2, 3), 2**31).shape == (0, 2, 3)
    long = torch.nn.functional.pad(torch.arange(4.0).reshape(1, 1, 4), (3, 2**20), "replicate")
    assert long.shape == (1, 1, 2**20 + 7) and long[0, 0, [0, 4, -1]].tolist() == [0, 1, 3]
    times = torch.tensor([2, 0, 3])
    assert torch.repeat_interleave(torch.tensor([5, 6, 7]), times).tolist() == [5, 5, 7, 7, 7]
    assert torch.repeat_interleave(times).tolist() == [0, 0, 2, 2, 2]
    assert torch.repeat_interleave(torch.ones(2, 2), torch.tensor([2]), 1).shape == (2, 4)
    assert torch.linalg.vander(torch.tensor([2.0, 3.0]), N=4).tolist() == [[1, 2, 4, 8], [1, 3, 9, 27]]


def test_long_reflection(torch):
    x = torch.arange(2**20 + 0.0).reshape(1, 1, -1)
    for mode, ends in ("reflect", [2, 1, 0, 2**20 - 1, 2**20 - 2]), ("circular", [2**20 - 2, 2**20 - 1, 0, 2**20 - 1, 0]):
        padded = torch.nn.functional.pad(x, (2, 1), mode)[0, 0]
        assert padded[[0, 1, 2, -2, -1]].tolist() == ends


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
