"""WorkerInfo: the identity of a worker, and the seeds of its random numbers."""

from __future__ import annotations

import random
import threading
from dataclasses import dataclass
from typing import Any

from ..dataset import Dataset


@dataclass(frozen=True)
class WorkerInfo:
    """The identity of a DataLoader's worker. ``dataset`` is the worker's copy."""

    id: int
    num_workers: int
    seed: int
    dataset: Dataset
    rng: Any = None
    worker_method: str | None = "multiprocessing"


_thread = threading.local()  # .info of a worker that is a thread
_process: WorkerInfo | None = None  # of a worker process


def get_worker_info() -> WorkerInfo | None:
    """The WorkerInfo of the worker that calls; None outside of workers."""
    return getattr(_thread, "info", None) or _process


def set_thread_info(info: WorkerInfo) -> None:
    """Makes the calling thread a worker."""
    _thread.info = info


def set_process_info(info: WorkerInfo) -> None:
    """Makes the calling process a worker."""
    global _process
    _process = info


def numpy_seeds(base_seed: int, worker_id: int) -> list[int]:
    """The four numbers with which a worker's NumPy generator is seeded."""
    import numpy as np

    entropy = [worker_id, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
    return np.random.SeedSequence(entropy).generate_state(4).tolist()


def seed_process(base_seed: int, number: int) -> None:
    """Seeds Python's, NumPy's and teletensor's generators of a worker process, with PyTorch's seeds."""
    from ...._random import seed_without_session

    random.seed(base_seed + number)
    seed_without_session(base_seed + number)
    try:
        import numpy as np
    except ImportError:
        return
    np.random.seed(numpy_seeds(base_seed, number))  # noqa: NPY002 - data sets use it
