"""How the tensors and RRefs of a message reach another worker, or this one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ... import _C, _connection
from .. import _pull

if TYPE_CHECKING:
    from ..autograd._context import Context
    from ._agent import Agent, Peer

# How long an engine keeps a message's tensors. The receiver pulls when its session has executed its earlier calls.
_OFFER_SECONDS = 3600.0


class Outgoing:
    """A message that is being encoded. Tensors that require gradients are recorded if there is an autograd context."""

    def __init__(self, agent: Agent, to: Peer, context: Context | None, is_reply: bool):
        self._agent, self._to, self._context, self._is_reply = agent, to, context, is_reply
        self._recorded: list[_C.Tensor] = []
        self._offered: list[str] = []

    def _put(self, tensor: _C.Tensor) -> list:
        device = self._agent.device_at(self._to, tensor.device, self._is_reply)
        capability = _pull.new_capability()
        _C.ops.pull_offer(tensor.detach(), capability=capability, timeout=_OFFER_SECONDS)
        self._offered.append(capability)
        return [capability, list(tensor.shape), _pull.dtype_name(tensor.dtype), device]

    def put_tensor(self, tensor: _C.Tensor) -> list:
        recorded = self._context is not None and tensor.requires_grad and _C.is_grad_enabled()
        if recorded:
            self._recorded.append(tensor)
        return [*self._put(tensor), recorded]

    def put_rref(self, rref) -> list:
        return self._agent.rrefs.put(rref, self._to)

    def finish(self) -> list | None:
        """Sends the offers to the engine, and records the tensors. Returns the message's autograd header."""
        if self._offered:
            _connection.connection().flush()
        return None if self._context is None else self._context.add_send(self._to.rank, self._recorded)

    def cancel(self) -> None:
        """Frees the offers of a message that was not sent."""
        for capability in self._offered:
            _C.ops.pull_withdraw(capability)


class Incoming:
    """A message that is being decoded."""

    def __init__(self, agent: Agent, sender: Peer):
        self._agent, self._sender = agent, sender
        self.recorded: list[_C.Tensor] = []

    def _get(self, content: list) -> _C.Tensor:
        capability, sizes, dtype, device = content
        if not isinstance(capability, str) or not isinstance(device, str):
            raise ValueError(f"expected a tensor, got {content!r:.100}")
        return _pull.pull_from(
            self._sender.pull_address, self._sender.pull_token, capability, _pull.checked_sizes(sizes),
            _pull.dtype_of(dtype), device=_C.device(device), timeout=self._agent.timeout or _OFFER_SECONDS,
        )  # fmt: skip

    def get_tensor(self, content) -> _C.Tensor:
        *place, recorded = content
        tensor = self._get(place)
        if recorded is True:
            tensor.requires_grad_()
            self.recorded.append(tensor)
        return tensor

    def get_rref(self, content):
        return self._agent.rrefs.get(content, self._sender)


class LocalOutgoing(Outgoing):
    """A message of this worker to itself: tensors are copied and RRefs are passed on, within the process."""

    def __init__(self, agent: Agent, to: Peer, context: Context | None, is_reply: bool):
        super().__init__(agent, to, context, is_reply)
        self.objects: list = []

    def _put(self, tensor: _C.Tensor) -> list:
        self.objects.append(tensor.detach().clone())
        return [len(self.objects) - 1]

    def put_rref(self, rref) -> list:
        self.objects.append(rref)
        return [len(self.objects) - 1]


class LocalIncoming(Incoming):
    """The other end of a LocalOutgoing."""

    def __init__(self, agent: Agent, sender: Peer, objects: list):
        super().__init__(agent, sender)
        self._objects = objects

    def _get(self, content: list) -> _C.Tensor:
        return self._objects[content[0]]

    def get_rref(self, content: list):
        return self._objects[content[0]]
