"""Creates, splits and destroys process groups."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import operator
import sys
import traceback
from collections.abc import Sequence
from datetime import timedelta

from .. import _C
from . import _failure_file, _rendezvous
from ._backend import Backend, BackendConfig, check_available, transport
from ._errors import DistStoreError
from ._process_group import ProcessGroup
from ._run_store import run_store
from ._world import (
    GroupMember,
    _get_default_group,
    _rank_not_in_group,
    _world,
    check_timeout,
    default_pg_timeout,
    get_process_group_ranks,
    get_rank,
    get_world_size,
)  # fmt: skip

_group_numbers = itertools.count(1)  # numbers of the session's groups


def _form(
    name: str, *, desc: str, rank: int, ranks: list[int], backend: str, timeout: timedelta, store
) -> ProcessGroup:
    """Forms a group with the other ranks, and waits for them."""
    config = BackendConfig(backend)
    check_available(config)
    address, token = run_store.address, run_store.token
    handle = _C.ops.group_create(
        next(_group_numbers), store=address, token=token, name=f"{run_store.run}/{name}", rank=rank, size=len(ranks),
        timeout=timeout.total_seconds(), backend=transport(config),
    )  # fmt: skip
    try:
        handle.item()
    except _C.OutOfMemoryError:  # the group does not fit the session's limit
        raise
    except RuntimeError as error:
        raise DistStoreError(str(error)) from None
    pg = ProcessGroup(
        handle,
        name=name,
        desc=desc,
        rank=rank,
        size=len(ranks),
        backend=backend,
        config=config,
        timeout=timeout,
        store=store,
    )
    _world.add(pg, ranks)
    return pg


def _checked_device(device_id) -> _C.device | None:
    from .. import cuda

    if isinstance(device_id, int):
        if not cuda.is_available():
            raise ValueError("device_id is an int, but no accelerator support is found: the engine has no GPU.")
        device_id = _C.device("cuda", device_id)
    if device_id is None or device_id.type == "cpu":
        return device_id
    if not cuda.is_available():
        raise ValueError(f"device_id {device_id} does not match the engine's accelerator support: None.")
    if device_id.index is None:
        raise ValueError("Please use a device_id with index.")
    if device_id.index >= cuda.device_count():
        raise ValueError(
            f"device_id {device_id} is out of range. Please use a device index less than the number of accelerators "
            f"available: {cuda.device_count()}."
        )
    return device_id


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    store=None,
    group_name: str = "",
    pg_options=None,
    device_id: _C.device | int | None = None,
    _ranks: list[int] | None = None,
    enable_reconfigure: bool = False,
) -> None:
    """Forms the default group of all ranks, and waits for them.

    Args:
        backend: ``"gloo"``, ``"nccl"`` if the engine has a GPU, ``"shm"``, or ``"cpu:gloo,cuda:nccl"``; by default the
            one of the engine's devices. The engine chooses the transport: shared memory if all engines are on one host,
            otherwise Gloo; ``"shm"`` requires shared memory.
        init_method: ``"env://"`` (the default; MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE, or the variables of Slurm or
            MPI), ``"tcp://host:port"`` of rank 0, or ``"file://path"`` of a file that all ranks see and that does not
            exist yet.
        timeout: for forming the group, and for each collective; 30 s by default.
        world_size: the number of ranks; required with `store`.
        rank: this process's rank; required with `store`.
        store: a Store that all ranks see, instead of `init_method`.
        group_name: has no effect, as in PyTorch.
        pg_options: has no effect.
        device_id: the device of this rank, for ``new_group``.

    Raises:
        ValueError: a variable or argument is missing, or the group has been initialized.
        DistStoreError: the store cannot be reached, or ranks are missing after the timeout, which the error names.
    """
    if _world.default_pg is not None:
        raise ValueError("trying to initialize the default process group twice!")
    if store is not None and init_method is not None:
        raise AssertionError("Cannot specify both init_method and store.")
    if store is not None:
        if not world_size > 0:
            raise AssertionError("world_size must be positive if using store")
        if not rank >= 0:
            raise AssertionError("rank must be non-negative if using store")
    if enable_reconfigure or _ranks:
        raise NotImplementedError(
            "[init_process_group] a group cannot be changed: destroy it and initialize another one"
        )
    device_id = _checked_device(device_id)
    if backend is None and device_id is not None:
        backend = Backend.default_device_backend_map.get(device_id.type)
    backend = Backend(Backend.UNDEFINED if backend is None else backend)
    timeout = default_pg_timeout if timeout is None else timeout
    check_timeout(timeout)
    check_available(BackendConfig(backend))
    found = _rendezvous.find_store(
        "env://" if init_method is None else init_method, store, rank, world_size, timeout
    )
    run_store.address, run_store.token, run_store.run, _world.group_count = found.address, found.token, found.run, 0
    pg = _form(
        _world.next_name(), desc="default_pg", rank=found.rank, ranks=list(range(found.world_size)), backend=backend,
        timeout=timeout, store=found.store,
    )  # fmt: skip
    pg.bound_device_id = device_id
    _world.default_pg = pg
    _name_rank_in_tracebacks(pg.rank())
    _failure_file.write_at_exit()


def _name_rank_in_tracebacks(rank: int) -> None:
    """Precedes each line of an uncaught exception's traceback by the rank, because the ranks often share a terminal."""
    previous = sys.excepthook
    if getattr(previous, "teletensor_rank", None) is not None:
        previous = sys.__excepthook__

    def hook(kind, value, where) -> None:
        _failure_file.write(value)
        if previous is not sys.__excepthook__:
            previous(kind, value, where)
            return
        text = "".join(traceback.format_exception(kind, value, where))
        sys.stderr.write("".join(f"[rank{rank}]: {line}\n" for line in text.splitlines()))
        sys.stderr.flush()

    hook.teletensor_rank = rank
    sys.excepthook = hook


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """Leaves a group, by default all groups. Collectives that this rank has called are completed first."""
    if _rank_not_in_group(group):
        return
    pg = _world.default_pg if group is None else group
    if pg is None:
        raise AssertionError("Process group cannot be None")
    if pg not in _world.pg_map:
        raise ValueError("Invalid process group specified")
    if pg is not _world.default_pg:
        _leave(pg)
        return
    for member in reversed(list(_world.pg_map)):
        _leave(member)
    _world.pg_group_ranks.clear()
    _world.default_pg = None
    _world.group_count = 0
    if getattr(sys.excepthook, "teletensor_rank", None) is not None:
        sys.excepthook = sys.__excepthook__


