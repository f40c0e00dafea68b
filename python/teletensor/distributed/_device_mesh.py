"""DeviceMesh: the ranks of the default group in an array, with a process group along each dimension."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import math
import os
from collections.abc import Callable, Iterator, Sequence

from .. import _C
from ._groups import init_process_group, new_group
from ._process_group import ProcessGroup
from ._world import _get_default_group, _rank_not_in_group, get_process_group_ranks, get_rank, is_initialized


@dataclasses.dataclass(frozen=True)
class Member:
    """A rank of a mesh that this process drives: one with one process per rank, all ranks in a controller.

    Attributes:
        coordinate: the rank's position in the mesh.
        groups: the rank's process group along each dimension, as zero-dim tensors that operators take.
        session: a context in which calls without a tensor argument use the rank's engine.
    """

    coordinate: tuple[int, ...]
    groups: tuple[_C.Tensor, ...]
    session: Callable[[], contextlib.AbstractContextManager]


def _shape_of(nested) -> tuple[int, ...]:
    shape = []
    while isinstance(nested, list):
        shape.append(len(nested))
        nested = nested[0] if nested else 0
    return tuple(shape)


class DeviceMesh:
    """Ranks of the default group in an array of any dimension, and this rank's process group along each dimension.

    All ranks of the default group must create the same meshes in the same order, because this forms process groups.

    Args:
        device_type: "cpu" or "cuda".
        mesh: the global ranks, as a nested list, an array or a tensor, which is read.
        mesh_dim_names: names of the dimensions.
    """

    def __init__(self, device_type: str, mesh, *, mesh_dim_names: Sequence[str] | None = None, _groups=None, _strides=None):
        nested = mesh.tolist() if hasattr(mesh, "tolist") else [mesh] if isinstance(mesh, int) else list(mesh)
        self.device_type = device_type
        self.mesh_dim_names = None if mesh_dim_names is None else tuple(mesh_dim_names)
        self._nested, self.shape = nested, _shape_of(nested)
        self._ranks = list(_flat(nested))
        # By dimension: the distance of neighbours in the mesh of which this is a part; several after _flatten(), none
        # for one rank.
        self._strides: tuple[tuple[int, ...], ...] = _strides or contiguous_strides(self.shape)
        if len(self._ranks) != math.prod(self.shape):
            raise ValueError(f"[DeviceMesh] expected lists of equal length, got {nested}")
        if len(set(self._ranks)) != len(self._ranks):
            raise RuntimeError(f"DeviceMesh cannot have duplicate values, but found {self._ranks}")
        check_names(self.shape, self.mesh_dim_names)
        if not is_initialized():
            init_process_group()
        world = _get_default_group().size()
        if len(self._ranks) > world:
            raise RuntimeError(
                f"Mesh should not be bigger than default world size {world}, but found {len(self._ranks)} ranks!"
            )
        self._groups: list[ProcessGroup | None] = self._form_groups() if _groups is None else _groups
        self._own_members: tuple[Member, ...] | None = None
        self._parent: DeviceMesh | None = None  # the mesh of which this is a slice

    def _members(self) -> tuple[Member, ...]:
        """The ranks that this process drives: its own. Empty if it is not in the mesh."""
        if self._own_members is None:
            coordinate = self.get_coordinate()
            handles = [] if coordinate is None else [group._handle.select(0, 0) for group in self.get_all_groups()]
            self._own_members = (
                () if coordinate is None else (Member(tuple(coordinate), tuple(handles), contextlib.nullcontext),)
            )
        return self._own_members

    def _form_groups(self) -> list[ProcessGroup | None]:
        if self.ndim == 1 and self._ranks == list(range(_get_default_group().size())):
            return [_get_default_group()]
        return [self._form_groups_along(dim) for dim in range(self.ndim)]

    def _form_groups_along(self, dim: int) -> ProcessGroup | None:
        name = f"mesh_{self.mesh_dim_names[dim] if self.mesh_dim_names else dim}"
        mine = None
        for ranks in self._lines(dim):
            group = new_group(ranks, group_desc=name, sort_ranks=False)
            mine = mine if _rank_not_in_group(group) else group
        return mine

    def _lines(self, dim: int) -> Iterator[list[int]]:
        """The ranks along a dimension, for each position in the other dimensions."""
        others = [range(n) if i != dim else [0] for i, n in enumerate(self.shape)]
        for position in itertools.product(*others):
            yield [self._rank_at([*position[:dim], k, *position[dim + 1 :]]) for k in range(self.shape[dim])]

    def _rank_at(self, position: Sequence[int]) -> int:
        index = 0
        for k, n in zip(position, self.shape, strict=True):
            index = index * n + k
        return self._ranks[index]

    @property
    def mesh(self) -> _C.Tensor:
        """The global ranks in a tensor on the CPU."""
        return _C.tensor(self._nested, dtype=_C.int32, device="cpu")

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def size(self, mesh_dim: int | None = None) -> int:
        """Returns the number of ranks, in total or along a dimension."""
        return len(self._ranks) if mesh_dim is None else self.shape[mesh_dim]

    def _dim(self, mesh_dim: int | str) -> int:
        if isinstance(mesh_dim, int):
            return range(self.ndim)[mesh_dim]
        if self.mesh_dim_names is None or mesh_dim not in self.mesh_dim_names:
            raise KeyError(f"Invalid mesh_dim_name {mesh_dim} specified: the mesh has {self.mesh_dim_names}")
        return self.mesh_dim_names.index(mesh_dim)

    def get_group(self, mesh_dim: int | str | None = None) -> ProcessGroup:
        """Returns this rank's process group along a dimension."""
        if mesh_dim is None:
            if self.ndim != 1:
                raise RuntimeError(
                    f"Found the DeviceMesh have {self.ndim} dimensions. Optional kwarg `mesh_dim` needs to be specified when "
                    "device_mesh.ndim > 1. If you want to get the list of all the ProcessGroups in the DeviceMesh, please use "
                    "`get_all_groups()` instead."
                )
            mesh_dim = 0
        group = self._groups[self._dim(mesh_dim)]
        if group is None:
            raise RuntimeError(f"rank {get_rank()} is not in the mesh {self}")
        return group

    def get_all_groups(self) -> list[ProcessGroup]:
        """Returns this rank's process groups, one per dimension."""
        return [self.get_group(dim) for dim in range(self.ndim)]

    def get_coordinate(self) -> list[int] | None:
        """Returns this rank's position; None if it is not in the mesh."""
        if get_rank() not in self._ranks:
            return None
        index, position = self._ranks.index(get_rank()), []
        for n in reversed(self.shape):
            index, k = divmod(index, n)
            position.insert(0, k)
        return position

    def get_rank(self) -> int:
        """Returns this process's global rank."""
        return get_rank()

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """Returns this rank's position along a dimension."""
        return self.get_group(mesh_dim).rank()

    def __getitem__(self, mesh_dim_names: str | Sequence[str]) -> DeviceMesh:
        """Returns the part of the mesh that contains this rank and has only these dimensions."""
        if self.mesh_dim_names is None:
            raise RuntimeError("Cannot slice a DeviceMesh without mesh_dim_names!")
        names = (mesh_dim_names,) if isinstance(mesh_dim_names, str) else tuple(mesh_dim_names)
        dims = [self._dim(name) for name in names]
        if dims == list(range(self.ndim)):
            return self
        if len(set(dims)) != len(dims):
            raise KeyError(f"Invalid mesh_dim_names {names} specified: a name is repeated")
        own = self.get_coordinate() or [0] * self.ndim

        def part(depth: int, position: list[int]):
            if depth == len(dims):
                return self._rank_at(position)
            dim = dims[depth]
            return [part(depth + 1, [*position[:dim], k, *position[dim + 1 :]]) for k in range(self.shape[dim])]

        groups, strides = [self._groups[dim] for dim in dims], tuple(self._strides[dim] for dim in dims)
        result = DeviceMesh(self.device_type, part(0, own), mesh_dim_names=names, _groups=groups, _strides=strides)
        result._parent = self if self._parent is None else self._parent
        return result

    def _flatten(self, mesh_dim_name: str | None = None) -> DeviceMesh:
        """Returns a mesh of one dimension with the same ranks. All ranks of the default group must call it."""
        name = mesh_dim_name or "_".join(self.mesh_dim_names or ["flat"])
        if self.ndim == 1:
            return DeviceMesh(self.device_type, self._ranks, mesh_dim_names=[name], _groups=self._groups, _strides=self._strides)
        group = new_group(self._ranks, group_desc=f"mesh_{name}", sort_ranks=False, use_local_synchronization=True)
        groups = [None if _rank_not_in_group(group) else group]
        sizes_and_strides = [(n, s[0]) for n, s in zip(self.shape, self._strides, strict=True) if s]
        strides = (_coalesced(sizes_and_strides),)
        return DeviceMesh(self.device_type, self._ranks, mesh_dim_names=[name], _groups=groups, _strides=strides)

    @staticmethod
    def from_group(
        group: ProcessGroup | list[ProcessGroup],
        device_type: str,
        mesh=None,
        *,
        mesh_dim_names: Sequence[str] | None = None,
    ) -> DeviceMesh:
        """Returns a mesh of existing groups: of one group, or of one group per dimension of `mesh`."""
        if isinstance(group, ProcessGroup):
            ranks = get_process_group_ranks(group)
            return DeviceMesh(device_type, ranks, mesh_dim_names=mesh_dim_names, _groups=[group])
        groups = list(group)
        if not groups:
            raise ValueError("Expects at least one ProcessGroup to be passed")
        if mesh is None:
            raise ValueError("Must pass mesh if passing multiple ProcessGroups")
        result = DeviceMesh(device_type, mesh, mesh_dim_names=mesh_dim_names, _groups=groups)
        if len(groups) != result.ndim:
            raise ValueError(
                f"Expects mesh with ndim equal to number of ProcessGroups but got mesh {mesh} and {len(groups)} ProcessGroups"
            )
        return result

    def __eq__(self, other) -> bool:
        if not isinstance(other, DeviceMesh):
            return NotImplemented
        return self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple:
        return self.device_type, self.shape, tuple(self._ranks), self.mesh_dim_names

    def __repr__(self) -> str:
        names = self.mesh_dim_names
        shape = f"({', '.join(f'{name}={n}' for name, n in zip(names, self.shape, strict=True))})" if names else self.shape
        strides = tuple(s[0] if len(s) == 1 else s for s in self._strides)
        mesh = f", Mesh: {self._nested}" if os.environ.get("TORCH_DISTRIBUTED_DEBUG") == "DETAIL" else ""
        return f"DeviceMesh({shape}, '{self.device_type}', stride={strides}{mesh})"


