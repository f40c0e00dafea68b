"""The check of strict mode: whether torch.compile captures a module's forward as one graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._dynamo import config
from .._dynamo.eval_frame import Compiler, OptimizedModule
from .._dynamo.exc import Unsupported
from .._grad_mode import no_grad
from ..nn import Module


class _Captured(Unsupported):
    """Ends a call whose graph was captured."""


def _stop(_module: Any, _inputs: Any) -> Callable:
    raise _Captured("captured")


def check_whole(module: Module, args: tuple, kwargs: dict[str, Any]) -> None:
    """Raises Unsupported, with the line, if forward does what a graph cannot contain: prints, or code outside of Python's reach."""
    try:
        with no_grad(), config.patch(capture_scalar_outputs=True, capture_dynamic_output_shape_ops=True):
            OptimizedModule(module, Compiler(_stop, True, None, None, False))(*args, **kwargs)
    except _Captured:
        pass
