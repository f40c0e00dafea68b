"""Collectives of Python values. They wait, since the values are read in this process.

The values are encoded without pickle (``_object_encoding``), so ``weights_only`` has no effect.
"""

from __future__ import annotations

from collections.abc import Sequence

from .. import _C
from ._collectives import _check_list_for_rank, all_gather_single, broadcast, gather, scatter
from ._object_encoding import decode, encode
from ._point_to_point import recv, send
from ._process_group import ProcessGroup
from ._world import (
    _canonicalize_group_rank,
    _check_not_self_rank,
    _group_or_default_group,
    _rank_not_in_group,
    _warn_not_in_group,
)  # fmt: skip


def _bytes_tensor(data: bytes) -> _C.Tensor:
    import numpy as np

    return _C.tensor(np.frombuffer(data, np.uint8), device="cpu")


def _empty(count: int, dtype=None) -> _C.Tensor:
    return _C.torch.zeros(count, dtype=dtype or _C.uint8, device="cpu")


def _padded(data: bytes, size: int) -> _C.Tensor:
    return _bytes_tensor(data.ljust(size, b"\0"))


def _decode_all(data: memoryview, sizes: Sequence[int]) -> list:
    """Decodes values that follow each other."""
    values, begin = [], 0
    for size in sizes:
        values.append(decode(data[begin : begin + size]))
        begin += size
    return values


def _read(tensor: _C.Tensor) -> memoryview:
    return memoryview(tensor.numpy())


def _sizes_of_all(size: int, pg: ProcessGroup) -> list[int]:
    sizes = _empty(pg.size(), _C.int64)
    all_gather_single(sizes, _C.tensor([size], device="cpu"), group=pg)
    return sizes.tolist()


def all_gather_object(object_list: list, obj, group: ProcessGroup | None = None, weights_only: bool = False) -> None:
    """Gathers one value of each rank into ``object_list``, which has one entry per rank."""
    if _rank_not_in_group(group):
        _warn_not_in_group("all_gather_object")
        return
    pg = _group_or_default_group(group)
    data = encode(obj)
    sizes = _sizes_of_all(len(data), pg)
    longest = max(sizes)
    gathered = _empty(longest * pg.size())
    all_gather_single(gathered, _padded(data, longest), group=pg)
    view = _read(gathered)
    for rank, size in enumerate(sizes):
        object_list[rank] = decode(view[rank * longest : rank * longest + size])


def gather_object(
    obj,
    object_gather_list: list | None = None,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    group_dst: int | None = None,
    weights_only: bool = False,
) -> None:
    """Gathers one value of each rank at one rank, by default rank 0, into ``object_gather_list``."""
    pg = _group_or_default_group(group)
    if _rank_not_in_group(pg):
        _warn_not_in_group("gather_object")
        return
    root = _canonicalize_group_rank(pg, 0 if dst is None and group_dst is None else dst, group_dst)
    _check_list_for_rank(pg.rank(), root, object_gather_list)
    data = encode(obj)
    sizes = _sizes_of_all(len(data), pg)
    longest = max(sizes)
    outputs = [_empty(longest) for _ in sizes] if pg.rank() == root else None
    gather(_padded(data, longest), outputs, group_dst=root, group=pg)
    for rank, output in enumerate(outputs or []):
        object_gather_list[rank] = decode(_read(output)[: sizes[rank]])


def broadcast_object_list(
    object_list: list,
    src: int | None = None,
    group: ProcessGroup | None = None,
    device=None,
    group_src: int | None = None,
    weights_only: bool = False,
) -> None:
    """Copies a rank's values, by default those of rank 0, to the lists of all ranks, which have one length."""
    pg = _group_or_default_group(group)
    if _rank_not_in_group(pg):
        _warn_not_in_group("broadcast_object_list")
        return
    root = _canonicalize_group_rank(pg, 0 if src is None and group_src is None else src, group_src)
    if pg.rank() == root:
        encoded = [encode(obj) for obj in object_list]
        broadcast(_C.tensor([len(data) for data in encoded], dtype=_C.int64, device="cpu"), group_src=root, group=pg)
        broadcast(_bytes_tensor(b"".join(encoded)), group_src=root, group=pg)
        return
    sizes_tensor = _empty(len(object_list), _C.int64)
    broadcast(sizes_tensor, group_src=root, group=pg)
    sizes = sizes_tensor.tolist()
    received = _empty(sum(sizes))
    broadcast(received, group_src=root, group=pg)
    object_list[:] = _decode_all(_read(received), sizes)


