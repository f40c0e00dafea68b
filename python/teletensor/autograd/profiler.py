"""torch.autograd.profiler: the older interface of torch.profiler."""

from __future__ import annotations

from typing import Any

from .._active_profile import record_function
from .._not_implemented import not_implemented
from ..profiler import DeviceType  # noqa: F401 - programs may import it from here
from ..profiler import ProfilerActivity as _Activity
from ..profiler import profile as _profile
from ..profiler._events import EventList, FunctionEvent


class profile(_profile):  # noqa: N801 - PyTorch's name
    """Context manager that records the operations in its block. Has the methods of its EventList.

    Args:
        enabled: False: records nothing.
        use_device: None, or "cuda": also measures what GPUs execute.
        record_shapes, with_flops, profile_memory, with_stack, acc_events: see torch.profiler.profile.
        use_kineto, use_cpu: have no effect; the engine records.
    """

    def __init__(self, enabled: bool = True, *, use_device: str | None = None, record_shapes: bool = False,
                 with_flops: bool = False, profile_memory: bool = False, with_stack: bool = False,
                 with_modules: bool = False, use_kineto: bool = False, use_cpu: bool = True, experimental_config=None,
                 acc_events: bool = False, custom_trace_id_callback=None,
                 post_processing_timeout_s: float | None = None):  # fmt: skip
        if use_device not in (None, "cuda"):
            raise NotImplementedError(f"[profile] use_device={use_device!r}: only 'cuda' is measured")
        if not use_cpu:
            raise NotImplementedError("[profile] use_cpu=False: only the CPU is measured")
        activities = [_Activity.CPU] + [_Activity.CUDA] * (use_device is not None)
        super().__init__(activities=activities, record_shapes=record_shapes, with_flops=with_flops, profile_memory=profile_memory,
                         with_stack=with_stack, with_modules=with_modules, experimental_config=experimental_config,
                         acc_events=acc_events, custom_trace_id_callback=custom_trace_id_callback,
                         post_processing_timeout_s=post_processing_timeout_s)  # fmt: skip
        self.enabled = enabled

    def __enter__(self) -> profile:
        return super().__enter__() if self.enabled else self

    def __exit__(self, *exception) -> None:
        if self.enabled:
            super().__exit__(*exception)

    @property
    def function_events(self) -> EventList:
        """The recorded events."""
        return self.events()

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0,
                     group_by_overload_name: bool = False) -> EventList:  # fmt: skip
        """Returns the totals of the events by name."""
        return super().key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def table(self, sort_by: str | None = None, row_limit: int = 100, **options) -> str:
        """Returns the events as a table; see EventList.table()."""
        return self.events().table(sort_by, row_limit, **options)

    def total_average(self):
        """Returns the totals of all events."""
        return self.events().total_average()

    @property
    def self_cpu_time_total(self) -> float:
        """The engine's total time in all events, in microseconds."""
        return self.events().self_cpu_time_total


class EnforceUnique:
    """Raises RuntimeError if a key is seen twice."""

    def __init__(self) -> None:
        self.seen: set = set()

    def see(self, *key: Any) -> None:
        """Notes a key."""
        if key in self.seen:
            raise RuntimeError("duplicate key: " + str(key))
        self.seen.add(key)


not_implemented(
    globals(), "NVIDIA's and Intel's profilers see the engine, not this process",
    "load_nvprof parse_nvprof_trace", "emit_itt emit_nvtx",
)  # fmt: skip

__all__ = [  # noqa: F822 - not_implemented() adds some of them
    "EnforceUnique", "EventList", "FunctionEvent", "emit_itt", "emit_nvtx", "load_nvprof", "parse_nvprof_trace",
    "profile", "record_function",
]  # fmt: skip