def _leave(pg: ProcessGroup) -> None:
    """Leaves a group. If the engine is gone, so is its part of the group."""
    with contextlib.suppress(ConnectionError):
        pg.shutdown()
    _world.remove(pg)


def new_group(
    ranks: Sequence[int] | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options=None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: _C.device | None = None,
    sort_ranks: bool = True,
):
    """Forms a group of some ranks of the default group, and waits for them.

    All ranks of the default group must call it, in the same order, even those that are not members, unless
    `use_local_synchronization` is set. Returns the group; to other ranks GroupMember.NON_GROUP_MEMBER.

    Args:
        ranks: the members; by default all ranks. A member's rank in the group is its position, after sorting if
            `sort_ranks` is set.
        timeout: for forming the group, and for each collective; 30 s by default.
        backend: by default that of the default group.
        use_local_synchronization: only the members call this function.
        group_desc: describes the group.

    Raises:
        ValueError: a rank does not exist or is given twice.
        DistStoreError: members are missing after the timeout; the error names them.
    """
    default = _get_default_group()
    if device_id is not None and default.bound_device_id is not None and device_id != default.bound_device_id:
        raise AssertionError("Mismatched bound device between new pg and the default pg.")
    backend = Backend(backend or default.name())
    timeout = default_pg_timeout if timeout is None else timeout
    check_timeout(timeout)
    world_size, rank = default.size(), default.rank()
    if ranks is None:
        members = list(range(world_size))
    else:
        try:
            members = [operator.index(r) for r in ranks]
        except TypeError as error:
            raise TypeError("ranks must be a sequence of integers") from error
        if use_local_synchronization and rank not in members:
            return GroupMember.NON_GROUP_MEMBER
        members = _checked_ranks(sorted(members) if sort_ranks else members, world_size)
    name = _local_name(members) if use_local_synchronization else _world.next_name()
    if rank not in members:
        _world.pg_group_ranks[GroupMember.NON_GROUP_MEMBER] = {r: i for i, r in enumerate(members)}
        return GroupMember.NON_GROUP_MEMBER
    pg = _form(
        name, desc=group_desc or "undefined", rank=members.index(rank), ranks=members, backend=backend, timeout=timeout,
        store=default._store,
    )  # fmt: skip
    pg.bound_device_id = device_id or default.bound_device_id
    return pg


