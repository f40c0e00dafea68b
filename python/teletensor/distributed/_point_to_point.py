"""Messages between two ranks."""

from __future__ import annotations

from collections.abc import Callable

from .. import _C
from .._lazy import set_module
from . import _options
from ._collectives import _check_single_tensor
from ._process_group import ProcessGroup
from ._work import Work
from ._world import (
    _canonicalize_group_rank,
    _check_not_self_rank,
    _group_or_default_group,
    _rank_not_in_group,
    _warn_not_in_group,
    get_global_rank,
    get_rank,
)  # fmt: skip


def _start_send(tensor, dst, group, tag, group_dst, async_op: bool, op: str) -> Work | None:
    pg = _group_or_default_group(group)
    if _rank_not_in_group(pg):
        _warn_not_in_group(op)
        return None
    peer = _canonicalize_group_rank(pg, dst, group_dst)
    _check_single_tensor(tensor, "tensor")
    if not async_op:
        _check_not_self_rank(pg, peer, "destination")
    return pg.send([tensor], peer, tag, _options.BroadcastOptions(asyncOp=async_op))


def _start_receive(tensor, src, group, tag, group_src, async_op: bool, op: str) -> Work | None:
    _check_single_tensor(tensor, "tensor")
    pg = _group_or_default_group(group)
    if _rank_not_in_group(pg):
        _warn_not_in_group(op)
        return None
    if src is None and group_src is None:
        return pg.recv_anysource([tensor], tag, _options.BroadcastOptions(asyncOp=async_op))
    peer = _canonicalize_group_rank(pg, src, group_src)
    if not async_op:
        _check_not_self_rank(pg, peer, "source")
    return pg.recv([tensor], peer, tag, _options.BroadcastOptions(asyncOp=async_op))


def isend(
    tensor: _C.Tensor,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> Work | None:
    """Starts to send a tensor to a rank. The tensor must not be changed before ``Work.wait()``."""
    return _start_send(tensor, dst, group, tag, group_dst, True, "isend")


def irecv(
    tensor: _C.Tensor,
    src: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_src: int | None = None,
) -> Work | None:
    """Starts to receive a tensor from a rank, by default from any. The tensor must not be used before ``Work.wait()``.

    ``Work.source_rank()`` returns the sender's rank in the group.
    """
    return _start_receive(tensor, src, group, tag, group_src, True, "irecv")


def send(
    tensor: _C.Tensor,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> None:
    """Sends a tensor to a rank. The session's next calls run after the tensor was sent; this call does not wait."""
    _start_send(tensor, dst, group, tag, group_dst, False, "send")


def recv(
    tensor: _C.Tensor,
    src: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_src: int | None = None,
) -> int:
    """Receives a tensor of the sender's shape and dtype. Returns the sender's rank in the default group.

    Does not wait in this process, unless neither `src` nor `group_src` is given: then the message may come from any rank.
    """
    work = _start_receive(tensor, src, group, tag, group_src, False, "recv")
    if work is None:
        return -1
    return src if src is not None else get_global_rank(_group_or_default_group(group), work.source_rank())


class P2POp:
    """A message for batch_isend_irecv().

    Args:
        op: ``torch.distributed.isend`` or ``torch.distributed.irecv``.
        tensor: the tensor to send or to receive into.
        peer: the other rank, in the default group.
        group: the group, by default the default group.
        tag: messages between two ranks are matched by their tag.
        group_peer: the other rank, in the group; instead of `peer`.
    """

    def __init__(
        self,
        op: Callable[..., Work | None],
        tensor: _C.Tensor,
        peer: int | None = None,
        group: ProcessGroup | None = None,
        tag: int = 0,
        group_peer: int | None = None,
    ):
        if op not in (isend, irecv):
            raise ValueError(
                "Invalid ``op``. Expected ``op`` to be of type ``torch.distributed.isend`` or ``torch.distributed.irecv``."
            )
        _check_single_tensor(tensor, "tensor")
        self.op, self.tensor, self.tag = op, tensor, tag
        self.group = _group_or_default_group(group)
        self.peer = _canonicalize_group_rank(self.group, peer, group_peer, return_global=True)
        self.group_peer = _canonicalize_group_rank(self.group, peer, group_peer)

    def __repr__(self) -> str:
        own, peer = get_rank(self.group), self.group_peer
        source, destination = (own, peer) if self.op is isend else (peer, own)
        return (
            f"P2POp({self.op.__name__} pg={self.group.group_name}, group_src={source}, group_dst={destination}, "
            f"{self.tensor.shape}, {self.tensor.dtype})"
        )


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[Work]:
    """Starts several messages. Returns a Work for each, except for messages of this rank to itself, which are copies.

    Raises:
        ValueError: the list is invalid, or a message to this rank has no counterpart with its tag, shape and dtype.
    """
    if not isinstance(p2p_op_list, list) or not all(isinstance(op, P2POp) for op in p2p_op_list):
        raise ValueError("Invalid ``p2p_op_list``. Each op is expected to to be of type ``torch.distributed.P2POp``.")
    if not p2p_op_list:
        raise ValueError("[batch_isend_irecv] expected at least one P2POp")
    if any(op.group is not p2p_op_list[0].group for op in p2p_op_list):
        raise ValueError("All ops need to use the same group.")
    works = []
    own = p2p_op_list[0].group.rank()
    _copy_own_messages([op for op in p2p_op_list if op.group_peer == own])
    for op in p2p_op_list:
        if op.group_peer == own:
            continue
        peer = {"group_dst" if op.op is isend else "group_src": op.group_peer}
        works.append(op.op(op.tensor, group=op.group, tag=op.tag, **peer))
    return [work for work in works if work is not None]


def _copy_own_messages(ops: list[P2POp]) -> None:
    """Copies messages of this rank to itself; those with one tag are matched in their order."""
    for tag in dict.fromkeys(op.tag for op in ops):
        sent = [op.tensor.detach() for op in ops if op.tag == tag and op.op is isend]
        received = [op.tensor.detach() for op in ops if op.tag == tag and op.op is irecv]
        kinds = [[(tuple(t.shape), t.dtype) for t in tensors] for tensors in (sent, received)]
        if kinds[0] != kinds[1]:
            raise ValueError(
                f"[batch_isend_irecv] expected as many messages from this rank to itself as it receives with tag {tag}, of "
                f"the same shapes and dtypes, got {kinds[0]} and {kinds[1]}"
            )
        for source, destination in zip(sent, received, strict=True):
            destination.copy_(source)


__all__ = ["P2POp", "batch_isend_irecv", "irecv", "isend", "recv", "send"]

set_module("teletensor.distributed.distributed_c10d", P2POp)
