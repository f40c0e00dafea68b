"""Channels: this rank's messages to and from another rank, in the order of the plan."""

from __future__ import annotations

import collections

from ... import _C
from ..._C import Tensor
from .._options import BroadcastOptions
from .._process_group import ProcessGroup
from ._order import FORWARD, Action
from ._plan import Message
from ._utils import ENCODED_SIZE, TensorMeta, decode, encode
from .stage import PipelineStage

_TAG = (1 << 32) - 3  # tag of all pipeline messages; users cannot choose it
_ASYNC = BroadcastOptions(asyncOp=True)


class Sender:
    """Sends the results of this rank's stages to one rank.

    The engine sends them while it computes. `release` waits for messages that are known to have arrived, so that the
    engine can free their memory.
    """

    def __init__(self, group: ProcessGroup, peer: int):
        self._group, self._peer = group, peer
        self._works: collections.deque[list] = collections.deque()  # Works of the messages that were not waited for
        self._released = 0

    def send(self, tensors: list[Tensor]) -> None:
        """Starts to send one message."""
        self._works.append([self._group.send([t.detach()], self._peer, _TAG, _ASYNC) for t in tensors])

    def describe(self, metas: tuple[TensorMeta, ...]) -> None:
        """Starts to send the shapes and dtypes of the following message."""
        self._group.send([_C.tensor(encode(metas), device="cpu")], self._peer, _TAG, _ASYNC)

    def release(self, count: int) -> None:
        """Waits for the first messages of this step, which have arrived."""
        while self._released < count:
            self._wait()

    def finish(self) -> None:
        """Waits, in the engine, for all messages of this step."""
        while self._works:
            self._wait()
        self._released = 0

    def _wait(self) -> None:
        for work in self._works.popleft():
            work.wait()
        self._released += 1


class Receiver:
    """Receives the inputs of this rank's stages from one rank.

    Args:
        messages: the rank's messages in one step, in the order in which it sends them.
        stages: this rank's stages, by index.
    """

    def __init__(self, group: ProcessGroup, peer: int, messages: list[Message], stages: dict[int, PipelineStage]):
        self._group, self._peer, self._stages = group, peer, stages
        self._messages = [message.action for message in messages]
        self._acknowledged = {message.action: message.acknowledged for message in messages}
        self._started: dict[Action, tuple[list, list[Tensor]]] = {}
        self._next = 0  # index of the first message that this rank has not started to receive

    def start(self, action: Action, may_wait: bool) -> None:
        """Starts to receive the computation's input, and all messages before it.

        Args:
            may_wait: whether to wait in this process for shapes that are not known yet. If not, stops before them.
        """
        while action not in self._started and self._next < len(self._messages):
            user = self._messages[self._next]
            metas = self._metas(user, may_wait)
            if metas is None:
                return
            buffers = [meta.empty(self._stages[user.stage_index].device) for meta in metas]
            works = [self._group.recv([buffer], self._peer, _TAG, _ASYNC) for buffer in buffers]
            self._started[user] = works, buffers
            self._next += 1

    def _metas(self, action: Action, may_wait: bool) -> tuple[TensorMeta, ...] | None:
        """Shapes and dtypes of the tensors of a message, or None if they are not known yet."""
        stage = self._stages[action.stage_index]
        if action.computation_type != FORWARD:
            return stage.gradient_metas()
        if stage.inputs_meta is None and may_wait:
            numbers = _C.torch.empty(ENCODED_SIZE, dtype=_C.int64, device="cpu")
            self._group.recv([numbers], self._peer, _TAG, _ASYNC).wait()
            stage.inputs_meta = decode(numbers.tolist())
        return stage.inputs_meta

    def take(self, action: Action) -> tuple[list[Tensor], int]:
        """Returns the input of a computation, and the number of this rank's messages that have arrived at the other
        rank.

        The engine waits for it before the session's next calls.
        """
        self.start(action, may_wait=True)
        works, buffers = self._started.pop(action)
        for work in works:
            work.wait()
        return buffers, self._acknowledged[action]

    def finish(self) -> None:
        """Prepares for the next step."""
        self._next = 0
