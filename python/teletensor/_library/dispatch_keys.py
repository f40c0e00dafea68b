"""torch._C.DispatchKey, sets of keys, and contexts that exclude keys. Only the keys of autocast can be excluded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from enum import Enum
from typing import Any


class DispatchKey(Enum):
    """Names of the dispatch keys."""

    Undefined = 0
    CPU = 1
    CUDA = 2
    Meta = 3
    BackendSelect = 4
    Python = 5
    Functionalize = 6
    ADInplaceOrView = 7
    AutogradOther = 8
    AutogradCPU = 9
    AutogradCUDA = 10
    AutogradMeta = 11
    AutocastCPU = 12
    AutocastCUDA = 13
    AutocastXPU = 14
    AutocastMPS = 15
    Autograd = 16
    CompositeImplicitAutograd = 17
    CompositeExplicitAutograd = 18
    CompositeExplicitAutogradNonFunctional = 19


class DispatchKeySet:
    """A set of keys."""

    def __init__(self, *keys: Any) -> None:
        self._keys = frozenset(k for key in keys for k in (key._keys if isinstance(key, DispatchKeySet) else (key,)))

    def __or__(self, other: DispatchKeySet) -> DispatchKeySet:
        return _key_set(self._keys | other._keys)

    def __and__(self, other: DispatchKeySet) -> DispatchKeySet:
        return _key_set(self._keys & other._keys)

    def __sub__(self, other: DispatchKeySet) -> DispatchKeySet:
        return _key_set(self._keys - other._keys)

    def __iter__(self) -> Iterator[DispatchKey]:
        return iter(sorted(self._keys, key=lambda k: k.value))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DispatchKeySet) and self._keys == other._keys

    def __hash__(self) -> int:
        return hash(self._keys)

    def __repr__(self) -> str:
        return f"DispatchKeySet({', '.join(k.name for k in self)})"

    def add(self, key: DispatchKey) -> DispatchKeySet:
        """The set with another key."""
        return _key_set(self._keys | {key})

    def remove(self, key: DispatchKey) -> DispatchKeySet:
        """The set without a key."""
        return _key_set(self._keys - {key})

    def has(self, key: DispatchKey) -> bool:
        """Whether the set contains a key."""
        return key in self._keys


def _key_set(keys: Iterable[DispatchKey]) -> DispatchKeySet:
    return DispatchKeySet(*keys)


@contextmanager
def _exclude(keys: DispatchKeySet) -> Iterator[None]:
    from ..amp import autocast

    with ExitStack() as stack:
        for key in keys:
            device = key.name.removeprefix("Autocast").lower()
            if not key.name.startswith("Autocast"):
                raise NotImplementedError(f"[_ExcludeDispatchKeyGuard] only the keys of autocast can be excluded, got {key.name}")
            if device in ("cpu", "cuda"):
                stack.enter_context(autocast(device, enabled=False))
        yield


class ExcludeDispatchKeyGuard:
    """A context in which the keys' kernels are not used: autocast is disabled.

    Raises:
        NotImplementedError: on entry, if the set has a key other than those of autocast.
    """

    def __init__(self, keys: DispatchKeySet) -> None:
        self._context = _exclude(keys)

    def __enter__(self) -> None:
        self._context.__enter__()

    def __exit__(self, *exc: Any) -> None:
        self._context.__exit__(*exc)
