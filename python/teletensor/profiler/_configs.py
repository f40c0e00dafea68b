"""Settings of PyTorch's profiler for counters of GPUs. They can be created; the engine's profiler refuses those that it does not have."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .._lazy import set_module


@dataclass(frozen=True)
class CuspyConfig:
    """Which activities NVIDIA's library collects."""

    enable_cuda_sync_events: bool = False
    enable_environment_counters: bool = False
    enable_graph_dependencies: bool = False
    enable_event_node_ids: bool = False


@dataclass
class PerformanceMetricsConfig:
    """Hardware counters to collect, by the GPU's names for them."""

    metric_names: list[str]
    sampling_interval_ms: float | None = None
    lookback_window_ms: float | None = None


@dataclass
class ProfilerActivityConfig:
    """What is collected for a kind of activity: None means the default."""

    activity_types: list[str] | None = None
    profiler_configs: list[Any] = field(default_factory=list)


def activities_of(activities: Any) -> Any:
    """The kinds of activities of a profile, of which a dict gives settings.

    Raises:
        TypeError: a value is not a ProfilerActivityConfig.
        NotImplementedError: a setting that the engine's profiler does not have.
    """
    if not isinstance(activities, dict):
        return activities
    for kind, config in activities.items():
        if not isinstance(config, ProfilerActivityConfig):
            raise TypeError(f"[profile] expected a ProfilerActivityConfig for {kind}, got {type(config).__name__}")
        if config.activity_types is not None or config.profiler_configs:
            raise NotImplementedError(
                f"[profile] expected the default activity_types and no profiler_configs, got {config}: counters of GPUs are not read"
            )
    return list(activities)


set_module("teletensor.profiler.profiler", CuspyConfig, PerformanceMetricsConfig, ProfilerActivityConfig)
