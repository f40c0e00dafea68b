"""Pipelines: the same losses, gradients and outputs as one engine, the order of messages, errors."""

from __future__ import annotations

import pytest

import teletensor as torch
from teletensor.distributed.pipelining import _order, _plan, _utils, analyze_pipeline_activation_liveness
from teletensor.distributed.pipelining.microbatch import (
    TensorChunkSpec,
    _CustomReducer,
    _Replicate,
    merge_chunks,
    split_args_kwargs_into_chunks,
)
from teletensor.distributed.pipelining.schedules import PipelineScheduleMulti

from . import pipeline_cases as cases

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("size", "schedule", "microbatches"), [
    (1, "GPipe", 1), (2, "GPipe", 1), (2, "GPipe", 4), (2, "1F1B", 2), (2, "1F1B", 6), (3, "1F1B", 4), (4, "GPipe", 3),
    (4, "GPipe", 8), (4, "1F1B", 4), (4, "1F1B", 12),
])  # fmt: skip
def test_training_is_that_of_one_engine(ranks, size, schedule, microbatches):
    for differences in ranks.run(size, cases.trains, schedule=schedule, microbatches=microbatches):
        assert max(differences) < 1e-5


def test_given_shapes(ranks):
    for differences in ranks.run(3, cases.trains, schedule="1F1B", microbatches=4, given_shapes=True):
        assert max(differences) < 1e-5


@pytest.mark.parametrize(("size", "schedule", "microbatches", "local"), [
    (2, "Interleaved1F1B", 4, 2), (2, "Interleaved1F1B", 2, 3), (4, "Interleaved1F1B", 8, 2), (4, "Interleaved1F1B", 3, 1),
    (2, "LoopedBFS", 3, 2), (4, "LoopedBFS", 4, 2), (1, "Interleaved1F1B", 2, 3), (2, "InterleavedZeroBubble", 4, 2),
    (3, "InterleavedZeroBubble", 6, 1), (1, "InterleavedZeroBubble", 2, 2),
])  # fmt: skip
def test_several_stages_per_rank(ranks, size, schedule, microbatches, local):
    results = ranks.run(size, cases.trains_several, schedule=schedule, microbatches=microbatches, local=local)
    assert max(max(differences) for differences in results) < 1e-5


@pytest.mark.parametrize(("size", "schedule", "microbatches"), [
    (2, "ZBVZeroBubble", 4), (3, "ZBVZeroBubble", 8), (1, "ZBVZeroBubble", 2), (2, "DualPipeV", 6), (3, "DualPipeV", 4),
])  # fmt: skip
def test_stages_in_the_shape_of_a_v(ranks, size, schedule, microbatches):
    results = ranks.run(size, cases.trains_v, schedule=schedule, microbatches=microbatches)
    assert max(max(differences) for differences in results) < 1e-5


@pytest.mark.parametrize("schedule", ["InterleavedZeroBubble", "ZBVZeroBubble", "DualPipeV"])
@pytest.mark.parametrize("size", [2, 3])
def test_divided_passes_give_the_gradients_of_all_leaves(ranks, size, schedule):
    results = ranks.run(size, cases.divided_with_other_leaves, schedule=schedule)
    assert all(results) and max(max(differences) for differences in results) < 1e-5


@pytest.mark.parametrize("splits_all", [True, False])
@pytest.mark.parametrize("stages_of", [_order.v_shaped(4), {r: [r, r + 3, r + 6] for r in range(3)}, {0: [0, 1]}])
def test_orders_that_divide_backward_passes(stages_of, splits_all):
    order = _order.zero_bubble(stages_of, 8, 8, splits_all)
    kinds = [a.computation_type for a in order[0]]
    assert (_order.BACKWARD in kinds) != splits_all and _order.INPUT in kinds
    for rank, stages in stages_of.items():
        for stage in stages:
            for i in range(8):
                own = [a.computation_type for a in order[rank] if a.stage_index == stage and a.microbatch_index == i]
                assert own in ([_order.FORWARD, _order.BACKWARD], [_order.FORWARD, _order.INPUT, _order.WEIGHT])
        lowest = [a.computation_type for a in order[rank] if a.stage_index == min(stages)]
        held = 0
        for kind in lowest:
            held += (kind == _order.FORWARD) - (kind in (_order.BACKWARD, _order.WEIGHT))
            assert 0 <= held <= 8
    assert len({a for actions in order.values() for a in actions}) == sum(map(len, order.values()))