def _checked_ranks(ranks: list[int], world_size: int) -> list[int]:
    if len(set(ranks)) != len(ranks):
        raise ValueError(f"ranks list must not contain duplicate entries, got {ranks}")
    if len(ranks) > world_size:
        raise ValueError(
            "the new group's world size should be less or equal to the world size set by init_process_group"
        )
    for rank in ranks:
        if not 0 <= rank < world_size:
            raise ValueError(
                f"Rank {rank} is out of range. Valid ranks are 0 to {world_size - 1} (world_size={world_size})"
            )
    return ranks


def _local_name(ranks: list[int]) -> str:
    """Returns the same new name on all members, which have formed the same groups of these ranks before."""
    digest = hashlib.sha256(",".join(map(str, ranks)).encode()).hexdigest()[:32]
    _local_counts[digest] = _local_counts.get(digest, 0) + 1
    _world.group_count += 1
    return f"{digest}/{_local_counts[digest]}"


_local_counts: dict[str, int] = {}


def new_subgroups(
    group_size: int | None = None,
    group: ProcessGroup | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options=None,
    group_desc: str | None = None,
):
    """Divides a group into subgroups of equal size. Returns this rank's subgroup and the list of all."""
    if group_size is None:
        from .. import cuda

        if not cuda.is_available():
            raise ValueError(
                "Default group size only takes effect when CUDA/XPU is available.If your subgroup using a backend that does "
                "not depend on CUDA/XPU,please pass in 'group_size' correctly."
            )
        group_size = cuda.device_count()
    if group_size <= 0:
        raise ValueError(f"The arg 'group_size' ({group_size}) must be positive")
    world_size = get_world_size(group)
    if world_size < group_size:
        raise ValueError(f"The arg 'group_size' ({group_size}) must not exceed the world size ({world_size})")
    if world_size % group_size != 0:
        raise ValueError(f"The world size ({world_size}) must be divisible by '{group_size=}'")
    ranks = get_process_group_ranks(group)
    parts = [ranks[i : i + group_size] for i in range(0, len(ranks), group_size)]
    # The ranks outside of `group` do not call this function.
    return _form_parts(parts, timeout, backend, pg_options, group_desc, len(ranks) < _get_default_group().size())


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list: list[list[int]],
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options=None,
    group_desc: str | None = None,
):
    """Forms disjoint groups. Returns this rank's group, or None, and the list of all."""
    if not ranks_per_subgroup_list:
        raise ValueError("The arg 'ranks_per_subgroup_list' cannot be empty")
    seen: dict[int, list[int]] = {}
    for ranks in ranks_per_subgroup_list:
        for rank in ranks:
            if rank in seen:
                raise ValueError(f"Rank {rank} has appeared in both subgroup {seen[rank]} and {ranks}")
            seen[rank] = ranks
    return _form_parts(ranks_per_subgroup_list, timeout, backend, pg_options, group_desc, is_local=False)


def _form_parts(parts: list[list[int]], timeout, backend, pg_options, group_desc, is_local: bool):
    """Forms disjoint groups; if `is_local`, the ranks of none of them do not call this function."""
    groups = [new_group(ranks, timeout, backend, pg_options, is_local, group_desc) for ranks in parts]
    return next((pg for pg in groups if not _rank_not_in_group(pg)), None), groups


