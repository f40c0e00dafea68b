"""Values during symbolic execution: what is known about each Python object that the function would have."""

from __future__ import annotations

import collections
import itertools
import re
import types
from collections.abc import Callable, Iterator
from typing import Any

from .. import _C
from ..nn.modules.module import Module
from ._source import INSTANCE_DICT, Source

serials = itertools.count()


class Break(Exception):  # noqa: N818 - ends the execution of a frame, not an error
    """The graph ends: the executor does not know what the next instruction does, or it cannot be part of a graph.

    Attributes:
        where: the user's line, if it is in a function that the frame calls.
    """

    where = ""


class NeedsFrame(Break):
    """A function is called that looks at the frame of its caller, which then must be the caller's own."""


class NeedsPlainRun(Break):
    """The function is right as plain Python only, neither in a graph nor with a break: it needs the history of a tensor among
    others that depend on it (results of a graph have one node), a view where a graph has a copy, or the order of a set, which
    depends on how the set was made.
    """


class Raised(Exception):  # noqa: N818 - the user's exception
    """The function has raised an exception, which its own handlers may catch."""

    def __init__(self, value: ExceptionValue) -> None:
        super().__init__(value.cls)
        self.value = value


class Value:
    """A value. `source` is where the object exists already, or None if the function creates it.

    Attributes:
        serial: a number that grows with each value that is made.
    """

    source: Source | None = None
    serial: int

    def __new__(cls, *_args: Any, **_kwargs: Any) -> Value:
        made = object.__new__(cls)
        made.serial = next(serials)
        return made

    @property
    def cls(self) -> type:
        raise Break(f"the type of a {kind(self)}")


# What a user calls values of which the class is not known, by the name of the value's class.
_KINDS = {
    "ComputedItem": "float of item()",
    "ConditionValue": "comparison of sizes", "FloatOperand": "float", "IdValue": "number that id() returns", "KeptFunction": "function",
    "Null": "missing value", "Slot": "variable", "CellValue": "variable of a closure", "ModuleSlice": "slice of a Sequential",
    "SliceValue": "slice", "SuperValue": "super() object", "TransformValue": "function of torch.func",
}  # fmt: skip


def kind(value: Any) -> str:
    """The class of an object or of a value of the executor, in the words of the user, for the reasons of graph breaks."""
    if not isinstance(value, Value):
        return type(value).__name__
    if type(value).__name__ in _KINDS:
        return _KINDS[type(value).__name__]
    try:
        return value.cls.__name__
    except (Break, AttributeError):
        return "value"


class Null(Value):
    """The NULL below a function on the stack."""


class Lazy(Value):
    """An object that nothing has been read of yet, so that there is no guard."""

    def __init__(self, obj: Any, source: Source) -> None:
        self.obj, self.source = obj, source


class Constant(Value):
    """An immutable object, or one of which the executor needs nothing but its identity, such as a function in C."""

    def __init__(self, value: Any, source: Source | None = None) -> None:
        self.value, self.source = value, source

    @property
    def cls(self) -> type:
        return type(self.value)


class SymbolValue(Value):
    """An int that differs from call to call: a size, an int that the function receives, or what it computes from them.

    Args:
        example: the SymInt of the capture.
        expression: ("size", tensor, dimension), ("numel", tensor), ("int",), ("node", node of the graph), ("item", ItemValue),
            or the name of an operation with its operands, which are values.
        source: of an int that the function receives.
        is_unbacked: it depends on values: the capture does not know it, and cannot decide by it.
    """

    cls = int

    def __init__(self, example: Any, expression: tuple, source: Source | None = None, is_unbacked: bool = False) -> None:
        self.example, self.expression, self.source, self.is_unbacked = example, expression, source, is_unbacked
        self.node: Any = None
        self.place: tuple | None = None  # the user's line of an operation
        self.original: Any = None  # the int, if it is received

    @property
    def value(self) -> int:
        """The number, which every call must then have. Ends the graph if the capture does not know it."""
        if self.is_unbacked:
            raise Break("a decision by a number that depends on values (item())")
        return int(self.example)


