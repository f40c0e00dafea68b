"""Provides the names of torch.utils.data._utils.worker."""

from .._workers.info import WorkerInfo, get_worker_info

__all__ = ["WorkerInfo", "get_worker_info"]