def split_group(
    parent_pg: ProcessGroup | None = None,
    split_ranks: list[list[int]] | None = None,
    timeout: timedelta | None = None,
    pg_options=None,
    group_desc: str | None = None,
    backend: str | None = None,
):
    """Divides a group: forms one group for each list of the parent's ranks. All ranks of the parent must call it.

    Returns this rank's group, or GroupMember.NON_GROUP_MEMBER if no list contains it.
    """
    if not split_ranks:
        raise ValueError("split_ranks cannot be None or empty")
    default = _get_default_group()
    parent = parent_pg or default
    if parent not in _world.pg_group_ranks:
        raise ValueError(f"Group {parent} is not registered")
    timeout = default_pg_timeout if timeout is None else timeout
    check_timeout(timeout)
    ranks = get_process_group_ranks(parent)
    for part in split_ranks:
        if not part:
            raise ValueError("the split group cannot be empty")
        if len(part) > default.size():
            raise ValueError(
                "the split group's size should be less or equal to the world_size set by init_process_group"
            )
        if len(part) != len(set(part)):
            raise ValueError("the split group cannot have duplicate ranks")
    mine = next((part for part in split_ranks if parent.rank() in part), None)
    number = parent._splits = getattr(parent, "_splits", 0) + 1
    _world.group_count += 1
    if mine is None:
        return GroupMember.NON_GROUP_MEMBER
    name = f"{parent.group_name}/split-{number}/{mine[0]}"
    return _form(
        name, desc=group_desc or f"{parent.group_desc}:split:{number}", rank=mine.index(parent.rank()),
        ranks=[ranks[r] for r in mine], backend=Backend(backend or parent.name()), timeout=timeout,
        store=parent._store,
    )  # fmt: skip


def shrink_group(
    ranks_to_exclude: list[int], group: ProcessGroup | None = None, shrink_flags: int = 0, pg_options=None
):
    """Leaves a group and forms another one without some of its ranks, which may have failed. Returns the new group.

    All remaining ranks must call it. If `group` is the default group, the new group becomes the default group and all other
    groups are destroyed; ranks are renumbered. The store must still be served, so the rank that serves it (0, in the
    default group) cannot be excluded.
    """
    if not isinstance(ranks_to_exclude, list):
        raise TypeError(
            f"ranks_to_exclude must be a list, but got {type(ranks_to_exclude).__name__}. Example: [1, 3, 5] to exclude ranks 1, 3, and 5."
        )
    if not ranks_to_exclude:
        raise ValueError(
            "ranks_to_exclude cannot be empty. To shrink a group, you must specify at least one rank to exclude. Example: [failed_rank_id]"
        )
    if shrink_flags not in (0, 1):
        raise ValueError(
            f"Invalid shrink_flags value: {shrink_flags}. Must be one of: SHRINK_DEFAULT (0) or SHRINK_ABORT (1)."
        )
    pg = group or _get_default_group()
    excluded = set(ranks_to_exclude)
    if not all(isinstance(r, int) and 0 <= r < pg.size() for r in excluded):
        raise ValueError(f"ranks_to_exclude must contain ranks from 0 to {pg.size() - 1}, got {ranks_to_exclude}")
    if pg.rank() in excluded:
        raise RuntimeError(f"rank {pg.rank()} is in ranks_to_exclude, so it must not call shrink_group")
    is_default = pg is _world.default_pg
    remaining = [r for r in range(pg.size()) if r not in excluded]
    global_ranks = get_process_group_ranks(pg)
    name = f"{pg.group_name}-shrunk-{'-'.join(map(str, sorted(excluded)))}"
    rank, backend, timeout, store = remaining.index(pg.rank()), pg.name(), pg._timeout, pg._store
    count = _world.group_count
    destroy_process_group(None if is_default else pg)
    ranks = list(range(len(remaining))) if is_default else [global_ranks[r] for r in remaining]
    shrunk = _form(name, desc="default_pg" if is_default else pg.group_desc, rank=rank, ranks=ranks, backend=backend,
                   timeout=timeout, store=store)  # fmt: skip
    if is_default:
        _world.default_pg, _world.group_count = shrunk, count + 1
        _name_rank_in_tracebacks(shrunk.rank())
    return shrunk


__all__ = [
    "destroy_process_group", "get_rank", "init_process_group", "new_group", "new_subgroups", "new_subgroups_by_enumeration",
    "shrink_group", "split_group",
]  # fmt: skip
