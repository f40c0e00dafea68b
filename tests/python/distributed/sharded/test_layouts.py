"""Sparse and nested tensors in distributed checkpoints: replicas are stored once, and read by another number of ranks."""

from __future__ import annotations

import json

import pytest

from . import layout_cases as cases


@pytest.mark.parametrize("asynchronous", [False, True])
def test_another_number_of_ranks_loads(ranks, tmp_path, asynchronous):
    path = tmp_path / "checkpoint"
    ranks.run(3, cases.saves, path=str(path), asynchronous=asynchronous)
    index = json.loads((path / "index.json").read_bytes())
    files: dict = {}
    for name, entry in index["tensors"].items():
        if "/" in name:
            assert len(entry["boxes"]) == 1
            files.setdefault(name.rpartition("/")[0], set()).add(entry["boxes"][0]["file"])
    assert files.keys() == {f"model.{name}" for name in ("coo", "csr", "bsc", "jagged", "nested")}
    assert all(len(of_tensor) == 1 for of_tensor in files.values())  # one rank writes all components of a tensor
    for size in (1, 2, 3):
        for right in ranks.run(size, cases.loads, path=str(path)):
            assert all(right), right


def test_errors_are_raised_on_all_ranks(ranks, tmp_path):
    path = str(tmp_path / "checkpoint")
    ranks.run(2, cases.saves, path=path, asynchronous=False)
    for saved, loaded in ranks.run(2, cases.differs, path=path):
        assert "different tensors as 'a/" in saved[0][1]
        assert [failed for failed, _ in loaded] == [1] and "layout mismatch for model.csr" in loaded[0][1]


def test_state_dicts_of_one_rank(ranks):
    for right in ranks.run(3, cases.broadcasts):
        assert all(right), right


def test_sparse_optimizers_continue(ranks, tmp_path):
    assert ranks.run(2, cases.trains_embeddings, path=str(tmp_path / "checkpoint")) == [True, True]


def test_names_of_components_on_other_ranks_are_refused(ranks, tmp_path):
    for tensor, value, kind, strided, other in ranks.run(2, cases.collides, path=str(tmp_path / "checkpoint")):
        assert "'w/1' is the name of a component of 'w'" in tensor and "'w/1' is the name of a component of 'w'" in value
        assert "'w' is a sparse" in kind and "'w' is a sparse" in strided and "'w/0' is the name of a component of 'w'" in other


def test_names_that_resemble_those_of_components(ranks, tmp_path):
    for right in ranks.run(2, cases.similar_names, path=str(tmp_path / "checkpoint")):
        assert all(right), right
