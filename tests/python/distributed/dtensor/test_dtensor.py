"""Distributed tensors and tensor parallelism: with one process per rank, and by one controller."""

from __future__ import annotations

import pytest

from . import dtensor_cases as cases

pytestmark = pytest.mark.slow


@pytest.fixture(params=["ranks", "controller"])
def run(request):
    """Runs a case on a number of ranks; returns the results of all processes."""
    if request.param == "ranks":
        ranks = request.getfixturevalue("ranks")
        return lambda size, case: ranks.run(size, case)
    own = request.getfixturevalue("own_ranks")(1)
    return lambda size, case: own.run_without_group(1, cases.controlled, case.__name__, size)


@pytest.mark.parametrize("size", [2, 4])
def test_a_tensor_parallel_transformer_trains_like_one_engine(run, size):
    for result in run(size, cases.tensor_parallel_training):
        assert result["losses"] == pytest.approx(result["expected"], rel=1e-4)
        # AdamW's first steps are 0.01 for any gradient, so that rounding of gradients near 0 differs by a part of a step.
        assert result["difference"] < 4e-3 and result["names"]
        assert result["placement"] == "S(0)" and result["local"] == [32 // size, 8]


def test_a_divided_batch_trains_like_one_engine(run):
    for result in run(4, cases.data_parallel_training):
        assert result["losses"][0] == pytest.approx(result["losses"][1], rel=1e-4)
        assert result["placement"] == "(Shard(dim=0),)"


def test_inputs_and_outputs_may_be_ordinary_tensors(ranks):
    for result in ranks.run(3, cases.local_outputs):
        assert result.pop("type") == "Tensor"
        assert all(difference < 1e-4 for difference in result.values()), result


def test_meshes_of_two_dimensions(run):
    for result in run(4, cases.two_dimensions):
        assert all(difference < 1e-5 for difference in result.values()), result


def test_in_place_operators_keep_the_placement(run):
    for result in run(3, cases.in_place):
        assert all(difference < 1e-6 for difference in result.values()), result


def test_random_tensors_do_not_depend_on_the_placement(run):
    sizes = []
    for result in run(3, cases.creation):
        assert result["rand"] == 0 and result["dropout"] == 0 and result["zeros"]
        assert result["full"] == [[2.5, 2.5]] * 3
        sizes += result["sizes"]
    assert sizes == [[3, 3], [3, 3], [1, 3]]


def test_errors(run):
    for messages in run(2, cases.errors):
        assert [m.split(":")[0] for m in messages] == [
            "RuntimeError", "ValueError", "ValueError", "RuntimeError", "RuntimeError", "RuntimeError", "RuntimeError",
            "NotImplementedError", "RuntimeError",
        ]  # fmt: skip
        assert "mixed torch.Tensor and DTensor" in messages[0] and "only support nn.Linear" in messages[7]


def test_modules_with_prepared_inputs_and_outputs(ranks):
    for result in ranks.run(2, cases.placement_of_outputs):
        assert result == {"output": True, "seen": ["DTensor", "S(0)"], "full": [4, 3]}


def test_optimizers_of_partly_parallel_models(ranks):
    for result in ranks.run(2, cases.partly_parallel_training):
        for name, (alone, parallel) in result.items():
            assert parallel == pytest.approx(alone, rel=1e-5) and alone[0] != alone[2], (name, alone, parallel)


def test_a_failed_part_is_an_error_on_all_ranks(ranks):
    results = ranks.run(3, cases.failure_on_one_rank)
    assert [r[0] for r in results] != ["no error"] * 3
    for result in results:
        assert "index 7 is out of bounds" in result[1], result


def test_a_lost_engine_of_a_controller_is_named(own_ranks):
    (result,) = own_ranks(1).run_without_group(1, cases.lost_engine)
    assert result["before"] == 12 and result["after"] == 3
    # The other engines report the lost rank, unless the controller has noticed the end of its engine when it issues the call.
    by_engine = "teletensor-private" in result["message"] and "its process has ended" in result["message"]
    assert by_engine or ("rank 2" in result["message"] and "dtensor_cases.py" in result["message"]), result["message"]
