"""Provides the names of torch.utils.data._utils.worker."""

from .._workers.info import WorkerInfo, _generate_state, get_worker_info

__all__ = ["WorkerInfo", "_generate_state", "get_worker_info"]
