"""Remainders and neighbours of floats are exact, so results are compared bit by bit, including all edge cases."""

from __future__ import annotations

import numpy as np
import pytest

BITS = {"float32": "uint32", "float64": "uint64"}
LENGTH = 2003  # several blocks of the loops, and a remainder that is not a multiple of the vector width


def edges(dtype: str) -> np.ndarray:
    about = np.finfo(dtype)
    sizes = [0, about.smallest_subnormal, about.tiny, 0.1, 0.5, 1, 3, 7.5, 2 ** about.nmant, 2 ** (about.nmant + 1) + 2, about.max, np.inf]
    return np.array([*sizes, *(-x for x in sizes), np.nan], dtype)


def operands(kind: str, dtype: str) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(4)
    any_bits = [rng.integers(0, np.iinfo(BITS[dtype]).max, LENGTH, BITS[dtype], endpoint=True).view(dtype) for _ in range(2)]
    normal = [rng.normal(size=LENGTH).astype(dtype) for _ in range(2)]
    subnormal = [rng.integers(1, 1 << 20, LENGTH, BITS[dtype]).view(dtype) for _ in range(2)]
    multiples = (normal[1] * rng.integers(1, 1 << 20, LENGTH)).astype(dtype)
    every = np.meshgrid(edges(dtype), edges(dtype))
    return {
        "edges": (every[0].ravel().copy(), every[1].ravel().copy()),
        "any bits": tuple(any_bits),
        "near": tuple(normal),
        "far": ((normal[0] * 1e12).astype(dtype), normal[1]),
        "one far": (np.where(np.arange(LENGTH) == 700, np.finfo(dtype).max, normal[0]), normal[1]),
        "multiples": (multiples, normal[1]),
        "almost multiples": (np.nextafter(multiples, np.zeros_like(multiples)), normal[1]),
        "subnormal": tuple(subnormal),
    }[kind]


KINDS = ("edges", "any bits", "near", "far", "one far", "multiples", "almost multiples", "subnormal")