class ConditionValue(Value):
    """A comparison of ints of which one is unbacked: torch._check() accepts it; its truth is not known.

    Args:
        sign: of the comparison.
        left, right: a SymbolValue or a Constant.
    """

    cls = bool

    def __init__(self, sign: str, left: Value, right: Value) -> None:
        self.sign, self.left, self.right = sign, left, right


class FloatValue(Value):
    """A float that the function receives and that differs from call to call."""

    cls = float

    def __init__(self, original: float, source: Source) -> None:
        self.original, self.source = original, source
        self.example, self.node = original, None


class ComputedFloat(FloatValue):
    """A float computed from sizes and ints that differ from call to call, before the graph runs.

    Args:
        original: the number in the call that is captured.
        expression: a format string of Python and its operands, which are values.
    """

    def __init__(self, original: float, expression: tuple) -> None:
        self.original, self.expression, self.source = original, expression, None
        self.example, self.node = original, None


class RunTimeNumber(Value):
    """A number that each call computes anew before the graph: what `random` draws, and what is computed from it.

    Args:
        example: a number of the same class.
        expression: a format string of Python and its operands, which are values; none for what is drawn.
    """

    def __init__(self, example: float, expression: tuple = ()) -> None:
        self.example = self.original = example
        self.expression = expression
        self.node: Any = None

    @property
    def cls(self) -> type:
        return type(self.example)


class FloatOperand(Value):
    """A FloatValue or RunTimeNumber as an operand of arithmetic with a tensor, where it can be an input of the graph."""

    def __init__(self, number: FloatValue | RunTimeNumber) -> None:
        self.number = number


class TensorValue(Value):
    """A tensor: a node of the graph, and a stand-in that has its metadata."""

    def __init__(self, node: Any, example: Any, cls: type, source: Source | None = None, is_leaf: bool | None = None) -> None:
        self.node, self.example, self._cls, self.source, self.is_leaf = node, example, cls, source, is_leaf
        self.attributes: dict[str, Value] = {}
        self.users_attributes: dict[str, Value] = {}  # those that the function has written
        self.original: Any = None  # the tensor, if it is an input
        self.may_exist = False  # the node may return a tensor that exists, or that another node has returned
        self.dims: tuple[int, ...] = ()  # whose sizes differ from call to call, if it is an input
        self.is_unbacked = False  # its sizes depend on values that the capture does not know
        self.known_dims: tuple[int, ...] = ()  # those whose sizes do not, if it is unbacked

    @property
    def cls(self) -> type:
        return self._cls


class SequenceValue(Value):
    """A list or tuple, or a subclass of tuple."""

    is_of_subclass = False  # these are the elements of an existing object of a subclass of list

    def __init__(self, items: list[Value], cls: type = tuple, source: Source | None = None) -> None:
        self.items, self._cls, self.source = items, cls, source
        self.original: Any = None

    @property
    def cls(self) -> type:
        return self._cls


class DictValue(Value):
    """A dict: values by key. `keys` has the key objects."""

    def __init__(self, items: dict[Any, tuple[Value, Value]], cls: type = dict, source: Source | None = None) -> None:
        self.items, self._cls, self.source = items, cls, source
        self.original: Any = None
        self.default_factory: Value | None = None  # of a defaultdict
        self.is_rebuilt = False  # an entry was removed: the order of all may have changed
        self.is_of_object = False  # it is the __dict__ of an object
        self.of_subclass: type | None = None  # dict or OrderedDict: these are the entries of an object of a subclass of it
        self.owner: Any = None  # the object that the function has made and whose __dict__ it is
        self.proxy_of: DictValue | None = None  # of a mappingproxy: the dict, of which these are the entries

    @property
    def cls(self) -> type:
        return self._cls


class ModuleSlice(SequenceValue):
    """A ModuleList that the function has made as a slice of another one."""

    def __init__(self, items: list[Value], module_list: type) -> None:
        super().__init__(items, tuple)
        self.module_list = module_list

    @property
    def cls(self) -> type:
        return self.module_list


class DictView(Value):
    """A view of a dict, which `method` returns: keys, values or items."""

    def __init__(self, of: DictValue, method: str) -> None:
        self.of, self.method = of, method

    @property
    def is_set(self) -> bool:
        """Whether Python has the operators of sets for it."""
        return self.method != "values"

    def element(self, key: Any) -> Value:
        """The element of an entry that the dict has now."""
        name, value = self.of.items[key]
        return name if self.method == "keys" else value if self.method == "values" else SequenceValue([name, value], tuple)

    def read(self) -> list[Value]:
        """The elements of the entries that the dict has now."""
        return [self.element(key) for key in self.of.items]


