"""``record``: an entry point whose uncaught exception is written to the rank's failure file, for the launcher's summary.

Source: PyTorch's torch.distributed.elastic.multiprocessing.errors.
"""

from ....._lazy import lazy_attributes

# Imported at their first use: a thread that imports the package does not wait for one that imports a module of it.
_NAMES = {
    "_failures": "ChildFailedError ProcessFailure record",
    "error_handler": "ErrorHandler",
    "handlers": "get_error_handler",
}


__all__ = [  # noqa: F822 - imported at their first use
    "ChildFailedError", "ErrorHandler", "ProcessFailure", "get_error_handler", "record",
]  # fmt: skip

__getattr__, __dir__ = lazy_attributes(globals(), None, _NAMES)
