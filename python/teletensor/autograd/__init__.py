"""torch.autograd, implemented with the engine's tape. Only gradcheck and gradgradcheck wait for the engine."""

from __future__ import annotations

import sys

from .. import _active_profile
from .._grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled
from .._lazy import keep_functions, lazy_attributes
from . import _tensor_methods, graph, variable  # noqa: F401
from .anomaly import detect_anomaly, set_detect_anomaly
from .function import Function, once_differentiable
from .gradients import backward, grad
from .variable import Variable

__all__ = [  # noqa: F822 - some are imported at their first use
    "Function", "NestedIOFunction", "Variable", "backward", "detect_anomaly", "enable_grad", "enforce_grad_layout_policy",
    "grad", "grad_mode", "gradcheck", "gradgradcheck", "inference_mode", "no_grad", "set_detect_anomaly", "set_grad_enabled",
    "set_multithreading_enabled", "variable",
]  # fmt: skip


def _is_checkpoint_valid() -> bool:
    """Whether torch.utils.checkpoint can be used here: always, also within grad()."""
    return True


def _profiler_enabled() -> bool:
    """Whether a profile is being recorded."""
    return _active_profile.active is not None

__getattr__, __dir__ = lazy_attributes(
    globals(),
    ("forward_ad", "functional", "grad_mode", "profiler"),
    {
        "function": "NestedIOFunction",
        "grad_mode": "enforce_grad_layout_policy set_multithreading_enabled",
        "gradcheck": "gradcheck gradgradcheck",
        "profiler": "DeviceType",
    },
)
keep_functions(sys.modules[__name__], "gradcheck")
