"""make_fx: tracing below autograd and decompositions. Not implemented."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, Callable, NoReturn

__all__ = ["disable_proxy_modes_tracing", "get_proxy_mode", "make_fx"]


def get_proxy_mode() -> None:
    """The active recording of make_fx: always None, since make_fx is not implemented."""
    return None


@contextlib.contextmanager
def disable_proxy_modes_tracing() -> Iterator[None]:
    """Without effect: there is no recording of make_fx to interrupt."""
    yield


def make_fx(f: Callable, *options: Any, **named_options: Any) -> NoReturn:
    """Raises NotImplementedError: it records the operators below autograd, which run in the engine."""
    raise NotImplementedError(
        "[make_fx] recording of the operators below autograd is not implemented; use torch.fx.symbolic_trace"
    )
