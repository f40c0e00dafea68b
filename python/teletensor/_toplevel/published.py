"""Published tensors: one copy of a model's weights in an engine, used by many sessions (docs/publish.md)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .. import _C, _printable
from .._C import Tensor


def _tensors_of(value: Mapping, prefix: str = "") -> Iterator[tuple[str, Tensor]]:
    """The tensors of a nested mapping, each with its keys joined by dots."""
    for key, entry in value.items():
        if not isinstance(key, str):
            raise TypeError(f"[publish] expected str as keys, got {type(key).__name__}: {key!r}")
        name = prefix + key
        if isinstance(entry, Mapping):
            yield from _tensors_of(entry, name + ".")
        elif isinstance(entry, Tensor):
            yield name, entry
        else:
            raise TypeError(f"[publish] expected a tensor as the value of {name!r}, got {type(entry).__name__}")


def _principals(to: str | Iterable[str] | None) -> list[str]:
    names = [] if to is None else [to] if isinstance(to, str) else list(to)
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"[publish] expected names of principals in `to`, got {type(name).__name__}")
    return names


def publish(
    name: str,
    value: Tensor | Mapping | Any,
    to: str | Iterable[str] | None = None,
    read_only: bool = True,
    persist: bool = False,
) -> int:
    """Lets other sessions of the engine use tensors of this session, without a copy. Waits for the engine.

    Args:
        name: 1 to 128 letters, digits and ``._-``; each principal has names of its own.
        value: a tensor, a mapping of tensors such as a state dict, or a module, whose state dict is published. Keys of
            nested mappings are joined by dots.
        to: names of principals that may open it; ``"*"`` stands for all. By default, and in any case, sessions of this
            session's own principal may.
        read_only: the values never change again: calls that would write to the tensors raise, in this session too. Publish
            a ``clone()`` to go on writing. Otherwise every session that has the tensors may write to them, as processes
            that share memory may; then they cannot be published to other principals.
        persist: until ``unpublish()``; otherwise until this session ends. Its bytes count towards the principal's limits.

    Returns:
        The number of bytes.

    Raises:
        ValueError: an argument is invalid, or the name is in use.
        RuntimeError: a tensor is shared, a limit is exceeded, or a value was not computed because of an error.
    """
    if isinstance(value, Tensor):
        return _C.publish(name, None, [value], _principals(to), read_only, persist)
    if not isinstance(value, Mapping):
        if not callable(getattr(value, "state_dict", None)):
            raise TypeError(f"[publish] expected a tensor, a mapping of tensors or a module, got {type(value).__name__}")
        value = value.state_dict()
    found = list(_tensors_of(value))
    if not found:
        raise ValueError("[publish] expected at least one tensor, got none")
    keys, tensors = zip(*found)
    return _C.publish(name, list(keys), tensors, _principals(to), read_only, persist)


def open(name: str, principal: str | None = None) -> Tensor | dict[str, Tensor]:  # noqa: A001
    """Returns the tensors that were published under a name. Waits for the engine; no bytes of tensors are sent.

    The tensors are leaves without gradients, with the published layouts. They are freed for this session when it drops
    them, and charged to it until then, whether or not the publication still exists.

    Args:
        name: the publication's name, or ``"principal/name"``.
        principal: its owner; by default this session's principal.

    Raises:
        ValueError: there is no such publication that this session may open.
        OutOfMemoryError: the tensors exceed a limit of this session or its principal.
    """
    owner, _, own_name = name.rpartition("/")
    if owner and principal is not None and principal != owner:
        raise ValueError(f"[open] expected one principal, got {owner!r} and {principal!r}")
    keys, tensors = _C.open_published(own_name, owner or principal or "")
    return tensors[0] if keys is None else dict(zip(keys, tensors))


def published() -> list[dict[str, Any]]:
    """The publications that this session may open, or all of them for an operator. Waits for the engine.

    Each has a principal (its owner), name, bytes, tensors (their number), sessions (the number of those that hold its
    bytes), read_only, persist, and to, which is None if only its owner and operators may see it.
    """
    return _printable.loads(_C.list_published())


def unpublish(name: str, principal: str | None = None) -> None:
    """Ends a publication: it cannot be opened any more. Sessions that have opened it keep their tensors.

    Args:
        name: the publication's name, or ``"principal/name"``.
        principal: its owner, for an operator; by default this session's principal.

    Raises:
        ValueError: there is no such publication that this session may end.
    """
    owner, _, own_name = name.rpartition("/")
    if owner and principal is not None and principal != owner:
        raise ValueError(f"[unpublish] expected one principal, got {owner!r} and {principal!r}")
    _C.unpublish(own_name, owner or principal or "")
