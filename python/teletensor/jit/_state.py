"""torch.jit._state: whether torch.jit.script and torch.jit.trace return objects of TorchScript, or their arguments."""

from __future__ import annotations

import os


class EnabledProxy:
    """A bool with the attribute `enabled`. Initially false if the environment variable PYTORCH_JIT is 0."""

    def __init__(self) -> None:
        value = os.environ.get("PYTORCH_JIT", "1").lower().removesuffix("v")
        if value not in ("1", "true", "yes", "0", "false", "no"):
            raise ValueError("Unknown setting of PYTORCH_JIT. Try using 0 or 1.")
        self.enabled = value in ("1", "true", "yes")

    def __bool__(self) -> bool:
        return self.enabled


_enabled = EnabledProxy()


def disable() -> None:
    """Makes script() and trace() return their arguments."""
    _enabled.enabled = False


def enable() -> None:
    """Reverts disable()."""
    _enabled.enabled = True
