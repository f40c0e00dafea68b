"""local_map, register_sharding, CommDebugMode and visualize_sharding."""

from __future__ import annotations

from . import dtensor_tool_cases as cases


def test_local_map(ranks):
    for result in ranks.run(2, cases.mapped):
        errors = result.pop("errors")
        assert result.pop("difference") < 1e-5 and result.pop("gradient") < 1e-4 and all(result.values()), result
        assert errors[0].startswith("ValueError: arg DTensor") and "redistribute_inputs=True" in errors[0]
        assert errors[1:] == [
            "AssertionError: in_placements length 2 does not match the number of input args 1!",
            "AssertionError: Non-tensor output 1 expects None placements but received [Shard(dim=0)]!",
        ]


def test_registered_placements(ranks):
    for result in ranks.run(2, cases.registered):
        assert {k: v[0] for k, v in result.items()} == {"S(0)": "S(0)", "S(1)": "P(sum)", "R": "R"}
        assert all(v[1] == v[2] == 0 for v in result.values()), result


def test_counts_of_collectives(ranks):
    first, second = ranks.run(2, cases.counted)
    text = first.pop("text")
    assert second.pop("text") == "" and "cpu:0" in text and "Row 2-3" in text and "Col 0-2" in text
    assert first == second
    assert first.pop("placements") == {
        "FeedForward.up.weight": "(Shard(dim=0),)", "FeedForward.down.weight": "(Shard(dim=1),)",
        "Linear.weight": "(Shard(dim=1),)",
    }  # fmt: skip
    assert first == {
        "parallel": {"c10d_functional.all_reduce": 2},
        "gather": {"c10d_functional.all_gather_into_tensor": 1},
        "scatter": {"c10d_functional.reduce_scatter_tensor": 1},
        "exchange": {"c10d_functional.all_to_all_single": 1},
        "plain": {"c10d.allreduce_": 1, "c10d.broadcast_": 1},
        "many": {"c10d_functional.reduce_scatter_tensor": 100},
        "none": {},
    }


def test_functions_that_are_computed_from_others(ranks):
    assert ranks.run(2, cases.factored) == [[], []]
