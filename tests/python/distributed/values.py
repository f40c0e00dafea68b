"""Inputs of collectives, which every rank can compute for all ranks, and expected results, computed by NumPy."""

from __future__ import annotations

import functools

import numpy as np

import teletensor as torch

FLOATING = ("float32", "float64", "float16", "bfloat16")
COMPLEX = ("complex64", "complex128")
INTEGRAL = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool")
DTYPES = FLOATING + COMPLEX + INTEGRAL
SIZES = (0, 1, 7, 1000)


def array(rank: int, shape, dtype: str, seed: int = 0) -> np.ndarray:
    """Small integers, so that sums and products are exact in every dtype. bfloat16 is returned as float32."""
    generator = np.random.default_rng([seed, rank])
    if dtype == "bool":
        return generator.integers(0, 2, shape).astype(bool)
    low = 0 if dtype.startswith("uint") else -2
    values = generator.integers(low, 3, shape)
    if dtype.startswith("complex"):
        return (values + 1j * generator.integers(-2, 3, shape)).astype(dtype)
    return values.astype("float32" if dtype == "bfloat16" else dtype)


def tensor(rank: int, shape, dtype: str, seed: int = 0) -> torch.Tensor:
    return torch.from_numpy(array(rank, shape, dtype, seed)).to(getattr(torch, dtype))


def to_numpy(t: torch.Tensor) -> np.ndarray:
    return t.to(torch.float32).numpy() if t.dtype == torch.bfloat16 else t.numpy()


def reduced(op: str, inputs: list[np.ndarray]) -> np.ndarray:
    """The reduction of all ranks' inputs."""
    if op in ("SUM", "AVG"):
        total = functools.reduce(np.logical_or if inputs[0].dtype == bool else np.add, inputs)
        return total / len(inputs) if op == "AVG" else total
    by_name = {
        "PRODUCT": np.logical_and if inputs[0].dtype == bool else np.multiply,
        "MIN": np.minimum,
        "MAX": np.maximum,
        "BAND": np.bitwise_and,
        "BOR": np.bitwise_or,
        "BXOR": np.bitwise_xor,
    }
    return functools.reduce(by_name[op], inputs)


def operations(dtype: str) -> tuple[str, ...]:
    """The reductions that are defined for a dtype."""
    if dtype in COMPLEX:
        return ("SUM", "AVG")
    if dtype in FLOATING:
        return ("SUM", "AVG", "PRODUCT", "MIN", "MAX")
    return ("SUM", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR")


def check(actual: torch.Tensor, expected: np.ndarray, what: str) -> None:
    """Raises AssertionError unless a tensor has these values, to the rounding of 16-bit types."""
    tolerance = {"bfloat16": 1e-2, "float16": 2e-3}.get(str(actual.dtype).removeprefix("torch."), 1e-6)
    np.testing.assert_allclose(to_numpy(actual), expected, rtol=tolerance, atol=0, err_msg=what)
