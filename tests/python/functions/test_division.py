"""Remainders of floats are exact, so results are compared bit by bit, including all edge cases."""

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
