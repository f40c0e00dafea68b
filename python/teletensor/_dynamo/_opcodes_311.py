"""What the instructions of CPython 3.11 do, by name."""

from __future__ import annotations

import abc
import builtins
import dis
import sys
from collections.abc import Callable
from typing import Any

from ._attributes import PACKAGE, raise_
from ._builtin_containers import update_dict
from ._builtin_text import checked_text, text_of
from ._bytecode import Instruction
from ._frames import Frame, Returned, Yielded
from ._source import CALL, CHECK_EQUAL, CHECK_IS, CHECK_MISSING, DICT_ITEM, constant
from ._values import (
    DELETED,
    Break,
    CellValue,
    Constant,
    DictValue,
    ExceptionValue,
    FunctionValue,
    GeneratorValue,
    Lazy,
    Null,
    ObjectValue,
    Raised,
    SequenceValue,
    SetValue,
    SliceValue,
    Value,
)  # fmt: skip

_MATCH_SELF = (bool, bytearray, bytes, dict, float, frozenset, int, list, set, str, tuple)  # `case int(n)` binds the object itself

TABLE: dict[str, Callable[[Frame, Instruction], None]] = {}
_SIGNS = [sign for _, sign in getattr(dis, "_nb_ops", ())]


def _op(*names: str) -> Callable:
    def register(function: Callable) -> Callable:
        for name in names:
            TABLE[name] = function
        return function

    return register


@_op("RESUME", "NOP", "PRECALL", "COPY_FREE_VARS", "ASYNC_GEN_WRAP")
def _nothing(f, i):
    if i.name == "ASYNC_GEN_WRAP":
        raise Break("an asynchronous generator")
    if i.name == "COPY_FREE_VARS":
        for name, cell in zip(f.code.co_freevars, f.function.closure):
            f.cells[name] = cell


@_op("MAKE_CELL")
def _make_cell(f, i):
    name = f.names[i.arg]
    f.cells[name] = CellValue(f.locals.pop(name, None))


@_op("RETURN_GENERATOR")
def _return_generator(f, i):
    f.push(Constant(None))  # the object, which POP_TOP removes


@_op("POP_TOP")
def _pop_top(f, i):
    f.pop()


@_op("PUSH_NULL")
def _push_null(f, i):
    f.push(Null())


@_op("COPY")
def _copy(f, i):
    f.push(f.stack[-i.arg])


@_op("SWAP")
def _swap(f, i):
    f.stack[-1], f.stack[-i.arg] = f.stack[-i.arg], f.stack[-1]


@_op("LOAD_CONST")
def _load_const(f, i):
    f.push(f.ex.constant_object(f.code.co_consts[i.arg]))


@_op("LOAD_FAST")
def _load_fast(f, i):
    name = f.names[i.arg]
    value = f.load_local(name)
    if type(value) is Lazy and type(value.obj) is not float:  # which often is only passed on
        f.locals[name] = value = f.ex.real(value)
    f.stack.append(value)


@_op("STORE_FAST")
def _store_fast(f, i):
    f.locals[f.names[i.arg]] = f.pop()


@_op("DELETE_FAST")
def _delete_fast(f, i):
    f.load_local(f.names[i.arg])
    del f.locals[f.names[i.arg]]


@_op("LOAD_CLOSURE")
def _load_closure(f, i):
    f.push(f.cells[f.names[i.arg]])


@_op("LOAD_DEREF")
def _load_deref(f, i):
    cell = f.cells[f.names[i.arg]]
    value = f.ex.real(f.load_cell(f.names[i.arg]))
    cell.content = value
    f.push(value)


@_op("STORE_DEREF")
def _store_deref(f, i):
    cell = f.cells[f.names[i.arg]]
    cell.content = f.pop()
    f.ex.note_write(cell)


@_op("DELETE_DEREF")
def _delete_deref(f, i):
    f.ex.real(f.load_cell(f.names[i.arg]))  # with a guard that it is bound
    cell = f.cells[f.names[i.arg]]
    cell.content = None
    f.ex.note_write(cell)


@_op("LOAD_GLOBAL")
def _load_global(f, i):
    value = f.load_global(f.code.co_names[i.arg >> 1])
    if i.arg & 1:
        f.push(Null())
    f.push(value)


