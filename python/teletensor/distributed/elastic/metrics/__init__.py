"""torch.distributed.elastic.metrics: numbers that a program publishes, and the handlers that receive them.

Without ``configure()`` metrics are dropped. Handlers belong to groups of metrics; ``"torchelastic"`` is the default group.
"""

from ...._lazy import lazy_attributes

# Imported at their first use: a thread that imports the package does not wait for one that imports a module of it.
_NAMES = {
    "api": (
        "ConsoleMetricHandler MetricData MetricHandler MetricsConfig MetricStream NullMetricHandler configure "
        "get_elapsed_time_ms getStream initialize_metrics prof profile publish_metric put_metric"
    ),
}

__all__ = [  # noqa: F822 - imported at their first use
    "ConsoleMetricHandler", "MetricData", "MetricHandler", "MetricStream", "MetricsConfig", "NullMetricHandler", "configure",
    "getStream", "get_elapsed_time_ms", "initialize_metrics", "prof", "profile", "publish_metric", "put_metric",
]  # fmt: skip

__getattr__, __dir__ = lazy_attributes(globals(), None, _NAMES)
