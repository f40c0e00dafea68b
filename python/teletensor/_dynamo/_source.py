"""Sources: where a compiled function found a value. They make guards, and the code that reads the value again."""

from __future__ import annotations

import abc
import enum
import types
from typing import Any

# Kinds of nodes, as in python/bindings/frame_guards.h.
SLOT, CONSTANT, DICT_ITEM, INSTANCE_DICT, LIST_ITEM, TUPLE_ITEM, CELL, TYPE, TYPE_ATTRIBUTE = range(9)
FUNCTION_CODE, FUNCTION_GLOBALS, FUNCTION_CLOSURE, FUNCTION_DEFAULTS, FUNCTION_KEYWORD_DEFAULTS = range(9, 14)
METHOD_SELF, METHOD_FUNCTION, ATTRIBUTE, CALL = range(14, 18)
(
    CHECK_IS, CHECK_TYPE, CHECK_EQUAL, CHECK_LENGTH, CHECK_KEYS, CHECK_MISSING, CHECK_TYPE_MISSING, CHECK_TENSOR, CHECK_SAME,
    CHECK_DISTINCT, CHECK_MODES, CHECK_NO_DICT, CHECK_EMPTY_CELL, CHECK_DYNAMIC_TENSOR, CHECK_DYNAMIC_INT, CHECK_SIZES,
) = range(32, 48)  # fmt: skip

_TEMPLATES = {
    SLOT: "S[{i}]", DICT_ITEM: "{p}[{o}]", INSTANCE_DICT: "{p}.__dict__", LIST_ITEM: "{p}[{i}]", TUPLE_ITEM: "{p}[{i}]",
    CELL: "{p}.cell_contents", TYPE: "type({p})", TYPE_ATTRIBUTE: "lookup({p}, {o})", FUNCTION_CODE: "{p}.__code__",
    FUNCTION_GLOBALS: "{p}.__globals__", FUNCTION_CLOSURE: "{p}.__closure__[{i}]", FUNCTION_DEFAULTS: "{p}.__defaults__",
    FUNCTION_KEYWORD_DEFAULTS: "{p}.__kwdefaults__", METHOD_SELF: "{p}.__self__", METHOD_FUNCTION: "{p}.__func__",
    ATTRIBUTE: "getattr({p}, {o})", CALL: "{p}()",
}  # fmt: skip
_NAMES = {
    SLOT: "argument {i}", DICT_ITEM: "{p}[{o!r}]", INSTANCE_DICT: "{p}.__dict__", LIST_ITEM: "{p}[{i}]", TUPLE_ITEM: "{p}[{i}]",
    CELL: "{p}.cell_contents", TYPE: "type({p})", TYPE_ATTRIBUTE: "{p}.{o}", FUNCTION_CODE: "{p}.__code__",
    FUNCTION_GLOBALS: "globals of {p}", FUNCTION_CLOSURE: "{p}.__closure__[{i}]", FUNCTION_DEFAULTS: "{p}.__defaults__",
    FUNCTION_KEYWORD_DEFAULTS: "{p}.__kwdefaults__", METHOD_SELF: "{p}.__self__", METHOD_FUNCTION: "{p}.__func__",
    ATTRIBUTE: "{p}.{o}", CALL: "{p}()", CHECK_IS: "{p} is {o!r}", CHECK_TYPE: "type of {p} is {o!r}", CHECK_EQUAL: "{p} == {o!r}",
    CHECK_LENGTH: "length of {p} is {i}", CHECK_KEYS: "keys of {p} are {o!r}", CHECK_MISSING: "{p} lacks {o!r}",
    CHECK_TYPE_MISSING: "{p} lacks {o!r}", CHECK_TENSOR: "tensor {p}: {o}", CHECK_SAME: "{p} is node {i}",
    CHECK_DISTINCT: "{o!r} are distinct", CHECK_MODES: "modes of the thread", CHECK_NO_DICT: "{p} has no __dict__",
    CHECK_EMPTY_CELL: "{p} is empty", CHECK_DYNAMIC_TENSOR: "tensor {p}: {o}", CHECK_DYNAMIC_INT: "{p} is an int of 0 to 2147483647",
    CHECK_SIZES: "what was decided by sizes",
}  # fmt: skip


OF_SUBCLASS = 1  # the index of an item of a subclass of dict, which may define __getitem__
_STATIC = (TYPE_ATTRIBUTE, FUNCTION_DEFAULTS, FUNCTION_KEYWORD_DEFAULTS)


