"""Exceptions of torch.distributed."""

from __future__ import annotations


class DistError(RuntimeError):
    """The base of the exceptions below."""


class DistBackendError(DistError):
    """A collective failed."""


class DistNetworkError(DistError):
    """A rank or a store cannot be reached."""


class DistStoreError(DistError):
    """A store failed, or some ranks of a group did not connect to it."""


class QueueEmptyError(DistStoreError):
    """A store's queue is empty."""


for _error in (DistError, DistBackendError, DistNetworkError, DistStoreError, QueueEmptyError):
    _error.__module__ = "teletensor.distributed"
