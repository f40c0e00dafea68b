"""Steps that all ranks of a group do together. An exception on some ranks is raised on all."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Callable
from typing import Any

from .. import _objects
from .._world import _group_or_default_group, is_initialized
from .api import CheckpointException


def _described(error: Exception) -> list[str]:
    return [type(error).__name__, str(error)]


class Ranks:
    """The ranks that save or load together. The first one is the coordinator.

    Args:
        no_dist: whether this process is alone.
    """

    def __init__(self, group=None, no_dist: bool = False):
        if not no_dist and not is_initialized():
            no_dist = True
        self.group = None if no_dist else _group_or_default_group(group)
        self.rank = 0 if self.group is None else self.group.rank()
        self.size = 1 if self.group is None else self.group.size()

    @property
    def is_coordinator(self) -> bool:
        return self.rank == 0

    def _raise(self, failures: dict[int, list[str]], own: Exception | None) -> None:
        errors: dict[int, tuple] = {}
        for rank, (kind, text) in failures.items():
            if rank == self.rank and own is not None:
                errors[rank] = (own, traceback.extract_tb(own.__traceback__))
            else:
                errors[rank] = (RuntimeError(f"{kind}: {text}"), traceback.StackSummary())
        raise CheckpointException("checkpoint", errors) from own

    def run(self, local: Callable[[], Any], combine: Callable[[list], list]) -> Any:
        """Calls `local` on each rank, then `combine` with the results on the coordinator; returns this rank's entry of
        combine's result. Results are plain data.

        Raises:
            CheckpointException: a call raised an exception on some rank.
        """
        own: Exception | None = None
        value: Any = None
        try:
            value = local()
        except Exception as error:  # noqa: BLE001 - raised on all ranks
            own = error
        if self.group is None:
            return self._run_alone(value, own, combine)
        gathered: list = [None] * self.size
        message = ["value", value] if own is None else ["error", _described(own)]
        _objects.gather_object(message, gathered if self.is_coordinator else None, group_dst=0, group=self.group)
        replies = None
        if self.is_coordinator:
            failures = {rank: content for rank, (kind, content) in enumerate(gathered) if kind == "error"}
            values: list = []
            if not failures:
                try:
                    values = combine([content for _, content in gathered])
                except Exception as error:  # noqa: BLE001
                    own, failures = error, {0: _described(error)}
            replies = [["failed", failures] if failures else ["value", v] for v in values or [None] * self.size]
        received: list = [None]
        _objects.scatter_object_list(received, replies, group_src=0, group=self.group)
        kind, content = received[0]
        if kind == "failed":
            self._raise(content, own)
        return content

    def _run_alone(self, value, own: Exception | None, combine: Callable[[list], list]):
        if own is None:
            try:
                return combine([value])[0]
            except Exception as error:  # noqa: BLE001
                own = error
        self._raise({0: _described(own)}, own)


def check_alone(no_dist: bool) -> bool:
    """Whether this process is alone; issues PyTorch's warning unless `no_dist` was given."""
    if not no_dist and not is_initialized():
        warnings.warn(
            "torch.distributed is disabled, unavailable or uninitialized, assuming the intent is to save in a single process.",
            stacklevel=3,
        )
        return True
    return no_dist
