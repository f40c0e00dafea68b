"""The API of torch.cuda for the GPUs of the engine.

A session computes in one stream per GPU, in program order. Copies between the client and a GPU use separate streams.
"Allocated" bytes belong to the session's tensors. "Reserved" bytes belong to the pool, which all sessions of the engine
share.
"""

from __future__ import annotations

from .._C import OutOfMemoryError
from .._lazy import lazy_attributes
from .._tensor_types import tensor_types

# Imported at their first use: a thread that imports the package does not wait for one that imports a module of it.
__all__ = [  # noqa: F822
    "BFloat16Storage", "BFloat16Tensor", "BoolStorage", "BoolTensor", "ByteStorage", "ByteTensor", "CUDAGraph",
    "CUDAPluggableAllocator", "CharStorage", "CharTensor", "ComplexDoubleStorage", "ComplexFloatStorage", "CudaError",
    "DeferredCudaCallError", "DoubleStorage", "DoubleTensor", "Event", "ExternalStream", "FloatStorage", "FloatTensor",
    "GreenContext", "HalfStorage", "HalfTensor", "IntStorage", "IntTensor", "LongStorage", "LongTensor", "MemPool",
    "ShortStorage", "ShortTensor", "Stream", "StreamContext", "amp", "caching_allocator_alloc",
    "caching_allocator_delete", "caching_allocator_disabled", "caching_allocator_enable", "can_device_access_peer",
    "change_current_allocator", "check_error", "clock_rate", "cudaStatus", "cudart", "current_blas_handle",
    "current_device", "current_solver_handle", "current_stream", "default_generators", "default_stream", "device",
    "device_count", "device_memory_used", "device_of", "empty_cache", "export_dot", "export_graph_data",
    "get_allocator_backend", "get_arch_list", "get_device_capability", "get_device_name", "get_device_properties",
    "get_gencode_flags", "get_per_process_memory_fraction", "get_rng_state", "get_rng_state_all",
    "get_stream_from_external", "get_sync_debug_mode", "graph", "graph_annotations", "graph_pool_handle", "graphs",
    "has_half", "has_magma", "host_memory_stats", "host_memory_stats_as_nested_dict", "init", "initial_seed",
    "ipc_collect", "is_available", "is_bf16_supported", "is_current_stream_capturing", "is_initialized",
    "is_tf32_supported", "jiterator", "list_gpu_processes", "make_graphed_callables", "manual_seed", "manual_seed_all",
    "max_memory_allocated", "max_memory_cached", "max_memory_reserved", "mem_get_info", "memory", "memory_allocated",
    "memory_cached", "memory_reserved", "memory_snapshot", "memory_stats", "memory_stats_as_nested_dict",
    "memory_summary", "memory_usage", "nccl", "nvtx", "power_draw", "profiler", "random", "replay_stats",
    "reset_accumulated_host_memory_stats", "reset_accumulated_memory_stats", "reset_max_memory_allocated",
    "reset_max_memory_cached", "reset_peak_host_memory_stats", "reset_peak_memory_stats", "seed", "seed_all",
    "set_device", "set_per_process_memory_fraction", "set_rng_state", "set_rng_state_all", "set_stream",
    "set_sync_debug_mode", "sparse", "stream", "streams", "synchronize", "temperature", "tunable", "use_mem_pool",
    "utilization",
]  # fmt: skip

globals().update(tensor_types("cuda"))


def __getattr__(name: str):
    """Imports modules and rarely used names at their first use."""
    if name == "default_generators":  # their number is the engine's number of GPUs
        from .status import default_generators

        return default_generators()
    if name == "_initialized":
        return _lazy("is_initialized")()
    return _lazy(name)


_lazy, __dir__ = lazy_attributes(
    globals(),
    (
        "_devices", "_utils", "amp", "device_index", "graph_annotations", "graphs", "jiterator", "memory", "nccl", "nvtx",
        "profiler", "random", "sparse", "streams", "tunable",
    ),
    {
        "_devices": (
            "DeviceProperties _lazy_call _lazy_init=init device_count get_device_capability get_device_name get_device_properties "
            "init is_available is_bf16_supported is_initialized synchronize"
        ),
        "device_index": "current_device device device_of index_of set_device",
        "graphs": "CUDAGraph graph graph_pool_handle is_current_stream_capturing make_graphed_callables replay_stats",
        "memory": (
            "empty_cache max_memory_allocated max_memory_cached max_memory_reserved mem_get_info memory_allocated "
            "memory_cached memory_reserved memory_snapshot memory_stats memory_summary reset_accumulated_memory_stats "
            "reset_max_memory_allocated reset_peak_memory_stats"
        ),
        "random": (
            "get_rng_state get_rng_state_all initial_seed manual_seed manual_seed_all seed seed_all set_rng_state "
            "set_rng_state_all"
        ),
        "streams": "Event Stream StreamContext current_stream default_stream set_stream stream",
        "_storages": "DoubleStorage FloatStorage HalfStorage BFloat16Storage LongStorage IntStorage ShortStorage CharStorage "
        "ByteStorage BoolStorage ComplexDoubleStorage ComplexFloatStorage",
        "_runtime": "caching_allocator_alloc caching_allocator_delete cudart",
        "status": "CUDAPluggableAllocator CudaError DeferredCudaCallError ExternalStream GreenContext MemPool caching_allocator_disabled "
        "caching_allocator_enable can_device_access_peer "
        "change_current_allocator check_error clock_rate cudaStatus current_blas_handle current_solver_handle "
        "device_memory_used export_dot export_graph_data get_allocator_backend get_arch_list get_gencode_flags "
        "get_per_process_memory_fraction get_stream_from_external get_sync_debug_mode has_half has_magma host_memory_stats "
        "host_memory_stats_as_nested_dict ipc_collect is_tf32_supported list_gpu_processes "
        "memory_stats_as_nested_dict memory_usage power_draw reset_accumulated_host_memory_stats "
        "reset_max_memory_cached reset_peak_host_memory_stats set_per_process_memory_fraction set_sync_debug_mode temperature "
        "use_mem_pool utilization",
    },
)
