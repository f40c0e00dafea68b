"""Options of FullyShardedDataParallel and fully_shard."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Sequence
from typing import Any

from ... import _C
from ..._lazy import set_module
from ...nn.modules.batchnorm import BatchNorm1d, BatchNorm2d, BatchNorm3d

__all__ = [
    "BackwardPrefetch", "CPUOffload", "FullOptimStateDictConfig", "FullStateDictConfig", "LocalOptimStateDictConfig",
    "LocalStateDictConfig", "MixedPrecision", "OptimStateDictConfig", "ShardedOptimStateDictConfig", "ShardedStateDictConfig",
    "ShardingStrategy", "StateDictConfig", "StateDictSettings", "StateDictType",
]  # fmt: skip


class ShardingStrategy(enum.Enum):
    """What FullyShardedDataParallel shards.

    FULL_SHARD: parameters, gradients and optimizer state; parameters are freed after forward.
    SHARD_GRAD_OP: the same, but the gathered parameters are kept from forward to backward.
    NO_SHARD: nothing; gradients are averaged.
    HYBRID_SHARD, _HYBRID_SHARD_ZERO2: like FULL_SHARD and SHARD_GRAD_OP among the ranks of one group; the parts are
        replicated over another one.
    """

    FULL_SHARD = enum.auto()
    SHARD_GRAD_OP = enum.auto()
    NO_SHARD = enum.auto()
    HYBRID_SHARD = enum.auto()
    _HYBRID_SHARD_ZERO2 = enum.auto()


class BackwardPrefetch(enum.Enum):
    """When backward starts to gather the parameters of the next unit: before or after this unit's gradients."""

    BACKWARD_PRE = enum.auto()
    BACKWARD_POST = enum.auto()


@dataclasses.dataclass
class MixedPrecision:
    """Dtypes of FullyShardedDataParallel. The sharded parameters, gradients and optimizer state keep their dtype.

    Args:
        param_dtype: dtype of the gathered parameters, hence of the computation.
        reduce_dtype: dtype in which gradients are reduced; by default ``param_dtype``.
        buffer_dtype: dtype of floating-point buffers.
        cast_forward_inputs: whether each unit casts its floating-point inputs to ``param_dtype``.
        cast_root_forward_inputs: whether the root does.
    """

    param_dtype: _C.dtype | None = None
    reduce_dtype: _C.dtype | None = None
    buffer_dtype: _C.dtype | None = None
    keep_low_precision_grads: bool = False
    cast_forward_inputs: bool = False
    cast_root_forward_inputs: bool = True
    _module_classes_to_ignore: Sequence[type] = (BatchNorm1d, BatchNorm2d, BatchNorm3d)


@dataclasses.dataclass
class CPUOffload:
    """Whether the sharded parameters and gradients are stored on the CPU."""

    offload_params: bool = False


class StateDictType(enum.Enum):
    """Contents of state_dict(): all parameters, this rank's flat parameters, or this rank's part of each parameter."""

    FULL_STATE_DICT = enum.auto()
    LOCAL_STATE_DICT = enum.auto()
    SHARDED_STATE_DICT = enum.auto()


@dataclasses.dataclass
class StateDictConfig:
    """Options of a type of state dict. ``offload_to_cpu``: whether the tensors are copied to the CPU."""

    offload_to_cpu: bool = False


@dataclasses.dataclass
class FullStateDictConfig(StateDictConfig):
    """``rank0_only``: whether all other ranks get an empty dict."""

    rank0_only: bool = False


@dataclasses.dataclass
class LocalStateDictConfig(StateDictConfig):
    """Options of LOCAL_STATE_DICT."""


@dataclasses.dataclass
class ShardedStateDictConfig(StateDictConfig):
    """Options of SHARDED_STATE_DICT."""

    _use_dtensor: bool = False


@dataclasses.dataclass
class OptimStateDictConfig:
    """Options of optim_state_dict()."""

    offload_to_cpu: bool = True


@dataclasses.dataclass
class FullOptimStateDictConfig(OptimStateDictConfig):
    """``rank0_only``: whether all other ranks get an empty dict."""

    rank0_only: bool = False


@dataclasses.dataclass
class LocalOptimStateDictConfig(OptimStateDictConfig):
    """Options with LOCAL_STATE_DICT."""

    offload_to_cpu: bool = False


@dataclasses.dataclass
class ShardedOptimStateDictConfig(OptimStateDictConfig):
    """Options with SHARDED_STATE_DICT."""

    _use_dtensor: bool = False


@dataclasses.dataclass
class StateDictSettings:
    """The type of state dicts and its options."""

    state_dict_type: StateDictType
    state_dict_config: StateDictConfig
    optim_state_dict_config: OptimStateDictConfig


class OptimStateKeyType(enum.Enum):
    """How an optimizer's state dict identifies parameters."""

    PARAM_NAME = enum.auto()
    PARAM_ID = enum.auto()


@dataclasses.dataclass(frozen=True)
class MixedPrecisionPolicy:
    """Dtypes of fully_shard.

    Args:
        param_dtype: dtype of the gathered parameters, hence of the computation.
        reduce_dtype: dtype in which gradients are reduced; by default ``param_dtype``.
        output_dtype: dtype to which the module's floating-point outputs are cast.
        cast_forward_inputs: whether floating-point inputs are cast to ``param_dtype``.
    """

    param_dtype: _C.dtype | None = None
    reduce_dtype: _C.dtype | None = None
    output_dtype: _C.dtype | None = None
    cast_forward_inputs: bool = True
    param_dtype_override_fn: Callable[[Any], _C.dtype | None] | None = None


@dataclasses.dataclass
class OffloadPolicy:
    """No offloading."""


@dataclasses.dataclass
class CPUOffloadPolicy(OffloadPolicy):
    """The sharded parameters and gradients are stored on the CPU. ``pin_memory`` has no effect."""

    pin_memory: bool = True


set_module("teletensor.distributed.fsdp", CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy)
set_module("teletensor.distributed.fsdp.fully_sharded_data_parallel", OptimStateKeyType)
