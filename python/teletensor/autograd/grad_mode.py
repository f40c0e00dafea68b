"""torch.autograd.grad_mode: whether gradients are recorded, and settings of PyTorch's backward threads."""

from __future__ import annotations

from typing import Any

from .._grad_mode import _ModeContext as _DecoratorContextManager  # noqa: F401 - under PyTorch's name
from .._grad_mode import _NoArgModeContext as _NoParamDecoratorContextManager  # noqa: F401 - under PyTorch's name
from .._grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled
from .._options import check_flags

__all__ = [
    "enable_grad", "enforce_grad_layout_policy", "inference_mode", "no_grad", "set_grad_enabled", "set_multithreading_enabled",
]  # fmt: skip


class _Setting:
    """A setting without effect here, as a function or in a ``with`` block."""

    _name = ""

    def __init__(self, mode: bool):
        check_flags(self._name, mode=mode)
        self.mode = mode

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: Any) -> None:
        pass


class set_multithreading_enabled(_Setting):  # noqa: N801 - PyTorch's name
    """Has no effect: the engine computes gradients in the session's order."""

    _name = "set_multithreading_enabled"


class enforce_grad_layout_policy(_Setting):  # noqa: N801 - PyTorch's name
    """Has no effect: gradients are contiguous."""

    _name = "enforce_grad_layout_policy"

    def __init__(self, enable: bool = True):
        super().__init__(enable)
