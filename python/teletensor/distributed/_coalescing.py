"""Blocks of collectives that PyTorch runs together with NCCL."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from ._process_group import ProcessGroup
from ._work import Work


class _CoalescingManager:
    """The collectives of a block. Collectives without a Work need no wait: the engine runs them before the session's
    next calls.
    """

    def __init__(self):
        self.works: list[Work] = []

    def append(self, work: Work | None = None) -> None:
        """Adds a collective to those that wait() waits for."""
        if work is not None:
            self.works.append(work)

    def wait(self) -> None:
        """Waits for the collectives that were added."""
        for work in self.works:
            work.wait()


@contextlib.contextmanager
def _coalescing_manager(
    group: ProcessGroup | None = None, device=None, async_ops: bool | None = False
) -> Iterator[_CoalescingManager]:
    """A block of collectives. The engine runs them one after the other, in the order of the calls.

    Args:
        group: must be the collectives' group in PyTorch; has no effect.
        device: has no effect.
        async_ops: whether the block's end does not wait for the collectives that were added; the context's value then
        has wait().
    """
    manager = _CoalescingManager()
    yield manager
    if not async_ops:
        manager.wait()
