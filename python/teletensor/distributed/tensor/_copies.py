"""Copies of a tensor on all members of a mesh."""

from __future__ import annotations

from ... import _C, _connection
from .._device_mesh import DeviceMesh
from ._redistribute import broadcast_along


def _owner(tensor: _C.Tensor, mesh: DeviceMesh) -> int:
    """The number of the member whose engine has the tensor."""
    engines = _connection.engines()
    for k, connection in enumerate(engines[: len(mesh._members())]):
        if connection.owns(tensor):
            return k
    raise RuntimeError("[distribute_tensor] expected a tensor of one of the mesh's engines")


def copies(tensor: _C.Tensor, mesh: DeviceMesh, source: int = 0) -> list[_C.Tensor]:
    """Copies of a tensor on the members: of rank `source`'s tensor, or in a controller of the one tensor."""
    members = mesh._members()
    if not members:
        raise RuntimeError(f"[distribute_tensor] this process is not a rank of the mesh {mesh}")
    tensor = tensor.detach()
    locals_ = [tensor] * len(members)
    if len(members) > 1:
        owner = _owner(tensor, mesh)
        root = members[owner].coordinate
        for k, member in enumerate(members):
            if k != owner:
                with member.session():
                    locals_[k] = _C.torch.empty(list(tensor.shape), dtype=tensor.dtype, device=tensor.device)
    else:
        root = _coordinate(mesh, source)
    for m in range(mesh.ndim):
        locals_ = broadcast_along(
            mesh, m, locals_, root[m], lambda member, m=m: member.coordinate[m + 1 :] == root[m + 1 :]
        )
    return locals_


def _coordinate(mesh: DeviceMesh, rank: int) -> tuple[int, ...]:
    """The position of a rank in the mesh, by its number in the mesh's row-major order."""
    position = []
    for n in reversed(mesh.shape):
        rank, k = divmod(rank, n)
        position.insert(0, k)
    return tuple(position)
