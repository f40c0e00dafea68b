"""Capture: executes a frame symbolically, up to its end or to a graph break, and makes its guards, graph and code."""

from __future__ import annotations

import collections
import contextlib
import copy
import dis
import functools
import inspect
import os
import re
import sys
import types
import typing
from collections.abc import Callable
from typing import Any, NamedTuple

from .. import _C, _functions, fx
from .._tracing_state import is_compiling
from ..fx.graph_module import GraphModule, LateGraphModule
from ..nn import Module, dot_product_attention
from . import (
    _builtin_containers,
    _builtin_library,
    _builtin_numbers,
    _builtin_trees,
    _builtins,
    _handlers,
    _loaded_operators,
    _opcodes_311,
    _random_numbers,
)
from ._attribute_writes import AttributeWrites
from ._attributes import Attributes
from ._bodies import Bodies
from ._bytecode import Instruction
from ._calls import Calls
from ._capture_store import Results
from ._codegen import Code
from ._comparisons import Comparisons
from ._control import Control
from ._entries import Entry, Failed, GraphBreak, program_name
from ._fingerprints import CannotCheck
from ._frames import Frame, Returned, instructions_of
from ._introspection import reason_to_run_plainly
from ._iteration import Iteration
from ._keys import Keys
from ._methods import Methods
from ._numpy_numbers import NumPyNumbers
from ._operators import Operators
from ._prints import Print
from ._random_numbers import Draw, RunTimeNumbers
from ._resume import Layout, locals_plus, resume_code
from ._sizes import SizeHistory, SizePolicy
from ._source import (
    CHECK_DISTINCT,
    CHECK_EQUAL,
    CHECK_IS,
    CHECK_KEYS,
    CHECK_LENGTH,
    CHECK_MODES,
    DICT_ITEM,
    FUNCTION_CODE,
    INSTANCE_DICT,
    SLOT,
    TUPLE_ITEM,
    Guards,
    Source,
    constant,
)  # fmt: skip
from ._steps import NeedsNoRegions, Steps
from ._symbolic_functions import SYMBOLIC_FUNCTIONS
from ._symbols import NeedsConstantSizes, NeedsSizes, Symbols
from ._tensors import Tensors, change_modes, mode_state, set_mode_state
from ._transforms import NeedsSeed, Transforms
from ._unbacked import FUNCTIONS as FUNCTIONS_OF_UNBACKED
from ._unbacked import Unbacked
from ._values import (
    Break,
    CellValue,
    ComputedFloat,
    Constant,
    DequeValue,
    DictValue,
    ExceptionValue,
    FunctionValue,
    GeneratorValue,
    Lazy,
    MethodValue,
    NeedsFrame,
    NeedsPlainRun,
    ObjectValue,
    PartialValue,
    Raised,
    RunTimeNumber,
    SequenceValue,
    SetValue,
    SliceValue,
    SymbolValue,
    TensorValue,
    Value,
)  # fmt: skip
from ._warning_filters import FUNCTIONS as FUNCTIONS_OF_WARNINGS
from ._warning_filters import WarningFilters
from ._warnings import Warned, executing_again
from ._wrap import Wrapping

TABLES = {(3, 11): _opcodes_311.TABLE}  # the instructions, by version of Python, those of _entries.VERSIONS
_IMMUTABLE = (FunctionValue, MethodValue, PartialValue, SliceValue)
_MAX_STEPS = 400_000
_OTHER_THAN_LETTERS = re.compile(r"\W")
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120


class Captured(NamedTuple):
    """What was made of a frame."""

    guards: Guards
    inputs: list[int]  # the nodes of the guards that load the inputs of the graph
    function: Callable | None
    source: str
    graph: Any
    broken: GraphBreak | None
    results: Any  # a _capture_store.Results, or why other processes cannot make the function's result
    made: Any  # the GraphProgram, if the graph runs as a Program


def _always_true(_ex: Any, _args: list, _kwargs: dict) -> Any:
    return Constant(True)


