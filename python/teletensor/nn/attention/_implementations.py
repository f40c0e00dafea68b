"""Implementations of flash attention that libraries register by name. None can be activated: the engine has its own."""

from __future__ import annotations

from typing import Any, Callable

_registered: dict[str, Callable[..., Any]] = {}


def register_flash_attention_impl(impl: str, *, register_fn: Callable[..., Any]) -> None:
    """Registers a function that would install an implementation."""
    _registered[impl] = register_fn


def list_flash_attention_impls() -> list[str]:
    """The names of the registered implementations."""
    return sorted(_registered)


def activate_flash_attention_impl(impl: str) -> None:
    """Raises ValueError for a name that is not registered, else NotImplementedError: kernels are the engine's."""
    if impl not in _registered:
        raise ValueError(f"Unknown flash attention impl '{impl}'. Available implementations: {list_flash_attention_impls()}")
    raise NotImplementedError(f"activate_flash_attention_impl: {impl!r} cannot replace a kernel of the engine")


def current_flash_attention_impl() -> str | None:
    """Returns None: the engine's own implementation is active."""
    return None


def restore_flash_attention_impl() -> None:
    """Has no effect: the engine's own implementation is active."""
