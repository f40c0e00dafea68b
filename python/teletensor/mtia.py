"""torch.mtia: accelerators of Meta. The engine computes on CPUs and CUDA GPUs: the module acts as PyTorch's does without the device."""

from __future__ import annotations

from typing import Any

from ._absent_device import AbsentDevice, answering, classes, raising

__all__ = [  # noqa: F822 - defined below
    "MTIAGraph", "attach_out_of_memory_observer", "current_device", "current_stream", "default_stream", "device",
    "device_count", "empty_cache", "get_device_capability", "get_device_properties", "get_rng_state",
    "get_rng_state_all", "graph", "graph_pool_handle", "init", "initial_seed", "is_available", "is_bf16_supported",
    "is_current_stream_capturing", "is_initialized", "manual_seed", "manual_seed_all", "max_memory_allocated",
    "memory_allocated", "memory_stats", "record_memory_history", "reset_peak_memory_stats", "seed", "seed_all",
    "set_device", "set_rng_state", "set_rng_state_all", "set_stream", "snapshot", "stream", "synchronize",
]  # fmt: skip

_NOT_COMPILED = (
    "Torch not compiled with MTIA enabled. Ensure you have `import mtia.host_runtime.torch_mtia.dynamic_library` in your python src "
    "file and include `//mtia/host_runtime/torch_mtia:torch_mtia` as your target dependency!"
)


def _without(function: str) -> str:
    return f"Cannot execute {function}() without MTIA backend."


answering(globals(), "mtia", bool, is_available=lambda: 0, is_initialized=lambda: 0, is_current_stream_capturing=lambda: 0)
answering(globals(), "mtia", lambda: True, is_bf16_supported=lambda including_emulation=True: 0)
answering(globals(), "mtia", int, device_count=lambda: 0, max_memory_allocated=lambda device=None: 0,
          memory_allocated=lambda device=None: 0)  # fmt: skip
answering(globals(), "mtia", dict, memory_stats=lambda device=None: 0)
answering(globals(), "mtia", list, get_rng_state_all=lambda: 0)
answering(globals(), "mtia", lambda: None, manual_seed=lambda seed: 0, manual_seed_all=lambda seed: 0, seed=lambda: 0, seed_all=lambda: 0,
          record_memory_history=lambda enabled="all", stacks="python", max_entries=0: 0, reset_peak_memory_stats=lambda device=None: 0,
          set_rng_state_all=lambda new_states: 0)  # fmt: skip
raising(globals(), "mtia", AssertionError, _NOT_COMPILED, init=lambda: 0, initial_seed=lambda: 0, get_rng_state=lambda device="mtia": 0,
        _lazy_init=lambda: 0)  # fmt: skip
for _internal, _functions in {
    "getCurrentDevice": {
        "current_device": lambda: 0, "current_stream": lambda device=None: 0, "default_stream": lambda device=None: 0,
        "get_device_capability": lambda device=None: 0, "get_device_properties": lambda device=None: 0,
        "set_rng_state": lambda new_state, device="mtia": 0, "synchronize": lambda device=None: 0, "stream": lambda stream: 0,
    },
    "emptyCache": {"empty_cache": lambda: 0}, "setCurrentDevice": {"set_device": lambda device: 0},
    "memorySnapshot": {"snapshot": lambda: 0},
    "attachOutOfMemoryObserver": {"attach_out_of_memory_observer": lambda observer: 0}, "graphPoolHandle": {"graph_pool_handle": lambda: 0},
}.items():  # fmt: skip
    raising(globals(), "mtia", RuntimeError, _without(_internal), **_functions)
classes(globals(), "mtia", RuntimeError, _without("mtiagraphCreate"), MTIAGraph=lambda keep_graph=False: 0)
classes(globals(), "mtia", RuntimeError, _without("getCurrentDevice"), StreamContext=lambda stream: 0,
        graph=lambda mtia_graph, pool=None, stream=None: 0, Event=lambda enable_timing=False: 0,
        Stream=lambda device=None, priority=0: 0)  # fmt: skip


class device(AbsentDevice):  # noqa: N801 - PyTorch's name
    """Selects a device: entering it raises RuntimeError, as there is none."""

    error = RuntimeError(_without("maybeExchangeDevice"))
    __absent_device__ = "mtia"


def set_stream(stream: Any) -> None:
    """Selects a stream; None has no effect. Others raise RuntimeError, as there is no device."""
    if stream is not None:
        raise RuntimeError(_without("setCurrentStream"))


set_stream.__absent_device__ = "mtia"
default_generators: tuple = ()