class Executor(
    Wrapping, Attributes, AttributeWrites, Calls, Operators, Comparisons, Methods, Keys, Iteration, Symbols, Steps, Tensors, Bodies,
    Control, Transforms, Unbacked, RunTimeNumbers, _builtin_library.Matches,
    NumPyNumbers, WarningFilters,
):
    """The state of a capture: values of existing objects, guards, graph, and writes that the code will replay."""

    handlers = _handlers.handlers
    constructors = _handlers.constructors
    handlers_of_functions: dict[Callable, Callable] = {
        functools.update_wrapper: _builtins.update_wrapper, inspect.signature: _builtins.signature,
        **{f: _builtins.parts_of_annotation(f) for f in (typing.get_args, typing.get_origin)},
        copy.copy: _handlers.handlers[copy.copy], copy.deepcopy: _builtin_containers.deep_copy,
        collections.namedtuple: _builtin_containers.named_tuple,
        **_loaded_operators.FUNCTIONS, **FUNCTIONS_OF_WARNINGS, **_builtin_trees.FUNCTIONS, **FUNCTIONS_OF_UNBACKED,
        **SYMBOLIC_FUNCTIONS, **_builtin_numbers.DEVICE_QUERIES, **_builtin_library.FUNCTIONS, **_random_numbers.FUNCTIONS,
        is_compiling: _always_true,
    }

    def __init__(self, table: dict, names: tuple[str, ...], policy: SizePolicy, follows_sizes: bool = False) -> None:
        self.table, self.slot_names = table, names
        self.begin_symbols(policy, follows_sizes)
        self.begin_steps(False, False)
        self.begin_unbacked()
        self.begin_modes()
        self.begin_warnings()
        self.guards = Guards(names)
        self.guards.check(CHECK_MODES, None)
        # Settings that functions which become nodes read.
        for module, names in ((_functions, ("_deterministic",)), (dot_product_attention, ("allowed",))):
            for setting in names:
                value = vars(module)[setting]
                self.guards.check(CHECK_EQUAL, constant(vars(module)).then(DICT_ITEM, setting), value)
        self.graph = fx.Graph()
        self.begin_bodies()
        self.inputs: list[TensorValue | SymbolValue] = []
        self.computed: list[ComputedFloat | RunTimeNumber] = []  # further inputs
        self.draws: list[Draw] = []  # of random numbers, in order
        self.prints: list[Print] = []  # in order
        self.by_id: dict[int, Value] = {}
        self.keep: list[Any] = []
        self.written: dict[int, Value] = {}
        self.globals: dict[int, tuple[dict, dict[str, Value]]] = {}
        self.class_attributes: dict[tuple[type, str], Any] = {}
        self.classes: dict[type, dict[str, Value]] = {}  # attributes that the function has written
        self.releases: list[Value] = []  # locks that are released at the end, in this order
        self.frame: Frame | None = None
        self.frames: list[Frame] = []
        self.steps = 0
        self.of_this_process = ""  # what the capture has read that other processes cannot compare
        self.compared: dict[int, Value] = {}  # whose identity decides, by id of the value
        self.generators: list[GeneratorValue] = []
        self.proxied: list[Any] = []  # the mappings of the mappingproxies that were read
        self.numpy = sys.modules.get("numpy")
        self.handled_outside = sys.exc_info()[1]
        self._last_input: fx.Node | None = None

    def count_step(self) -> None:
        self.steps += 1
        if self.steps > _MAX_STEPS:
            raise Break("too many instructions for one graph")

    def is_numpy_scalar(self, obj: Any) -> bool:
        """Whether the object is a scalar of NumPy."""
        return self.numpy is not None and isinstance(obj, (self.numpy.number, self.numpy.bool_))

    def new_frame(self, function: FunctionValue, parameters: dict[str, Value]) -> Frame:
        self.frames.append(Frame(self, function, parameters, self.table))
        return self.frames[-1]

    def constant_object(self, obj: Any) -> Value:
        """The value of a constant of the code."""
        if isinstance(obj, tuple):
            return SequenceValue([self.constant_object(o) for o in obj], tuple)
        if isinstance(obj, frozenset):
            return SetValue({self.key_of(v): v for v in map(self.constant_object, obj)}, frozenset)
        return Constant(obj)

    def add_input(self, value: TensorValue | SymbolValue, name: str) -> fx.Node:
        """Adds an input of the graph, after the other inputs."""
        name = f"L_{_OTHER_THAN_LETTERS.sub('_', name).strip('_')}_"
        anchor, graph = self._last_input, self.root_graph
        if anchor is None:
            first = next(iter(graph.nodes), None)
            where = graph.inserting_before(first) if first is not None else None
        else:
            where = graph.inserting_after(anchor)
        if where is None:
            node = graph.placeholder(name)
        else:
            with where:
                node = graph.placeholder(name)
        self._last_input = node
        node.meta["example_value"] = value.example
        node.meta["dynamic_dims"] = getattr(value, "dims", None)
        self.inputs.append(value)
        return node

    def add_computed(self, number: ComputedFloat | RunTimeNumber) -> fx.Node:
        """Adds an input that the generated code computes, after all those that are read."""
        self.computed.append(number)
        anchor = self.computed[-2].node if len(self.computed) > 1 else self._last_input
        first = next(iter(self.root_graph.nodes), None)
        if anchor is None and first is None:
            where: Any = contextlib.nullcontext()
        else:
            where = self.root_graph.inserting_after(anchor) if anchor is not None else self.root_graph.inserting_before(first)
        with where:
            node = self.root_graph.placeholder(f"F_{len(self.computed)}_")
        node.meta["example_value"], node.meta["dynamic_dims"] = number.example, None
        return node

    def release(self) -> None:
        """Forgets all values and objects of the capture that has ended."""
        self.end_warnings()
        for value in [*self.by_id.values(), *self.written.values(), *self.inputs, *self.keep]:
            if isinstance(value, Value):
                vars(value).clear()
        for frame in self.frames:
            vars(frame).clear()
        self.__dict__.clear()

    # -- side effects

    def note_write(self, value: Value) -> None:
        """Remembers that an object is written, to replay it. The order is that of the first writes."""
        if value.source is not None and not self._has_source_for_writes(value):
            raise Break("a write to an object that cannot be read again")
        if isinstance(value, DictValue) and value.is_of_object:
            raise Break("a write to the __dict__ of an object")
        if isinstance(value, DictValue) and isinstance(value.original, dict) and "__builtins__" in value.original:
            raise Break("a write to a dict of global variables")  # which the function may read by their names
        self.check_write(value)
        self.written.setdefault(id(value), value)
        self.keep.append(value)
        self.check_proxies()

    @staticmethod
    def _has_source_for_writes(value: Value) -> bool:
        return isinstance(value, (SequenceValue, DictValue, CellValue, ObjectValue, SetValue, DequeValue, FunctionValue, TensorValue))

    def check_proxies(self) -> None:
        """Ends the graph if a dict is written that a mappingproxy may show: what is read of that are the entries before the call."""
        if not self.proxied:
            return
        for value in self.written.values():
            own = getattr(value.original, "__dict__", None) if isinstance(value, ObjectValue) else None
            if value.source is not None and (isinstance(value, DictValue) or any(own is mapping for mapping in self.proxied)):
                raise Break("a write to a dict beside a mappingproxy")
        if any(values is mapping for values, _ in self.globals.values() for mapping in self.proxied):
            raise Break("a write to a global variable beside a mappingproxy")

    def check_removed_objects(self) -> None:
        """Raises Failed if a write to an existing object removes one whose finalizer would run among the writes of the others."""
        for value in self.written.values():
            if value.source is None or getattr(value, "original", None) is None or isinstance(value, (TensorValue, CellValue)):
                continue
            if isinstance(value, ObjectValue):
                own = getattr(value.original, "__dict__", {})
                before = [own[name] for name in value.attributes if name in own]
                after = list(value.attributes.values())
            elif isinstance(value, DictValue):
                before, after = list(value.original.values()), [v for _, v in value.items.values()]
            elif isinstance(value, (SequenceValue, DequeValue, SetValue)):
                before = list(value.original)
                after = list(value.items.values() if isinstance(value, SetValue) else value.items)
            else:
                continue
            finalized = [x for x in before if hasattr(type(x), "__del__")]
            kept = {id(getattr(v, "original", None)) for v in after} if finalized else set()
            if any(id(x) not in kept for x in finalized):
                raise Failed("an object of a class with __del__ is removed from another object")

    def written_globals(self, values: dict) -> dict[str, Value]:
        """The global variables that the function has written."""
        known = self.globals.get(id(values))
        return known[1] if known else {}

    def write_global(self, values: dict, name: str, new: Value) -> None:
        if any(not body.may_write for body in self._bodies):
            raise Break("a write to a global variable in a function that an operator calls")
        self.globals.setdefault(id(values), (values, {}))[1][name] = new
        self.check_proxies()

    # -- the user's line

    def stack_text(self) -> str:
        """The user's lines, as in a traceback."""
        lines = []
        frame = self.frame
        if frame is not None:
            lines.append(f'  File "{frame.code.co_filename}", line {frame.line}, in {frame.code.co_name}')
        return "\n".join(lines)

    def site(self) -> tuple[str, int, str]:
        """File, line and function of the innermost call of the user's."""
        frame = self.frame
        while frame.caller is not None and frame.code.co_filename.startswith(_PACKAGE):
            frame = frame.caller
        return frame.code.co_filename, frame.line or frame.code.co_firstlineno, frame.code.co_qualname

    def where(self) -> str:
        """The current line, as "file:line in function"."""
        frame = self.frame
        return "" if frame is None else f"{frame.code.co_filename}:{frame.line} in {frame.code.co_name}"

    def add_alias_guards(self) -> None:
        """If the function writes or compares objects that were different, they must not be one object in a later call."""
        writes = self.mutates or any(v.source is not None for v in self.written.values())
        writes_functions = any(isinstance(v, FunctionValue) for v in self.written.values())
        immutable = tuple(c for c in _IMMUTABLE if not (writes_functions and c is FunctionValue))
        existing = [v for v in self.by_id.values() if v.source is not None and getattr(v, "original", None) is not None]
        groups: dict[Any, list[Source]] = {}
        for value in existing:
            is_immutable = isinstance(value, immutable) or isinstance(value, SequenceValue) and value.cls is not list
            if (is_immutable or not writes) and id(value) not in self.compared:
                continue
            groups.setdefault(TensorValue if isinstance(value, TensorValue) else value.cls, []).append(value.source)
        if dict in groups:
            groups[dict] += self._instance_dicts()
        for group in groups.values():
            if len(group) > 1:
                self.guards.check(CHECK_DISTINCT, None, tuple(self.guards.node(source) for source in group))

    def _instance_dicts(self) -> list[Source]:
        """The `__dict__` of objects, where a write to the object, or to a dict, could be one to the other as well."""
        writes_dict = any(isinstance(v, DictValue) and v.cls is dict and v.source is not None for v in self.written.values())
        found = []
        for value in list(self.by_id.values()):
            if not isinstance(value, ObjectValue) or value.source is None or value.instance_dict is not None:
                continue
            own = getattr(value.original, "__dict__", None)
            is_in_question = id(value) in self.written or writes_dict and not isinstance(value.original, Module)
            if not is_in_question or type(own) is not dict:
                continue
            if id(own) in self.by_id:
                raise Break("writes to an object or its __dict__")
            found.append(value.source.then(INSTANCE_DICT))
        return found


