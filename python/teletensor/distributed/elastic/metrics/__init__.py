"""torch.distributed.elastic.metrics: numbers that a program publishes, and the handlers that receive them.

Without ``configure()`` metrics are dropped. Handlers belong to groups of metrics; ``"torchelastic"`` is the default group.
"""

from __future__ import annotations

from .api import (
    ConsoleMetricHandler, MetricData, MetricHandler, MetricsConfig, MetricStream, NullMetricHandler, configure, get_elapsed_time_ms,
    getStream, prof, profile, publish_metric, put_metric,
)  # fmt: skip

__all__ = [
    "ConsoleMetricHandler", "MetricData", "MetricHandler", "MetricStream", "MetricsConfig", "NullMetricHandler", "configure",
    "getStream", "get_elapsed_time_ms", "initialize_metrics", "prof", "profile", "publish_metric", "put_metric",
]  # fmt: skip


def initialize_metrics(cfg: MetricsConfig | None = None) -> None:
    """Called by launch_agent(). Does nothing, as in PyTorch; a program that has its own configuration replaces it."""
