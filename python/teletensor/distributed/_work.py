"""Work: a collective that was started."""

from __future__ import annotations

import time
from datetime import timedelta

from .. import _C
from .._lazy import set_module
from ..futures import Future
from ._errors import DistBackendError

_POLL = 0.002  # seconds between two checks of wait(timeout)

# Whether this process waits for collectives instead of its session. torch.distributed.rpc sets it: while the session
# waits, it executes no calls of other workers, and these calls may have to return before their callers join the
# collective.
process_waits = False


class Work:
    """A collective that was started with ``async_op=True``.

    The tensors that the collective writes must not be used before ``wait()``. ``wait()`` does not wait in this process:
    it makes the engine wait before it executes the session's next calls. An error of the collective is raised where a
    result is read.
    """

    def __init__(self, group, number: int, written: list, outputs: list, *, status=None, blocks: bool = False):
        self._group, self._written, self._outputs = group, written, outputs
        self._number = number  # the collective's number in the engine; 0 if it was not started there
        self._status = status  # a tensor that is 0 or the collective's error; None before wait()
        self._blocks = blocks
        self._source: int | None = None  # the sender's rank, of irecv()
        self._receives_from_any = False  # the engine finds the sender's rank
        self._future: Future | None = None

    def __del__(self):
        if self._status is None:
            self._group._dropped(self._number)

    def _issue_wait(self) -> _C.Tensor:
        if self._status is None:
            while process_waits and not self.is_completed():
                time.sleep(_POLL)
            self._status = _C.ops.group_wait(self._written, self._number)
            self._group._waited(self._number)
        return self._status

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Makes the tensors usable, and returns True.

        Does not wait in this process, with two exceptions: the work of ``barrier(async_op=True)``, which writes no
        tensor, and a positive timeout.

        Raises:
            RuntimeError: the error of a barrier, or the timeout expired.
        """
        if timeout is not None and timeout > timedelta(0):
            deadline = time.monotonic() + timeout.total_seconds()
            while not self.is_completed():
                if time.monotonic() >= deadline:
                    raise DistBackendError(
                        f"[Work.wait] the collective is not complete after {timeout.total_seconds()} s"
                    )
                time.sleep(_POLL)
        status = self._issue_wait()
        if self._blocks:
            status.item()
        return True

    def synchronize(self) -> None:
        """Same as wait(), without a timeout."""
        self.wait()

    def block_current_stream(self) -> None:
        """Makes the engine wait for the collective before the session's next calls."""
        self._issue_wait()

    def is_completed(self) -> bool:
        """Whether the collective is complete. Makes a round trip to the engine; after wait(), waits and returns True."""
        if self._status is None:
            return bool(_C.ops.group_is_completed(self._number).item())
        self.exception()
        return True

    def is_success(self) -> bool:
        """Whether the collective is complete and succeeded. Waits for the engine if it is complete."""
        return self.is_completed() and self.exception() is None

    def exception(self) -> Exception | None:
        """Waits for the collective in this process, and returns its error, or None."""
        try:
            self._issue_wait().item()
        except Exception as error:  # noqa: BLE001 - returned
            return error
        return None

    def result(self) -> list:
        """Returns the tensors that the collective writes, after a wait()."""
        self._issue_wait()
        return list(self._outputs)

    def get_future(self) -> Future:
        """Returns a future of the tensors that the collective writes. Its callbacks run when it is waited for."""
        if self._future is None:
            self._future = Future(compute=self._wait_for_result, is_ready=self.is_completed)
        return self._future

    def _wait_for_result(self) -> list:
        self.wait()
        return list(self._outputs)

    def source_rank(self) -> int:
        """Returns the rank in the group that sends the tensor. Waits for the message if it may come from any rank."""
        if self._receives_from_any and self._source is None:
            self._source = int(self._issue_wait().item())
        if self._source is None:
            raise RuntimeError("[Work.source_rank] expected a work of irecv()")
        return self._source

    _source_rank = source_rank


set_module("teletensor.distributed.distributed_c10d", Work)
