"""Handlers of events by name. A program may add its own to `_log_handlers`."""

from __future__ import annotations

import logging

__all__ = ["get_logging_handler"]

_log_handlers: dict[str, logging.Handler] = {
    "console": logging.StreamHandler(), "dynamic_rendezvous": logging.NullHandler(), "null": logging.NullHandler(),
}  # fmt: skip


def get_logging_handler(destination: str = "null") -> logging.Handler:
    """Returns the handler with a name. Raises KeyError if there is none."""
    return _log_handlers[destination]
