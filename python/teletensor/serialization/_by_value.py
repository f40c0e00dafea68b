"""The functions that pickles of tensors and storages name by this module."""

from __future__ import annotations

from .._by_value import rebuild, rebuild_as, rebuild_meta, reduce_tensor
from .._storage import reduce_storage, storage_from_bytes

__all__ = ["rebuild", "rebuild_as", "rebuild_meta", "reduce_storage", "reduce_tensor", "storage_from_bytes"]
