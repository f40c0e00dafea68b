"""Passes as classes, their manager, and the partitioner."""

from . import pass_base, pass_manager
