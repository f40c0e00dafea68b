"""torch._functorch.config: settings of forward and backward graphs.

``activation_memory_budget`` has an effect on Programs that contain a backward pass (torch.compiler.trace), at the time of
the trace: 1.0 keeps what forward has computed for backward, 0.0 computes it again where that is possible. Between them,
what takes the least time per byte is computed again, until the rest takes at most this part of the bytes. The others can
be set and read.
"""

import functools
import sys
from types import ModuleType
from typing import Any

from .._dynamo._config import Patch, Settings

activation_memory_budget = 1.0
activation_memory_budget_runtime_estimator = "flops"
activation_memory_budget_solver = "dp"
aggressive_recomputation = False
recompute_views = False
functionalize_rng_ops = False
donated_buffer = True
enable_autograd_cache = True


class _Settings(Settings):
    """Checks a budget when it is set."""

    patch = property(lambda self: functools.partial(Patch, _config=self))

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "activation_memory_budget":
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise TypeError(f"[activation_memory_budget] expected a number from 0 to 1, got {type(value).__name__}")
            if not 0 <= value <= 1:
                raise ValueError(f"[activation_memory_budget] expected a number from 0 to 1, got {value}")
        ModuleType.__setattr__(self, name, value)


sys.modules[__name__].__class__ = _Settings
