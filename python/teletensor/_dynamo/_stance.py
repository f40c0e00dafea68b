"""How compiled functions run in this process and thread: set_stance() and regions that are not compiled."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ContextDecorator
from typing import Any

from .. import _C

STANCES = ("default", "eager_then_compile", "aot_eager_then_compile", "force_eager", "eager_on_recompile", "fail_on_recompile")
_thread = threading.local()


class Stance:
    """The setting: its name and the backend that replaces those of compiled functions."""

    def __init__(self, name: str = "default", force_backend: Any = None) -> None:
        self.name, self.force_backend = name, force_backend

    def waits_for(self, state: Any) -> bool:
        """Whether a function runs as plain Python because it has not been called before."""
        if self.name not in ("eager_then_compile", "aot_eager_then_compile"):
            return False
        state.eager_calls += 1
        return state.eager_calls <= 1


_current = Stance()


def current_stance() -> Stance:
    """The stance that applies."""
    return _current


def _set(stance: Stance) -> Stance:
    global _current
    before, _current = _current, stance
    _C.set_frames_plain(stance.name == "force_eager")
    return before


class set_stance(ContextDecorator):  # noqa: N801 - PyTorch's name
    """Determines how compiled functions run from now on; as a context manager or decorator, in a block.

    Args:
        stance: "default"; "force_eager": as plain Python; "eager_on_recompile": as plain Python where they would be compiled
            again; "fail_on_recompile": raise RecompileError there; "eager_then_compile" and "aot_eager_then_compile": as plain
            Python at their first call.
        skip_guard_eval_unsafe: not implemented.
        force_backend: a backend that compiles instead of those that were given, with the stance "default".

    Raises:
        RuntimeError: there is no such stance, or it does not allow force_backend.
    """

    def __init__(self, stance: str = "default", *, skip_guard_eval_unsafe: bool = False, force_backend: Any = None) -> None:
        if stance not in STANCES:
            raise RuntimeError(f"invalid torch.compile stance '{stance}', expected one of {', '.join(STANCES)}")
        if force_backend is not None and stance != "default":
            raise RuntimeError("non-default stance cannot have force_backend set")
        if skip_guard_eval_unsafe:
            raise NotImplementedError("[set_stance] expected skip_guard_eval_unsafe=False: guards are always checked")
        self._stance = Stance(stance, force_backend)
        self._before = _set(self._stance)

    def __call__(self, func: Callable) -> Callable:
        _set(self._before)
        return super().__call__(func)

    def __enter__(self) -> None:
        outer = _set(self._stance)
        self._before = self._before if outer is self._stance else outer

    def __exit__(self, *exc: object) -> None:
        _set(self._before)

    def _recreate_cm(self) -> set_stance:
        return self


def is_disabled() -> bool:
    """Whether this thread is in a region that is not compiled."""
    return getattr(_thread, "disabled", 0) > 0


class disabled(ContextDecorator):  # noqa: N801 - used like no_grad
    """A region in which compiled functions run as plain Python."""

    def __enter__(self) -> None:
        _thread.disabled = getattr(_thread, "disabled", 0) + 1
        if _thread.disabled == 1:
            _C.add_plain_frames(1)

    def __exit__(self, *exc: object) -> None:
        _thread.disabled -= 1
        if _thread.disabled == 0:
            _C.add_plain_frames(-1)