class SetValue(Value):
    """A set or frozenset: elements by key.

    Attributes:
        is_ordered: whether an empty set, or the set that existed, to which the function adds elements one by one in the order
            of `items` iterates in Python's order. After unions and removals the order depends on more than the elements.
        is_cleared: whether none of the elements of the set that existed is left.
    """

    def __init__(self, items: dict[Any, Value], cls: type = set, source: Source | None = None, is_ordered: bool = False) -> None:
        self.items, self._cls, self.source = items, cls, source
        self.original: Any = None
        self.is_ordered, self.is_cleared = is_ordered or source is not None, False

    @property
    def cls(self) -> type:
        return self._cls


class DequeValue(Value):
    """A collections.deque. `changes` counts its changes, which iterators do not permit."""

    cls = collections.deque

    def __init__(self, items: list[Value], maxlen: int | None = None, source: Source | None = None) -> None:
        self.items, self.maxlen, self.source = items, maxlen, source
        self.original: Any = None
        self.changes = 0


class BuiltValue(Value):
    """An object in C that can be called, such as operator.itemgetter(1), made by `make(*args, **kwargs)`.

    Args:
        call: the result of a call, of the executor, positional and keyword arguments.
    """

    def __init__(self, make: Callable, args: list[Value], kwargs: dict[str, Value], call: Callable, source: Source | None = None) -> None:
        self.make, self.args, self.kwargs, self.call, self.source = make, args, kwargs, call, source

    @property
    def cls(self) -> type:
        if not isinstance(self.make, type):
            raise Break(f"the type of {self.make.__name__}()")
        return self.make


class MatchValue(Value):
    """A match of a regular expression: the result of `method(*args, **kwargs)`, or its element `index`."""

    cls = re.Match

    def __init__(self, match: re.Match, method: Callable, args: list[Any], kwargs: dict[str, Any], index: int | None = None) -> None:
        self.match, self.method, self.args, self.kwargs, self.index = match, method, args, kwargs, index


class SliceValue(Value):
    """A slice with parts that are not constant."""

    cls = slice

    def __init__(self, parts: list[Value], source: Source | None = None) -> None:
        self.parts, self.source = parts, source
        self.original: Any = None


class CellValue(Value):
    """A variable of closures; `content` is None while it is unbound."""

    cls = types.CellType

    def __init__(self, content: Value | None = None, source: Source | None = None, original: Any = None) -> None:
        self.content, self.source, self.original = content, source, original


class FunctionValue(Value):
    """A function in Python."""

    cls = types.FunctionType

    def __init__(
        self, code: types.CodeType, globals_: dict, name: str, defaults: list[Value], keyword_defaults: dict[str, Value],
        closure: list[CellValue], source: Source | None = None, original: types.FunctionType | None = None,
    ) -> None:  # fmt: skip
        self.code, self.globals, self.name = code, globals_, name
        self.defaults, self.keyword_defaults, self.closure = defaults, keyword_defaults, closure
        self.source, self.original = source, original
        self.globals_source: Source | None = None
        self.annotations: Value | None = None
        self.attributes: dict[str, Value] = {}
        self.qualname = name


class MethodValue(Value):
    """A bound method in Python."""

    cls = types.MethodType

    def __init__(self, function: Value, self_: Value, source: Source | None = None) -> None:
        self.function, self.self, self.source = function, self_, source
        self.original: Any = None


class BuiltinMethod(Value):
    """A method in C of a value: [].append, "".join, x.relu."""

    cls = types.BuiltinMethodType

    def __init__(self, self_: Value, name: str) -> None:
        self.self, self.name = self_, name


class PartialValue(Value):
    """functools.partial."""

    def __init__(self, function: Value, args: list[Value], kwargs: dict[str, Value], source: Source | None = None) -> None:
        self.function, self.args, self.kwargs, self.source = function, args, kwargs, source
        self.original: Any = None

    @property
    def cls(self) -> type:
        import functools

        return functools.partial