def _live_locals(code: types.CodeType, index: int) -> set[str] | None:
    """The local variables that the code may read from an instruction on; None: all, because it may look at them."""
    if {"locals", "exec", "eval", "vars", "dir", "_getframe"} & set(code.co_names):
        return None
    instructions, names = instructions_of(code), locals_plus(code)
    first = {names[0]} if "super" in code.co_names and code.co_argcount else set()  # super() reads it
    live: list[set[str]] = [set() for _ in instructions]
    changed = True
    while changed:
        changed = False
        for i in reversed(instructions):
            after: set[str] = set()
            if i.name not in ("RETURN_VALUE", "RAISE_VARARGS", "RERAISE", "JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT"):
                if i.index + 1 < len(instructions):
                    after |= live[i.index + 1]
            if i.target is not None:
                after |= live[i.target.index]
            if i.name in ("STORE_FAST", "DELETE_FAST"):
                after = after - {names[i.arg]}
            if i.name in ("LOAD_FAST", "DELETE_FAST"):
                after = after | {names[i.arg]}
            if i.handler is not None:
                after = after | live[i.handler[0].index]
            if after != live[i.index]:
                live[i.index] = after
                changed = True
    return live[index] | first


def _layout_at(frame: Frame, index: int, depth: int) -> Layout:
    live = _live_locals(frame.code, index)
    free = set(frame.code.co_freevars)
    bound = []
    for i, name in enumerate(frame.names):
        if name in free:
            continue
        if name in frame.cells or name in frame.locals and (live is None or name in live):
            bound.append(i)
    return Layout(depth, tuple(bound))


