"""torch.distributed.fsdp: modules whose parameters, gradients and optimizer state are divided among the ranks."""

from ..._lazy import lazy_attributes

__all__ = [  # noqa: F822 - some are imported at their first use
    "BackwardPrefetch", "CPUOffload", "CPUOffloadPolicy", "DataParallelMeshDims", "FSDPModule", "FullOptimStateDictConfig",
    "FullStateDictConfig", "FullyShardedDataParallel", "GradientReductionHandle", "LocalOptimStateDictConfig",
    "LocalStateDictConfig", "MixedPrecision", "MixedPrecisionPolicy", "OffloadPolicy", "OptimStateDictConfig",
    "OptimStateKeyType", "ShardedOptimStateDictConfig", "ShardedStateDictConfig", "ShardingStrategy", "StateDictConfig",
    "StateDictSettings", "StateDictType", "UnshardHandle", "fully_shard", "register_fsdp_forward_method", "share_comm_ctx",
]  # fmt: skip

# Imported at their first use: a thread that imports the package does not wait for one that imports a module of it.
_NAMES = {
    "_fully_shard": (
        "DataParallelMeshDims FSDPModule GradientReductionHandle UnshardHandle fully_shard "
        "register_fsdp_forward_method share_comm_ctx"
    ),
    "api": (
        "BackwardPrefetch CPUOffload CPUOffloadPolicy FullOptimStateDictConfig FullStateDictConfig "
        "LocalOptimStateDictConfig LocalStateDictConfig MixedPrecision MixedPrecisionPolicy OffloadPolicy "
        "OptimStateDictConfig OptimStateKeyType ShardedOptimStateDictConfig ShardedStateDictConfig "
        "ShardingStrategy StateDictConfig StateDictSettings StateDictType"
    ),
    "fully_sharded_data_parallel": "FullyShardedDataParallel",
}

__getattr__, __dir__ = lazy_attributes(globals(), None, _NAMES)
