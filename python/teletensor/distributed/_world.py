"""This process's groups: the default group, and those of new_group()."""

from __future__ import annotations

import os
import warnings
from datetime import timedelta

from .. import _default_group
from .._lazy import set_module
from ._backend import Backend
from ._cluster import cluster_environment
from ._process_group import ProcessGroup

# Of a group's formation and of each of its collectives. PyTorch's is 30 minutes, because it detects fewer failures.
default_pg_timeout: timedelta = timedelta(seconds=30)

GroupName = str


class _World:
    """The groups of which this process is a member. The attributes have PyTorch's names."""

    def __init__(self):
        self.default_pg: ProcessGroup | None = None
        self.pg_map: dict[ProcessGroup, tuple[str, object]] = {}  # backend and store
        self.pg_names: dict[ProcessGroup, str] = {}
        self.pg_group_ranks: dict[ProcessGroup | int, dict[int, int]] = {}  # rank in the group by global rank
        self.pg_backend_config: dict[ProcessGroup, str] = {}
        self.group_count = 0

    def add(self, pg: ProcessGroup, ranks: list[int]) -> None:
        self.pg_map[pg] = (pg.name(), pg._store)
        self.pg_names[pg] = pg.group_name
        self.pg_group_ranks[pg] = {rank: i for i, rank in enumerate(ranks)}
        self.pg_backend_config[pg] = repr(pg._config)

    def remove(self, pg: ProcessGroup) -> None:
        for table in (self.pg_map, self.pg_names, self.pg_group_ranks, self.pg_backend_config):
            table.pop(pg, None)

    def next_name(self) -> str:
        name = str(self.group_count)
        self.group_count += 1
        return name


_world = _World()
_default_group.find = lambda: _world.default_pg


class _WorldMeta(type):
    @property
    def WORLD(cls) -> ProcessGroup | None:  # noqa: N802 - PyTorch's name
        return _world.default_pg

    @WORLD.setter
    def WORLD(cls, pg: ProcessGroup | None) -> None:  # noqa: N802
        _world.default_pg = pg


class group(metaclass=_WorldMeta):  # noqa: N801
    """``group.WORLD``: the default group, or None."""


class GroupMember(metaclass=_WorldMeta):
    """``GroupMember.WORLD``: the default group, or None; ``NON_GROUP_MEMBER``: what new_group() returns to other ranks."""

    NON_GROUP_MEMBER = -100


def is_initialized() -> bool:
    """Whether init_process_group() has been called."""
    return _world.default_pg is not None


def _get_default_group() -> ProcessGroup:
    if _world.default_pg is None:
        raise ValueError("Default process group has not been initialized, please make sure to call init_process_group.")
    return _world.default_pg


def _get_default_store():
    """Returns a store that all ranks share."""
    return _get_default_group().get_group_store()


def _group_or_default_group(pg: ProcessGroup | None = None) -> ProcessGroup:
    if pg is None or pg is _world.default_pg:
        return _get_default_group()
    if not isinstance(pg, ProcessGroup):
        raise ValueError(
            f"Process group {pg} is not initialized in the world group map. Please initialize the group first."
        )
    return pg


def _rank_not_in_group(group=None) -> bool:
    return group is not None and not isinstance(group, ProcessGroup) and group == GroupMember.NON_GROUP_MEMBER


def _warn_not_in_group(op: str, stacklevel: int = 3) -> None:
    rank = -1 if _world.default_pg is None else _world.default_pg.rank()
    warnings.warn(f"Running {op} on global rank {rank} which does not belong to the given group.", stacklevel=stacklevel)


def _member(pg: ProcessGroup | None) -> ProcessGroup:
    """Returns the group, or the default group, of which this process must be a member."""
    if _rank_not_in_group(pg):
        raise ValueError("Invalid process group specified")
    return pg or _get_default_group()


def get_rank(group: ProcessGroup | None = None) -> int:
    """Returns this process's rank in the group, by default in the default group; -1 if it is not a member."""
    if _rank_not_in_group(group):
        return -1
    return _group_or_default_group(group).rank()


def get_world_size(group: ProcessGroup | None = None) -> int:
    """Returns the number of ranks of the group, by default of the default group; -1 if this process is not a member."""
    if _rank_not_in_group(group):
        return -1
    return _group_or_default_group(group).size()


def get_backend(group: ProcessGroup | None = None) -> str:
    """Returns the backend's name that the group was created with."""
    pg = _member(group)
    if pg not in _world.pg_map:
        raise ValueError(
            f"Process group {pg} is not initialized in the world group map. Please initialize the group first."
        )
    return pg.name()


