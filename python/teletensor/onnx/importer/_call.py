"""What an operator's function receives beside its inputs, and how it declares which inputs it takes as they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import _values


class Call:
    """One execution of a node.

    Attributes:
        name: the operator's name.
        version: the version of its operator set in the model.
        attributes: by name: ints, floats, strings, lists of them, host values of tensors, and Plans of graphs.
        outputs: the names of the results; "" for one that is not wanted.
        types: the ONNX element types of Narrow inputs, by position.
        run: the execution of the graph that the node belongs to.
    """

    __slots__ = ("attributes", "name", "outputs", "run", "types", "version")

    def __init__(self, name: str, version: int, attributes: dict[str, Any], outputs: list[str], run: Any) -> None:
        self.name, self.version, self.attributes, self.outputs, self.run = name, version, attributes, outputs, run
        self.types: dict[int, int] = {}

    @property
    def device(self) -> Any:
        return self.run.device

    def get(self, name: str, default: Any = None) -> Any:
        """The value of an attribute."""
        return self.attributes.get(name, default)

    def need(self, name: str) -> Any:
        """The value of an attribute that the node must have."""
        if name not in self.attributes:
            raise ValueError(f"[{self.name}] expected the attribute {name!r}, which the node lacks")
        return self.attributes[name]

    def tensor(self, value: Any) -> Any:
        """A value as a tensor on the device of the run; None stays None."""
        return None if value is None else _values.tensor(value, self.run.device)

    def wants(self, index: int) -> bool:
        """Whether the node names its result `index`."""
        return index < len(self.outputs) and bool(self.outputs[index])


def keeps(*positions: int) -> Callable:
    """Declares that a function takes these inputs as they are: host values stay in the client. All, without positions.

    The other inputs are tensors when the function is called.
    """

    def declare(function: Callable) -> Callable:
        function.kept = frozenset(positions) if positions else None
        return function

    return declare


_NOTHING: frozenset = frozenset()


def kept(function: Callable) -> frozenset | None:
    """The positions of the inputs that a function takes as they are; None for all."""
    return getattr(function, "kept", _NOTHING)


def keeps_types(function: Callable) -> Callable:
    """Declares that a function only moves elements: results have the element type of the first Narrow input."""
    function.moves = True
    return function


def sees_types(function: Callable) -> Callable:
    """Declares that a function takes Narrow inputs as they are."""
    function.narrow = True
    return function
