"""torch.profiler: what a program issues, and when the engine executes it.

    with profile(record_shapes=True) as prof:
        step()
    print(prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=10))
    prof.export_chrome_trace("trace.json")
"""

from .._active_profile import record_function
from .._lazy import lazy_attributes

# Imported at their first use: a thread that imports the package does not wait for one that imports a module of it.
_NAMES = {
    "_configs": "CuspyConfig PerformanceMetricsConfig ProfilerActivityConfig",
    "_device": "DeviceType",
    "_execution_trace": "ExecutionTraceObserver",
    "profiler": (
        "ProfilerAction ProfilerActivity profile schedule supported_activities "
        "tensorboard_trace_handler"
    ),
}
__getattr__, __dir__ = lazy_attributes(globals(), ("profiler",), _NAMES)


def kineto_available() -> bool:
    """Returns False: profiles are recorded by the engine."""
    return False


__all__ = [
    "CuspyConfig", "DeviceType", "ExecutionTraceObserver", "PerformanceMetricsConfig", "ProfilerAction", "ProfilerActivity",
    "ProfilerActivityConfig", "kineto_available", "profile", "record_function", "schedule", "supported_activities",
    "tensorboard_trace_handler",
]  # fmt: skip
