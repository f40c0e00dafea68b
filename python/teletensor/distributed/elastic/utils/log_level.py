"""The level of elastic's loggers."""

__all__ = ["get_log_level"]


def get_log_level() -> str:
    """Returns the default level; the variable LOGLEVEL replaces it."""
    return "WARNING"
