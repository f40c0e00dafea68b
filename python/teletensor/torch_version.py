"""torch.torch_version: versions that are compared by their numbers."""

from __future__ import annotations

import re
from typing import Any

__all__ = ["TorchVersion"]

_VERSION = re.compile(r"v?(\d+(?:\.\d+)*)(?:[-_.]?(a|b|c|rc|alpha|beta|pre|dev)[-_.]?(\d*))?(?:\+([\w.]+))?$", re.IGNORECASE)
_STAGES = {"dev": -4, "a": -3, "alpha": -3, "b": -2, "beta": -2, "c": -1, "rc": -1, "pre": -1}


def _key(value: Any) -> tuple:
    """The sort key of a version: the numbers without trailing zeros, the pre-release stage, the local part."""
    text = ".".join(map(str, value)) if isinstance(value, (tuple, list)) else str(value)
    found = _VERSION.match(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is not a version")
    numbers = [int(part) for part in found[1].split(".")]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    stage = (0, 0) if found[2] is None else (_STAGES[found[2].lower()], int(found[3] or 0))
    local = tuple((1, int(part), "") if part.isdigit() else (0, 0, part) for part in (found[4] or "").split(".") if part)
    return tuple(numbers), stage, local


class TorchVersion(str):
    """A version that compares with other versions, with texts and with tuples of numbers. Other texts compare as text."""

    def _compare(self, other: Any, operator: str) -> bool:
        try:
            return bool(getattr(_key(self), operator)(_key(other)))
        except ValueError:
            return bool(getattr(str(self), operator)(other))

    def __gt__(self, other: Any) -> bool:
        return self._compare(other, "__gt__")

    def __ge__(self, other: Any) -> bool:
        return self._compare(other, "__ge__")

    def __lt__(self, other: Any) -> bool:
        return self._compare(other, "__lt__")

    def __le__(self, other: Any) -> bool:
        return self._compare(other, "__le__")

    def __eq__(self, other: Any) -> bool:
        return self._compare(other, "__eq__")

    def __ne__(self, other: Any) -> bool:
        return not self == other

    __hash__ = str.__hash__