# Recorded from PyTorch 2.15: an order, the stages, the slots by stage and microbatch, and the number of slots.
LONG = "0F0 0F1 1F0 1B0 . 0B0 1F1 1I1 0I1 0F2 1W1 0W1 1F2 1B2 0B2"
LIFETIMES = [
    (LONG, [0, 1], "microbatch", [0, 1, 0, 0, 1, 0], 2), (LONG, [0, 1], "stage_microbatch", [0, 1, 2, 2, 0, 0], 3),
    (LONG, [1], "stage_microbatch", [0, 0, 0], 1), ("0F0 0B0 0F1 0B1 0F2 0B2", [0], "microbatch", [0, 0, 0], 1),
    ("0F0 0B0", [0], "microbatch", None, 0), ("0F0 0B0 0F1 0B1 0F2 0W2", [0], "microbatch", None, 0),
    ("0F0 0F0", [0], "microbatch", None, 0), ("0B0 0F0 0F1 0B1 0F2 0B2", [0], "microbatch", None, 0),
    (LONG, [], "microbatch", None, 0), (LONG, [0, 0], "microbatch", None, 0), (LONG, [0], "stage", None, 0),
]  # fmt: skip


@pytest.mark.parametrize("text, stages, granularity, slots, count", LIFETIMES)
def test_activations_that_can_share_memory(text, stages, granularity, slots, count):
    schedule = PipelineScheduleMulti.__new__(PipelineScheduleMulti)
    schedule._n_microbatches = 3
    kinds = {kind.value: kind for kind in _order.ComputationType}
    schedule.pipeline_order = {0: [None if a == "." else _order.Action(int(a[0]), kinds[a[1]], int(a[2])) for a in text.split()]}
    options = {"pp_rank": 0, "stage_indices": stages, "granularity": granularity}
    if slots is None:
        with pytest.raises(ValueError):
            analyze_pipeline_activation_liveness(schedule, **options)
        return
    found = analyze_pipeline_activation_liveness(schedule, **options)
    assert list(found.slot_by_stage_and_microbatch.values()) == slots and found.num_slots == count
    assert found.slot_for(stages[-1], 2) == slots[-1]
    if text == LONG and stages == [0, 1]:
        assert found.get_activation_lifetime(0, 1) == (1, 11)
    with pytest.raises(ValueError, match="No activation"):
        found.slot_for(7, 0)


def test_own_schedule_with_adjacent_stages_on_one_rank(ranks):
    for differences in ranks.run(2, cases.own_schedule):
        assert max(differences) < 1e-5


@pytest.mark.parametrize("size", [2, 4])
def test_sums_of_gradients(ranks, size):
    assert max(ranks.run(size, cases.gradients_are_sums)) < 1e-4


@pytest.mark.parametrize("size", [2, 3])
def test_several_values_between_stages(ranks, size):
    results = ranks.run(size, cases.several_values)
    assert max(max(differences) for differences, _ in results) < 1e-5
    assert [count for _, count in results] == [0] * (size - 1) + [4]


@pytest.mark.parametrize("size", [1, 3])
def test_eval(ranks, size):
    results = ranks.run(size, cases.evaluates)
    assert [r[0] for r in results] == [False] * size
    assert [r[1] for r in results] == [0] * (size - 1) + [3]
    assert max(results[-1][2]) < 1e-5
    assert all(r[3] for r in results)


def test_frozen_first_stage(ranks):
    assert max(max(differences) for differences in ranks.run(3, cases.frozen)) < 1e-5


