"""Every collective with every dtype, reduction and several sizes, on one to four ranks, against NumPy."""

from __future__ import annotations

import pytest

from . import async_cases, error_cases
from . import collective_cases as cases

pytestmark = pytest.mark.slow

SIZES = pytest.mark.parametrize("size", [1, 2, 3, 4])
CASES = [
    cases.all_reduce, cases.premul_sum, cases.reduce, cases.broadcast, cases.all_gather, cases.gather_and_scatter, cases.reduce_scatter,
    cases.all_to_all, cases.all_to_all_with_splits, cases.coalesced, cases.coalesced_complex_and_real, cases.coalescing_blocks,
    cases.messages_to_itself, cases.strided_and_recorded,
]  # fmt: skip


@SIZES
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_collective(ranks, size, case):
    ranks.run(size, case)


def test_collectives_on_five_to_eight_ranks(own_ranks):
    group = own_ranks(8)
    for i, case in enumerate(CASES):
        group.run(8 - i % 4, case)


def test_collectives_that_depend_on_each_other(ranks):
    assert ranks.run(3, cases.many_in_a_row) == [5 * 201.0] * 3


def test_float8_is_moved_but_not_reduced(ranks):
    assert all("float8" in message for message in ranks.run(2, cases.float8_is_moved_not_reduced))


def test_undefined_reductions_are_rejected(ranks):
    for messages in ranks.run(2, cases.undefined_reductions):
        assert "complex" in messages[0] and "BOR" in messages[1] and "avg" in messages[2]


def test_collectives_over_tcp(own_ranks):
    """Engines on one host use Gloo only if it is requested."""
    group = own_ranks(3, TELETENSOR_GROUP_BACKEND="gloo")
    for case in (
        cases.premul_sum, cases.all_gather, cases.gather_and_scatter, cases.reduce_scatter, cases.all_to_all_with_splits,
        cases.coalesced, cases.strided_and_recorded, cases.many_in_a_row,
    ):  # fmt: skip
        group.run(3, case)
    for case in (async_cases.ring, async_cases.works, async_cases.late_rank, error_cases.different_shapes):
        group.run(3, case)
