"""Provides the names of torch.utils.data._utils.worker."""

from .._workers.info import WorkerInfo, get_worker_info
from .._workers.info import numpy_seeds as _generate_state

__all__ = ["WorkerInfo", "_generate_state", "get_worker_info"]