class Source:
    """A path to a value: an element of the slots or a constant object, and items and attributes from there.

    Attributes:
        is_static: numbers there never become symbols: they are attributes of modules or classes, or default values.
    """

    __slots__ = ("_text", "index", "node", "is_static", "kind", "object", "parent")

    def __init__(self, kind: int, parent: Source | None = None, obj: Any = None, index: int = 0, is_static: bool = False) -> None:
        self.kind, self.parent, self.object, self.index = kind, parent, obj, index
        self.node: tuple[Guards, int] | None = None  # the latest guards that have a node for it, and its number
        self._text: tuple[tuple[str, ...], str] | None = None
        self.is_static = is_static or kind in _STATIC or parent is not None and parent.is_static

    def then(self, kind: int, obj: Any = None, index: int = 0) -> Source:
        """The source of a part of the value."""
        return Source(kind, self, obj, index)

    def attribute(self, name: str) -> Source:
        """The source of an attribute that a builtin type defines."""
        return Source(ATTRIBUTE, self, name)

    def instance_item(self, name: str) -> Source:
        """The source of an entry of the value's __dict__."""
        return Source(INSTANCE_DICT, self).then(DICT_ITEM, name)

    def text(self, names: tuple[str, ...] = ()) -> str:
        """A description for logs."""
        if self._text is None or self._text[0] is not names:
            self._text = names, self._make_text(names)
        return self._text[1]

    def _make_text(self, names: tuple[str, ...]) -> str:
        if self.kind == CONSTANT:
            return getattr(self.object, "__name__", None) or type(self.object).__name__
        if self.kind == SLOT and self.index < len(names):
            return names[self.index]
        if self.kind == DICT_ITEM and self.parent and self.parent.kind == FUNCTION_GLOBALS:
            return f"G[{self.object!r}]"
        if self.kind == DICT_ITEM and self.parent and self.parent.kind == INSTANCE_DICT:
            return f"{self.parent.parent.text(names)}.{self.object}"
        parent = self.parent.text(names) if self.parent else ""
        return _NAMES[self.kind].format(p=parent, o=self.object, i=self.index)


def constant(value: Any) -> Source:
    """The source of an object that the compiled code refers to itself."""
    return Source(CONSTANT, None, value)


_HASHABLE = frozenset((str, int, bool, type(None)))


class Guards:
    """Collects the nodes of a _C.FrameGuards."""

    def __init__(self, names: tuple[str, ...] = ()) -> None:
        self.nodes: list[tuple[int, int, Any, int]] = []
        self.texts: list[str] = []
        self._known: dict[tuple, int] = {}
        self._keep: list[Any] = []  # objects whose id is in a key
        self._names = names

    def _add(self, kind: int, parent: int, obj: Any, index: int) -> tuple[int, bool]:
        """The number of a node, and whether it is new: its text is missing then."""
        cls = type(obj)
        key = (kind, parent, cls, obj, index) if cls in _HASHABLE else (kind, parent, None, id(obj), index)
        number = len(self.nodes)
        known = self._known.setdefault(key, number)
        if known != number:
            return known, False
        self._keep.append(obj)
        self.nodes.append((kind, parent, obj, index))
        return number, True

    def node(self, source: Source) -> int:
        """The number of the node that loads a value."""
        known = source.node
        if known is None or known[0] is not self:
            parent = -1 if source.parent is None else self.node(source.parent)
            number, is_new = self._add(source.kind, parent, source.object, source.index)
            if is_new:
                self.texts.append(source.text(self._names))
            source.node = known = self, number
        return known[1]

    def check(self, kind: int, source: Source | None, obj: Any = None, index: int = 0) -> None:
        """Adds a check of a value."""
        if self._add(kind, -1 if source is None else self.node(source), obj, index)[1]:
            self.texts.append(self._text(kind, source, obj, index))

    def _text(self, kind: int, source: Source | None, obj: Any, index: int) -> str:
        name = source.text(self._names) if source else ""
        shown = obj
        if type(obj) in _HASHABLE:
            return _NAMES[kind].format(p=name, o=shown, i=index)[:300]
        if kind == CHECK_IS and hasattr(type(obj), "untyped_storage"):
            shown = "the same tensor"  # whose text would contain its values
        elif kind == CHECK_IS and isinstance(obj, dict):
            shown = "the same dict"
        elif isinstance(obj, types.ModuleType):
            shown = vars(obj).get("__name__")  # its text would call a `__getattr__` of the user's
        elif kind != CHECK_EQUAL and type(obj).__flags__ & 1 << 9 and not isinstance(obj, (abc.ABCMeta, enum.Enum, enum.EnumMeta)):
            shown = object.__repr__(obj)  # without a `__repr__` of the user's
        elif kind == CHECK_TENSOR:
            shown = f"{obj.dtype} {list(obj.shape)}"
        elif kind == CHECK_DYNAMIC_TENSOR:
            shown = f"{obj[0].dtype} [{', '.join('*' if i in obj[1] else str(size) for i, size in enumerate(obj[0].shape))}]"
        try:
            text = _NAMES[kind].format(p=name, o=shown, i=index)
        except Exception:  # noqa: BLE001 - a __repr__ of the user's
            text = f"check of {name}"
        return text[:300]


def expression(source: Source, constants: Any) -> str:
    """Python source text that reads the value from `S`, the slots. `constants(value)` names an object."""
    if source.kind == CONSTANT:
        return constants(source.object)
    parent = expression(source.parent, constants) if source.parent else ""
    obj = ""
    if source.object is not None or source.kind == DICT_ITEM:
        obj = repr(source.object) if type(source.object) is str else constants(source.object)
    if source.kind == DICT_ITEM and source.parent.kind == INSTANCE_DICT:
        parent = f"{expression(source.parent.parent, constants)}.__dict__"
    if source.kind == DICT_ITEM and source.index == OF_SUBCLASS:
        return f"dict.__getitem__({parent}, {obj})"
    return _TEMPLATES[source.kind].format(p=parent, o=obj, i=source.index)