@_op("STORE_GLOBAL")
def _store_global(f, i):
    f.ex.write_global(f.function.globals, f.code.co_names[i.arg], f.pop())


@_op("DELETE_GLOBAL")
def _delete_global(f, i):
    name, values = f.code.co_names[i.arg], f.function.globals
    written = f.ex.written_globals(values)
    if name not in written:
        f.ex.guards.check(CHECK_MISSING, f.globals_source(), name) if name not in values else f.load_global(name)
    if (written.get(name, DELETED) if name in written else values.get(name, DELETED)) is DELETED:
        raise_(NameError, f"name '{name}' is not defined")
    f.ex.write_global(values, name, DELETED)


_STATEMENTS = {  # by an instruction that only they have
    "LOAD_BUILD_CLASS": "a class statement", "LOAD_CLASSDEREF": "a class statement", "SETUP_ANNOTATIONS": "a class statement",
    "IMPORT_STAR": "import of *", "GET_AWAITABLE": "await", "GET_AITER": "async for", "GET_ANEXT": "async for",
    "END_ASYNC_FOR": "async for", "BEFORE_ASYNC_WITH": "async with", "PREP_RERAISE_STAR": "except*", "CHECK_EG_MATCH": "except*",
}  # fmt: skip


@_op("LOAD_NAME", "STORE_NAME", "DELETE_NAME", "LOAD_CLASSDEREF", "LOAD_BUILD_CLASS", "SETUP_ANNOTATIONS", "IMPORT_STAR",
     "PRINT_EXPR", "GET_AWAITABLE", "GET_AITER", "GET_ANEXT", "END_ASYNC_FOR", "BEFORE_ASYNC_WITH", "PREP_RERAISE_STAR",
     "CHECK_EG_MATCH")  # fmt: skip
def _refused(f, i):
    raise Break(_STATEMENTS.get(i.name, f"the instruction {i.name} of Python's bytecode"))


@_op("LOAD_ATTR")
def _load_attr(f, i):
    f.push(f.ex.real(f.ex.get_attribute(f.pop(), f.code.co_names[i.arg])))


@_op("LOAD_METHOD")
def _load_method(f, i):
    value = f.pop()
    f.push(Null())
    f.push(f.ex.real(f.ex.get_attribute(value, f.code.co_names[i.arg])))


@_op("STORE_ATTR")
def _store_attr(f, i):
    value, new = f.pop(), f.pop()
    f.ex.set_attribute(value, f.code.co_names[i.arg], new)


@_op("DELETE_ATTR")
def _delete_attr(f, i):
    f.ex.set_attribute(f.pop(), f.code.co_names[i.arg], DELETED)


@_op("BINARY_OP")
def _binary(f, i):
    b, a = f.pop(), f.pop()
    f.push(f.ex.binary(_SIGNS[i.arg], a, b))


@_op("UNARY_NEGATIVE", "UNARY_POSITIVE", "UNARY_INVERT")
def _unary(f, i):
    f.push(f.ex.unary(i.name, f.pop()))


@_op("UNARY_NOT")
def _not(f, i):
    f.push(Constant(not f.ex.truth(f.pop())))


@_op("COMPARE_OP")
def _compare(f, i):
    b, a = f.pop(), f.pop()
    f.push(f.ex.compare(dis.cmp_op[i.arg], a, b))


@_op("IS_OP")
def _is(f, i):
    b, a = f.pop(), f.pop()
    f.push(Constant(f.ex.is_same(a, b) != bool(i.arg)))


@_op("CONTAINS_OP")
def _contains(f, i):
    b, a = f.pop(), f.pop()
    f.push(Constant(f.ex.contains(b, a) != bool(i.arg)))


@_op("BINARY_SUBSCR")
def _subscr(f, i):
    b, a = f.pop(), f.pop()
    f.push(f.ex.real(f.ex.get_item(a, b)))


@_op("STORE_SUBSCR")
def _store_subscr(f, i):
    index, container, new = f.pop(), f.pop(), f.pop()
    f.ex.set_item(container, index, new)


@_op("DELETE_SUBSCR")
def _delete_subscr(f, i):
    index, container = f.pop(), f.pop()
    f.ex.delete_item(container, index)


# -- jumps


@_op("JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT")
def _jump(f, i):
    f.at = i.target.index


