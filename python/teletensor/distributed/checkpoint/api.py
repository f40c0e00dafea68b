"""CheckpointException: the errors of all ranks."""

from __future__ import annotations

import traceback

__all__ = ["CheckpointException"]

WRAPPED_EXCEPTION = tuple[BaseException, traceback.StackSummary]


class CheckpointException(BaseException):  # noqa: N818 - PyTorch's name and base
    """Saving or loading failed on some ranks. All ranks raise it."""

    def __init__(self, msg: str, failures: dict[int, WRAPPED_EXCEPTION]):
        super().__init__(msg, failures)
        self._failures = failures

    @property
    def failures(self) -> dict[int, WRAPPED_EXCEPTION]:
        """The exception of each rank that failed; those of other ranks are RuntimeErrors with their text."""
        return self._failures

    def __str__(self) -> str:
        lines = [f"CheckpointException ranks:{self._failures.keys()}"]
        for rank, (error, stack) in self._failures.items():
            lines.append(f"Traceback (most recent call last): (RANK {rank})")
            lines += [line.rstrip("\n") for line in traceback.format_list(stack)]
            lines += [line.rstrip("\n") for line in traceback.format_exception_only(type(error), value=error)]
        return "\n".join(lines)
