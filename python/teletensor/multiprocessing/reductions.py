"""How tensors are pickled for other processes of a user.

Small tensors are pickled with their bytes. Large ones are tickets, by which the other process's engine pulls the values:
the sending process must exist until then.
"""

from __future__ import annotations

from multiprocessing.reduction import ForkingPickler
from typing import Any

from .. import _C, _connection
from ..distributed import _pull
from ..nn.parameter import Buffer, Parameter

_SECONDS = 3600.0  # seconds after which a value that nobody has pulled is freed
_SMALL = 4 << 20  # bytes


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
    if value.numel() * value.element_size() <= _SMALL:
        data = value.reshape(-1).contiguous().view(_C.uint8).numpy(force=True).tobytes() if value.numel() else b""
        return rebuild_small, (data, list(value.shape), str(value.dtype), str(value.device), kind, tensor.requires_grad)
    return rebuild_tensor, (_pull.offer(value, timeout=_SECONDS), str(value.device), kind, tensor.requires_grad)


def _as_kind(value: _C.Tensor, kind: str, requires_grad: bool) -> _C.Tensor:
    if kind == "Parameter":
        return Parameter(value, requires_grad)
    value = Buffer(value) if kind == "Buffer" else value
    return value.requires_grad_() if requires_grad else value


def rebuild_small(data: bytes, sizes: list[int], dtype: str, device: str, kind: str, requires_grad: bool) -> _C.Tensor:
    """A tensor with the given bytes."""
    value = _C.from_bytes(data, getattr(_C, dtype.rpartition(".")[2]), sizes, _C.device("cpu"))
    return _as_kind(value.to(device), kind, requires_grad)


def rebuild_tensor(ticket: dict[str, Any], device: str, kind: str, requires_grad: bool) -> _C.Tensor:
    """The tensor of a ticket, on its device in the other process."""
    value = _pull.pull(ticket, device=device)
    _connection.connection().synchronize()  # afterwards the sending process may end
    return _as_kind(value, kind, requires_grad)


def rebuild_meta(sizes: list[int], dtype: str, kind: str, requires_grad: bool) -> _C.Tensor:
    """A meta tensor."""
    value = _C.torch.empty(sizes, dtype=getattr(_C, dtype.rpartition(".")[2]), device="meta")
    return _as_kind(value, kind, requires_grad)


def init_reductions() -> None:
    """Registers the functions with multiprocessing's pickler."""
    for kind in (_C.Tensor, Parameter, Buffer):
        ForkingPickler.register(kind, reduce_tensor)