class SuperValue(Value):
    """super()."""

    cls = super

    def __init__(self, owner: type, self_: Value) -> None:
        self.owner, self.self = owner, self_


class HandleValue(Value):
    """The handle of a hook, which a node of the graph returns."""

    def __init__(self, node: Any) -> None:
        self.node = node


class ItemValue(Value):
    """The number that a tensor of one element contains, which the capture does not know."""

    def __init__(self, tensor: TensorValue, source_tensor: TensorValue | None = None) -> None:
        self.tensor = tensor  # a copy
        self.source_tensor = source_tensor  # of which item() was called
        self.symbol: SymbolValue | None = None  # of an int that was used as a size
        self.node: Any = None  # of a float that was used as a number

    @property
    def cls(self) -> type:
        dtype = self.tensor.example.dtype
        return bool if dtype == _C.bool else float if dtype.is_floating_point else int


class ComputedItem(Value):
    """A float that the graph computes from numbers of tensors (item()), which the capture does not know.

    Args:
        text: a format string of Python.
        function: computes the number.
        operands: values: ItemValue, ComputedItem, SymbolValue and Constant.
    """

    cls = float

    def __init__(self, text: str, function: Callable, operands: tuple[Value, ...]) -> None:
        self.text, self.function, self.operands = text, function, operands
        self.node: Any = None
        self.place: tuple | None = None


class IdValue(Value):
    """id() of an object: it can be compared, and be a key."""

    cls = int

    def __init__(self, of: Value) -> None:
        self.of = of


DELETED = Value()


class ObjectValue(Value):
    """An object of a class in Python. `attributes` are those that the function has written."""

    instance_dict: DictValue | None = None  # the value of its __dict__, if the function has read it
    # Of an object of a subclass of dict, list, tuple, set or frozenset: its contents, as a value of that class.
    entries: DictValue | SequenceValue | SetValue | None = None

    def __init__(self, cls: type, original: Any = None, source: Source | None = None) -> None:
        self._cls, self.original, self.source = cls, original, source
        self.attributes: dict[str, Value] = {}
        self.moved: set[str] = set()  # attributes that were deleted and written again
        self.slots: dict[str, Value] = {}
        self._source_of_dict: Source | None = None

    @property
    def cls(self) -> type:
        return self._cls

    @property
    def source_of_dict(self) -> Source:
        """The source of the __dict__ of an object that exists; numbers in that of a module never become symbols."""
        if self._source_of_dict is None:
            self._source_of_dict = Source(INSTANCE_DICT, self.source, is_static=isinstance(self.original, Module))
        return self._source_of_dict


class ExceptionValue(Value):
    """An exception that the function has created or caught."""

    def __init__(self, cls: type, args: list[Value], source: Source | None = None) -> None:
        self._cls, self.args, self.source = cls, args, source
        self.attributes: dict[str, Value] = {}
        self.cause: Value | None = None
        self.context: Value | None = None
        self.suppresses = False
        self.original: Any = None

    @property
    def cls(self) -> type:
        return self._cls


class IteratorValue(Value):
    """An iterator that the function has created.

    Args:
        advance: returns the next value; raises StopIteration.
        rest: returns the remaining values without advancing, or raises Break.

    Attributes:
        remake: returns the text of generated code that makes an equal iterator, if it reads others or an object that may change.
    """

    remake: Callable[[Any], str] | None = None

    def __init__(self, advance: Callable[[], Value], rest: Callable[[], list[Value]] | None = None, cls: type = Iterator) -> None:
        self.advance, self.rest, self._cls = advance, rest, cls
        self.is_finished = False

    @property
    def cls(self) -> type:
        if self._cls is Iterator:
            raise Break("the type of an iterator")
        return self._cls


class GeneratorValue(Value):
    """A generator that the function has created: a suspended frame."""

    cls = types.GeneratorType

    def __init__(self, frame: Any) -> None:
        self.frame = frame
        self.is_finished = self.is_running = False


class Opaque(Value):
    """An object that exists and of which the executor knows only where it is."""

    def __init__(self, obj: Any, source: Source) -> None:
        self.obj, self.source = obj, source

    @property
    def cls(self) -> type:
        return type(self.obj)