def _jump_if(wanted: bool, keeps: bool = False) -> Callable:
    def jump(f, i):
        if f.ex.is_whole and not keeps and f.ex.asserts(f, i, wanted) or f.ex.truth(f.stack[-1]) == wanted:
            f.at = i.target.index
            if not keeps:
                f.pop()
        else:
            f.pop()

    return jump


for _direction in ("FORWARD", "BACKWARD"):
    TABLE[f"POP_JUMP_{_direction}_IF_TRUE"] = _jump_if(True)
    TABLE[f"POP_JUMP_{_direction}_IF_FALSE"] = _jump_if(False)
TABLE["JUMP_IF_TRUE_OR_POP"], TABLE["JUMP_IF_FALSE_OR_POP"] = _jump_if(True, True), _jump_if(False, True)


@_op("POP_JUMP_FORWARD_IF_NONE", "POP_JUMP_BACKWARD_IF_NONE", "POP_JUMP_FORWARD_IF_NOT_NONE", "POP_JUMP_BACKWARD_IF_NOT_NONE")
def _jump_if_none(f, i):
    if f.ex.is_same(f.pop(), Constant(None)) == (not i.name.endswith("NOT_NONE")):
        f.at = i.target.index


@_op("GET_ITER")
def _get_iter(f, i):
    f.push(f.ex.iterate(f.pop()))


@_op("GET_YIELD_FROM_ITER")
def _get_yield_from_iter(f, i):
    f.push(f.ex.iterate(f.pop()))


@_op("FOR_ITER")
def _for_iter(f, i):
    found = f.ex.next_or_none(f.stack[-1])
    if found is None:
        f.pop()
        f.at = i.target.index
    else:
        f.push(f.ex.real(found))


@_op("SEND")
def _send(f, i):
    sent = f.pop()
    at = f.ex.real(f.stack[-1])
    try:
        if isinstance(at, GeneratorValue):
            result = f.ex.resume_generator(at, sent)
        else:
            result = f.ex.advance(at)
        f.push(result)
    except Raised as e:
        if e.value.cls is not StopIteration:
            raise
        f.pop()
        f.push(e.value.args[0] if e.value.args else Constant(None))
        f.at = i.target.index


@_op("YIELD_VALUE")
def _yield(f, i):
    raise Yielded(f.pop())


@_op("RETURN_VALUE")
def _return(f, i):
    raise Returned(f.pop())


# -- containers


@_op("BUILD_TUPLE")
def _build_tuple(f, i):
    f.push(SequenceValue(f.pop_many(i.arg), tuple))


@_op("BUILD_LIST")
def _build_list(f, i):
    f.push(SequenceValue(f.pop_many(i.arg), list))


@_op("BUILD_SET")
def _build_set(f, i):
    items: dict[Any, Value] = {}
    for item in f.pop_many(i.arg):
        items.setdefault(f.ex.key_of(item), item)
    f.push(SetValue(items, is_ordered=True))


@_op("BUILD_MAP")
def _build_map(f, i):
    values = f.pop_many(2 * i.arg)
    result = DictValue({})
    for k, v in zip(values[::2], values[1::2]):
        f.ex.write_entry(result, f.ex.key_of(k), k, v)
    f.push(result)


@_op("BUILD_CONST_KEY_MAP")
def _build_const_key_map(f, i):
    keys = f.ex.elements(f.pop())
    values = f.pop_many(i.arg)
    f.push(DictValue({f.ex.key_of(k): (k, v) for k, v in zip(keys, values)}))


@_op("BUILD_STRING")
def _build_string(f, i):
    f.push(Constant("".join(f.ex.python_value(v) for v in f.pop_many(i.arg))))


@_op("BUILD_SLICE")
def _build_slice(f, i):
    parts = [f.ex.real(p) for p in f.pop_many(i.arg)]
    f.push(SliceValue(parts if len(parts) == 3 else [*parts, Constant(None)]))


def _display(f, i):
    """The container of a display or comprehension, which existed before if the function continues after a break within it."""
    value = f.stack[-i.arg]
    if value.source is not None:
        f.ex.note_write(value)
    return value


@_op("LIST_APPEND")
def _list_append(f, i):
    item = f.pop()
    _display(f, i).items.append(item)


