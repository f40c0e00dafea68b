"""torch.distributed.distributed_c10d: the functions of torch.distributed, and internal ones that libraries call."""

from __future__ import annotations

from . import *  # noqa: F403
from . import _make_nccl_premul_sum  # noqa: F401
from ._collectives import (  # noqa: F401
    _all_gather_base,
    _check_single_tensor,
    _check_tensor_list,
    _reduce_scatter_base,
)  # fmt: skip
from ._world import (  # noqa: F401
    _canonicalize_group_rank,
    _check_not_self_rank,
    _get_default_group,
    _get_default_store,
    _get_pg_config,
    _group_or_default_group,
    _rank_not_in_group,
    _warn_not_in_group,
    _world,
)  # fmt: skip
from ._world import get_global_rank as _get_global_rank  # noqa: F401
