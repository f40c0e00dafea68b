"""Sub-groups, ranks within them, several groups at a time, and arguments that are rejected."""

from __future__ import annotations

import pytest

from . import group_cases as cases


def test_subgroups(ranks):
    results = ranks.run(4, cases.subgroups)
    assert [r["sum"] for r in results] == [[3.0] * 3, [3.0] * 3, [7.0] * 3, [7.0] * 3]
    assert [r["ranks"] for r in results] == [[0, 1], [0, 1], [2, 3], [2, 3]]
    assert [r["in_group"] for r in results] == [0, 1, 0, 1]
    for rank in (0, 1, 3):
        assert results[rank]["reverse"] == [3, 1, 0]
        assert results[rank]["from_3"] == 3 and results[rank]["from_1"] == 3
    assert results[2]["warning"] == "Running all_reduce on global rank 2 which does not belong to the given group."
    assert results[2]["error"] == "Invalid process group specified"


def test_subgroups_of_equal_size_by_enumeration_and_by_splitting(ranks):
    results = ranks.run(4, cases.enumerated)
    assert [r["halves"][0] for r in results] == [3.0, 3.0, 7.0, 7.0]
    assert [r["odd_even"][0] for r in results] == [4.0, 6.0, 4.0, 6.0]
    assert [r["split"] for r in results] == [[5.0] * 3, [2.0] * 3, -100, [5.0] * 3]
    assert [r["local"] for r in results] == [[3.0] * 3, [3.0] * 3, None, None]


def test_subgroups_of_subgroups(ranks):
    assert ranks.run(4, cases.subgroups_of_subgroups) == [[[r], 2, r + 1.0, 3.0 if r < 2 else 7.0] for r in range(4)]


@pytest.mark.parametrize("seed", range(2))
def test_several_groups_interleaved(ranks, seed):
    ranks.run(4, cases.interleaved, seed=seed)


def test_destroying_a_subgroup_leaves_the_others(ranks):
    for before, after, message in ranks.run(2, cases.destroyed_subgroup):
        assert before == [3.0] * 3 and after == [3.0] * 3 and "was destroyed" in message


EXPECTED = {
    "type": "TypeError: Invalid function argument. Expected parameter `tensor` of type torch.Tensor",
    "list": "TypeError: Invalid function argument. Expected parameter `tensor_list` of type List[torch.Tensor]",
    "elements": "TypeError: Invalid function argument. Expected parameter `tensor_list` of type List[torch.Tensor]",
    "dtypes": "ValueError: Invalid usage of tensors with different dtypes",
    "length": "RuntimeError: [all_gather] invalid output tensor list (expected length 2, got 1)",
    "shape": "RuntimeError: [all_gather] invalid output tensor size at index 1 (expected (2,), got (3,))",
    "output": "RuntimeError: output tensor size must be equal to world_size times input tensor size",
    "input": "RuntimeError: input tensor must be the same size as output size times world size",
    "splits": "RuntimeError: Split sizes doesn't match total dim 0 size",
    "uneven": "RuntimeError: Tensor's dim 0 does not divide equally across group size",
    "no list": "ValueError: Argument ``gather_list`` must",
    "both": "ValueError: Can't specify both group_rank and global_rank",
    "neither": "ValueError: Must specify global_rank or group_rank",
    "self": "ValueError: Invalid destination rank: destination rank should not be the same",
    "op": "ValueError: Invalid ``op``",
    "reduction": "TypeError: Invalid function argument. Expected parameter `op`",
    "factor": "ValueError: ReduceOp.PREMUL_SUM requires a factor",
    "twice": "ValueError: ranks list must not contain duplicate entries, got [0, 0]",
    "range": "ValueError: Rank 7 is out of range. Valid ranks are 0 to 1 (world_size=2)",
    "again": "ValueError: trying to initialize the default process group twice!",
}


def test_ranks_that_do_not_exist(ranks):
    for messages in ranks.run(2, cases.rejected_ranks):
        wrong = {name: message for name, message in messages.items() if "expected a rank from 0 to 1, got" not in message}
        assert not wrong and all(message.startswith("RuntimeError: ") for message in messages.values())


def test_arguments_are_checked_before_a_rank_is_involved(ranks):
    for rank, messages in enumerate(ranks.run(2, cases.rejected_arguments)):
        for name, expected in EXPECTED.items():
            assert messages[name].startswith(expected), (name, messages[name])
        assert rank != 0 or "is not part of group" in messages["member"]
