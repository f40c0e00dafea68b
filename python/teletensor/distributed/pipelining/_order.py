"""The order of computation: which rank runs which stage for which microbatch."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from typing import NamedTuple


class ComputationType(str, enum.Enum):
    """What a stage computes for one microbatch."""

    FORWARD = "F"
    FULL_BACKWARD = "B"
    BACKWARD_INPUT = "I"
    BACKWARD_WEIGHT = "W"


FORWARD, BACKWARD = ComputationType.FORWARD, ComputationType.FULL_BACKWARD
INPUT, WEIGHT = ComputationType.BACKWARD_INPUT, ComputationType.BACKWARD_WEIGHT


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


class _Rank:
    """One rank of a simulation: what it has computed, and when it is free again."""

    def __init__(self, stages: list[int], num_stages: int) -> None:
        self.stages, self.last = sorted(stages, reverse=True), num_stages - 1  # later stages first
        self.forwards, self.backwards = dict.fromkeys(stages, 0), dict.fromkeys(stages, 0)
        self.weights: list[Action] = []
        self.free_at = 0
        self.finished = dict.fromkeys(stages, 0)  # microbatches whose gradients are complete
        self.actions: list[Action | None] = []

    def choose(self, ready: Callable[[int, ComputationType, int], bool], microbatches: int, limit: int, splits_all: bool) -> Action | None:
        """The next computation: the gradient of an input, else a forward pass, else the gradients of weights."""
        for stage in self.stages:
            i = self.backwards[stage]
            if i < self.forwards[stage] and (stage == self.last or ready(stage + 1, BACKWARD, i)):
                self.backwards[stage] += 1
                splits = splits_all or all(n == microbatches for n in self.forwards.values())
                if splits:
                    self.weights.append(Action(stage, WEIGHT, i))
                return Action(stage, INPUT if splits else BACKWARD, i)
        for stage in self.stages:
            i = self.forwards[stage]
            has_room = stage != self.stages[-1] or i - self.finished[stage] < limit
            if i < microbatches and has_room and (stage == 0 or ready(stage - 1, FORWARD, i)):
                self.forwards[stage] += 1
                return Action(stage, FORWARD, i)
        return self.weights.pop(0) if self.weights else None


def zero_bubble(stages_of: dict[int, list[int]], microbatches: int, limit: int, splits_all: bool) -> Order:
    """Computes the gradients of weights where a rank would wait, by a simulation in which all computations take equally long.

    Source: P. Qi et al., "Zero Bubble Pipeline Parallelism", 2023.

    Args:
        stages_of: the stages of each rank.
        limit: the number of microbatches whose activations a rank keeps for its first stage.
        splits_all: whether every backward pass is divided; else only those after a rank's last forward pass.
    """
    num_stages = sum(map(len, stages_of.values()))
    ranks = {rank: _Rank(stages, num_stages) for rank, stages in stages_of.items()}
    done_at: dict[tuple[int, ComputationType, int], int] = {}
    time, left = 0, 2 * num_stages * microbatches
    while left or any(r.weights for r in ranks.values()):

        def ready(stage: int, kind: ComputationType, microbatch: int, now: int = time) -> bool:
            return done_at.get((stage, kind, microbatch), now + 1) <= now

        for rank in ranks.values():
            action = rank.choose(ready, microbatches, limit, splits_all) if rank.free_at <= time else None
            if action is None:
                continue
            stage, kind, i = action
            rank.actions.append(action)
            rank.free_at = time + (2 if kind == BACKWARD else 1)
            if kind in (WEIGHT, BACKWARD):
                rank.finished[stage] += 1
            if kind != WEIGHT:
                done_at[stage, FORWARD if kind == FORWARD else BACKWARD, i] = rank.free_at
                left -= 1
        time += 1
    return {number: rank.actions for number, rank in ranks.items()}


def v_shaped(ranks: int) -> dict[int, list[int]]:
    """Two stages per rank, of which the second ones are in the opposite order: rank 0 has the first and the last stage."""
    return {rank: [rank, 2 * ranks - 1 - rank] for rank in range(ranks)}
