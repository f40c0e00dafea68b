"""Records how the modules of absent devices act in PyTorch's CPU build, in absent_devices.json, for test_absent_devices.py.

.venv-peers/bin/python -m tests.python.names.record_absent
"""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

RECORDED = Path(__file__).with_name("absent_devices.json")
_LETTERS = {"x": "torch.ones(2)", "s": "torch.ones(16, dtype=torch.uint8)"}
CALLS = {
    "xpu": """
        Event() MemPool() Stream() Stream(None) StreamContext(None) XPUGraph() can_device_access_peer(0,1) clock_rate() current_device()
        current_stream() device(0) device(None) device_of(x) device_count() device_memory_used() empty_cache() get_arch_list()
        get_device_capability() get_device_name() get_device_name(0) get_device_properties() get_gencode_flags()
        get_per_process_memory_fraction() get_rng_state() get_rng_state_all() get_stream_from_external(0) graph(None)
        graph_pool_handle() init() initial_seed() is_available() is_bf16_supported() is_initialized() is_tf32_supported()
        list_gpu_processes() make_graphed_callables(print,(x,)) manual_seed(1) manual_seed() manual_seed_all(1) max_memory_allocated()
        max_memory_reserved(0) mem_get_info() memory_allocated() memory_reserved() memory_snapshot() memory_stats()
        memory_stats_as_nested_dict() memory_usage() power_draw() seed() seed_all() set_device(0)
        set_device() set_per_process_memory_fraction(0.5) set_rng_state(s) set_rng_state_all([]) set_stream(None) stream(None)
        synchronize() synchronize(0) temperature() use_mem_pool(None) utilization()""",
    "mps": """
        Stream() compile_shader("x") current_allocated_memory() default_stream() device_count()
        driver_allocated_memory() empty_cache() get_rng_state() is_available() load_metallib("x") load_metallib(3) manual_seed(1)
        recommended_max_memory() seed() set_per_process_memory_fraction(0.5) set_per_process_memory_fraction(3.0)
        set_per_process_memory_fraction(1) set_rng_state(s) set_stream(None) synchronize() profiler.start() profiler.stop()
        profiler.is_metal_capture_enabled() profiler.profile()""",
    "mtia": """
        MTIAGraph() StreamContext(None) attach_out_of_memory_observer(print) current_device() current_stream() default_stream() device(0)
        device_count() empty_cache() get_device_capability() get_device_properties() get_rng_state() get_rng_state_all() graph(None)
        graph_pool_handle() init() initial_seed() is_available() is_bf16_supported() is_current_stream_capturing() is_initialized()
        manual_seed(1) max_memory_allocated() memory_allocated() memory_stats() reset_peak_memory_stats() set_device(0) set_rng_state(s)
        set_stream(None) snapshot() stream(None) synchronize()""",
}
METHODS = "x.xpu() x.ipu() x.mtia()"


def codes() -> list[str]:
    """The expressions, of the module `torch`, `x` and `s`."""
    return [f"torch.{module}.{call}" for module, calls in CALLS.items() for call in calls.split()] + METHODS.split()


def outcome(torch: ModuleType, code: str) -> list[Any]:
    """["value", repr], ["error", type, message] or, of a context manager, ["enters"]; a message about missing arguments is left out."""
    names = {"torch": torch, **{letter: eval(value, {"torch": torch}) for letter, value in _LETTERS.items()}}  # noqa: S307 - our rows
    try:
        value = eval(code, names)  # noqa: S307 - our rows
        if hasattr(value, "__enter__"):
            with value:
                return ["enters"]
        return ["value", repr(value)]
    except TypeError as e:
        return ["error", "TypeError", "" if "argument" in str(e) and "fraction" not in str(e) else str(e)]
    except Exception as e:
        return ["error", type(e).__name__, str(e)]


if __name__ == "__main__":
    import torch

    rows = {code: outcome(torch, code) for code in codes()}
    RECORDED.write_text("{\n" + ",\n".join(f" {json.dumps(k)}: {json.dumps(v)}" for k, v in rows.items()) + "\n}\n")
