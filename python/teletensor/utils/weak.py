"""torch.utils.weak: dictionaries whose keys are compared by identity and are not kept alive."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, MutableMapping
from typing import Any

from .._C import Tensor

__all__ = ["TensorWeakRef", "WeakIdKeyDictionary", "WeakIdRef", "WeakTensorKeyDictionary"]


class WeakIdRef(weakref.ref):
    """A weak reference with the hash and equality of its object's identity."""

    __slots__ = ("_id",)

    def __init__(self, key: Any, callback: Any = None):
        super().__init__(key, callback)
        self._id = id(key)

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other: Any) -> bool:
        a, b = self(), other() if isinstance(other, WeakIdRef) else None
        return a is b if a is not None and b is not None else self is other


class WeakIdKeyDictionary(MutableMapping):
    """A dictionary with keys compared by identity. An entry is removed when its key is destroyed."""

    def __init__(self, dict: Any = None, ref_type: type = WeakIdRef):  # noqa: A002 - PyTorch's name
        self.data: dict[Any, Any] = {}
        self.ref_type = ref_type
        this = weakref.ref(self)

        def remove(reference: Any) -> None:
            found = this()
            if found is not None:
                found.data.pop(reference, None)

        self._remove = remove
        if dict is not None:
            self.update(dict)

    def __getitem__(self, key: Any) -> Any:
        return self.data[self.ref_type(key)]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.data[self.ref_type(key, self._remove)] = value

    def __delitem__(self, key: Any) -> None:
        del self.data[self.ref_type(key)]

    def __contains__(self, key: Any) -> bool:
        try:
            return self.ref_type(key) in self.data
        except TypeError:
            return False

    def __iter__(self) -> Iterator:
        for reference in list(self.data):
            key = reference()
            if key is not None:
                yield key

    def __len__(self) -> int:
        return len(self.data)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {id(self):#x}>"

    def copy(self) -> WeakIdKeyDictionary:
        """A shallow copy."""
        return type(self)(self)

    __copy__ = copy

    def keyrefs(self) -> list:
        """The weak references to the keys."""
        return list(self.data)

    def __or__(self, other: Any) -> WeakIdKeyDictionary:
        result = self.copy()
        result.update(other)
        return result

    def __ior__(self, other: Any) -> WeakIdKeyDictionary:
        self.update(other)
        return self

    def __eq__(self, other: Any) -> bool:
        if not isinstance(other, WeakIdKeyDictionary):
            return NotImplemented
        return {id(k): v for k, v in self.items()} == {id(k): v for k, v in other.items()}

    __hash__ = None  # type: ignore[assignment]


WeakTensorKeyDictionary = WeakIdKeyDictionary


class TensorWeakRef:
    """A weak reference to a tensor: calling it returns the tensor, or None."""

    def __init__(self, tensor: Tensor):
        if not isinstance(tensor, Tensor):
            raise AssertionError(f"expected torch.Tensor, got {type(tensor)}.")
        self.ref = weakref.ref(tensor)

    def __call__(self) -> Tensor | None:
        return self.ref()
