"""torch.distributed.breakpoint."""

from __future__ import annotations

from .._lazy import set_module
from ._collectives import barrier
from ._world import get_rank

_skipped = 0


def breakpoint(rank: int = 0, skip: int = 0, timeout_s: int | None = 3600) -> None:  # noqa: A001 - PyTorch's name
    """Starts a debugger on one rank, while all other ranks wait.

    The group's timeout must exceed the time in the debugger; `timeout_s` has no effect.

    Args:
        rank: the rank of the debugger.
        skip: the number of initial calls that have no effect.
    """
    global _skipped
    if _skipped < skip:
        _skipped += 1
        return
    if get_rank() == rank:
        import pdb

        with open("/dev/stdin") as terminal:
            pdb.Pdb(stdin=terminal).set_trace()
    barrier()


set_module(__package__, breakpoint)
