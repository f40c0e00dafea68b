"""DTensors: results that a plausible implementation gets wrong, and random programs beside ordinary tensors."""

from __future__ import annotations

import pytest

from . import dtensor_fault_cases as cases
from . import dtensor_program_cases as programs

pytestmark = pytest.mark.slow


def _run(controller, case):
    (result,) = controller.run_without_group(1, case)
    return result


def test_indices_out_of_range_of_divided_dimensions(controller):
    messages = _run(controller, cases.indices_out_of_range)
    assert len(messages) == 6
    for message in messages:
        assert message.startswith("IndexError: ") and "out of" in message


def test_masked_infinities_and_nans(controller):
    result = _run(controller, cases.infinities)
    assert result == {"embedding": [[1], [3], [4]], "cross_entropy": 0, "linear": True, "dropout": True}


def test_sums_of_half_precision(controller):
    for divided, whole in _run(controller, cases.half_precision):
        assert divided == pytest.approx(whole, nan_ok=True)


def test_gradients(controller):
    result = _run(controller, cases.gradients)
    assert [result[f"norm {order}"] for order in (1, 2, 3)] == [[0] * 4] * 3
    assert result["avg"] == pytest.approx([1 / 3] * 3) and result["data"] == [5] * 4
    assert result["avg leaf"].startswith("NotImplementedError") and "requires grad" in result["plain"]


def test_second_derivatives(controller):
    assert _run(controller, cases.second_derivatives) == [[20, 40, 2400, 4800]] * 3


def test_two_meshes(controller):
    updated, *messages = _run(controller, cases.meshes)
    assert updated == [[0.5] * 4] * 2
    for message in messages:
        assert message.startswith("RuntimeError") and "expected DTensors of one device mesh" in message


def test_views_assignments_and_storages(controller):
    result = _run(controller, cases.views_and_storage)
    assert result["masked"] == [0, 1, 2, 0] and result["same"] == [True, False] and result["version"]
    assert result["narrow"] == result["split"] == [[0, 1], [2, 3], [4, 5], [6, 7]] and result["uneven"] == [[6, 7]]
    assert result["storage"].startswith("RuntimeError") and result["norm"] == [4, 2]


@pytest.mark.parametrize("shape", [[3], [2, 2]])
def test_random_programs_of_a_controller(controller, shape):
    (failures,) = controller.run_without_group(1, programs.controlled_programs, first=100, count=30, shape=shape)
    assert failures == []


@pytest.mark.parametrize("shape", [[2], [3], [2, 2]])
def test_random_programs_with_one_process_per_rank(ranks, shape):
    size = shape[0] * (shape[1] if len(shape) > 1 else 1)
    assert ranks.run(size, programs.programs, first=500, count=20, shape=shape) == [[]] * size


def test_deleted_meshes_keep_no_connections(controller):
    few, many = _run(controller, cases.meshes_are_left)
    assert many <= few + 6


def test_hooks_and_accumulated_gradients(ranks):
    for result in ranks.run(3, cases.hooks):
        assert result["seen"] == [[0, 2, 4, 6, 8]] * 2 and result["grad"] == [0, 8, 16, 24, 32] and result["partial"] == [6, 6]


def test_a_bad_index_of_one_rank_is_an_error_on_all(ranks):
    for message, total in ranks.run(3, cases.one_bad_index):
        assert "index 9 is out of bounds" in message and total == "15.0"
