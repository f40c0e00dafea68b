"""functorch: the package that torch.func has replaced, for programs that still import it. Its functions warn."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

from .. import func as _func
from .._functorch import make_functional as _functional
from .._functorch.make_functional import FunctionalModule, FunctionalModuleWithBuffers

__all__ = [
    "FunctionalModule", "FunctionalModuleWithBuffers", "combine_state_for_ensemble", "functionalize", "grad", "grad_and_value", "hessian",
    "jacfwd", "jacrev", "jvp", "make_functional", "make_functional_with_buffers", "make_fx", "vjp", "vmap",
]  # fmt: skip


def _warn(name: str, instead: str) -> None:
    warnings.warn(
        f"We've integrated functorch into PyTorch. `functorch.{name}` is deprecated as of PyTorch 2.0 and will be deleted in a future "
        f"version of PyTorch >= 2.3. Please use `{instead}` instead.",
        FutureWarning,
        stacklevel=3,
    )


def _former(name: str, place: str = "torch.func") -> Callable:
    """The function of torch.func that has replaced this one, with a warning."""

    def call(*args: Any, **kwargs: Any) -> Any:
        _warn(name, f"{place}.{name}")
        return getattr(_func, name)(*args, **kwargs)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"{place}.{name}, with a warning."
    return call


vmap = _former("vmap", "torch")
grad, grad_and_value, vjp, jvp = (_former(name) for name in ("grad", "grad_and_value", "vjp", "jvp"))
jacrev, jacfwd, hessian, functionalize = (_former(name) for name in ("jacrev", "jacfwd", "hessian", "functionalize"))


def make_fx(*args: Any, **kwargs: Any) -> Callable:
    """torch.fx.experimental.proxy_tensor.make_fx."""
    from ..fx.experimental.proxy_tensor import make_fx as made

    return made(*args, **kwargs)


def _former_functional(function: Callable, instead: str) -> Callable:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        _warn(function.__name__, instead)
        return function(*args, **kwargs)

    return call


make_functional = _former_functional(_functional.make_functional, "torch.func.functional_call")
make_functional_with_buffers = _former_functional(_functional.make_functional_with_buffers, "torch.func.functional_call")
combine_state_for_ensemble = _former_functional(_functional.combine_state_for_ensemble, "torch.func.stack_module_state")
