"""Spec: a DTensor's mesh and placements, and the sizes of the parts that they give."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Sequence

from .._device_mesh import DeviceMesh, Member
from .placement_types import Partial, Placement, Replicate, Shard

_numbers = itertools.count()
_numbers_by_mesh: weakref.WeakKeyDictionary[DeviceMesh, dict[tuple, int]] = weakref.WeakKeyDictionary()


class Spec:
    """A mesh and one placement per dimension of it. A value.

    `is_copy` marks the result of a view operator that had to move bytes: writing to it would not change the original.
    """

    __slots__ = ("_number", "is_copy", "mesh", "placements")

    def __init__(self, mesh: DeviceMesh, placements: Sequence[Placement], is_copy: bool = False):
        self.mesh, self.placements, self.is_copy = mesh, tuple(placements), is_copy
        self._number = -1

    @property
    def number(self) -> int:
        """A number that equal specs of this process have, and no others."""
        if self._number < 0:
            of_mesh = _numbers_by_mesh.setdefault(self.mesh, {})
            key = self.placements, self.is_copy
            if key not in of_mesh:
                of_mesh[key] = next(_numbers)
            self._number = of_mesh[key]
        return self._number

    def replace(self, mesh_dim: int, placement: Placement) -> Spec:
        """The same with another placement along a dimension of the mesh."""
        return Spec(self.mesh, (*self.placements[:mesh_dim], placement, *self.placements[mesh_dim + 1 :]))

    def __eq__(self, other) -> bool:
        return isinstance(other, Spec) and self.mesh == other.mesh and self.placements == other.placements

    def __hash__(self) -> int:
        return hash((self.mesh, self.placements))

    def __repr__(self) -> str:
        return f"({', '.join(map(str, self.placements))})"


def check_placements(op: str, mesh: DeviceMesh, placements: Sequence[Placement] | None, ndim: int) -> tuple[Placement, ...]:
    """Returns the placements with non-negative dimensions; by default all Replicate.

    Raises:
        ValueError: the number of placements is not that of the mesh's dimensions, or a dimension does not exist.
    """
    placements = [Replicate()] * mesh.ndim if placements is None else list(placements)
    if len(placements) != mesh.ndim:
        raise ValueError(
            f"`placements` must have the same length as `device_mesh.ndim`! Found placements length: {len(placements)}, and "
            f"device_mesh.ndim: {mesh.ndim}."
        )
    for i, placement in enumerate(placements):
        if not isinstance(placement, Placement):
            raise TypeError(f"[{op}] expected Shard, Replicate or Partial, got {placement!r}")
        if isinstance(placement, Shard):
            dim = placement.dim + ndim if placement.dim < 0 else placement.dim
            if not 0 <= dim < ndim:
                raise ValueError(f"[{op}] expected a dimension from {-ndim} to {ndim - 1}, got {placement!r}")
            placements[i] = Shard(dim)
    return tuple(placements)


def part(size: int, ranks: int, index: int) -> tuple[int, int]:
    """The offset and size of a rank's part of a dimension."""
    chunk = -(-size // ranks)
    start = min(index * chunk, size)
    return start, min(chunk, size - start)


def local_box(spec: Spec, size: Sequence[int], member: Member) -> tuple[list[int], list[int]]:
    """The offsets and sizes of a member's part of a tensor."""
    sizes, offsets = list(size), [0] * len(size)
    for mesh_dim, placement in enumerate(spec.placements):
        if isinstance(placement, Shard):
            start, length = part(sizes[placement.dim], spec.mesh.shape[mesh_dim], member.coordinate[mesh_dim])
            offsets[placement.dim] += start
            sizes[placement.dim] = length
    return offsets, sizes


def outer_size(spec: Spec, size: Sequence[int], member: Member, mesh_dim: int, dim: int) -> int:
    """The size of dimension `dim` that is divided along `mesh_dim`: after division along the mesh dimensions before it."""
    length = size[dim]
    for i, placement in enumerate(spec.placements[:mesh_dim]):
        if placement == Shard(dim):
            length = part(length, spec.mesh.shape[i], member.coordinate[i])[1]
    return length


def has_partial(spec: Spec) -> bool:
    """Whether the tensor is a reduction along a dimension of the mesh."""
    return any(isinstance(p, Partial) for p in spec.placements)
