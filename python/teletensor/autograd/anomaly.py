"""Anomaly detection: finds the operation whose gradient is NaN."""

from __future__ import annotations

from .. import _C
from .._lazy import set_module

_enabled = False
_check_nan = True


class set_detect_anomaly:  # noqa: N801 - PyTorch's name
    """Makes backward check every gradient for NaN, from now on or within a ``with`` block.

    The error names the operation and the line that issued it. Every call waits until it is known whether it has failed,
    so that errors are raised where they occur.
    """

    def __init__(self, mode: bool, check_nan: bool = True):
        global _check_nan
        self.before, _check_nan = _enabled, bool(check_nan)
        self._set(mode)

    @staticmethod
    def _set(mode: bool) -> None:
        global _enabled
        _C.add_error_waits(bool(mode) - _enabled)
        _enabled = bool(mode)
        _C.ops.set_detect_anomaly(_enabled and _check_nan)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc) -> None:
        self._set(self.before)


class detect_anomaly(set_detect_anomaly):  # noqa: N801
    """set_detect_anomaly(True) within a block."""

    def __init__(self, check_nan: bool = True):
        super().__init__(True, check_nan)


def is_anomaly_enabled() -> bool:
    """Whether gradients are checked for NaN."""
    return _enabled


def is_anomaly_check_nan_enabled() -> bool:
    """The last ``check_nan``; initially True."""
    return _check_nan


def set_anomaly_enabled(enabled: bool, check_nan: bool = True) -> None:
    """set_detect_anomaly(enabled, check_nan)."""
    set_detect_anomaly(enabled, check_nan)


set_module("teletensor.autograd.anomaly_mode", detect_anomaly, set_detect_anomaly)
