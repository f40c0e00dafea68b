"""Code of a compiled frame: Python source that reads the inputs, runs the graph, replays side effects and makes the results."""

from __future__ import annotations

import collections
import functools
import inspect
import itertools
import threading
import types
from typing import Any

from ._attributes import lookup
from ._resume import call_first
from ._source import Source, expression
from ._transforms import TransformValue
from ._values import (
    DELETED,
    Break,
    BuiltinMethod,
    BuiltValue,
    CellValue,
    ComputedFloat,
    ComputedItem,
    ConditionValue,
    Constant,
    DequeValue,
    DictValue,
    ExceptionValue,
    FunctionValue,
    GeneratorValue,
    HandleValue,
    ItemValue,
    IteratorValue,
    Lazy,
    MatchValue,
    MethodValue,
    ModuleSlice,
    NeedsPlainRun,
    Null,
    ObjectValue,
    PartialValue,
    RunTimeNumber,
    SequenceValue,
    SetValue,
    SliceValue,
    SuperValue,
    SymbolValue,
    TensorValue,
    Value,
    kind,
)  # fmt: skip
from ._warning_filters import Block
from ._wrap import is_namedtuple

_LITERALS = (int, str, bool, bytes, type(None))
_WITH_IDENTITY = (int, float, complex, str, bytes, range)  # of which equal objects may be different ones


def list_iterator(items: list, position: int) -> Any:
    """An iterator of a list that has returned some of its elements."""
    iterator = iter(items)
    iterator.__setstate__(position)
    return iterator


def reversed_list(items: list, position: int) -> Any:
    """An iterator over a list from its end that has returned the elements above `position`."""
    iterator = reversed(items)
    iterator.__setstate__(position)
    return iterator


def message_of_change(cls: type) -> str:
    """What iterators of a dict or set say when its size has changed."""
    if issubclass(cls, collections.OrderedDict):
        return "OrderedDict mutated during iteration"
    return f"{'dictionary' if issubclass(cls, (dict, types.MappingProxyType)) else 'Set'} changed size during iteration"


def changing_iterator(container: Any, method: str | None, size: int, keys: list, position: int) -> Any:
    """An iterator of a set, or a view of a dict that `method` returns, which must not change its size meanwhile.

    Args:
        size, keys: those at the start of the iteration.
        position: the number of elements that were returned.
    """
    if len(container) != size:
        raise RuntimeError(message_of_change(type(container)))
    if list(container) != keys:
        raise RuntimeError(message_of_change(type(container)).replace("changed size", "keys changed"))
    yield from itertools.islice(container if method is None else getattr(container, method)(), position, None)