@_op("SET_ADD")
def _set_add(f, i):
    item = f.pop()
    _display(f, i).items.setdefault(f.ex.key_of(item), item)


@_op("MAP_ADD")
def _map_add(f, i):
    value, key = f.pop(), f.pop()
    f.ex.write_entry(f.stack[-i.arg], f.ex.key_of(key), key, value)


@_op("LIST_EXTEND")
def _list_extend(f, i):
    other = f.ex.real(f.pop())
    if isinstance(other, Constant) and isinstance(other.value, (int, float, complex, type(None))):
        raise_(TypeError, f"Value after * must be an iterable, not {other.cls.__name__}")
    _display(f, i).items.extend(f.ex.elements(other))


@_op("SET_UPDATE")
def _set_update(f, i):
    other = f.ex.real(f.pop())
    target = _display(f, i)
    target.is_ordered &= not isinstance(other, (SetValue, DictValue, ObjectValue))
    for item in f.ex.unordered(other):
        target.items.setdefault(f.ex.key_of(item), item)


@_op("DICT_UPDATE", "DICT_MERGE")
def _dict_update(f, i):
    other = f.ex.real(f.pop())
    target = f.stack[-i.arg]
    is_merge = i.name == "DICT_MERGE"
    if not isinstance(other, (DictValue, ObjectValue)):
        if is_merge:
            raise Break("an argument after ** that is no mapping")  # the call raises its message
        raise_(TypeError, f"'{other.cls.__name__}' object is not a mapping")
    entries = other if isinstance(other, DictValue) else other.entries
    if is_merge and (not isinstance(entries, DictValue) or any(k in target.items for k in entries.items)):
        raise Break("a keyword argument is given twice, or by an object with keys()")
    update_dict(f.ex, target, [other], {})


@_op("LIST_TO_TUPLE")
def _list_to_tuple(f, i):
    f.push(SequenceValue(list(f.pop().items), tuple))


@_op("UNPACK_SEQUENCE")
def _unpack(f, i):
    items = f.ex.elements(f.pop())
    if len(items) != i.arg:
        few = len(items) < i.arg
        raise_(ValueError, f"not enough values to unpack (expected {i.arg}, got {len(items)})" if few else
               f"too many values to unpack (expected {i.arg})")  # fmt: skip
    f.stack.extend(reversed(items))


@_op("UNPACK_EX")
def _unpack_ex(f, i):
    items, before, after = f.ex.elements(f.pop()), i.arg & 0xFF, i.arg >> 8
    if len(items) < before + after:
        raise_(ValueError, f"not enough values to unpack (expected at least {before + after}, got {len(items)})")
    rest = SequenceValue(items[before : len(items) - after], list)
    f.stack.extend(reversed([*items[:before], rest, *items[len(items) - after :]]))


@_op("FORMAT_VALUE")
def _format_value(f, i):
    spec = f.ex.python_value(f.pop()) if i.arg & 4 else ""
    value = f.ex.plain(f.ex.real(f.pop()))
    conversion = i.arg & 3
    if conversion:
        value = text_of(f.ex, value, (None, str, repr, ascii)[conversion])
    if (
        isinstance(value, Constant)
        and isinstance(value.value, (int, float, complex, str, bool))
        or f.ex.is_numpy_scalar(getattr(value, "value", None))
    ):
        from ._comparisons import fold

        f.ex.note_format(spec)
        f.push(fold(format, value.value, spec))
        return
    found = f.ex.call_method_named(value, "__format__", [Constant(spec)]) if isinstance(value, ObjectValue) else None
    if found is None and spec:
        raise Break("the text of an object")
    f.push(text_of(f.ex, value, str) if found is None else checked_text(f.ex, "__format__", found))


# -- calls


@_op("KW_NAMES")
def _kw_names(f, i):
    f.keyword_names = f.code.co_consts[i.arg]


@_op("CALL")
def _call(f, i):
    names, f.keyword_names = f.keyword_names, ()
    args = f.pop_many(i.arg)
    second, first = f.pop(), f.pop()
    kwargs = {}
    if names:
        kwargs = dict(zip(names, args[-len(names) :]))
        args = args[: -len(names)]
    if isinstance(f.ex.real(first), Null):
        function = second
    else:
        function, args = first, [second, *args]
    f.push(f.ex.real(f.ex.call(function, args, kwargs)))


