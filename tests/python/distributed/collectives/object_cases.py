"""Object collectives. Each function runs on all ranks."""

from __future__ import annotations

import collections
import math

import numpy as np

import teletensor as torch
import teletensor.distributed as dist


def values_of(rank: int) -> list:
    """One value of each supported type, and containers of them."""
    return [
        None, True, rank, -(2**80), 1.5, math.inf, "text \u20ac", b"\x00\xff" * rank, (1, (2, [rank])), {1: 2, "a": [3], (1, 2): None},
        {3, rank}, frozenset([1]), collections.OrderedDict(b=1, a=2), 1 + 2j, np.arange(6, dtype=np.int16).reshape(2, 3),
        np.float32(rank), torch.full((2, 2), float(rank)), torch.ones(3).to(torch.bfloat16), torch.float16, "x" * 1000 * rank,
    ]  # fmt: skip


def assert_same(actual, expected) -> None:
    """Raises AssertionError unless two values have the same types and contents."""
    assert type(actual) is type(expected), (actual, expected)
    if isinstance(expected, torch.Tensor | np.ndarray):
        assert actual.dtype == expected.dtype and actual.shape == expected.shape
        assert (actual == expected).all()
    elif isinstance(expected, list | tuple):
        assert len(actual) == len(expected)
        for a, b in zip(actual, expected, strict=True):
            assert_same(a, b)
    else:
        assert actual == expected


def collectives(rank: int, size: int) -> None:
    gathered = [None] * size
    dist.all_gather_object(gathered, values_of(rank))
    assert_same(gathered, [values_of(r) for r in range(size)])
    for root in range(size):
        at_root = [None] * size if rank == root else None
        dist.gather_object(values_of(rank), at_root, root)
        if rank == root:
            assert_same(at_root, [values_of(r) for r in range(size)])
        copied = values_of(rank) if rank == root else [None] * len(values_of(root))
        dist.broadcast_object_list(copied, root)
        assert_same(copied, values_of(root))
        received = [None]
        dist.scatter_object_list(received, [values_of(r) for r in range(size)] if rank == root else None, root)
        assert_same(received[0], values_of(rank))
    empty: list = []
    dist.broadcast_object_list(empty)
    assert empty == []
    nan = [math.nan]
    dist.all_gather_object(gathered, nan)
    assert all(math.isnan(g[0]) for g in gathered)


def messages(rank: int, size: int) -> None:
    if rank == 0:
        dist.send_object_list(values_of(5), 1)
    else:
        received = [None] * len(values_of(5))
        assert dist.recv_object_list(received, 0) == 0
        assert_same(received, values_of(5))


def rejected(rank: int, size: int) -> list[str]:
    """Values that cannot be sent raise an error before any rank is involved."""

    class Custom:
        pass

    messages = []
    for value in (Custom(), [len], {"a": np.array([None])}, collections.namedtuple("Point", "x")(1)):
        try:
            dist.all_gather_object([None] * size, value)
        except TypeError as error:
            messages.append(str(error))
    dist.barrier()
    return messages
