"""Metrics, their handlers, and decorators that measure functions."""

from __future__ import annotations

import abc
import collections
import functools
import time
import warnings
from collections.abc import Callable

__all__ = [
    "ConsoleMetricHandler", "MetricData", "MetricHandler", "MetricStream", "MetricsConfig", "NullMetricHandler", "configure",
    "getStream", "get_elapsed_time_ms", "prof", "profile", "publish_metric", "put_metric",
]  # fmt: skip

MetricData = collections.namedtuple("MetricData", ["timestamp", "group_name", "name", "value"])


class MetricsConfig:
    """Parameters for initialize_metrics()."""

    __slots__ = ["params"]

    def __init__(self, params: dict[str, str] | None = None):
        self.params = {} if params is None else params


class MetricHandler(abc.ABC):
    """Receives metrics."""

    @abc.abstractmethod
    def emit(self, metric_data: MetricData) -> None:
        """Receives one value."""


class ConsoleMetricHandler(MetricHandler):
    """Prints metrics."""

    def emit(self, metric_data: MetricData) -> None:
        print(f"[{metric_data.timestamp}][{metric_data.group_name}]: {metric_data.name}={metric_data.value}")


class NullMetricHandler(MetricHandler):
    """Drops metrics."""

    def emit(self, metric_data: MetricData) -> None:
        pass


class MetricStream:
    """The metrics of one group."""

    def __init__(self, group_name: str, handler: MetricHandler):
        self.group_name, self.handler = group_name, handler

    def add_value(self, metric_name: str, metric_value: int) -> None:
        """Passes a value to the group's handler."""
        self.handler.emit(MetricData(time.time(), self.group_name, metric_name, metric_value))


_handlers: dict[str, MetricHandler] = {}  # by group
_default_handler: MetricHandler = NullMetricHandler()


def configure(handler: MetricHandler, group: str | None = None) -> None:
    """Sets the handler of a group, or that of all groups without one."""
    global _default_handler
    if group is None:
        _default_handler = handler
    else:
        _handlers[group] = handler


def getStream(group: str) -> MetricStream:  # noqa: N802 - PyTorch's name
    """Returns the stream of a group."""
    return MetricStream(group, _handlers.get(group, _default_handler))


def put_metric(metric_name: str, metric_value: int, metric_group: str = "torchelastic") -> None:
    """Publishes a value."""
    getStream(metric_group).add_value(metric_name, metric_value)


def get_elapsed_time_ms(start_time_in_seconds: float) -> int:
    """Returns the milliseconds since a time of time.time()."""
    return int((time.time() - start_time_in_seconds) * 1000)


def _measured(function: Callable, name: str, group: str) -> Callable:
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        start, outcome = time.time(), "failure"
        try:
            result = function(*args, **kwargs)
            outcome = "success"
            return result
        except BaseException as error:
            outcome = "failure" if isinstance(error, Exception) else ""  # an exit is neither
            raise
        finally:
            if outcome:
                put_metric(f"{name}.{outcome}", 1, group)
            put_metric(f"{name}.duration.ms", get_elapsed_time_ms(start), group)

    return wrapper


def prof(fn: Callable | None = None, group: str = "torchelastic") -> Callable:
    """Decorator: publishes NAME.success or NAME.failure and NAME.duration.ms at each call.

    NAME is the qualified name of a method, or the last part of the module's name and the function's name.
    """

    def decorate(function: Callable) -> Callable:
        name = function.__qualname__
        if "." not in name and function.__module__:
            name = f"{function.__module__.rpartition('.')[2]}.{name}"
        return _measured(function, name, group)

    return decorate(fn) if fn else decorate


def profile(group: str | None = None) -> Callable:
    """Deprecated: use ``prof``. Its metrics have the function's own name."""
    warnings.warn("Deprecated, use `@prof` instead", FutureWarning, stacklevel=2)
    return lambda function: _measured(function, function.__name__, group)


def publish_metric(metric_group: str, metric_name: str, metric_value: int) -> None:
    """Deprecated: use ``put_metric``."""
    warnings.warn(
        "Deprecated, use `put_metric(metric_group)(metric_name, metric_value)` instead", FutureWarning, stacklevel=2
    )
    put_metric(metric_name, metric_value, metric_group)


def initialize_metrics(cfg: MetricsConfig | None = None) -> None:
    """Called by launch_agent(). Does nothing, as in PyTorch; a program that has its own configuration replaces it."""