@_op("CALL_FUNCTION_EX")
def _call_function_ex(f, i):
    kwargs: dict[str, Value] = {}
    if i.arg & 1:
        mapping = f.ex.real(f.pop())
        if not isinstance(mapping, DictValue) or not all(isinstance(k, str) for k in mapping.items):
            raise Break("keyword arguments that are not in a dict")
        kwargs = {k: v for k, (_, v) in mapping.items.items()}
    given = f.ex.real(f.pop())
    if isinstance(given, Constant) and isinstance(given.value, (int, float, complex, type(None))):
        raise Break("an argument after * that is no iterable")  # the call raises its message
    args = f.ex.elements(given)
    function = f.pop()
    f.pop()  # NULL
    f.push(f.ex.real(f.ex.call(function, args, kwargs)))


@_op("MAKE_FUNCTION")
def _make_function(f, i):
    code = f.ex.python_value(f.pop())
    closure = f.pop().items if i.arg & 8 else []
    annotations = f.pop() if i.arg & 4 else None
    keyword_defaults = {k: v for k, (_, v) in f.pop().items.items()} if i.arg & 2 else {}
    defaults = list(f.ex.real(f.pop()).items) if i.arg & 1 else []
    made = FunctionValue(code, f.function.globals, code.co_name, defaults, keyword_defaults, list(closure))
    made.qualname = code.co_qualname
    made.globals_source = None
    made.annotations = annotations
    f.push(made)


@_op("LOAD_ASSERTION_ERROR")
def _assertion_error(f, i):
    f.push(Constant(AssertionError))


@_op("IMPORT_NAME")
def _import_name(f, i):
    names, level = f.ex.python_value(f.pop()), f.ex.python_value(f.pop())
    name = f.code.co_names[i.arg]
    if builtins.__import__ is not _original_import:
        raise Break("import is replaced")
    try:
        module = builtins.__import__(name, f.function.globals, None, names, level)  # a module that is imported already stays
    except ImportError as e:
        raise Break(f"{type(e).__name__}: {e}") from None
    if not f.code.co_filename.startswith(PACKAGE):
        found = name if level == 0 else module.__name__
        for each in {found, found.partition(".")[0]} & sys.modules.keys():
            at = constant(sys).instance_item("modules").then(DICT_ITEM, each)
            f.ex.guards.check(CHECK_IS, at, sys.modules[each])
    f.push(Constant(module, constant(module)))


_original_import = builtins.__import__


@_op("IMPORT_FROM")
def _import_from(f, i):
    f.push(f.ex.real(f.ex.get_attribute(f.stack[-1], f.code.co_names[i.arg])))


# -- with and exceptions


@_op("BEFORE_WITH")
def _before_with(f, i):
    manager = f.ex.real(f.pop())
    f.ex.leaves_regions = False
    leave = f.ex.get_attribute(manager, "__exit__")
    enter = f.ex.get_attribute(manager, "__enter__")
    f.push(leave)
    f.push(f.ex.real(f.ex.call(enter, [], {})))


@_op("WITH_EXCEPT_START")
def _with_except_start(f, i):
    raised, leave = f.stack[-1], f.stack[-4]
    args = [f.ex.type_constant(raised.cls), raised, Constant(None)]
    f.push(f.ex.real(f.ex.call(leave, args, {})))


@_op("PUSH_EXC_INFO")
def _push_exc_info(f, i):
    raised = f.pop()
    f.push(f.handled[-1] if f.handled else Constant(None))
    f.handled.append(raised)
    f.push(raised)


@_op("POP_EXCEPT")
def _pop_except(f, i):
    f.pop()
    f.handled.pop()


@_op("CHECK_EXC_MATCH")
def _check_exc_match(f, i):
    wanted, raised = f.pop(), f.stack[-1]
    wanted = f.ex.real(wanted)
    classes = tuple(f.ex.real(c) for c in wanted.items) if isinstance(wanted, SequenceValue) else (wanted,)
    if not all(isinstance(c, Constant) and isinstance(c.value, type) and issubclass(c.value, BaseException) for c in classes):
        raise Break("except with something that is not an exception")
    f.push(Constant(issubclass(raised.cls, tuple(c.value for c in classes))))


