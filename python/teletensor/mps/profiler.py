"""torch.mps.profiler: Apple's profiler; acts as PyTorch's does without the device."""

from __future__ import annotations

from contextlib import contextmanager

from .._absent_device import answering, raising

__all__ = ["is_capturing_metal", "is_metal_capture_enabled", "metal_capture", "profile", "start", "stop"]  # noqa: F822 - see answering()


def _without(function: str) -> str:
    return f"Cannot execute {function}() without MPS backend."


raising(
    globals(), "mps", RuntimeError, _without("profilerStartTrace"), start=lambda mode="interval", wait_until_completed=False: 0
)
raising(globals(), "mps", RuntimeError, _without("profilerStopTrace"), stop=lambda: 0)
raising(globals(), "mps", RuntimeError, _without("isCapturing"), is_capturing_metal=lambda: 0)
raising(globals(), "mps", RuntimeError, _without("startCapture"), _start_capture=lambda fname: 0)
answering(globals(), "mps", bool, is_metal_capture_enabled=lambda: 0)


@contextmanager
def profile(mode: str = "interval", wait_until_completed: bool = False):
    """Records signposts: entering it raises RuntimeError, as there is no device."""
    try:
        start(mode, wait_until_completed)  # noqa: F821 - defined by raising()
        yield
    finally:
        stop()  # noqa: F821 - defined by raising()


@contextmanager
def metal_capture(fname: str):
    """Records calls of Metal: entering it raises RuntimeError, as there is no device."""
    _start_capture(fname)  # noqa: F821 - defined by raising()
    yield
