"""Warnings of captures: whether there were any, and that each is shown once although calls are executed twice."""

from __future__ import annotations

import contextlib
import sys
import threading
import types
import warnings
from collections.abc import Iterator

from ._fingerprints import namespace

_PACKAGE = f"{__name__.partition('.')[0]}"
_thread = threading.local()  # current: the innermost Warned


class _Noting(type):
    """The class of categories of warnings that no warning belongs to; counts how often they are asked whether one does."""

    def __subclasscheck__(cls, _: type) -> bool:
        if cls.thread == threading.get_ident():
            cls.count += 1
        return False


class _OfThread(type):
    """The class of categories to which all warnings of a thread belong."""

    def __subclasscheck__(cls, _: type) -> bool:
        return cls.thread == threading.get_ident()


@contextlib.contextmanager
def _ignored(category: type) -> Iterator[None]:
    filters = warnings.filters
    # Without what simplefilter() does beside: warnings that were shown already would be shown again.
    added = ("ignore", None, category, None, 0)
    filters.insert(0, added)
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):  # another thread has reset the filters
            filters.remove(added)


class Warned:
    """Finds out whether a block causes warnings, whatever the filters do with them."""

    def __enter__(self) -> Warned:
        self._before = getattr(_thread, "current", None)
        _thread.current = self
        self._category = _Noting("Noted", (), {"thread": threading.get_ident(), "count": 0})
        self._filter = _ignored(self._category)
        self._filter.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._filter.__exit__(None, None, None)
        _thread.current = self._before

    @property
    def has_shown(self) -> bool:
        """Whether a warning has got as far as the filters."""
        return self._category.count > 0

    def note_first(self) -> int:
        """Puts the filter that notes warnings before filters that a block has set; returns how many it has noted."""
        warnings.filters.insert(0, ("ignore", None, self._category, None, 0))  # type: ignore[attr-defined]
        return self._category.count

    def may_have_warned(self) -> bool:
        """Whether there were warnings, or perhaps: Python looks at no filter for one that a module has shown before."""
        if self.has_shown:
            return True
        modules = [sys.modules.get(name) for name in list(sys.modules) if name == _PACKAGE or name.startswith(f"{_PACKAGE}.")]
        shown = [namespace(m).get("__warningregistry__") for m in modules if isinstance(m, types.ModuleType)]
        return any(key != "version" for each in shown for key in each or ())


def note_first() -> int:
    """Warned.note_first() of the capture of this thread."""
    warned = getattr(_thread, "current", None)
    return 0 if warned is None else warned.note_first()


@contextlib.contextmanager
def executing_again() -> Iterator[None]:
    """A block that executes the calls of this thread's capture once more, whose warnings the capture has caused already."""
    warned = getattr(_thread, "current", None)
    if warned is None or not warned.has_shown:
        yield
        return
    with _ignored(_OfThread("Shown", (), {"thread": threading.get_ident()})):
        yield
