"""Options of ProcessGroup's methods. The functions of torch.distributed take the same values as arguments."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from .. import _C
from .._lazy import set_module
from ._reduce_op import RedOpType, ReduceOp

# The timeout of the group applies.
UNSET_TIMEOUT = timedelta(milliseconds=-1)


@dataclass
class _Options:
    timeout: timedelta = UNSET_TIMEOUT
    asyncOp: bool = True  # noqa: N815 - PyTorch's name


@dataclass
class AllreduceOptions(_Options):
    reduceOp: ReduceOp | RedOpType = RedOpType.SUM  # noqa: N815


@dataclass
class AllreduceCoalescedOptions(AllreduceOptions):
    pass


@dataclass
class ReduceOptions(AllreduceOptions):
    rootRank: int = 0  # noqa: N815
    rootTensor: int = 0  # noqa: N815


@dataclass
class ReduceScatterOptions(AllreduceOptions):
    pass


@dataclass
class BroadcastOptions(_Options):
    rootRank: int = 0  # noqa: N815
    rootTensor: int = 0  # noqa: N815


@dataclass
class AllgatherOptions(_Options):
    pass


@dataclass
class GatherOptions(_Options):
    rootRank: int = 0  # noqa: N815


@dataclass
class ScatterOptions(_Options):
    rootRank: int = 0  # noqa: N815


@dataclass
class AllToAllOptions(_Options):
    pass


@dataclass
class BarrierOptions(_Options):
    device_ids: list[int] = field(default_factory=list)
    device: _C.device | None = None


set_module(
    "teletensor.distributed.distributed_c10d",
    AllToAllOptions, AllreduceCoalescedOptions, AllreduceOptions, BarrierOptions, BroadcastOptions, GatherOptions,
    ReduceOptions, ReduceScatterOptions, ScatterOptions,
)  # fmt: skip
