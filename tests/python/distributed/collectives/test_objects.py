"""Object collectives, and the encoding of the objects."""

from __future__ import annotations

import random

import numpy as np
import pytest

from . import object_cases as cases


@pytest.mark.parametrize("size", [1, 2, 3])
def test_object_collectives(ranks, size):
    ranks.run(size, cases.collectives)


def test_object_messages(ranks):
    ranks.run(2, cases.messages)


def test_other_types_are_rejected(ranks):
    for messages in ranks.run(2, cases.rejected):
        assert len(messages) == 4
        assert "Custom" in messages[0] and "not pickled" in messages[0] and "builtin_function" in messages[1]


def test_malformed_bytes_raise_value_error(torch):
    from teletensor.distributed._object_encoding import decode, encode

    data = encode([1, {2: b"zz"}, np.ones(3), torch.ones(2), {3}])
    choose = random.Random(1)
    for _ in range(2000):
        damaged = bytearray(data)
        for _ in range(choose.randint(1, 3)):
            damaged[choose.randrange(len(damaged))] = choose.randrange(256)
        if choose.random() < 0.3:
            del damaged[choose.randrange(len(damaged)) :]
        try:
            decode(damaged)
        except ValueError as error:
            assert str(error).startswith("received a malformed object")


def test_arrays_of_all_shapes_are_encoded(torch):
    from teletensor.distributed._object_encoding import decode, encode

    for array in (
        np.zeros((0, 3), np.float32),
        np.array(3.5),
        np.array(["a", "bc"]),
        np.array(["2020-01-01"], "M8[D]"),
    ):
        cases.assert_same(decode(encode(array)), array)
    for dtype in (torch.float32, torch.bfloat16, torch.bool, torch.complex64, torch.uint64):
        for tensor in (torch.ones(2, 3).to(dtype), torch.ones(()).to(dtype), torch.ones(0, 4).to(dtype)):
            cases.assert_same(decode(encode(tensor)), tensor)
