"""What the partitioners save for backward, compared with PyTorch's (record_partitions.py)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .partition_cases import cases
from .record_partitions import saved

ROWS = json.loads((Path(__file__).parent / "data" / "partitions.json").read_text())
# The formula of clamp's gradient has two masks here, and one in PyTorch.
MORE = {("min_cut_rematerialization_partition", "clamp")}


@pytest.mark.parametrize(("partition", "name"), [(p, n) for p, rows in ROWS.items() for n in rows])
def test_no_more_bytes_than_pytorch_are_saved(torch, partition, name):
    from teletensor._functorch import aot_autograd, partitioners

    found = saved(torch, aot_autograd, getattr(partitioners, partition), name)
    assert found <= ROWS[partition][name] or (partition, name) in MORE


def test_all_rows_are_recorded(torch):
    assert all(set(rows) == set(cases(torch)) for rows in ROWS.values())
