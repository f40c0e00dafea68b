"""The groups over which sharded training divides and replicates parameters."""

from __future__ import annotations

import os
from typing import NamedTuple

from .. import distributed_c10d
from .._groups import new_subgroups_by_enumeration
from .._process_group import ProcessGroup
from .._world import get_process_group_ranks
from ..device_mesh import DeviceMesh


class ShardGroups(NamedTuple):
    """The ranks among which parameters are divided, and the ranks that have the same part as this one."""

    shard: ProcessGroup
    replicas: ProcessGroup | None = None


def of_mesh(function: str, mesh: DeviceMesh) -> ShardGroups:
    """The groups of a mesh. Its last dimension shards; the first of two replicates."""
    if mesh.ndim == 1:
        return ShardGroups(mesh.get_group())
    if mesh.ndim != 2:
        raise ValueError(f"[{function}] expected a mesh with one or two dimensions, got {mesh.ndim}")
    return ShardGroups(mesh.get_group(1), mesh.get_group(0))


def of_strategy(
    function: str, process_group, mesh: DeviceMesh | None, *, is_hybrid: bool, may_form: bool
) -> ShardGroups:
    """The groups of FullyShardedDataParallel.

    Args:
        process_group: a group, or for hybrid sharding a tuple of the group that divides and the one that replicates.
        may_form: whether hybrid sharding without given groups creates one group per host.

    Raises:
        ValueError: the arguments do not match the strategy.
    """
    if mesh is not None:
        if process_group is not None:
            raise ValueError("Cannot pass both process_group and device_mesh at the same time.")
        if mesh.ndim != 1 + is_hybrid:
            raise ValueError(f"[{function}] expected a mesh with {1 + is_hybrid} dimensions, got {mesh.ndim}")
        return of_mesh(function, mesh)
    if not is_hybrid:
        if isinstance(process_group, tuple):
            raise ValueError(f"[{function}] expected HYBRID_SHARD for two groups")
        return ShardGroups(process_group or distributed_c10d._get_default_group())
    if process_group is None:
        if not may_form:
            raise ValueError(
                "Manual wrapping with HYBRID_SHARD requires explicit specification of process group or device_mesh."
            )
        return _of_hosts(function)
    if not isinstance(process_group, tuple) or len(process_group) != 2:
        raise ValueError(
            f"Expected process_group to be passed in as either None or Tuple but got {type(process_group)}"
        )
    return ShardGroups(*process_group)


def _of_hosts(function: str) -> ShardGroups:
    """Shards over the ranks of each host, and replicates over hosts. All ranks of the default group must call it."""
    ranks = get_process_group_ranks(distributed_c10d._get_default_group())
    local = int(os.environ.get("LOCAL_WORLD_SIZE", "0"))
    if local < 1 or len(ranks) % local:
        raise ValueError(
            f"[{function}] expected the number of ranks per host in LOCAL_WORLD_SIZE, which divides {len(ranks)}, got {local}; "
            "or pass a mesh or two groups"
        )
    hosts = [ranks[i : i + local] for i in range(0, len(ranks), local)]
    shard, _ = new_subgroups_by_enumeration(hosts)
    replicas, _ = new_subgroups_by_enumeration([list(same) for same in zip(*hosts, strict=True)])
    return ShardGroups(shard, replicas)
