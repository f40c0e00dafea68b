"""Loggers of programs that launch ranks."""

from __future__ import annotations

import logging
import os
import sys

from .log_level import get_log_level

__all__ = ["get_logger"]


def get_logger(name: str | None = None) -> logging.Logger:
    """Returns a logger with the level of the variable LOGLEVEL, by default WARNING.

    Args:
        name: by default that of the caller's module.
    """
    logger = logging.getLogger(name or sys._getframe(1).f_globals.get("__name__"))
    logger.setLevel(os.environ.get("LOGLEVEL", get_log_level()))
    return logger