def remainder(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """PyTorch's remainder: fmod, adjusted to the divisor's sign."""
    left = np.fmod(a, b)
    return np.where((left != 0) & ((left < 0) != (b < 0)), left + b, left)


def floor_divide(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """PyTorch's floor division (c10::div_floor_floating)."""
    left = np.fmod(a, b)
    quotient = (a - left) / b
    quotient = np.where((left != 0) & ((left < 0) != (b < 0)), quotient - 1, quotient)
    down = np.floor(quotient)
    down = np.where(quotient - down > 0.5, down + 1, down)
    down = np.where(quotient == 0, np.copysign(np.zeros_like(a), a / b), down)
    return np.where(b == 0, a / b, down)


EXPECTED = {"fmod": np.fmod, "remainder": remainder, "floor_divide": floor_divide, "nextafter": np.nextafter}


def same_bits(actual: np.ndarray, expected: np.ndarray) -> None:
    assert actual.dtype == expected.dtype
    alike = ((actual == expected) & (np.signbit(actual) == np.signbit(expected))) | (np.isnan(actual) & np.isnan(expected))
    assert alike.all(), f"{actual[~alike][:4]} at {np.flatnonzero(~alike)[:4]}, expected {expected[~alike][:4]}"


@pytest.mark.parametrize("dtype", BITS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", EXPECTED)
def test_division_and_neighbours_are_exact(torch, name, kind, dtype):
    a, b = operands(kind, dtype)
    with np.errstate(all="ignore"):
        expected = EXPECTED[name](a, b)
    same_bits(getattr(torch, name)(torch.from_numpy(a), torch.from_numpy(b)).numpy(), expected)


@pytest.mark.parametrize("name", ["fmod_", "remainder_", "floor_divide_", "nextafter_"])
@pytest.mark.parametrize("kind", ["near", "far"])
def test_division_in_place(torch, name, kind):
    a, b = operands(kind, "float32")
    with np.errstate(all="ignore"):
        expected = EXPECTED[name.rstrip("_")](a, b)
    x = torch.from_numpy(a.copy())
    getattr(x, name)(torch.from_numpy(b))
    same_bits(x.numpy(), expected)


def neighbours(bits: np.ndarray, towards: np.ndarray, infinity: int) -> np.ndarray:
    """nextafter on the bits of 16-bit floats, given those of infinity. Keys are in the order of the numbers; -0 has 0's."""
    bits, towards = bits.astype(np.int32), towards.astype(np.int32)
    a, b = (np.where(x & 0x8000, -(x & 0x7FFF), x & 0x7FFF) for x in (bits, towards))
    moved = a + np.sign(b - a)
    sign = np.where(moved == 0, np.where(a == 0, towards, bits), np.where(moved < 0, 0x8000, 0)) & 0x8000
    is_nan = ((bits & 0x7FFF) > infinity) | ((towards & 0x7FFF) > infinity)
    return np.where(is_nan, infinity + 1, np.where(a == b, towards, np.abs(moved) | sign)).astype(np.uint16)


@pytest.mark.parametrize(("dtype", "infinity"), [("float16", 0x7C00), ("bfloat16", 0x7F80)])
def test_neighbours_of_all_16_bit_numbers(torch, dtype, infinity):
    every = np.arange(1 << 16, dtype=np.uint16)
    one = {"float16": 0x3C00, "bfloat16": 0x3F80}[dtype]
    x = torch.from_numpy(every.view(np.int16)).view(getattr(torch, dtype))
    goals = [0, 0x8000, 1, one, one | 0x8000, infinity - 1, infinity, infinity | 0x8000, infinity + 1]
    for goal in [*(np.full_like(every, goal) for goal in goals), np.random.default_rng(6).permutation(every), every]:
        y = torch.from_numpy(goal.view(np.int16)).view(getattr(torch, dtype))
        expected = neighbours(every, goal, infinity)
        if dtype == "float16":
            a, b = every.view(np.float16), goal.view(np.float16)
            with np.errstate(all="ignore"):
                same_bits(expected.view(np.float16), np.where(a == b, b, np.nextafter(a, b)))  # NumPy returns a for -0 and 0
        for other in (y, y[0]) if len(set(goal)) == 1 else (y,):
            got = torch.nextafter(x, other)
            assert got.dtype == x.dtype
            actual = got.view(torch.int16).numpy().view(np.uint16)
            actual = np.where((actual & 0x7FFF) > infinity, infinity + 1, actual)
            assert (actual == expected).all(), [(hex(every[i]), hex(goal[i])) for i in np.flatnonzero(actual != expected)[:4]]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_neighbours_of_16_bit_numbers_with_other_operands(torch, dtype):
    x = torch.ones(4, dtype=getattr(torch, dtype))
    above = 1 + torch.finfo(x.dtype).eps
    for other in (2.0, 1e300, torch.tensor(2.0), torch.tensor(2), torch.full((4,), 2, dtype=torch.int32)):
        assert torch.nextafter(x, other).tolist() == [above] * 4
        assert torch.nextafter(x, other).dtype == x.dtype
    for nearly_one in (1.00001, torch.tensor(1.00001), torch.tensor(1.00001, dtype=torch.float64)):
        assert torch.nextafter(x, nearly_one).tolist() == [1.0] * 4  # the number is 1 in the result's dtype
    assert torch.nextafter(x, torch.full((4,), 2.0)).dtype == torch.float32
    assert x.nextafter_(torch.tensor(2.0)).tolist() == [above] * 4
    assert torch.nextafter(x, torch.inf, out=torch.empty(4, dtype=torch.float32)).tolist() == [1 + 2 * (above - 1)] * 4
    torch.set_default_dtype(x.dtype)
    try:
        assert torch.nextafter(1.0, 2.0).item() == above
    finally:
        torch.set_default_dtype(torch.float32)
    strided = torch.ones(6, 4, dtype=x.dtype).t()[::2]
    assert torch.nextafter(strided, torch.zeros(6, dtype=x.dtype)).tolist() == [[1 - torch.finfo(x.dtype).eps / 2] * 6] * 2