def _reason(e: Break | Raised) -> str:
    return str(e) if isinstance(e, Break) else f"{e.value.cls.__name__} is raised"


class Capture:
    """One attempt to compile a frame for the slots of a call."""

    def __init__(self, entry: Entry, slots: tuple, options: Any, history: SizeHistory) -> None:
        self.entry, self.slots, self.options = entry, slots, options
        self.policy = SizePolicy(options.dynamic, history)
        self.policy.can_follow = not any(_C.autocast_dtype(device) is not None for device in ("cpu", "cuda"))
        self.follows_sizes = self.policy.may_be_dynamic and self.policy.can_follow
        self.table = TABLES[sys.version_info[:2]]
        self.may_have_regions = "backward" in entry.code.co_names
        self.needs_seed = False
        self.group = 0
        self.frame: Frame | None = None

    # -- beginning

    def _begin(self, ex: Executor) -> Frame:
        entry = self.entry
        function_at = 0 if entry.target < 0 else entry.layout.depth
        source = Source(SLOT, None, None, function_at)
        original = self.slots[function_at]
        ex.guards.check(CHECK_IS, source.then(FUNCTION_CODE), entry.code)
        function = ex.wrap_function(original, source, is_stable=True)
        ex.by_id[id(original)] = function
        ex.keep.append(original)
        if entry.target < 0:
            args_source, kwargs_source = Source(SLOT, None, None, 1), Source(SLOT, None, None, 2)
            args, kwargs = self.slots[1], self.slots[2]
            ex.guards.check(CHECK_LENGTH, args_source, None, len(args))
            ex.guards.check(CHECK_KEYS, kwargs_source, tuple(kwargs))
            values: list[Value] = [Lazy(a, args_source.then(TUPLE_ITEM, None, i)) for i, a in enumerate(args)]
            keywords: dict[str, Value] = {k: Lazy(a, kwargs_source.then(DICT_ITEM, k)) for k, a in kwargs.items()}
            frame = ex.new_frame(function, ex.bind_arguments(function, values, keywords))
        else:
            frame = ex.new_frame(function, {})
            frame.at = entry.target
            for name, cell in zip(entry.code.co_freevars, function.closure):
                frame.cells[name] = cell
            cells = {*entry.code.co_cellvars}
            for i, local in enumerate(entry.layout.bound, entry.layout.depth + 1):
                name, at = frame.names[local], Source(SLOT, None, None, i)
                if name in cells:
                    frame.cells[name] = ex.wrap_cell(self.slots[i], at)
                else:
                    frame.locals[name] = Lazy(self.slots[i], at)
            for i in range(entry.layout.depth):
                at = Source(SLOT, None, None, i)
                is_float = type(self.slots[i]) is float  # guarded if the function uses it
                frame.stack.append(Lazy(self.slots[i], at) if is_float else ex.wrap(self.slots[i], at))
        return frame

    def _names(self) -> tuple[str, ...]:
        if self.entry.target < 0:
            return ("L", "args", "kwargs")
        names = locals_plus(self.entry.code)
        return (*(f"stack{i}" for i in range(self.entry.layout.depth)), "L", *(names[i] for i in self.entry.layout.bound))

    # -- running

    def _run(self, stop_at: int | None) -> tuple[Executor, Value | None]:
        if getattr(self, "ex", None) is not None:
            self.ex.release()
        ex = Executor(self.table, self._names(), self.policy, self.follows_sizes)
        ex.begin_steps(self.options.may_contain_steps, self.may_have_regions)
        ex.needs_seed = self.needs_seed
        ex.is_whole = self.options.fullgraph
        ex.leaves_regions = self.entry.target >= 0
        self.ex = ex
        self.group = 0
        frame = self.frame = self._begin(ex)
        ex.frame = frame
        try:
            while True:
                name = frame.instructions[frame.at].name
                if not (name == "CALL" or name == "PRECALL" and frame.keyword_names):
                    self.group += 1
                    if self.group == stop_at:
                        return ex, None
                frame.step()
        except Returned as e:
            return ex, e.value

    def __call__(self) -> Captured:
        """Raises Failed if the frame cannot be compiled."""
        with Warned() as self.warned:
            return self._captured()

    def _captured(self) -> Captured:
        if self.entry.target < 0:
            reason = reason_to_run_plainly(self.entry.code, self.slots[0].__globals__)
            if reason:
                self.ex = Executor(self.table, self._names(), self.policy)
                self.ex.guards = Guards(self._names())
                self.ex.guards.check(CHECK_IS, Source(SLOT).then(FUNCTION_CODE), self.entry.code)
                raise Failed(reason)
        before = mode_state()
        broken: GraphBreak | None = None
        stop_at: int | None = None
        try:
            while True:
                try:
                    with executing_again() if stop_at is not None else contextlib.nullcontext():
                        ex, result = self._run(stop_at)
                    return self._finish(ex, result, broken, before)
                except (Break, Raised) as e:
                    if isinstance(e, Raised):
                        self._check_escaping(e.value)
                    if self.ex.caught:
                        self.ex.end_warnings()
                        raise Failed(f"{_reason(e)} within catch_warnings()") from None
                    if isinstance(e, NeedsFrame) and self.ex.frame is self.frame or isinstance(e, NeedsPlainRun):
                        raise Failed(str(e)) from None
                    reason = _reason(e)
                    ex = self.ex
                    where, stack = isinstance(e, Break) and e.where or ex.where(), ex.stack_text()
                    if stop_at is not None or self.frame is None:
                        raise Failed(f"{reason} ({where})") from None
                    broken, stop_at = GraphBreak(reason, where, (stack,)), self.group
                    if self.group == 0:
                        raise Failed(reason) from None
                except (NeedsSizes, NeedsConstantSizes) as e:
                    self.follows_sizes, stop_at, broken = isinstance(e, NeedsSizes), None, None
                    self.policy.can_follow &= self.follows_sizes
                except NeedsSeed:
                    self.needs_seed, stop_at, broken = True, None, None
                except NeedsNoRegions:
                    self.may_have_regions, stop_at, broken = False, None, None
                except RecursionError:
                    raise Failed("too many nested calls") from None
                finally:
                    if getattr(self, "ex", None) is not None and self.ex.trace is not None:
                        self.ex.trace.stop()
                    set_mode_state(before)
        finally:
            self.frame = None

    def _check_escaping(self, raised: ExceptionValue) -> None:
        """Code after a break raises an exception anew, which would lose what it has as an exception that is on its way."""
        instruction = self.frame.instructions[self.frame.at - 1].name if self.frame is not None else ""
        if raised.cause is not None or raised.context is not None or raised.suppresses or instruction == "RERAISE":
            raise Failed(f"{raised.cls.__name__} leaves the function, with a cause or context")

    def _finish(self, ex: Executor, result: Value | None, broken: GraphBreak | None, before: tuple) -> Captured:
        code = Code(ex)
        modes = mode_state()
        suspended = [g.frame.code for g in ex.generators if g.frame.is_started and not g.is_finished and g.frame.is_in_handler]
        suspended = [code for code in suspended if code is not collections.abc.Sequence.__iter__.__code__]  # has nothing to close
        if ex.caught:
            raise Failed("the function ends within catch_warnings()")
        if suspended:
            why = f", which ends by: {broken.reason}" if broken is not None else ""
            raise Failed(f"the generator {suspended[0].co_qualname} is suspended at the end of a graph{why}")
        if result is not None:
            text = code.value(result)
        else:
            if self.options.breaks_are_errors:
                self.options.raise_break(broken)
            text = self._break_code(code, broken)
        code.effects()
        if ex.has_selection([v.example for v in code.outputs if isinstance(v, TensorValue)], only_stale=broken is None):
            why = "which is returned after a write to x" if broken is None else f"which is used after a break: {broken.reason}"
            raise Failed(f"x[i] with an integer in a tensor, {why}")
        ex.check_regions()
        ex.check_removed_objects()
        ex.add_alias_guards()
        ex.add_size_guards()
        start = ex.modes_at_start or before
        results = self._results_to_store(ex, code, result, broken, before != start or start != modes)
        if self.options.on_result is not None and result is not None:
            self.options.on_result(ex, result, self.slots)
        nodes = [v.node for v in code.outputs]
        graph, module, made = None, None, None
        if ex.calls or nodes:
            ex.graph.output(tuple(nodes))
            make = LateGraphModule if self.options.reads_nodes else GraphModule
            module = make(ex.modules, ex.graph, "GraphModule")
            module._function_name = program_name(self.entry, self.slots)
            inputs = [v.original for v in [*ex.inputs, *ex.computed]]
            if ex.trace is not None:
                ex.trace.stop()
            set_mode_state(ex.modes_at_start or before)
            graph, made = self.options.compile_graph(module, inputs, ex)
            code.namespace["program"] = getattr(made, "program", None)  # while it exists, stats() knows the Program's name
        code.namespace["set_modes"] = change_modes
        steps = [(*b[:-1], b[-1] - a[-1]) if a != b else None for a, b in ((before, start), (start, modes))]  # regions relative
        function, source = code.compile(graph, text, steps, result is not None, self.entry.code.co_name)
        has_effects = bool(ex.written or ex.globals or ex.classes or ex.releases or ex.draws or ex.prints)
        if result is None and self.entry.target >= 0 and graph is None and not has_effects and self.group <= 1:
            raise Failed(broken.reason if broken else "")
        nodes_of_inputs = [ex.guards.node(v.source) for v in ex.inputs] if graph is not None else []
        return Captured(ex.guards, nodes_of_inputs, function, source, module, broken, results, made)

    def _results_to_store(self, ex: Executor, code: Code, result: Value | None, broken: GraphBreak | None, modes_change: bool) -> Any:
        if self.entry.target >= 0 or not self.policy.is_first:
            return "captured before"
        try:
            results = Results(ex, code, result, modes_change, broken)
            return "warnings" if self.warned.may_have_warned() else results
        except CannotCheck as e:
            return str(e)

    # -- graph breaks

    def _break_code(self, code: Code, broken: GraphBreak | None) -> str:
        """The expression that continues in code which executes the instruction at the break itself."""
        frame = self.frame
        if frame.handled:
            raise Failed(f"a graph break in an except block: {broken.reason if broken else ''}")
        first = frame.at
        last = first
        while frame.instructions[last].name in ("KW_NAMES", "PRECALL"):
            last += 1
        depth = len(frame.stack)
        layout = _layout_at(frame, first, depth)
        exits = []
        at_end = frame.instructions[last]
        if at_end.name not in ("RETURN_VALUE", "RAISE_VARARGS", "RERAISE"):
            effect = sum(self._effect(i, False) for i in frame.instructions[first : last + 1])
            exits.append(self._exit(frame, last, last + 1, depth + effect, False))
            if at_end.is_jump and at_end.name not in ("JUMP_FORWARD", "JUMP_BACKWARD"):
                effect = self._effect(at_end, True)
                exits.append(self._exit(frame, last, at_end.target.index, depth + effect, True))
        stack = list(frame.stack)
        texts = [code.value(v) for v in stack]
        null_at = None  # below the function that the instruction calls
        if at_end.name in ("CALL", "CALL_FUNCTION_EX"):
            at = depth - (at_end.arg + 2 if at_end.name == "CALL" else 3 + (at_end.arg & 1))
            null_at = at if texts[at] == "call_first" else None
        rest = resume_code(frame.code, layout, first, exits, null_at)
        if at_end.name == "CALL":
            at = depth - at_end.arg - 2
            callee = at + 1 if texts[at] == "call_first" else at
            target = stack[callee]
            is_found = isinstance(target, (FunctionValue, ObjectValue)) and target.source is not None
            if is_found or isinstance(target, MethodValue):
                code.namespace["nested"] = self.options.nested
                texts[callee] = f"nested({texts[callee]})"
        slot = self.entry.layout.depth if self.entry.target >= 0 else 0
        texts.append(f"S[{slot}]")
        for local in layout.bound:
            name = frame.names[local]
            texts.append(code.value(frame.cells[name] if name in frame.cells else frame.locals[name]))
        code.namespace["rest"] = rest
        name = frame.code.co_name
        return f"FunctionType(rest, S[{slot}].__globals__, {name!r}, None, S[{slot}].__closure__)(({', '.join(texts)},))"

    @staticmethod
    def _effect(i: Instruction, jumps: bool) -> int:
        op = dis.opmap[i.name]
        return dis.stack_effect(op, i.arg if op >= dis.HAVE_ARGUMENT else None, jump=jumps)

    def _exit(self, frame: Frame, last: int, target: int, depth: int, at_target: bool) -> tuple:
        layout = _layout_at(frame, target, depth)
        return last, at_target, layout, self.options.cache(Entry(frame.code, target, layout))


def plain_rest(entry: Entry) -> types.CodeType:
    """Code that executes the rest of a function after a graph break as plain Python."""
    return resume_code(entry.code, entry.layout, entry.target, [])
