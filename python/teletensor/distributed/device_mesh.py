"""torch.distributed.device_mesh: meshes of the ranks of the default group, or of the engines of connect_all()."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from .. import _connection
from ._backend import Backend
from ._device_mesh import DeviceMesh, check_names
from ._engine_mesh import EngineMesh
from ._world import is_initialized

__all__ = ["DeviceMesh", "init_device_mesh"]


def init_device_mesh(
    device_type: str, mesh_shape: tuple[int, ...], *, mesh_dim_names: Sequence[str] | None = None, backend_override=None
) -> DeviceMesh:
    """Returns a mesh of the first ranks of the default group, in row-major order. Initializes the default group if needed.

    After ``connect_all()`` it returns a mesh of those engines instead, which this process controls.

    All ranks must call it with the same arguments. The engines choose the transport, so `backend_override` has no effect.

    Raises:
        RuntimeError: the names are invalid, or the default group has fewer ranks.
    """
    mesh_shape = (mesh_shape,) if isinstance(mesh_shape, int) else tuple(mesh_shape)
    check_names(mesh_shape, mesh_dim_names)
    if device_type not in Backend.default_device_backend_map:
        raise RuntimeError(f"[init_device_mesh] expected device type cpu or cuda without an index, got {device_type!r}")
    if _connection.engines() is not None and not is_initialized():
        return EngineMesh(device_type, mesh_shape, mesh_dim_names=mesh_dim_names)
    numbers = itertools.count()

    def nested(shape: tuple[int, ...]):
        return [nested(shape[1:]) for _ in range(shape[0])] if shape else next(numbers)

    return DeviceMesh(device_type, nested(mesh_shape), mesh_dim_names=mesh_dim_names)
