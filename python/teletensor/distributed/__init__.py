"""torch.distributed: groups of engines that train together, one process per rank. See docs/distributed.md.

``teletensor launch -n 4 script.py`` starts the ranks; ``init_process_group()`` forms the group of their engines.
"""

from __future__ import annotations

import importlib as _importlib

from ._backend import (
    Backend, BackendConfig, get_default_backend_for_device, is_available, is_backend_available, is_gloo_available,
    is_mpi_available, is_nccl_available, is_torchelastic_launched, is_ucc_available, is_xccl_available,
)  # fmt: skip
from ._coalescing import _coalescing_manager  # noqa: F401
from ._collectives import *  # noqa: F403
from ._collectives import _all_gather_base, _reduce_scatter_base  # noqa: F401
from ._debug import DebugLevel, get_debug_level, set_debug_level, set_debug_level_from_env
from ._errors import DistBackendError, DistError, DistNetworkError, DistStoreError, QueueEmptyError
from ._flight_recorder import dump_flight_recorder
from ._grad_bucket import GradBucket
from ._groups import (
    destroy_process_group, init_process_group, new_group, new_subgroups, new_subgroups_by_enumeration, shrink_group,
    split_group,
)  # fmt: skip
from ._objects import *  # noqa: F403
from ._options import (
    AllgatherOptions, AllreduceCoalescedOptions, AllreduceOptions, AllToAllOptions, BarrierOptions, BroadcastOptions,
    GatherOptions, ReduceOptions, ReduceScatterOptions, ScatterOptions,
)  # fmt: skip
from ._point_to_point import P2POp, batch_isend_irecv, irecv, isend, recv, send
from ._process_group import ProcessGroup
from ._reduce_op import ReduceOp, reduce_op, supports_complex
from ._reduce_op import make_premul_sum as _make_nccl_premul_sum  # noqa: F401
from ._rendezvous import register_rendezvous_handler, rendezvous
from ._store import FileStore, HashStore, PrefixStore, Store, TCPStore
from ._work import Work
from ._world import (
    GroupMember, GroupName, default_pg_timeout, get_backend, get_backend_config, get_backend_impl, get_global_rank,
    get_group_rank, get_node_local_rank, get_pg_count, get_process_group_ranks, get_rank, get_world_size, group,
    is_initialized, set_timeout,
)  # fmt: skip
from ._world import _get_default_group, _rank_not_in_group  # noqa: F401

set_debug_level_from_env()

# Imported when they are used.
_LAZY = {name: ".device_mesh" for name in ("DeviceMesh", "init_device_mesh")}
_MODULES = (
    "algorithms", "argparse_util", "autograd", "checkpoint", "device_mesh", "distributed_c10d", "elastic", "fsdp", "launch", "launcher",
    "nn", "optim", "pipelining", "rpc", "run", "tensor",
)  # fmt: skip


def breakpoint(rank: int = 0, skip: int = 0, timeout_s: int | None = 3600) -> None:  # noqa: A001 - PyTorch's name
    """Starts a debugger on one rank, while all other ranks wait. `skip`: the number of initial calls that have no
    effect.

    The group's timeout must exceed the time in the debugger; `timeout_s` has no effect.
    """
    global _breakpoints_skipped
    if _breakpoints_skipped < skip:
        _breakpoints_skipped += 1
        return
    if get_rank() == rank:
        import pdb

        with open("/dev/stdin") as terminal:
            pdb.Pdb(stdin=terminal).set_trace()
    barrier()  # noqa: F405


_breakpoints_skipped = 0


def __getattr__(name: str):
    if name in _LAZY:
        return getattr(_importlib.import_module(_LAZY[name], __name__), name)
    if name in _MODULES:
        try:
            return _importlib.import_module(f".{name}", __name__)
        except ModuleNotFoundError as error:
            if error.name != f"{__name__}.{name}":
                raise
    raise AttributeError(f"module 'torch.distributed' has no attribute {name!r}: not implemented (docs/differences.md)")
