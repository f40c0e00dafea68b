"""torch.distributed.tensor._utils: the part of a DTensor that a rank stores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ._spec import Spec, part
from .placement_types import Placement, Shard


def compute_local_shape_and_global_offset(
    global_shape: Sequence[int], mesh: Any, placements: Sequence[Placement], skip_offset: bool = False
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Returns the sizes and offsets of this rank's part; zeros outside of the mesh. `skip_offset` returns no offsets."""
    coordinate = mesh.get_coordinate()
    if coordinate is None:
        return (0,), () if skip_offset else (0,)
    sizes, offsets = list(global_shape), [0] * len(global_shape)
    for mesh_dim, placement in enumerate(Spec(mesh, tuple(placements)).placements):
        if isinstance(placement, Shard):
            start, sizes[placement.dim] = part(sizes[placement.dim], mesh.size(mesh_dim), coordinate[mesh_dim])
            offsets[placement.dim] += start
    return tuple(sizes), () if skip_offset else tuple(offsets)
