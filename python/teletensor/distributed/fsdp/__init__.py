"""torch.distributed.fsdp: modules whose parameters, gradients and optimizer state are divided among the ranks."""

from ._fully_shard import (
    DataParallelMeshDims, FSDPModule, GradientReductionHandle, UnshardHandle, fully_shard, register_fsdp_forward_method,
    share_comm_ctx,
)  # fmt: skip
from .api import (
    BackwardPrefetch, CPUOffload, CPUOffloadPolicy, FullOptimStateDictConfig, FullStateDictConfig,
    LocalOptimStateDictConfig, LocalStateDictConfig, MixedPrecision, MixedPrecisionPolicy, OffloadPolicy,
    OptimStateDictConfig, OptimStateKeyType, ShardedOptimStateDictConfig, ShardedStateDictConfig, ShardingStrategy,
    StateDictConfig, StateDictSettings, StateDictType,
)  # fmt: skip
from .fully_sharded_data_parallel import FullyShardedDataParallel
