"""Names of torch.utils.checkpoint that control PyTorch's recomputation."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar

from .._lazy import set_module

SAC_IGNORED_OPS: set = set()


class CheckpointError(RuntimeError):
    """A checkpointed function made other calls when it ran again in backward."""


class CheckpointPolicy(enum.Enum):
    """How selective checkpointing treats an operation's results."""

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


class SelectiveCheckpointContext:
    """The first argument of a policy function."""

    def __init__(self, *, is_recompute: bool, op_output=None):
        self.is_recompute, self.op_output = is_recompute, op_output


class GraphExecGroup:
    """A ``with`` block of backward passes that together use each saved tensor once.

    In PyTorch the passes share what a checkpointed function computes when it runs again. Here each pass of the block that
    reaches the function runs it again, with the same results.
    """

    _current: ContextVar[GraphExecGroup | None] = ContextVar("graph_exec_group", default=None)

    def __enter__(self) -> GraphExecGroup:
        if GraphExecGroup._get_current_group() is not None:
            raise RuntimeError(f"GraphExecGroup contexts cannot be nested. Already inside group {GraphExecGroup._get_current_group()}")
        GraphExecGroup._current.set(self)
        return self

    def __exit__(self, *exc: object) -> None:
        GraphExecGroup._current.set(None)

    @classmethod
    def _get_current_group(cls) -> GraphExecGroup | None:
        return GraphExecGroup._current.get()


def noop_context_fn():
    """Returns two contexts without effect: the default of checkpoint's context_fn."""
    return nullcontext(), nullcontext()


_early_stop: list[bool] = []  # of set_checkpoint_early_stop, innermost last
_debug: list[bool | None] = [None]  # of set_checkpoint_debug_enabled, innermost last


def stops_early(early_stop: bool) -> bool:
    """The argument ``early_stop`` of checkpoint, or what replaces it."""
    return _early_stop[-1] if _early_stop else early_stop


def is_debugging(debug: bool) -> bool:
    """The argument ``debug`` of checkpoint, or what replaces it."""
    return debug if _debug[-1] is None else _debug[-1]


@contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """In the ``with`` block, replaces the argument ``early_stop`` of checkpoint."""
    _early_stop.append(enable)
    try:
        yield
    finally:
        _early_stop.pop()


@contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[None]:
    """In the ``with`` block, replaces the argument ``debug`` of checkpoint; None: the argument applies."""
    _debug.append(enabled)
    try:
        yield
    finally:
        _debug.pop()


class DefaultDeviceType:
    """The device type that checkpoint assumes for functions without tensor arguments."""

    _default_device_type: str | None = None

    @staticmethod
    def set_device_type(device: str = "cuda") -> None:
        """Sets the device type."""
        DefaultDeviceType._default_device_type = device

    @staticmethod
    def get_device_type() -> str:
        """Returns the device type that was set, or by default that of the accelerator or "cpu"."""
        if DefaultDeviceType._default_device_type is None:
            from .. import accelerator

            return "cuda" if accelerator.is_available() else "cpu"
        return DefaultDeviceType._default_device_type


set_module(
    "teletensor.utils.checkpoint",
    CheckpointError, CheckpointPolicy, DefaultDeviceType, GraphExecGroup, SelectiveCheckpointContext,
)  # fmt: skip
