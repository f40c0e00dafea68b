"""torch.distributed.elastic.events: what happens in a run, as lines of JSON for a handler of Python's logging.

``launch_agent()`` records an event when the run of a node ends, with ``LaunchConfig.event_log_handler``.
"""

from ...._lazy import lazy_attributes

# Imported at their first use: a thread that imports the package does not wait for one that imports a module of it.
_NAMES = {
    "_recording": "construct_and_record_rdzv_event record record_rdzv_event _get_or_create_logger _loggers",
    "api": "Event EventMetadataValue EventSource NodeState RdzvEvent",
    "handlers": "get_logging_handler",
}


__all__ = [  # noqa: F822 - imported at their first use
    "Event", "EventMetadataValue", "EventSource", "NodeState", "RdzvEvent", "construct_and_record_rdzv_event", "get_logging_handler",
    "record", "record_rdzv_event",
]  # fmt: skip

__getattr__, __dir__ = lazy_attributes(globals(), None, _NAMES)
