"""Provides the names of torch.utils.data._utils.fetch."""

from __future__ import annotations

from typing import Any

from .._workers.fetch import Fetch, Options

__all__ = ["_IterableDatasetFetcher", "_MapDatasetFetcher"]


class _MapDatasetFetcher:
    """Loads the samples at indices, and collates them."""

    _iterable = False

    def __init__(self, dataset, auto_collation: bool, collate_fn, drop_last: bool):
        self.dataset, self.auto_collation = dataset, auto_collation
        self._fetch = Fetch(Options(dataset, self._iterable, auto_collation, drop_last, collate_fn))

    def fetch(self, possibly_batched_index) -> Any:
        """The batch of the indices."""
        return self._fetch(possibly_batched_index)


class _IterableDatasetFetcher(_MapDatasetFetcher):
    """Loads the next samples, as many as there are indices, and collates them."""

    _iterable = True
