"""EngineMesh: a mesh of the engines of connect_all(), which one process controls."""

from __future__ import annotations

import contextlib
import itertools
import math
import secrets
import weakref
from collections.abc import Sequence
from urllib.parse import urlsplit

from .. import _C, _connection
from . import _serving
from ._device_mesh import DeviceMesh, Member, check_names, contiguous_strides
from ._world import default_pg_timeout

_numbers = itertools.count(1)  # of the groups that this process formed


def _store_host(address: str) -> str:
    """The host name under which the other engines reach the first one."""
    if not address or address.startswith("unix:"):
        return "127.0.0.1"
    return urlsplit(f"//{address.rpartition('://')[2]}").hostname or "127.0.0.1"


def _leave(engines: _connection.Engines, groups: Sequence[Sequence[_C.Tensor]]) -> None:
    """Leaves the groups of a mesh that no tensor uses any more, on each of its engines."""
    if engines is not _connection.engines():
        return  # the groups ended with their sessions
    for rank, of_rank in enumerate(groups):
        with engines.use(rank):
            for group in of_rank:
                with contextlib.suppress(ConnectionError):  # a lost engine
                    _C.ops.group_destroy(group)


class EngineMesh(DeviceMesh):
    """The engines of connect_all(), in row-major order. Forms a process group of them along each dimension.

    A rank's number is its engine's position in the arguments of connect_all(). The process is not a rank itself, so
    there is no coordinate and no ProcessGroup object. The engines leave the groups when the mesh and its tensors are
    deleted.
    """

    def __init__(
        self, device_type: str, shape: Sequence[int], *, mesh_dim_names: Sequence[str] | None = None
    ):
        engines = _connection.engines()
        if math.prod(shape) > len(engines):
            raise RuntimeError(
                f"Mesh should not be bigger than the number of engines {len(engines)}, but found {math.prod(shape)} ranks!"
            )
        self.device_type, self.shape = device_type, tuple(shape)
        self.mesh_dim_names = None if mesh_dim_names is None else tuple(mesh_dim_names)
        check_names(self.shape, self.mesh_dim_names)
        self._engines = engines
        self._ranks = list(range(math.prod(shape)))
        self._nested = self._nest(self._ranks, self.shape)
        self._strides = contiguous_strides(self.shape)
        self._groups = []
        self._own_members = self._form_members()

    @staticmethod
    def _nest(ranks: list[int], shape: tuple[int, ...]):
        if len(shape) <= 1:
            return list(ranks)
        size = len(ranks) // shape[0]
        return [EngineMesh._nest(ranks[i * size : (i + 1) * size], shape[1:]) for i in range(shape[0])]

    def _form_members(self) -> tuple[Member, ...]:
        host = _store_host(self._engines.addresses[0])
        with self._engines.use(0):
            port, token = _serving.serve_published(host)
        run = secrets.token_hex(8)
        groups: list[list[_C.Tensor]] = [[] for _ in self._ranks]
        for dim in range(self.ndim):
            for ranks in self._lines(dim):
                for position, rank in enumerate(ranks):
                    with self._engines.use(rank):
                        groups[rank].append(
                            _C.ops.group_create(
                                next(_numbers), store=f"{host}:{port}", token=token, name=f"{run}/{dim}-{ranks[0]}",
                                rank=position, size=len(ranks), timeout=default_pg_timeout.total_seconds(), backend="",
                            )
                        )  # fmt: skip
        left = weakref.finalize(self, _leave, self._engines, groups)
        left.atexit = False  # the sessions end then
        engines, coordinates = self._engines, itertools.product(*(range(n) for n in self.shape))
        return tuple(
            Member(coordinate, tuple(g.select(0, 0) for g in groups[rank]), lambda rank=rank: engines.use(rank))
            for rank, coordinate in enumerate(coordinates)
        )

    def _members(self) -> tuple[Member, ...]:
        if self._engines is not _connection.engines():
            raise RuntimeError("[DeviceMesh] the sessions of this mesh's engines are closed")
        return self._own_members

    def get_group(self, mesh_dim: int | str | None = None):
        raise RuntimeError("[DeviceMesh] this process controls all ranks of the mesh, so it has no process group of its own")

    def get_coordinate(self) -> list[int] | None:
        """Returns None: this process is not a rank of the mesh."""
        return None

    def get_rank(self) -> int:
        raise RuntimeError("[DeviceMesh] this process controls all ranks of the mesh, so it has no rank")

    get_local_rank = get_rank

    def __getitem__(self, mesh_dim_names: str | Sequence[str]) -> DeviceMesh:
        raise NotImplementedError("[DeviceMesh] a mesh of connect_all() cannot be sliced: pass placements for all dimensions")

    def _flatten(self, mesh_dim_name: str | None = None) -> DeviceMesh:
        raise NotImplementedError("[DeviceMesh] a mesh of connect_all() cannot be flattened")

    def _key(self) -> tuple:
        return super()._key() + (id(self._engines),)

    def __eq__(self, other) -> bool:
        return self is other or (isinstance(other, EngineMesh) and self._own_members is other._own_members)

    def __hash__(self) -> int:
        return hash(id(self._own_members))