@_op("RERAISE")
def _reraise(f, i):
    raised = f.pop()
    if i.arg:
        f.pop()  # the position
    raise Raised(raised)


@_op("RAISE_VARARGS")
def _raise(f, i):
    cause = f.ex.real(f.pop()) if i.arg == 2 else None
    if i.arg == 0:
        if not f.handled:
            raise Break("raise without an exception")
        raise Raised(f.handled[-1])
    value = f.ex.real(f.pop())
    if isinstance(value, Constant) and isinstance(value.value, type) and issubclass(value.value, BaseException):
        value = f.ex.create(value.value, [], {})
    if not isinstance(value, ExceptionValue):
        raise Break("raise of an existing exception")
    if cause is not None:
        if isinstance(cause, Constant) and isinstance(cause.value, type):
            cause = f.ex.create(cause.value, [], {})
        value.cause = cause
        value.suppresses = True
    raise Raised(value)


# -- patterns


@_op("GET_LEN")
def _get_len(f, i):
    f.push(f.ex.length(f.stack[-1]))


@_op("MATCH_SEQUENCE")
def _match_sequence(f, i):
    f.push(Constant(_has_flag(f.ex, f.ex.real(f.stack[-1]), 5)))


def _has_flag(ex: Any, value: Value, bit: int) -> bool:
    """Whether the value's class is one of sequences (bit 5) or mappings (bit 6), or was registered as one."""
    cls = value.cls
    if cls.__flags__ & 1 << 9:  # not one in C
        ex.guards.check(CHECK_EQUAL, constant(abc.get_cache_token).then(CALL), abc.get_cache_token())
    return bool(cls.__flags__ & 1 << bit)


@_op("MATCH_MAPPING")
def _match_mapping(f, i):
    f.push(Constant(_has_flag(f.ex, f.ex.real(f.stack[-1]), 6)))


@_op("MATCH_KEYS")
def _match_keys(f, i):
    keys, value = f.stack[-1], f.ex.real(f.stack[-2])
    if not isinstance(value, DictValue):
        get, missing = f.ex.get_attribute(value, "get"), ObjectValue(object)
        found = [f.ex.real(f.ex.call(get, [k, missing], {})) for k in keys.items]
        f.push(Constant(None) if missing in found else SequenceValue(found, tuple))
        return
    wanted = [f.ex.key_of(k) for k in keys.items]
    if all(k in value.items for k in wanted):
        f.push(SequenceValue([value.items[k][1] for k in wanted], tuple))
    else:
        f.push(Constant(None))


@_op("MATCH_CLASS")
def _match_class(f, i):
    names, cls, subject = f.pop(), f.pop(), f.pop()
    f.push(_attributes_of_pattern(f.ex, f.ex.real(subject), f.ex.real(cls), f.ex.python_value(names), i.arg))


def _attributes_of_pattern(ex: Any, subject: Value, cls: Value, names: tuple[str, ...], count: int) -> Value:
    """A tuple of the values for the sub-patterns of a class pattern, `count` of them positional; None if there is no match."""
    if not isinstance(cls, Constant) or not isinstance(cls.value, type):
        raise Break("a pattern of something else than a class")
    if not ex.truth(ex.call_constant(isinstance, [subject, cls], {})):
        return Constant(None)
    found: list[Value] = []
    if count and issubclass(cls.value, _MATCH_SELF) and not hasattr(cls.value, "__match_args__"):
        if count > 1:
            return raise_(TypeError, f"{cls.value.__name__}() accepts 1 positional sub-pattern ({count} given)")
        found.append(subject)
    elif count:
        allowed = ex.python_value(ex.get_attribute(cls, "__match_args__")) if hasattr(cls.value, "__match_args__") else ()
        if count > len(allowed):
            plural = "" if len(allowed) == 1 else "s"
            text = f"{cls.value.__name__}() accepts {len(allowed)} positional sub-pattern{plural} ({count} given)"
            return raise_(TypeError, text)
        names = (*allowed[:count], *names)
    for name in names:
        try:
            found.append(ex.real(ex.get_attribute(subject, name)))
        except Raised as e:
            if not issubclass(e.value.cls, AttributeError):
                raise
            return Constant(None)
    return SequenceValue(found, tuple)
