"""The context that torch.library.get_ctx() returns in a function registered for fake tensors."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

_current = threading.local()


class FakeImplCtx:
    """Creates the sizes of results that depend on values."""

    def __init__(self, name: str) -> None:
        self._name = name

    def new_dynamic_size(self, *, min: int = 0, max: int | None = None) -> Any:  # noqa: A002 - PyTorch's names
        """Raises RuntimeError: tensors on the meta device have numbers as sizes, which these limits do not give."""
        limits = f"at least {min}" if max is None else f"from {min} to {max}"
        raise RuntimeError(
            f"{self._name}: You're trying to run this operator with meta Tensors (as opposed to FakeTensors), but this operator may "
            "return an output Tensor with data-dependent shape. Meta Tensors don't support operators with outputs that have "
            f"data-dependent shapes (a size of {limits})"
        )

    def create_unbacked_symint(self, *, min: int = 2, max: int | None = None) -> Any:  # noqa: A002 - PyTorch's names
        """new_dynamic_size() under its former name."""
        return self.new_dynamic_size(min=min, max=max)


def current() -> FakeImplCtx | None:
    """The context of the fake function that runs in this thread; None outside of one."""
    return getattr(_current, "context", None)


def in_context(name: str, function: Callable) -> Callable:
    """The function of an operator for fake tensors, called with a context."""

    def call(*args: Any, **kwargs: Any) -> Any:
        before, _current.context = current(), FakeImplCtx(name)
        try:
            return function(*args, **kwargs)
        finally:
            _current.context = before

    return call
