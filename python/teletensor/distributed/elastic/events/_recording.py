"""Functions that pass events to handlers of Python's logging."""

from __future__ import annotations

import logging
import os
import socket
import sys
import traceback

from ...._lazy import set_module
from .api import Event, NodeState, RdzvEvent
from .handlers import get_logging_handler

_loggers: dict[str, logging.Logger] = {}


def _get_or_create_logger(destination: str = "null") -> logging.Logger:
    """Returns the logger of a handler. The root logger does not receive its messages."""
    if destination not in _loggers:
        handler = get_logging_handler(destination)
        logger = _loggers[destination] = logging.getLogger(f"torchelastic-events-{destination}")
        logger.setLevel(os.environ.get("LOGLEVEL", "INFO"))
        logger.propagate = False
        logger.addHandler(handler)
    return _loggers[destination]


def record(event: Event, destination: str = "null") -> None:
    """Passes an event to a handler. Raises KeyError if there is none of that name."""
    _get_or_create_logger(destination).info(event.serialize())


def record_rdzv_event(event: RdzvEvent) -> None:
    """Passes an event to the handler "dynamic_rendezvous"."""
    _get_or_create_logger("dynamic_rendezvous").info(event.serialize())


def construct_and_record_rdzv_event(
    run_id: str,
    message: str,
    node_state: NodeState,
    name: str = "",
    hostname: str = "",
    pid: int | None = None,
    master_endpoint: str = "",
    local_id: int | None = None,
    rank: int | None = None,
) -> None:
    """Records an event of a rendezvous, named FILE:FUNCTION of the caller. Does nothing while the handler drops events."""
    if isinstance(get_logging_handler("dynamic_rendezvous"), logging.NullHandler):
        return
    caller = sys._getframe(1).f_code
    event = RdzvEvent(
        name=f"{os.path.basename(caller.co_filename)}:{name or caller.co_name}", run_id=run_id, message=message,
        hostname=hostname or socket.getfqdn(), pid=pid or os.getpid(), node_state=node_state, master_endpoint=master_endpoint,
        rank=rank, local_id=local_id, error_trace=traceback.format_exc() if node_state == NodeState.FAILED else "",
    )  # fmt: skip
    record_rdzv_event(event)


set_module(__package__, record, record_rdzv_event, construct_and_record_rdzv_event, _get_or_create_logger)