def test_split_of_a_sequential(ranks):
    assert max(ranks.run(2, cases.split_sequential)) < 1e-5


def test_steps_do_not_wait(ranks):
    # The first step reads the shapes of the previous stage's outputs.
    assert ranks.run(3, cases.does_not_wait) == [[0, 0], [1, 0], [1, 0]]


def test_sharded_stages(ranks):
    assert max(ranks.run(4, cases.with_sharded_stages)) < 1e-5


def test_over_the_network(own_ranks):
    group = own_ranks(2, TELETENSOR_GROUP_BACKEND="gloo")
    for schedule in ("GPipe", "1F1B"):
        for differences in group.run(2, cases.trains, schedule=schedule, microbatches=6):
            assert max(differences) < 1e-5
    results = group.run(2, cases.trains_several, schedule="Interleaved1F1B", microbatches=4, local=3)
    assert max(max(differences) for differences in results) < 1e-5


def test_an_exception_in_a_stage_reaches_all_ranks(ranks):
    results = ranks.run(3, cases.raises)
    assert results[1][0] == "KeyError: 'the second microbatch'"
    for message, seconds, total in (results[0], results[2]):
        assert "rank 1 failed in a pipeline: 1F1 raised KeyError: 'the second microbatch'" in message
        assert seconds < 25  # the group's timeout is 30 s
        assert total == 3


def test_changed_shape_is_an_error(ranks):
    results = ranks.run(2, cases.changed_shape)
    assert results[0][0] == "PipeliningShapeError"
    assert "expected tensor 0 of shape (12, 12)" in results[0][1]


def test_rejected_calls(ranks):
    common = ["ValueError", "RuntimeError", "NotImplementedError", "AssertionError", "NotImplementedError", "ValueError",
              "ValueError", "ValueError", "ValueError", "ValueError", "ValueError", "ValueError",
              "ValueError", "ValueError"]  # fmt: skip
    first, second = ranks.run(2, cases.rejected)
    assert first == [*common, "TypeError", "RuntimeError", "NotImplementedError", "NotImplementedError", "ValueError",
                     "RuntimeError"]  # fmt: skip
    assert second == [*common, "AssertionError", "ValueError", "NotImplementedError", "NotImplementedError", "ValueError",
                      "RuntimeError"]  # fmt: skip


def test_options_that_are_not_supported_are_refused(ranks):
    assert ranks.run(1, cases.refused_options) == [[""] * 21]


# The plan, without ranks.


@pytest.mark.parametrize("order", [
    _order.gpipe(4, 3), _order.one_forward_one_backward(4, 9), _order.interleaved(3, 2, 6), _order.interleaved(2, 4, 4),
    _order.looped_breadth_first(3, 2, 4),
])  # fmt: skip
def test_acknowledged_messages_have_arrived(order):
    """A rank waits for a sent message only when the peer has used it."""
    num_stages = 1 + max(a.stage_index for actions in order.values() for a in actions)
    microbatches = 1 + max(a.microbatch_index for actions in order.values() for a in actions)
    ranks = _plan.stage_ranks(order, num_stages, microbatches)
    count = 0
    for sender in order:
        for receiver in order:
            if sender == receiver:
                continue
            messages = _plan.messages_between(order, sender, receiver, ranks, num_stages)
            opposite = [m.action for m in _plan.messages_between(order, receiver, sender, ranks, num_stages)]
            count += len(messages)
            for message in messages:
                source = _plan.input_of(message.action, num_stages)
                position = order[sender].index(source)
                assert all(a in order[sender][: position + 1] for a in opposite[: message.acknowledged][-1:])
    crossings = sum(ranks[s] != ranks[s + 1] for s in range(num_stages - 1))
    assert count == 2 * crossings * microbatches


def test_1f1b_keeps_few_activations():
    for rank, actions in _order.one_forward_one_backward(4, 16).items():
        alive = most = 0
        for action in actions:
            alive += 1 if action.computation_type == "F" else -1
            most = max(most, alive)
        assert (alive, most) == (0, 4 - rank)


