"""How tensors are pickled for other processes of a user: as a capability to use the same bytes in the same engine.

The other process gets a tensor over these bytes. They are freed when no process uses them, and are charged to the memory
limit of every process that uses them. A tensor that was sent and not received is kept until its process has ended, and 60 s
longer. Tensors of an engine in this process are copied.
"""

from __future__ import annotations

import secrets
from multiprocessing.reduction import ForkingPickler

from .. import _C, _connection
from ..nn.parameter import Buffer, Parameter

__all__ = ["init_reductions", "rebuild_tensor", "reduce_tensor"]

_SECONDS = 86400.0 * 7  # after which a tensor that nobody has received is freed


def reduce_tensor(tensor: _C.Tensor) -> tuple:
    """The function and arguments by which another process creates a copy of the tensor."""
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(
            "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not support crossing process "
            "boundaries.  If you just want to transfer the data, call detach() on the tensor before serializing (e.g., putting it "
            "on the queue)."
        )
    kind = {Parameter: "Parameter", Buffer: "Buffer"}.get(type(tensor), "Tensor")
    value = tensor.detach()
    if tensor.device.type == "meta":
        return rebuild_meta, (list(tensor.shape), str(tensor.dtype), kind, tensor.requires_grad)
    session = _connection.connection()
    if not session.address or not session.owns(tensor):
        data = value.reshape(-1).contiguous().view(_C.uint8).numpy(force=True).tobytes() if value.numel() else b""
        return rebuild_copy, (data, list(value.shape), str(value.dtype), str(value.device), kind, tensor.requires_grad)
    capability = secrets.token_hex(16)
    # Waits, because the other process may import the tensor before this session's other instructions are sent.
    elements = _C.ops.share_export(value, capability=capability, timeout=_SECONDS).item() // value.element_size()
    view = (list(value.shape), list(value.stride()), value.storage_offset())
    place = (session.address, capability, elements, str(value.dtype), str(value.device), _C.is_read_only(value))
    return rebuild_tensor, (place, view, kind, tensor.requires_grad)


def _as_kind(value: _C.Tensor, kind: str, requires_grad: bool) -> _C.Tensor:
    if kind == "Parameter":
        return Parameter(value, requires_grad)
    value = Buffer(value) if kind == "Buffer" else value
    return value.requires_grad_() if requires_grad else value


def rebuild_copy(data: bytes, sizes: list[int], dtype: str, device: str, kind: str, requires_grad: bool) -> _C.Tensor:
    """A tensor with the given bytes."""
    value = _C.from_bytes(data, _dtype(dtype), sizes, _C.device("cpu"))
    return _as_kind(value.to(device), kind, requires_grad)


def _dtype(name: str) -> _C.dtype:
    return getattr(_C, name.rpartition(".")[2])


def rebuild_tensor(place: tuple, view: tuple, kind: str, requires_grad: bool) -> _C.Tensor:
    """The tensor that another process has sent.

    Raises:
        RuntimeError: it was received before, or its process has ended some time ago.
        ConnectionError: this process uses another engine.
    """
    address, capability, elements, dtype, device, is_read_only = place
    if _connection._current is None:
        with _connection._opening:
            session = _connection._current or _connection.connect(address)
    else:
        session = _connection._current
    if session.address != address:
        raise ConnectionError(
            f"[multiprocessing] expected a process that uses the sender's engine at {address}, got one that uses "
            f"{session.address or 'an engine of its own'}: start it when its parent is connected, or connect both processes to one "
            "engine with TELETENSOR_ADDRESS or connect()"
        )
    whole = _C.ops.share_import(capability, size=[elements], dtype=_dtype(dtype), device=_C.device(device))
    if is_read_only:  # it was published
        _C.mark_read_only(whole)
    session.synchronize()  # afterwards the sending process may end
    return _as_kind(whole.as_strided(*view).detach(), kind, requires_grad)


def rebuild_meta(sizes: list[int], dtype: str, kind: str, requires_grad: bool) -> _C.Tensor:
    """A meta tensor."""
    value = _C.torch.empty(sizes, dtype=getattr(_C, dtype.rpartition(".")[2]), device="meta")
    return _as_kind(value, kind, requires_grad)


def init_reductions() -> None:
    """Registers the functions with multiprocessing's pickler."""
    for kind in (_C.Tensor, Parameter, Buffer):
        ForkingPickler.register(kind, reduce_tensor)