def contiguous_strides(shape: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """The strides of a mesh that is part of no other."""
    return tuple(_coalesced([(n, math.prod(shape[dim + 1 :]))]) for dim, n in enumerate(shape))


def _coalesced(sizes_and_strides: list[tuple[int, int]]) -> tuple[int, ...]:
    """The strides of one dimension that visits the given ones in order, with as few as possible."""
    result: list[tuple[int, int]] = []
    for size, stride in sizes_and_strides:
        if size == 1:
            continue
        if result and result[-1][1] == size * stride:
            result[-1] = (result[-1][0] * size, stride)
        else:
            result.append((size, stride))
    return tuple(stride for _, stride in result)


def _flat(nested) -> Iterator[int]:
    for entry in nested:
        if isinstance(entry, list | tuple):
            yield from _flat(entry)
        else:
            yield int(entry)


def check_names(shape: tuple[int, ...], names: Sequence[str] | None) -> None:
    if names is None:
        return
    if len(set(names)) != len(names):
        raise RuntimeError(f"Each mesh_dim_name must be unique. Found repeated mesh_dim_name in mesh_dim_names {names}")
    if len(shape) != len(names):
        raise RuntimeError(
            "mesh_shape and mesh_dim_names should have same length! "
            f"Found len(mesh_dim_names): {len(names)} and len(mesh_shape): {len(shape)}."
        )


DeviceMesh.__module__ = "teletensor.distributed.device_mesh"
