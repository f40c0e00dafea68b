"""all_reduce of sparse_coo tensors: sums of different numbers of elements, and what is refused."""

from __future__ import annotations

import pytest

from . import sparse_cases as cases


@pytest.mark.parametrize("size", [1, 2, 3])
def test_sums(ranks, size):
    for right in ranks.run(size, cases.sums):
        assert all(right), right


def test_refused(ranks):
    for maximum, average, compressed, nested, broadcast, sizes, dims, history, mixed, after in ranks.run(2, cases.refused):
        assert maximum[0] == average[0] == "RuntimeError" and "ReduceOp.SUM" in maximum[1]
        assert compressed[0] == nested[0] == broadcast[0] == "NotImplementedError"
        assert "sparse_csr" in compressed[1] and "jagged" in nested[1] and "Sparse" in broadcast[1]
        assert sizes[0] == dims[0] == "RuntimeError" and "Sparse dimensions do not match" in sizes[1]
        assert "[4, 4]" in sizes[1] or "[3, 3]" in sizes[1]
        assert history[0] == mixed[0] == "NotImplementedError"
        assert "history" in history[1] and "rank 1" in history[1] and "sparse and strided" in mixed[1]
        assert after == [2.0, 2.0]
