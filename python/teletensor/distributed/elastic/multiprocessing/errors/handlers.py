"""The handler that `record` uses."""

from .error_handler import ErrorHandler

__all__ = ["get_error_handler"]


def get_error_handler() -> ErrorHandler:
    """Returns a new ErrorHandler."""
    return ErrorHandler()
