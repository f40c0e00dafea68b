"""torch._dynamo.eval_frame: the type of compiled modules, of which there are none."""

from __future__ import annotations

from typing import Any

from ..nn import Module


class OptimizedModule(Module):
    """The type that torch.compile gives a module in PyTorch. Here it returns the module itself, so none exists."""

    def __init__(self, mod: Module, dynamo_ctx: Any) -> None:
        raise NotImplementedError("[OptimizedModule] torch.compile returns the module itself: graphs are not compiled")


def is_dynamo_supported() -> bool:
    """Always False: graphs are not compiled."""
    return False


def explain(f: Any, *extra_args: Any, **extra_kwargs: Any) -> Any:
    """Raises NotImplementedError: graphs are not compiled."""
    raise NotImplementedError("[explain] graphs are not compiled, so there are no graph breaks to explain")


def export(f: Any, *extra_args: Any, **extra_kwargs: Any) -> Any:
    """Raises NotImplementedError: graphs are not captured from Python's bytecode."""
    raise NotImplementedError("[export] graphs are not captured from bytecode; teletensor.fx.symbolic_trace traces modules")