def scatter_object_list(
    scatter_object_output_list: list,
    scatter_object_input_list: Sequence | None = None,
    src: int | None = None,
    group: ProcessGroup | None = None,
    group_src: int | None = None,
    weights_only: bool = False,
) -> None:
    """Gives each rank one value of a list at one rank, by default rank 0, in ``scatter_object_output_list[0]``."""
    pg = _group_or_default_group(group)
    if _rank_not_in_group(pg):
        _warn_not_in_group("scatter_object_list")
        return
    root = _canonicalize_group_rank(pg, 0 if src is None and group_src is None else src, group_src)
    if not isinstance(scatter_object_output_list, list) or len(scatter_object_output_list) < 1:
        raise ValueError("Expected argument scatter_object_output_list to be a list of size at least 1.")
    encoded: list[bytes] = []
    if pg.rank() == root:
        if scatter_object_input_list is None:
            raise ValueError("source rank must provide non-None scatter_object_input_list")
        encoded = [encode(obj) for obj in scatter_object_input_list]
        if len(encoded) != pg.size():
            raise RuntimeError(f"[scatter_object_list] expected {pg.size()} values, one per rank, got {len(encoded)}")
    sizes_tensor = (
        _C.tensor([len(data) for data in encoded], dtype=_C.int64, device="cpu")
        if encoded
        else _empty(pg.size(), _C.int64)
    )
    broadcast(sizes_tensor, group_src=root, group=pg)
    sizes = sizes_tensor.tolist()
    longest = max(sizes)
    received = _empty(longest)
    scatter(received, [_padded(data, longest) for data in encoded] or None, group_src=root, group=pg)
    scatter_object_output_list[0] = decode(_read(received)[: sizes[pg.rank()]])


def send_object_list(
    object_list: Sequence,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    device=None,
    group_dst: int | None = None,
    use_batch: bool = False,
    weights_only: bool = False,
) -> None:
    """Sends values to a rank, which receives them into a list of the same length. Does not wait."""
    pg = _group_or_default_group(group)
    if _rank_not_in_group(pg):
        _warn_not_in_group("send_object_list")
        return
    peer = _canonicalize_group_rank(pg, dst, group_dst)
    _check_not_self_rank(pg, peer, "destination")
    encoded = [encode(obj) for obj in object_list]
    send(_C.tensor([len(data) for data in encoded], dtype=_C.int64, device="cpu"), group_dst=peer, group=pg)
    send(_bytes_tensor(b"".join(encoded)), group_dst=peer, group=pg)


def recv_object_list(
    object_list: list,
    src: int | None = None,
    group: ProcessGroup | None = None,
    device=None,
    group_src: int | None = None,
    use_batch: bool = False,
    weights_only: bool = False,
) -> int:
    """Receives values from a rank into a list. Returns the sender's rank in the default group."""
    pg = _group_or_default_group(group)
    if _rank_not_in_group(pg):
        _warn_not_in_group("recv_object_list")
        return -1
    peer = _canonicalize_group_rank(pg, src, group_src)
    _check_not_self_rank(pg, peer, "source")
    sizes_tensor = _empty(len(object_list), _C.int64)
    recv(sizes_tensor, group_src=peer, group=pg)
    sizes = sizes_tensor.tolist()
    received = _empty(sum(sizes))
    rank = recv(received, group_src=peer, group=pg)
    object_list[:] = _decode_all(_read(received), sizes)
    return rank


__all__ = [
    "all_gather_object", "broadcast_object_list", "gather_object", "recv_object_list",
    "scatter_object_list", "send_object_list",
]  # fmt: skip
