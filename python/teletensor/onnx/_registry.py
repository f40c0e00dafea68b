"""The table of translations: functions that make ONNX's nodes for an operator of the program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .errors import OnnxExporterError

TRANSLATIONS: dict[str, Callable] = {}  # by the operator's name, such as "aten.add.Tensor"
REFUSED: dict[str, str] = {}  # why an operator has no translation


class Untranslatable(OnnxExporterError):
    """A translation cannot express this call: the message is the reason."""


def translates(names: str) -> Callable:
    """Adds the decorated function for operators, separated by spaces, such as "aten.add.Tensor aten.add.Scalar".

    The function receives a Builder and the call's arguments: a Value for each tensor, numbers, lists and None. It returns a Value,
    or a list of them.
    """

    def add(function: Callable) -> Callable:
        for name in names.split():
            if name in TRANSLATIONS:
                raise AssertionError(f"two translations of {name}")
            TRANSLATIONS[name] = function
        return function

    return add


def refuse(names: str, reason: str) -> None:
    """Records why operators have no translation."""
    for name in names.split():
        REFUSED[name] = reason


def name_of(target: Any) -> str:
    """The operator's name in the table."""
    name = getattr(target, "name", None)
    text = str(target)
    if callable(name) and text.count(".") == 0:
        return name()
    if "." not in text:
        return f"{getattr(target, '__module__', '')}.{getattr(target, '__name__', text)}"
    return text
