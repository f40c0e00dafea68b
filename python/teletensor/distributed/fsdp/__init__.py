"""torch.distributed.fsdp: modules whose parameters, gradients and optimizer state are divided among the ranks."""

from .api import (
    BackwardPrefetch, CPUOffload, CPUOffloadPolicy, FullOptimStateDictConfig, FullStateDictConfig,
    LocalOptimStateDictConfig, LocalStateDictConfig, MixedPrecision, MixedPrecisionPolicy, OffloadPolicy,
    OptimStateDictConfig, OptimStateKeyType, ShardedOptimStateDictConfig, ShardedStateDictConfig, ShardingStrategy,
    StateDictConfig, StateDictSettings, StateDictType,
)  # fmt: skip
from .fully_sharded_data_parallel import FullyShardedDataParallel
