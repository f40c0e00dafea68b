"""torch.multiprocessing: Python's multiprocessing, with tensors as arguments, results and elements of queues.

A tensor that is sent to another process is the same tensor there: both processes see each other's writes, without an order
between them. Processes use the engine of their parent, also a private one. The default start method is "spawn": a forked
process cannot use a session of its parent.
"""

from __future__ import annotations

import multiprocessing
from multiprocessing.reduction import ForkingPickler
from typing import Any

from .. import _C
from .._lazy import lazy_attributes
from ..nn.parameter import Buffer, Parameter

# Imported at their first use: a thread that imports the package does not wait for one that imports a module of it.
_NAMES = {
    "_contexts": (  # the classes are found here by pickle
        "_SpawnContext _SpawnProcess get_all_start_methods get_context get_start_method parents_engine set_start_method"
    ),
    "reductions": "init_reductions",
    "spawn": "ProcessContext ProcessException ProcessExitedException ProcessRaisedException SpawnContext spawn start_processes",
}

__all__ = [  # noqa: F822 - most names are those of the current context
    "get_all_sharing_strategies", "get_sharing_strategy", "set_sharing_strategy", *multiprocessing.__all__,
]  # fmt: skip

_STRATEGIES = {"file_descriptor", "file_system"}
_strategy = "file_descriptor"


def set_sharing_strategy(new_strategy: str) -> None:
    """Stores one of PyTorch's names. Tensors are shared by engines, whatever the strategy is."""
    global _strategy
    if new_strategy not in _STRATEGIES:
        raise AssertionError(f"invalid sharing strategy {new_strategy!r}, expected one of {_STRATEGIES}")
    _strategy = new_strategy


def get_sharing_strategy() -> str:
    """The name passed to set_sharing_strategy last."""
    return _strategy


def get_all_sharing_strategies() -> set[str]:
    """PyTorch's names."""
    return set(_STRATEGIES)


_get, __dir__ = lazy_attributes(globals(), None, _NAMES)


def __getattr__(name: str) -> Any:
    """Names of this package's modules, and Process, Queue, Pool and the others of the current start method."""
    if name in multiprocessing.__all__ and name not in _CONTEXTS:
        from ._contexts import get_context

        return getattr(get_context(), name)
    return _get(name)


_CONTEXTS = {"get_all_start_methods", "get_context", "get_start_method", "set_start_method"}


def _reduce(tensor: _C.Tensor) -> tuple:
    from .reductions import reduce_tensor

    return reduce_tensor(tensor)


for _kind in (_C.Tensor, Parameter, Buffer):
    ForkingPickler.register(_kind, _reduce)
