"""Distributed tracing: the span of the program to which the engine's spans belong.

An engine with ``--otlp`` exports spans of sessions and frames to an OpenTelemetry collector. set_trace_context() and
trace_context() set their parent. It holds for all threads of the process, because their calls share frames.
"""

from __future__ import annotations

import contextlib
import threading

from .. import _connection

_lock = threading.Lock()  # held while the context changes


def set_trace_context(traceparent: str | None) -> None:
    """Makes the engine's spans of later calls children of a span of this program.

    The calls issued so far are sent, so that a frame of calls has one context; nothing waits for the engine. Sessions that
    are opened later, their spans included, have the context too.

    Args:
        traceparent: a W3C trace context, as OpenTelemetry's propagators write it:
            ``"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"``. None or ``""``: none.

    Raises:
        ValueError: the text is not a trace context.
    """
    text = traceparent or ""
    with _lock:
        _connection.set_traceparent(text)


class trace_context(contextlib.ContextDecorator):  # noqa: N801 - a context manager, named as no_grad
    """Within the context, the engine's spans are children of a span of this program. See set_trace_context().

    The context belongs to the process: a second thread must not use another one at the same time.

    Args:
        traceparent: as for set_trace_context(). Without it, the current span of the package ``opentelemetry``, if there is
            one, when the context is entered.

    Raises:
        RuntimeError: there is no argument, and the package ``opentelemetry`` is not installed.
    """

    def __init__(self, traceparent: str | None = None):
        self._traceparent, self._before = traceparent, []

    def __enter__(self) -> trace_context:
        before = _connection.traceparent()
        set_trace_context(_current_span() if self._traceparent is None else self._traceparent)
        self._before.append(before)
        return self

    def __exit__(self, *exception) -> None:
        set_trace_context(self._before.pop())


def _current_span() -> str:
    """The current span of OpenTelemetry as a traceparent; "" if there is none."""
    try:
        from opentelemetry import trace
    except ImportError:
        raise RuntimeError("[trace_context] expected a traceparent, or the package opentelemetry-api to be installed") from None
    span = trace.get_current_span().get_span_context()
    return f"00-{span.trace_id:032x}-{span.span_id:016x}-{int(span.trace_flags) & 0xFF:02x}" if span.is_valid else ""
