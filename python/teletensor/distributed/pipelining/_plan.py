"""The messages of a pipeline: which values each rank sends and receives, in which order.

All ranks derive the same plan from the same order of computation. Between two ranks, messages are received in the order
in which they are sent. A rank starts to receive a message before it needs it, and waits for a sent message only when it
has received a message that the same peer sent after using it. Hence no rank waits for a send, and the ranks wait for
each other only as the computation requires.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ._order import BACKWARD, FORWARD, Action, Order


class Message(NamedTuple):
    """The output of one stage for one microbatch, or its gradient, on its way to the stage that uses it."""

    action: Action  # the computation that uses it
    acknowledged: int  # number of messages in the opposite direction that the sender used before it sent this one


def input_of(action: Action, num_stages: int) -> Action | None:
    """The computation whose result another computation uses; None for the pipeline's input and the loss."""
    stage, kind, microbatch = action
    if kind == FORWARD:
        return Action(stage - 1, FORWARD, microbatch) if stage > 0 else None
    return Action(stage + 1, BACKWARD, microbatch) if stage + 1 < num_stages else None


def user_of(action: Action, num_stages: int) -> Action | None:
    """The computation that uses a computation's result; None for the pipeline's output and the input's gradient."""
    stage, kind, microbatch = action
    if kind == FORWARD:
        return Action(stage + 1, FORWARD, microbatch) if stage + 1 < num_stages else None
    return Action(stage - 1, BACKWARD, microbatch) if stage > 0 else None


def stage_ranks(order: Order, num_stages: int, microbatches: int) -> dict[int, int]:
    """The rank of each stage.

    Raises:
        ValueError: a computation is missing or duplicated, a stage is on different ranks, or the order would deadlock.
    """
    ranks: dict[int, int] = {}
    done: set[Action] = set()
    for rank, actions in order.items():
        for action in filter(None, actions):
            if not (0 <= action.stage_index < num_stages and 0 <= action.microbatch_index < microbatches):
                raise ValueError(f"expected {num_stages} stages and {microbatches} microbatches, got {action}")
            if ranks.setdefault(action.stage_index, rank) != rank:
                raise ValueError(f"stage {action.stage_index} is on ranks {ranks[action.stage_index]} and {rank}")
            if action in done:
                raise ValueError(f"rank {rank} computes {action} twice")
            done.add(action)
    for stage in range(num_stages):
        for microbatch in range(microbatches):
            if Action(stage, FORWARD, microbatch) not in done:
                raise ValueError(f"no rank computes {Action(stage, FORWARD, microbatch)}")
    _check_progress(order, num_stages)
    return ranks


def _check_progress(order: Order, num_stages: int) -> None:
    """Raises ValueError if some computation would never get its input."""
    done: set[Action] = set()
    left = {rank: [a for a in actions if a is not None] for rank, actions in order.items()}
    at = dict.fromkeys(left, 0)
    while any(at[rank] < len(actions) for rank, actions in left.items()):
        before = dict(at)
        for rank, actions in left.items():
            while at[rank] < len(actions) and _is_ready(actions[at[rank]], done, num_stages):
                done.add(actions[at[rank]])
                at[rank] += 1
        if at == before:
            waiting = {rank: actions[at[rank]] for rank, actions in left.items() if at[rank] < len(actions)}
            raise ValueError(f"the ranks would wait for each other: the inputs of {waiting} are never computed")


def _is_ready(action: Action, done: set[Action], num_stages: int) -> bool:
    needed = input_of(action, num_stages)
    own = Action(action.stage_index, FORWARD, action.microbatch_index)
    return (needed is None or needed in done) and (action.computation_type == FORWARD or own in done)


def messages_between(
    order: Order, sender: int, receiver: int, ranks: Mapping[int, int], num_stages: int
) -> list[Message]:
    """The messages of one rank to another, in the order in which they are sent."""
    opposite = {user: i for i, (_, user) in enumerate(_sent(order, receiver, sender, ranks, num_stages))}
    users = dict(_sent(order, sender, receiver, ranks, num_stages))
    messages: list[Message] = []
    used = 0
    for action in filter(None, order[sender]):
        if action in opposite:
            used = max(used, opposite[action] + 1)
        if action in users:
            messages.append(Message(users[action], used))
    return messages


def _sent(
    order: Order, sender: int, receiver: int, ranks: Mapping[int, int], num_stages: int
) -> list[tuple[Action, Action]]:
    """The computations of a rank whose result another rank uses, and the computations that use it."""
    of_receiver = set(order[receiver])
    pairs = ((action, user_of(action, num_stages)) for action in filter(None, order[sender]))
    return [(a, user) for a, user in pairs if user in of_receiver and user and ranks[user.stage_index] == receiver]