class Code:
    """Collects the source. `ex` is the executor that has finished."""

    def __init__(self, ex: Any) -> None:
        self.ex = ex
        self.namespace: dict[str, Any] = {
            "lookup": lookup, "call_first": call_first, "list_iterator": list_iterator, "reversed_list": reversed_list,
            "FunctionType": types.FunctionType,
            "changing_iterator": changing_iterator, "MethodType": types.MethodType, "CellType": types.CellType,
            "partial": functools.partial,
        }  # fmt: skip
        self.reads: list[str] = []  # before the graph
        self.lines: list[str] = []  # after it
        self.releases: list[str] = []  # after them, also if the graph raises
        self.early: list[str] = []  # prints before the graph
        self.outputs: list[TensorValue | HandleValue] = []
        self._names: dict[int, str] = {}
        self._constants: dict[int, str] = {}
        self._sources: dict[str, str] = {}
        self._count = 0
        self._keep: list[Any] = []
        for draw in ex.draws:
            name = f"d{len(self._names)}"
            self.reads.append(f"{name} = {draw.text(self)}")
            self._names[id(draw.result)] = name

    def constant(self, obj: Any) -> str:
        """An expression for an object that exists."""
        is_short = abs(obj) < 1 << 60 if type(obj) is int else len(obj) < 200 if isinstance(obj, (str, bytes)) else True
        if type(obj) in _LITERALS and is_short:
            return repr(obj)
        if id(obj) not in self._constants:
            name = f"c{len(self._constants)}"
            self._constants[id(obj)] = name
            self._keep.append(obj)
            self.namespace[name] = obj
        return self._constants[id(obj)]

    def read(self, source: Source) -> str:
        """The name of a value that is read before the graph runs."""
        text = expression(source, self.constant)
        if text not in self._sources:
            name = f"s{len(self._sources)}"
            self._sources[text] = name
            self.reads.append(f"{name} = {text}")
        return self._sources[text]

    def read_metadata(self, source: Source, suffix: str) -> str:
        """The name of a size of a tensor, which is read before the graph runs."""
        text = self.read(source) + suffix
        if text not in self._sources:
            name = f"s{len(self._sources)}"
            self._sources[text] = name
            self.reads.append(f"{name} = {text}")
        return self._sources[text]

    def _name(self, text: str) -> str:
        self._count += 1
        name = f"v{self._count}"
        self.lines.append(f"{name} = {text}")
        return name

    def value(self, value: Value) -> str:
        """An expression for a value."""
        if isinstance(value, Constant):
            if value.source is not None and type(value.value) in _WITH_IDENTITY:
                return self.read(value.source)
            return self.constant(value.value)
        if isinstance(value, Null):
            return "call_first"
        if isinstance(value, ItemValue):
            return self._name(f"{self.value(value.tensor)}.item()")
        if isinstance(value, ComputedItem):
            return self._name(value.text.format(*map(self.value, value.operands)))
        if isinstance(value, ConditionValue):
            return f"({self.value(value.left)} {value.sign} {self.value(value.right)})"
        if isinstance(value, SymbolValue):
            return self.ex.text_of_symbol(value, self)
        if isinstance(value, ComputedFloat):
            return self.ex.text_of_float(value, self)
        if isinstance(value, RunTimeNumber) and value.expression:
            text, *operands = value.expression
            return text.format(*map(self.value, operands))
        if id(value) in self._names:
            return self._names[id(value)]
        if value.source is not None:
            name = self.read(value.source)
            self._names[id(value)] = name
            return name
        self._keep.append(value)
        name = self._make(value)
        self._names.setdefault(id(value), name)
        return self._names[id(value)]

    def values(self, values: list[Value]) -> str:
        """The expressions of values, separated by commas."""
        return ", ".join(self.value(v) for v in values)

    def arguments(self, args: list[Value], kwargs: dict[str, Value]) -> str:
        """The arguments of a call."""
        return ", ".join([*map(self.value, args), *(f"{k}={self.value(v)}" for k, v in kwargs.items())])

    def _make(self, value: Value) -> str:
        if isinstance(value, (TensorValue, HandleValue)):
            if value.node is None or value.node.graph is not self.ex.root_graph:
                raise Break("a tensor of a function that an operator has called is kept")
            self.outputs.append(value)
            text = f"g[{len(self.outputs) - 1}]"
            if isinstance(value, HandleValue) or not value.users_attributes:
                return text
            name = self._names[id(value)] = self._name(text)
            self.lines += [f"{name}.{attribute} = {self.value(v)}" for attribute, v in value.users_attributes.items()]
            return name
        if isinstance(value, SequenceValue):
            return self._make_sequence(value)
        if isinstance(value, DictValue) and value.proxy_of is not None:
            return self._name(f"{self.constant(value.cls)}({self.value(value.proxy_of)})")
        if isinstance(value, MatchValue):
            call = f"{self.constant(value.method)}(*{self.constant(value.args)}, **{self.constant(value.kwargs)})"
            return self._name(call if value.index is None else f"list({call})[{value.index}]")
        if isinstance(value, DictValue):
            factory = self.value(value.default_factory) if value.default_factory is not None else ""
            name = self._names[id(value)] = self._name(f"{self.constant(value.cls)}({factory})")
            for k, v in value.items.values():
                key, text = self.value(k), self.value(v)
                self.lines.append(f"{name}[{key}] = {text}")
            return name
        if isinstance(value, SetValue):
            return self._name(f"{self.constant(value.cls)}([{self.values(self._elements(value))}])")
        if isinstance(value, DequeValue):
            name = self._names[id(value)] = self._name(f"{self.constant(collections.deque)}(maxlen={value.maxlen})")
            self.lines.append(f"{name}.extend([{self.values(value.items)}])")
            return name
        if isinstance(value, BuiltValue):
            return self._name(f"{self.constant(value.make)}({self.arguments(value.args, value.kwargs)})")
        if isinstance(value, SliceValue):
            return f"slice({self.values(value.parts)})"
        if isinstance(value, CellValue):
            name = self._names[id(value)] = self._name("CellType()")
            if value.content is not None:
                self.lines.append(f"{name}.cell_contents = {self.value(value.content)}")
            return name
        if isinstance(value, FunctionValue):
            return self._make_function(value)
        if isinstance(value, MethodValue):
            if isinstance(value.function, Constant):
                raise Break("a method of super() is kept")
            return self._name(f"MethodType({self.value(value.function)}, {self.value(value.self)})")
        if isinstance(value, BuiltinMethod):
            return self._name(f"getattr({self.value(value.self)}, {value.name!r})")
        if isinstance(value, PartialValue):
            return self._name(f"partial({self.arguments([value.function, *value.args], value.kwargs)})")
        if isinstance(value, TransformValue):
            options = self.constant(value.options)
            return self._name(f"{self.constant(value.transform)}({self.value(value.function)}, **{options})")
        if isinstance(value, SuperValue):
            return self._name(f"super({self.constant(value.owner)}, {self.value(value.self)})")
        if isinstance(value, ObjectValue):
            return self._make_object(value)
        if isinstance(value, ExceptionValue):
            return self._make_exception(value)
        if isinstance(value, IteratorValue) and value.remake is not None and not value.is_finished:
            return self._name(value.remake(self))
        if isinstance(value, IteratorValue) and value.rest is not None:
            live = getattr(value, "live", None)
            if live is not None and not value.is_finished:
                return self._name(f"list_iterator({self.value(live)}, {value.position[0]})")
            return self._name(f"iter([{self.values(value.rest())}])")
        if isinstance(value, GeneratorValue) and not value.frame.is_started and not value.is_finished:
            return self._make_generator(value)
        raise Break(f"a {kind(value)} cannot be kept beyond a graph")

    def _make_generator(self, value: GeneratorValue) -> str:
        """A generator that has not started: a call of its function."""
        frame, code = value.frame, value.frame.code
        names, count = code.co_varnames, code.co_argcount + code.co_kwonlyargcount
        parts = [self.value(frame.locals[name]) for name in names[: code.co_argcount]]
        if code.co_flags & inspect.CO_VARARGS:
            parts.append(f"*{self.value(frame.locals[names[count]])}")
        parts += [f"{name}={self.value(frame.locals[name])}" for name in names[code.co_argcount : count]]
        if code.co_flags & inspect.CO_VARKEYWORDS:
            parts.append(f"**{self.value(frame.locals[names[count + bool(code.co_flags & inspect.CO_VARARGS)]])}")
        return self._name(f"{self.value(frame.function)}({', '.join(parts)})")

    def _make_sequence(self, value: SequenceValue) -> str:
        if isinstance(value, ModuleSlice):
            return self._name(f"{self.constant(value.cls)}([{self.values(value.items)}])")
        if value.cls is list:
            name = self._names[id(value)] = self._name("[]")
            if value.items:
                self.lines.append(f"{name}[:] = [{self.values(value.items)}]")
            return name
        items = self.values(value.items) + ("," if value.items else "")
        if value.cls is tuple:
            return self._name(f"({items})")
        if is_namedtuple(value.cls):
            return self._name(f"tuple.__new__({self.constant(value.cls)}, ({items}))")
        return self._name(f"{self.constant(value.cls)}(({items}))")

    def _make_function(self, value: FunctionValue) -> str:
        filled = []  # cells, after the function exists, which they may contain
        for cell in value.closure:
            if isinstance(cell, CellValue) and cell.source is None and id(cell) not in self._names:
                self._keep.append(cell)
                self._names[id(cell)] = self._name("CellType()")
                filled.append(cell)
        cells = "".join(f"{self.value(c)}, " for c in value.closure)
        closure = f"({cells})" if value.closure else "None"
        name = self._name(f"FunctionType({self.constant(value.code)}, {self.constant(value.globals)}, {value.name!r}, None, {closure})")
        self._names[id(value)] = name
        if value.defaults:
            self.lines.append(f"{name}.__defaults__ = ({self.values(value.defaults)},)")
        for cell in filled:
            if cell.content is not None:
                self.lines.append(f"{self._names[id(cell)]}.cell_contents = {self.value(cell.content)}")
        if value.qualname != value.code.co_qualname:
            self.lines.append(f"{name}.__qualname__ = {value.qualname!r}")
        if value.keyword_defaults:
            pairs = ", ".join(f"{k!r}: {self.value(v)}" for k, v in value.keyword_defaults.items())
            self.lines.append(f"{name}.__kwdefaults__ = {{{pairs}}}")
        if value.annotations is not None:
            items = value.annotations.items if isinstance(value.annotations, SequenceValue) else []
            pairs = ", ".join(f"{self.value(k)}: {self.value(v)}" for k, v in zip(items[::2], items[1::2]))
            self.lines.append(f"{name}.__annotations__ = {{{pairs}}}")
        for attribute, v in value.attributes.items():
            self.lines.append(f"{name}.{attribute} = {self.value(v)}")
        return name

    @staticmethod
    def _elements(contents: SequenceValue | SetValue) -> list[Any]:
        if isinstance(contents, SequenceValue):
            return contents.items
        if not contents.is_ordered:
            raise NeedsPlainRun("the order of a set")
        return list(contents.items.values())

    def _make_object(self, value: ObjectValue) -> str:
        if value.cls is Block:
            raise Break("a catch_warnings object is kept")
        base = collections.OrderedDict if issubclass(value.cls, collections.OrderedDict) else dict
        plain = types.SimpleNamespace if value.cls is types.SimpleNamespace else object
        contents = value.entries if isinstance(value.entries, (SequenceValue, SetValue)) else None
        of = plain if value.entries is None else base if contents is None else contents.cls
        is_filled = of in (tuple, frozenset)
        given = f", {self.value(SequenceValue(self._elements(contents), list))}" if is_filled else ""
        name = self._names[id(value)] = self._name(f"{self.constant(of.__new__)}({self.constant(value.cls)}{given})")
        if contents is not None and not is_filled:
            fill = self.constant(list.extend if of is list else set.update)
            self.lines.append(f"{fill}({name}, {self.value(SequenceValue(self._elements(contents), list))})")
        elif value.entries is not None and contents is None:
            setter = self.constant(base.__setitem__)
            self.lines += [f"{setter}({name}, {self.value(k)}, {self.value(v)})" for k, v in value.entries.items.values()]
        for attribute, v in {**value.attributes, **value.slots}.items():
            if v is not DELETED:
                self.lines.append(f"object.__setattr__({name}, {attribute!r}, {self.value(v)})")
        return name

    def _make_exception(self, value: ExceptionValue) -> str:
        cls = self.constant(value.cls)
        name = self._names[id(value)] = self._name(f"{cls}.__new__({cls})")
        self.lines.append(f"{name}.args = ({self.values(value.args)}{',' if value.args else ''})")
        for attribute, v in value.attributes.items():
            self.lines.append(f"{name}.{attribute} = {self.value(v)}")
        for attribute, v in (("__cause__", value.cause), ("__context__", value.context)):
            if v is not None:
                self.lines.append(f"{name}.{attribute} = {self.value(v)}")
        if value.suppresses:
            self.lines.append(f"{name}.__suppress_context__ = True")
        return name

    def effects(self) -> None:
        """Adds the writes to objects that existed, in the order of the first write to each."""
        for each in self.ex.prints:
            (self.early if each.is_early else self.lines).append(each.text(self))
        writes: list[str] = []
        for value in list(self.ex.written.values()):
            if value.source is None:
                continue
            target = self.read(value.source)
            if isinstance(value, SequenceValue) and value.is_of_subclass:  # whose methods the function has executed already
                writes.append(f"{self.constant(list.__setitem__)}({target}, slice(None), [{self.values(value.items)}])")
            elif isinstance(value, SequenceValue):
                writes.append(f"{target}[:] = [{self.values(value.items)}]")
            elif isinstance(value, DictValue):
                entries = list(value.items.values())
                if value.of_subclass is not None:  # whose methods the function has executed already
                    base = self.constant(value.of_subclass)
                    writes += [f"{base}.clear({target})"] * value.is_rebuilt
                    writes += [
                        f"{base}.__setitem__({target}, {self.value(k)}, {self.value(v)})"
                        for k, v in entries if value.is_rebuilt or not self._is_original(k, v, value)
                    ]
                elif value.is_rebuilt:
                    pairs = ", ".join(f"({self.value(k)}, {self.value(v)})" for k, v in entries)
                    writes += [f"{target}.clear()", f"{target}.update([{pairs}])"]
                else:
                    writes += [f"{target}[{self.value(k)}] = {self.value(v)}" for k, v in entries if not self._is_original(k, v, value)]
            elif isinstance(value, DequeValue):
                writes += [f"{target}.clear()", f"{target}.extend([{self.values(value.items)}])"]
            elif isinstance(value, SetValue):
                writes += [f"{target}.clear()"] * value.is_cleared
                added = self._elements(value)[0 if value.is_cleared else len(value.original) :]
                writes.append(f"{target}.update([{self.values(added)}])")
            elif isinstance(value, CellValue):
                is_empty = value.content is None
                writes.append(f"del {target}.cell_contents" if is_empty else f"{target}.cell_contents = {self.value(value.content)}")
            elif isinstance(value, TensorValue):
                writes += [f"{target}.{attribute} = {self.value(v)}" for attribute, v in value.users_attributes.items()]
            elif isinstance(value, FunctionValue):
                writes += [f"{target}.{attribute} = {self.value(v)}" for attribute, v in value.attributes.items()]
            elif isinstance(value, ObjectValue):
                for attribute, v in {**value.attributes, **value.slots}.items():
                    if v is DELETED or attribute in value.moved:  # it may be one that the function has written before
                        own = f"object.__getattribute__({target}, '__dict__')"
                        writes.append(f"if {attribute!r} in {own}: object.__delattr__({target}, {attribute!r})")
                    if v is not DELETED:
                        setter = "setattr" if issubclass(value.cls, threading.local) else "object.__setattr__"
                        writes.append(f"{setter}({target}, {attribute!r}, {self.value(v)})")
            else:
                raise Break(f"a {kind(value)} is written")
        for values, names in self.ex.globals.values():
            at = self.constant(values)
            writes += [
                f"{at}.pop({name!r}, None)" if v is DELETED else f"{at}[{name!r}] = {self.value(v)}" for name, v in names.items()
            ]
        for cls, names in self.ex.classes.items():
            writes += [f"setattr({self.constant(cls)}, {name!r}, {self.value(v)})" for name, v in names.items()]
        self.lines += writes
        self.releases = [f"{self.read(lock.source)}.release()" for lock in self.ex.releases]

    @staticmethod
    def _is_original(key: Value, value: Value, of: DictValue) -> bool:
        if not isinstance(value, Lazy) or of.original is None or not isinstance(key, Constant):
            return False
        return dict.__contains__(of.original, key.value) and dict.__getitem__(of.original, key.value) is value.obj

    def compile(self, graph: Any, result: str, modes: list[tuple | None], returns: bool, name: str) -> Any:
        """The function of the slots `S` and the inputs `I` of the graph.

        Args:
            result: the expression that is returned.
            modes: those of the thread that are set before the graph and after it; None: they stay.
            returns: whether the captured code ends there, and with it the regions that it was called in, if the graph raises.
        """
        before, after = (None if m is None else f"set_modes({self.constant(m)})" for m in modes)
        lines = list(self.reads)
        if graph is not None:
            self.namespace["graph"] = graph
            floats = [self.value(number) for number in self.ex.computed]  # may add reads
            lines = list(self.reads)
            call = f"g = graph((*I, {', '.join(floats)}))" if floats else "g = graph(I)"
            unwinds = returns and after is not None
            self.lines[:0] = ["try:", f"    {call}", "except BaseException:", f"    {after}", "    raise"] if unwinds else [call]
        if before is not None:
            self.lines.insert(0, before)
        self.lines[:0] = self.early
        if self.releases:
            lines += ["try:", *(f"    {line}" for line in self.lines), "    pass", "finally:", *(f"    {line}" for line in self.releases)]
        else:
            lines += self.lines
        if after is not None:
            lines.append(after)
        lines.append(f"return {result}")
        text = "def compiled(S, I):\n" + "".join(f"    {line}\n" for line in lines)
        exec(compile(text, f"<compiled {name}>", "exec"), self.namespace)  # noqa: S102 - the source was made here
        return self.namespace["compiled"], text