def test_orders_that_cannot_run():
    forward, backward = _order.FORWARD, _order.BACKWARD
    a = _order.Action
    complete = _order.gpipe(2, 1)
    for order, message in (
        ({0: complete[0], 1: [a(1, backward, 0), a(1, forward, 0)]}, "wait for each other"),
        ({0: complete[0], 1: []}, "no rank computes 1F0"),
        ({0: complete[0], 1: [*complete[1], a(0, forward, 0)]}, "is on ranks 0 and 1"),
        ({0: [a(0, forward, 0), *complete[0]], 1: complete[1]}, "twice"),
        ({0: complete[0], 1: [a(2, forward, 0)]}, "expected 2 stages"),
    ):
        with pytest.raises(ValueError, match=message):
            _plan.stage_ranks(order, 2, 1)


# Microbatches.


def test_split_and_merge():
    x = torch.arange(24).reshape(6, 4)
    args, kwargs = split_args_kwargs_into_chunks(
        (x, [x, (x, 3)]), {"w": x, "flag": True}, 2, (TensorChunkSpec(0), [TensorChunkSpec(1), (_Replicate, None)]),
        {"w": TensorChunkSpec(1), "flag": None},
    )  # fmt: skip
    assert args[1][0].tolist() == x[3:].tolist()
    assert args[1][1][0].tolist() == x[:, 2:].tolist()
    assert args[0][1][1][0].tolist() == x.tolist()
    assert [a[1][1][1] for a in args] == [3, 3]
    assert kwargs[0]["w"].tolist() == x[:, :2].tolist()
    assert kwargs[1]["flag"] is True
    spec = (TensorChunkSpec(0), [TensorChunkSpec(1), (_Replicate, None)])
    merged = merge_chunks(args, spec)
    assert merged[0].tolist() == merged[1][0].tolist() == merged[1][1][0].tolist() == x.tolist()
    total = merge_chunks([torch.tensor(1.0), torch.tensor(2.0)], _CustomReducer(torch.tensor(0.5), lambda a, b: a + b))
    assert total.item() == 3.5
    assert [c[0].shape[0] for c in split_args_kwargs_into_chunks((x,), None, 4)[0]] == [2, 2, 1, 1]


def test_split_errors():
    x = torch.zeros(2, 3)
    with pytest.raises(RuntimeError, match="smaller than the number of chunks 3"):
        split_args_kwargs_into_chunks((x,), {}, 3)
    with pytest.raises(TypeError, match="Unrecognized chunk spec"):
        split_args_kwargs_into_chunks((x,), {}, 2, (0,))
    with pytest.raises(AssertionError):
        split_args_kwargs_into_chunks((x,), {}, 2, ())
    with pytest.raises(ValueError, match="did not have the same number of values"):
        split_args_kwargs_into_chunks(([x, x],), {}, 2, ([TensorChunkSpec(0)],))
    with pytest.raises(ValueError, match="expected equal values"):
        merge_chunks([(1,), (2,)])
    with pytest.raises(ValueError, match="did not match chunk spec"):
        merge_chunks([(x, x)], (TensorChunkSpec(0),))


@pytest.mark.parametrize("numbers", [[2] + [0] * 5, [1, 99, 0], [1, 0, 65], [1, 0, 2, 3, -1], [300] + [0] * 255])
def test_invalid_descriptions_are_rejected(numbers):
    if numbers[0] == 2:
        assert len(_utils.decode(numbers)) == 2  # two scalars
        return
    with pytest.raises(RuntimeError, match="expected a description"):
        _utils.decode(numbers)


def test_descriptions_round_trip():
    metas = (
        _utils.TensorMeta((2, 3), torch.bfloat16),
        _utils.TensorMeta((), torch.int64),
        _utils.TensorMeta((0,), torch.bool),
    )
    assert _utils.decode(_utils.encode(metas)) == metas
    with pytest.raises(ValueError, match="too many outputs"):
        _utils.encode(metas * 80)