def get_backend_config(group: ProcessGroup | None = None) -> str:
    """Returns the backend by device, such as ``"cpu:gloo,cuda:nccl"``."""
    return _world.pg_backend_config[_member(group)]


def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
    """Returns the rank in the group of a rank of the default group."""
    if group is GroupMember.WORLD:
        return global_rank
    if group not in _world.pg_group_ranks:
        raise ValueError(f"Group {group} is not registered, please create group with torch.distributed.new_group API")
    ranks = _world.pg_group_ranks[group]
    if global_rank not in ranks:
        raise ValueError(f"Global rank {global_rank} is not part of group {group}")
    return ranks[global_rank]


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    """Returns the rank in the default group of a rank of the group."""
    if group is GroupMember.WORLD:
        return group_rank
    if group not in _world.pg_group_ranks:
        raise ValueError(f"Group {group} is not registered, please create group with torch.distributed.new_group API")
    for rank, in_group in _world.pg_group_ranks[group].items():
        if in_group == group_rank:
            return rank
    raise ValueError(f"Group rank {group_rank} is not part of group {group}")


def get_process_group_ranks(group: ProcessGroup | None) -> list[int]:
    """Returns the global ranks of the group's members, in the order of their ranks in it."""
    return list(_world.pg_group_ranks[group or _get_default_group()])


def _get_pg_config(group: ProcessGroup | None = None) -> dict:
    """Returns the group's name, description, backends, size and global ranks."""
    pg = _member(group)
    return {"pg_name": pg.group_name, "pg_desc": pg.group_desc, "backend_config": get_backend_config(pg),
            "pg_size": pg.size(), "ranks": get_process_group_ranks(pg)}  # fmt: skip


def get_pg_count() -> int:
    """Returns the number of groups that have been created."""
    return _world.group_count


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """Returns this process's number on its host: ``LOCAL_RANK``, else that of Slurm or MPI, else `fallback_rank`."""
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    if (found := cluster()) is not None:
        return found.local_rank
    if fallback_rank is not None:
        return int(fallback_rank)
    raise RuntimeError(
        "LOCAL_RANK is not in the environment. Consider passing fallback_rank to allow `get_node_local_rank` to work, "
        "assuming you are not running in a multi-device context and want the code to run locally instead."
    )


def cluster():
    """Returns this process's rank and size in a job of Slurm or MPI, or None."""
    return cluster_environment()


def set_timeout(timeout: timedelta, group: ProcessGroup | None = None) -> None:
    """Not supported: a group's timeout is fixed at its formation."""
    check_timeout(timeout)
    _member(group).set_timeout(timeout)


def check_timeout(timeout) -> None:
    """Raises TypeError for anything but a timedelta."""
    if not isinstance(timeout, timedelta):
        raise TypeError(f"Expected timeout argument to be of type datetime.timedelta, got {timeout}")


def _canonicalize_group_rank(
    pg: ProcessGroup, global_rank: int | None = None, group_rank: int | None = None, return_global: bool = False
) -> int:
    """Returns a rank in the group, or with `return_global` in the default group. Raises RuntimeError if there is none, as
    PyTorch."""
    if group_rank is not None:
        if global_rank is not None:
            raise ValueError("Can't specify both group_rank and global_rank")
    elif global_rank is None:
        raise ValueError("Must specify global_rank or group_rank")
    rank = get_group_rank(pg, global_rank) if group_rank is None else group_rank
    if not 0 <= rank < pg.size():
        raise RuntimeError(f"Invalid rank: expected a rank from 0 to {pg.size() - 1}, got {rank}")
    if return_global:
        return get_global_rank(pg, rank) if global_rank is None else global_rank
    return rank


def _check_not_self_rank(pg: ProcessGroup, rank: int, kind: str) -> None:
    if pg.rank() == rank:
        raise ValueError(f"Invalid {kind} rank: {kind} rank should not be the same as the rank of the current process.")


def get_backend_impl(group: ProcessGroup | None = None, device=None) -> ProcessGroup:
    """Returns the group itself: the engine has one implementation for all devices of a group."""
    return _member(group)


__all__ = [
    "Backend", "GroupMember", "GroupName", "default_pg_timeout", "get_backend", "get_backend_config", "get_backend_impl",
    "get_global_rank", "get_group_rank", "get_node_local_rank", "get_pg_count", "get_process_group_ranks", "get_rank",
    "get_world_size", "group", "is_initialized", "set_timeout",
]  # fmt: skip

set_module("teletensor.distributed.distributed_c10d", GroupMember, group)
