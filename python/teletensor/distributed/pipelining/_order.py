"""The order of computation: which rank runs which stage for which microbatch."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from typing import NamedTuple


class ComputationType(str, enum.Enum):
    """What a stage computes for one microbatch."""

    FORWARD = "F"
    FULL_BACKWARD = "B"


FORWARD, BACKWARD = ComputationType.FORWARD, ComputationType.FULL_BACKWARD


class Action(NamedTuple):
    """The forward or backward computation of one stage for one microbatch."""

    stage_index: int
    computation_type: ComputationType
    microbatch_index: int

    def __repr__(self) -> str:
        return f"{self.stage_index}{self.computation_type.value}{self.microbatch_index}"


# The actions of each rank of the group. None is allowed and ignored: ranks wait for their inputs anyway.
Order = dict[int, list[Action | None]]


def gpipe(stages: int, microbatches: int) -> Order:
    """Runs all forward passes, then all backward passes. One stage per rank."""
    return {rank: [*(Action(rank, FORWARD, i) for i in range(microbatches)),
                   *(Action(rank, BACKWARD, i) for i in range(microbatches))] for rank in range(stages)}  # fmt: skip


def _alternating(forwards: list[Action], backwards: list[Action], warmup: int) -> list[Action]:
    """`warmup` forward passes, then alternating backward and forward passes, then the remaining backward passes."""
    result = forwards[:warmup]
    for forward, backward in zip(forwards[warmup:], backwards):
        result += [forward, backward]
    return result + backwards[len(forwards) - warmup :]


def one_forward_one_backward(stages: int, microbatches: int) -> Order:
    """Runs each backward pass as early as possible: a rank keeps the activations of at most `stages` microbatches."""
    order: Order = {}
    for rank in range(stages):
        forwards = [Action(rank, FORWARD, i) for i in range(microbatches)]
        backwards = [Action(rank, BACKWARD, i) for i in range(microbatches)]
        order[rank] = _alternating(forwards, backwards, min(stages - 1 - rank, microbatches))
    return order


def looped_breadth_first(ranks: int, local_stages: int, microbatches: int) -> Order:
    """Runs all microbatches through the first stage of a rank, then through its next one; backward in the opposite
    order.

    Source: J. Lamy-Poirier, "Breadth-First Pipeline Parallelism", 2022.
    """
    order: Order = {}
    for rank in range(ranks):
        stages = range(rank, ranks * local_stages, ranks)
        order[rank] = [Action(stage, FORWARD, i) for stage in stages for i in range(microbatches)]
        order[rank] += [Action(stage, BACKWARD, i) for stage in reversed(stages) for i in reversed(range(microbatches))]
    return order


def interleaved(ranks: int, local_stages: int, microbatches: int) -> Order:
    """1F1B with several stages per rank; of the available microbatches, the earlier one goes first.

    Source: D. Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters", 2021.

    Raises:
        ValueError: the microbatches cannot be divided into rounds of about one per rank.
    """
    rounds = max(1, microbatches // ranks)
    if microbatches % rounds:
        raise ValueError(
            f"Interleaved 1F1B requires the number of microbatches to be a multiple of the number of rounds ({rounds}), "
            f"but got {microbatches}."
        )
    per_round = microbatches // rounds
    total = local_stages * microbatches

    def steps(rank: int, kind: ComputationType, local_index: Callable[[int], int]) -> Iterator[Action]:
        next_microbatch = [0] * local_stages
        for step in range(total):
            local = local_index(step // per_round % local_stages)
            yield Action(local * ranks + rank, kind, next_microbatch[local])
            next_microbatch[local] += 1

    order: Order = {}
    for rank in range(ranks):
        warmup = min((local_stages - 1) * per_round + 2 * (ranks - 1 - rank), total)
        forwards = list(steps(rank, FORWARD, lambda local: local))
        backwards = list(steps(rank, BACKWARD, lambda local: local_stages - 1 - local))
        order[rank] = _alternating(forwards, backwards, warmup)
    return order
