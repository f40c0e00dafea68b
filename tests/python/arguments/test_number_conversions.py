"""Numbers that a dtype cannot represent raise RuntimeError where PyTorch converts a number, and wrap around
elsewhere."""

import math

import pytest

OVERFLOWS = [
    lambda t: t.full((2,), math.nan, dtype=t.int64),
    lambda t: t.full((2,), math.inf, dtype=t.int32),
    lambda t: t.full((0,), math.nan, dtype=t.int64),
    lambda t: t.full((2,), 300, dtype=t.uint8),
    lambda t: t.full((2,), -256, dtype=t.uint8),
    lambda t: t.full((2,), -0.5, dtype=t.uint8),
    lambda t: t.full((2,), -128.5, dtype=t.int8),
    lambda t: t.full((2,), 2**31, dtype=t.int32),
    lambda t: t.full((2,), 2.0**63, dtype=t.int64),
    lambda t: t.full((2,), 2**63, dtype=t.int64),
    lambda t: t.full((2,), 2.0**64, dtype=t.uint64),
    lambda t: t.full((2,), 70000, dtype=t.float16),
    lambda t: t.full((2,), 65519.0, dtype=t.float16),
    lambda t: t.full((2,), 3.4e38, dtype=t.bfloat16),
    lambda t: t.full((2,), 1e300),
    lambda t: t.full((2,), 500.0, dtype=t.float8_e4m3fn),
    lambda t: t.full((2,), math.inf, dtype=t.float8_e4m3fn),
    lambda t: t.full((2,), 1e39j, dtype=t.complex64),
    lambda t: t.full((2,), math.nan, out=t.ones(2, dtype=t.int64)),
    lambda t: t.full_like(t.ones(2, dtype=t.int64), math.nan),
    lambda t: t.ones(2, dtype=t.uint8).new_full((2,), 300),
    lambda t: t.ones(2, dtype=t.int64).fill_(math.nan),
    lambda t: t.fill(t.ones(2, dtype=t.uint8), 300),
    lambda t: t.nn.init.constant_(t.ones(2, dtype=t.uint8), 300),
    lambda t: t.ones(2, 2, dtype=t.int64).fill_diagonal_(math.nan),
    lambda t: t.ones(2, dtype=t.int64).masked_fill_(t.tensor([True, False]), math.nan),
    lambda t: t.ones(2, dtype=t.float16).masked_fill(t.tensor([True, False]), -1e9),
    lambda t: t.ones(2, dtype=t.uint8).index_fill(0, t.tensor([0]), 300),
    lambda t: t.ones(2, dtype=t.int64).scatter_(0, t.tensor([0]), math.nan),
    lambda t: t.where(t.tensor([True, False]), t.ones(2, dtype=t.int8), 200),
    lambda t: t.where(t.tensor([True, False]), t.ones(2), 1e300),
    lambda t: t.linspace(0, 300, 3, dtype=t.uint8),
    lambda t: t.logspace(0, 300, 3, dtype=t.uint8),
    lambda t: t.nn.functional.pad(t.ones(2, dtype=t.uint8), (1, 1), value=300),
    lambda t: t.nn.functional.threshold(t.ones(2, dtype=t.uint8), 3, 300),
    lambda t: t.add(t.ones(2, dtype=t.uint8), t.ones(2, dtype=t.uint8), alpha=300),
]


@pytest.mark.parametrize("call", OVERFLOWS)
def test_overflow(torch, call):
    with pytest.raises(RuntimeError, match="value cannot be converted to type .* without overflow, got"):
        call(torch)


RANGES = [
    lambda t: t.randint(300, (2,), dtype=t.uint8),
    lambda t: t.randint(-1, 3, (2,), dtype=t.uint8),
    lambda t: t.randint(0, 3, (2,), dtype=t.bool),
    lambda t: t.randint(0, 70000, (2,), dtype=t.float16),
    lambda t: t.randint_like(t.ones(2, dtype=t.int8), 300),
    lambda t: t.ones(2, dtype=t.uint8).random_(0, 300),
]


@pytest.mark.parametrize("call", RANGES)
def test_ranges_of_random_integers(torch, call):
    with pytest.raises(RuntimeError, match="out of bounds for"):
        call(torch)


def test_numbers_in_range(torch):
    inf, nan = math.inf, math.nan
    for value, dtype, expected in (
        (-1, "uint8", 255), (-255, "uint8", 1), (-1, "uint64", 2**64 - 1), (255.9, "uint8", 255), (127.999, "int8", 127),
        (-128, "int8", -128), (2**63, "uint64", 2**63), (-(2.0**63), "int64", -(2**63)), (nan, "bool", True), (5, "bool", True),
        (2.7, "int64", 2), (65504, "float16", 65504.0), (inf, "float16", inf), (-inf, "bfloat16", -inf), (1e-300, "float32", 0.0),
        (inf, "complex64", complex(inf)), (2**63 - 1, "int64", 2**63 - 1), (2**64 - 1, "uint64", 2**64 - 1),
    ):  # fmt: skip
        assert torch.full((1,), value, dtype=getattr(torch, dtype)).tolist() == [expected], (value, dtype)
    mask = torch.tensor([True, False])
    assert torch.ones(2, dtype=torch.uint8).masked_fill(mask, 2.5).tolist() == [2, 1]
    assert torch.ones(2, dtype=torch.uint8).masked_fill(mask, torch.tensor(300)).tolist() == [44, 1]  # docs/differences.md
    assert torch.where(mask, torch.ones(2, dtype=torch.float16), 1e10).tolist() == [1, inf]
    assert (torch.ones(2, dtype=torch.uint8) + 300).tolist() == [45, 45]
    assert torch.randint(256, (4,), dtype=torch.uint8).dtype is torch.uint8


def test_fill_of_a_tensor(torch):
    assert torch.ones(2, dtype=torch.uint8).fill_(torch.tensor(300)).tolist() == [44, 44]  # as a cast, as in PyTorch
    value = torch.tensor(3.0, requires_grad=True)
    (torch.ones(2).fill_(value) * 2).sum().backward()
    assert value.grad.item() == 4
    with pytest.raises(RuntimeError, match="fill_ only supports 0-dimension value tensor but got tensor with 1 dimensions"):
        torch.ones(2).fill_(torch.ones(1))


def test_floating_point_tensor_is_not_a_size(torch):
    assert torch.zeros([torch.tensor(2), 3]).shape == (2, 3)
    with pytest.raises(TypeError):
        torch.zeros([torch.tensor(2.5), 3])
