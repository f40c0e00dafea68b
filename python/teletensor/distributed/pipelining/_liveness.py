"""Which activations a rank of a pipeline keeps at the same time, and which of them can share memory."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from ..._lazy import set_module
from ._order import BACKWARD, FORWARD, INPUT, WEIGHT
from .schedules import PipelineScheduleMulti

Pair = tuple[int, int]  # a stage and a microbatch, or the first and the last position of a lifetime


@dataclass(frozen=True)
class PipelineActivationLiveness:
    """A slot for the activations of each stage and microbatch; lifetimes that overlap have different slots.

    A lifetime begins with the forward pass and ends with the computation of the weights' gradients, both included. Positions are
    those of the rank's order.
    """

    pp_rank: int
    granularity: str
    stage_indices: tuple[int, ...]
    num_microbatches: int
    slot_by_stage_and_microbatch: Mapping[Pair, int]
    num_slots: int
    _activation_lifetime_by_stage_and_microbatch: Mapping[Pair, Pair] = field(repr=False)
    __hash__ = None  # type: ignore[assignment]

    def slot_for(self, stage_index: int, microbatch_index: int) -> int:
        """The slot. Raises ValueError for a pair that was not analyzed."""
        return self._found(self.slot_by_stage_and_microbatch, "slot", stage_index, microbatch_index)

    def get_activation_lifetime(self, stage_index: int, microbatch_index: int) -> Pair:
        """The first and the last position. Raises ValueError for a pair that was not analyzed."""
        return self._found(self._activation_lifetime_by_stage_and_microbatch, "lifetime", stage_index, microbatch_index)

    @staticmethod
    def _found(table: Mapping, what: str, stage: int, microbatch: int):
        if (stage, microbatch) not in table:
            raise ValueError(f"No activation {what} exists for stage {stage}, microbatch {microbatch}")
        return table[stage, microbatch]


def _slots(lifetimes: Sequence[Pair]) -> tuple[list[int], int]:
    """A slot for each lifetime, and the number of slots: the lowest one that is free when the lifetime begins."""
    active: list[Pair] = []  # the end, and the slot
    free: list[int] = []
    assigned, count = [-1] * len(lifetimes), 0
    for i, (start, end) in sorted(enumerate(lifetimes), key=lambda item: (*item[1], item[0])):
        while active and active[0][0] < start:
            heapq.heappush(free, heapq.heappop(active)[1])
        if free:
            slot = heapq.heappop(free)
        else:
            slot, count = count, count + 1
        assigned[i] = slot
        heapq.heappush(active, (end, slot))
    return assigned, count


def _positions(schedule: PipelineScheduleMulti, pp_rank: int, stages: set[int]) -> tuple[dict[Pair, int], dict[Pair, int]]:
    """The positions of forward passes and of the ends of lifetimes. Raises ValueError for an invalid order."""
    begins: dict[Pair, int] = {}
    ends: dict[Pair, int] = {}
    inputs: set[Pair] = set()
    for position, action in enumerate(schedule.pipeline_order[pp_rank]):
        if action is None or action.stage_index not in stages:
            continue
        key, kind = (action.stage_index, action.microbatch_index), action.computation_type
        if kind == FORWARD:
            if key in begins:
                raise ValueError(f"Activation lifetime {key} has multiple forwards")
            begins[key] = position
        elif kind == INPUT:
            if key in inputs:
                raise ValueError(f"Activation lifetime {key} has multiple input backwards")
            inputs.add(key)
        elif kind in (BACKWARD, WEIGHT):
            if key in ends:
                raise ValueError(f"Activation lifetime {key} has multiple release actions")
            if kind == WEIGHT and key not in inputs:
                raise ValueError(f"Activation lifetimes have weight backward without input backward: {[key]}")
            ends[key] = position
    return begins, ends


def analyze_pipeline_activation_liveness(
    schedule: PipelineScheduleMulti, *, pp_rank: int, stage_indices: Sequence[int], granularity: str
) -> PipelineActivationLiveness:
    """Assigns slots to the activations that a rank keeps, by the order of a schedule. Allocates nothing.

    Args:
        pp_rank: the rank in the pipeline's group.
        stage_indices: the stages to consider, which the rank has.
        granularity: "stage_microbatch": a lifetime for each stage and microbatch; "microbatch": one for all stages of a microbatch.

    Raises:
        ValueError: invalid arguments, or an order without a forward and a backward pass for each stage and microbatch.
    """
    if granularity not in ("microbatch", "stage_microbatch"):
        raise ValueError(f"Unsupported activation granularity: {granularity}")
    stages, count = tuple(stage_indices), schedule._n_microbatches
    if not stages:
        raise ValueError("stage_indices must not be empty")
    if len(set(stages)) != len(stages):
        raise ValueError("stage_indices must be unique")
    if pp_rank not in schedule.pipeline_order:
        raise ValueError(f"Rank {pp_rank} is not present in the pipeline schedule")
    begins, ends = _positions(schedule, pp_rank, set(stages))
    keys = sorted((stage, i) for stage in stages for i in range(count))
    for what, found in (("Forward actions", begins), ("Backward release actions", ends)):
        if found.keys() != set(keys):
            raise ValueError(f"{what} do not match tracked activations; missing={sorted(set(keys) - found.keys())}")
    if any(ends[key] < begins[key] for key in keys):
        raise ValueError("an activation lifetime ends before its forward")
    if granularity == "microbatch":
        whole = [(min(begins[s, i] for s in stages), max(ends[s, i] for s in stages)) for i in range(count)]
        slots, used = _slots(whole)
        lifetimes, assigned = {key: whole[key[1]] for key in keys}, {key: slots[key[1]] for key in keys}
    else:
        lifetimes = {key: (begins[key], ends[key]) for key in keys}
        slots, used = _slots(list(lifetimes.values()))
        assigned = dict(zip(keys, slots, strict=True))
    return PipelineActivationLiveness(pp_rank, granularity, stages, count, MappingProxyType(assigned), used, MappingProxyType(lifetimes))


set_module("teletensor.distributed.pipelining.schedules", PipelineActivationLiveness, analyze_pipeline_activation_liveness)
