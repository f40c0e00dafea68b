"""Calls with DTensors that were planned before have the results of those that are planned."""

from __future__ import annotations

from . import dtensor_repeated_cases as cases


def test_values_and_gradients(ranks):
    for result in ranks.run(2, cases.compared):
        assert result["wrong"] == []
        assert result["remembered"] > len(cases.EXPRESSIONS)


def test_what_is_not_taken_from_an_earlier_call(ranks):
    for result in ranks.run(2, cases.changed):
        assert all(result["numbers"]) and all(result["in place"])
        assert result["sizes"] == [[2, 4], [2, 2, 2], [2, 4]]
        assert result["dtypes"] == ["torch.float32", "torch.float64", "torch.float32"]
        assert result["placements"] == ["(Shard(dim=0),)", "(Replicate(),)", "(Shard(dim=0),)"]
        assert result["before"] == ["(Shard(dim=0),)"] * 2 and result["registered"] == "(Replicate(),)"
        assert result["subclass"] == ["aten.add.Tensor", "aten.cat.default", "aten.mul_.Tensor"] * 2
        assert result["out"] == ["[add] expected a DTensor of size [4, 2] as the result, got [0, 2]"] * 2
        assert result["meshes"] == [1, 2, 1, 2]
        assert result["errors"] == ["[add] expected DTensors of one device mesh"] * 2
