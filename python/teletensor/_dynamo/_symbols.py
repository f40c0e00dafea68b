"""Ints that differ from call to call: sizes of tensors, ints that the function receives, and what it computes from them.

Their examples are SymInts of the trace that infers metadata: a comparison of one is noted there, and later calls for which it
would have another result are captured again (_C.SizeChecks). Graphs contain nodes that compute them.
"""

from __future__ import annotations

import functools
import math
import operator
from typing import Any

from .. import _C
from .._toplevel import symbols
from ..fx.experimental.symbolic_shapes import ConstraintViolationError
from ..nn import Buffer, Parameter
from ._sizes import SizePolicy
from ._source import (
    CHECK_DYNAMIC_INT,
    CHECK_EQUAL,
    CHECK_SIZES,
    CHECK_TYPE,
    DICT_ITEM,
    LIST_ITEM,
    SLOT,
    TUPLE_ITEM,
    Source,
)
from ._values import (
    Break,
    ComputedFloat,
    Constant,
    FloatOperand,
    FloatValue,
    SequenceValue,
    SymbolValue,
    TensorValue,
    Value,
)

# Operations whose results are symbols, with the text of the generated code.
_OPERATIONS = {
    "+": (operator.add, "({} + {})"), "-": (operator.sub, "({} - {})"), "*": (operator.mul, "({} * {})"),
    "//": (operator.floordiv, "({} // {})"), "%": (operator.mod, "({} % {})"), "neg": (operator.neg, "(-{})"),
    "max": (symbols.sym_max, "max({}, {})"), "min": (symbols.sym_min, "min({}, {})"),
}  # fmt: skip
_FLOAT_OPERATIONS = {
    "/": operator.truediv, "**": operator.pow, "+": operator.add, "-": operator.sub, "*": operator.mul,
}  # fmt: skip


# By the text of the generated code: functions that the trace, too, computes of SymInts.
_TRACED_FLOATS = {
    **{f"({{}} {sign} {{}})": functools.partial(symbols.SymFloat.of, sign) for sign in _FLOAT_OPERATIONS},
    "float({})": symbols.sym_float, "math.sqrt({})": symbols.sym_sqrt, "abs({})": abs, "(-{})": operator.neg,
}  # fmt: skip


class NeedsSizes(Exception):  # noqa: N818 - begins the capture again
    """A tensor has a mark that its sizes are symbols; the capture has begun without symbols."""


class NeedsConstantSizes(Exception):  # noqa: N818 - begins the capture again
    """The function does what cannot be followed with symbols."""


class Symbols:
    """A part of Executor.

    Attributes:
        follows_sizes: whether the trace records what depends on sizes.
    """

    sizes: SizePolicy
    follows_sizes: bool
    _symbols: dict[int, SymbolValue]
    _floats: dict[int, FloatValue]
    # The inputs of the trace, in order; without a source one that this package has made.
    _traced: list[tuple[Source | None, list[int], tuple[int, ...], Any]]

    def begin_symbols(self, policy: SizePolicy, follows_sizes: bool) -> None:
        """Sets the policy of the capture."""
        self.sizes, self.follows_sizes = policy, follows_sizes
        self._symbols, self._floats, self._traced = {}, {}, []

    def dims_of(self, tensor: Any, cls: type, source: Source) -> tuple[int, ...]:
        """The dimensions of an existing tensor whose sizes are symbols."""
        is_static = cls in (Parameter, Buffer) or source.is_static
        dims = self.sizes.dims_of(tensor, source.text(self.slot_names), is_static)
        if dims and not self.follows_sizes:
            has_marks = hasattr(tensor, "_dynamo_dynamic_indices") or hasattr(tensor, "_dynamo_weak_dynamic_indices")
            if has_marks and self.sizes.can_follow:
                raise NeedsSizes
            return ()
        return dims

    def note_traced(self, source: Source, value: TensorValue) -> None:
        """Remembers an input of the trace."""
        self._traced.append((source, list(value.original.shape), value.dims, value.original))
        for dim, (least, most) in getattr(value.original, "_dynamo_dynamic_ranges", {}).items():
            if dim in value.dims:
                size = value.example.size(dim)
                _ = bool(least is None or size >= least), bool(most is None or size <= most)  # compared in later calls

    def stand_in_for_own(self, tensor: Any) -> Any:
        """A stand-in for a tensor that is the same for all calls."""
        example = self.stand_in(tensor)
        self._traced.append((None, list(tensor.shape), (), tensor))
        return example

    def wrap_int(self, obj: int, source: Source) -> Value:
        """An existing int: a symbol or a constant."""
        name = source.text(self.slot_names)
        if source.is_static or not self.sizes.is_symbol(obj, name, _is_argument(source)) or not self.follows_sizes:
            self.guards.check(CHECK_EQUAL, source, obj)
            return Constant(obj, source)
        node = self.guards.node(source)
        known = self._symbols.get(node)
        if known is None:
            self.guards.check(CHECK_DYNAMIC_INT, source)
            # A tensor without elements, one of whose sizes is the number.
            carrier = _C.torch.empty([obj, 0])
            example = self.stand_in(carrier, (0,)).size(0)
            known = self._symbols[node] = SymbolValue(example, ("int",), source)
            known.original = obj
            self._traced.append((source, [obj, 0], (0,), None))
        return known

    def symbol(self, example: Any, expression: tuple) -> Value:
        """The value of a SymInt, or of an int."""
        return SymbolValue(example, expression) if type(example) is _C.SymInt else Constant(example)

    def size_at(self, value: TensorValue, dim: int) -> Value:
        """The size of a tensor in a dimension."""
        if value.is_unbacked or dim in unbacked_dims(value):
            return self.unbacked_size(value, ("size", value, dim), value.example.shape[dim])
        return self.symbol(value.example.size(dim), ("size", value, dim))

    def shape_of(self, value: TensorValue) -> Value:
        """The sizes of a tensor."""
        if not self.follows_sizes and not value.is_unbacked:
            return self.constant_value(value.example.shape)
        return SequenceValue([self.size_at(value, i) for i in range(value.example.dim())], _C.Size)

    def wrap_float(self, obj: float, source: Source) -> Value:
        """An existing float: a constant or an input of the graph."""
        name = source.text(self.slot_names)
        if source.is_static or not self.sizes.is_input(obj, name, _is_argument(source)):
            self.guards.check(CHECK_EQUAL, source, obj)
            return Constant(obj, source)
        node = self.guards.node(source)
        if node not in self._floats:
            self.guards.check(CHECK_TYPE, source, float)
            self._floats[node] = FloatValue(obj, source)
        return self._floats[node]

    def float_operand(self, value: Value, sign: str, other: Value) -> Value:
        """A FloatValue as an operand: an input of the graph if a tensor without dimensions has the same effect, or a constant."""
        if not isinstance(value, FloatValue):
            return value
        if sign.rstrip("=") in ("+", "-", "*", "/") and isinstance(other, TensorValue):
            example = other.example
            if example.dtype in (_C.float32, _C.float64) and example.dim() > 0 and example.device.type == "cpu":
                return FloatOperand(value)
        return self.plain(value)

    def computed_float(self, text: str, function: Any, *operands: Value) -> Value | None:
        """The float that a function computes from numbers of which one at least is a symbol; None if it cannot stay one."""
        if not any(isinstance(v, (SymbolValue, ComputedFloat)) for v in operands):
            return None
        if not self.follows_sizes or not all(self._is_read_before_the_graph(v) for v in operands):
            return None
        hints = [self._hint(v) for v in operands]
        if any(hint is None for hint in hints):
            return None
        try:
            found = function(*hints)
        except (ArithmeticError, ValueError):
            return None
        return ComputedFloat(found, (text, *operands)) if type(found) is float else None

    def _is_read_before_the_graph(self, value: Value) -> bool:
        if isinstance(value, Constant):
            return type(value.value) in (int, float)
        if isinstance(value, ComputedFloat):
            return True
        if not isinstance(value, SymbolValue):
            return False
        name, *rest = value.expression
        if name in ("size", "numel"):
            return rest[0].source is not None
        return name == "int" or name != "node" and all(self._is_read_before_the_graph(v) for v in rest)

    def _hint(self, value: Value) -> float | None:
        """The number in the call that is captured, of which no later call is required."""
        if isinstance(value, Constant):
            return value.value
        if isinstance(value, ComputedFloat):
            return value.original
        name, *rest = value.expression
        if name == "int":
            return value.original
        if name in ("size", "numel"):
            tensor = rest[0].original
            return None if tensor is None else tensor.size(*rest[1:]) if name == "size" else tensor.numel()
        hints = [self._hint(v) for v in rest]
        return None if any(h is None for h in hints) else _OPERATIONS[name][0](*hints)

    def symbolic_number(self, value: Value) -> Any:
        """A number of which later calls may have another one, as the trace computes with it; None if it does not."""
        if isinstance(value, SymbolValue):
            return None if value.is_unbacked else value.example
        if isinstance(value, Constant):
            return value.value if type(value.value) in (int, float) else None
        if not isinstance(value, ComputedFloat) or value.expression[0] not in _TRACED_FLOATS:
            return None
        parts = [self.symbolic_number(v) for v in value.expression[1:]]
        return None if None in parts else _TRACED_FLOATS[value.expression[0]](*parts)

    def text_of_float(self, value: ComputedFloat, code: Any) -> str:
        """The expression of the generated code that computes a float."""
        text, *operands = value.expression
        parts = [self.text_of_float(v, code) if isinstance(v, ComputedFloat) else code.value(v) for v in operands]
        code.namespace.setdefault("math", math)
        return text.format(*parts)

    def _require(self, value: Value) -> None:
        for part in value.expression[1:]:
            if isinstance(part, SymbolValue):
                _ = part.value
            elif isinstance(part, ComputedFloat):
                self._require(part)

    def plain(self, value: Value) -> Value:
        """A constant instead of a number that differs from call to call, which every call must then have; other values themselves."""
        if isinstance(value, ComputedFloat):
            self._require(value)
            return Constant(value.original)
        if isinstance(value, FloatValue):
            self.guards.check(CHECK_EQUAL, value.source, value.original)
            return Constant(value.original, value.source)
        return Constant(value.value) if isinstance(value, SymbolValue) else value

    def operation(self, name: str, *operands: Value) -> Value:
        """The result of an operation of symbols and of constants that are ints."""
        examples = [v.example if isinstance(v, SymbolValue) else v.value for v in operands]
        if any(isinstance(v, SymbolValue) and v.is_unbacked for v in operands):
            is_marked = any(type(v) is _C.SymInt for v in examples)
            if name in ("//", "%") and not is_marked and not examples[1]:
                raise Break("a division by a number that depends on values")
            numbers = examples if is_marked else map(int, examples)
            made = SymbolValue(_OPERATIONS[name][0](*numbers), (name, *operands), is_unbacked=True)
            if name in ("//", "%") and not is_marked and self.may_be_zero(operands[1]):
                made.node = self.checked_node(name, operands)
            else:
                made.place = self.place()
            return made
        return self.symbol(_OPERATIONS[name][0](*examples), (name, *operands))

    def binary_of_symbols(self, sign: str, a: Value, b: Value) -> Value | None:
        """a + b and the like, if both are numbers and the result is a symbol; None otherwise."""
        if sign in ("/", "**", "+", "-", "*") and not (sign == "**" and isinstance(a, Constant) and a.value < 0):
            if sign in ("/", "**") or any(not is_symbolic_operand(v) for v in (a, b)):
                found = self.computed_float(f"({{}} {sign} {{}})", _FLOAT_OPERATIONS[sign], a, b)
                if found is not None:
                    return found
        if sign == "**" and isinstance(a, SymbolValue) and isinstance(b, Constant) and type(b.value) is int and 1 <= b.value <= 4:
            found = a
            for _ in range(b.value - 1):
                found = self.operation("*", found, a)
            return found
        if sign not in _OPERATIONS or not all(is_symbolic_operand(v) for v in (a, b)):
            return None
        if sign in ("//", "%") and isinstance(b, Constant) and b.value == 0:
            return None
        return self.operation(sign, a, b)

    # -- graph and code

    def node_of_symbol(self, value: SymbolValue) -> Any:
        """The node of the graph that computes a symbol."""
        if value.node is None or not self.is_here(value.node):
            value.node = self._make_node(value)
        return self.here(value.node)

    def _make_node(self, value: SymbolValue) -> Any:
        name, *operands = value.expression
        if name == "int":
            return self.add_input(value, value.source.text(self.slot_names))
        if name == "node":
            return operands[0]
        if name == "item":
            node = self.graph.call_method("item", (self.node_of(operands[0].tensor),))
            self.note_place(node)
            return node
        if name in ("size", "numel"):
            tensor, *rest = operands
            node = self.graph.call_method(name, (self.node_of(tensor), *rest))
        else:
            args = [self.node_of_symbol(v) if isinstance(v, SymbolValue) else v.value for v in operands]
            node = self.graph.call_function(_OPERATIONS[name][0], tuple(args))
        node.meta["example_value"] = value.example
        self.note_place(node, value.place)
        return node

    def text_of_symbol(self, value: SymbolValue, code: Any) -> str:
        """The expression of the generated code that computes a symbol."""
        name, *operands = value.expression
        if name == "int":
            return code.read(value.source)
        if name == "node":
            return str(value.value)
        if name == "item":
            return code.value(operands[0])
        if name in ("size", "numel"):
            tensor, *rest = operands
            if tensor.source is not None:  # before the graph runs
                return code.read_metadata(tensor.source, f".{name}({', '.join(map(str, rest))})")
            return f"{code.value(tensor)}.{name}({', '.join(map(str, rest))})"
        return _OPERATIONS[name][1].format(*(code.value(v) for v in operands))

    # -- guards

    def add_size_guards(self) -> None:
        """Adds the guard that repeats all decisions by sizes. Nothing can be traced afterwards."""
        if not self.follows_sizes or self.trace is None or not any(dims for _, _, dims, _ in self._traced):
            return
        checks = self.trace.size_checks()
        nodes = tuple(-1 if source is None else self.guards.node(source) for source, *_ in self._traced)
        self.guards.check(CHECK_SIZES, None, (checks, nodes))
        for at, (source, sizes, dims, tensor) in enumerate(self._traced):
            for dim in sorted(set(getattr(tensor, "_dynamo_dynamic_indices", ())) & set(dims)):
                if not self._may_differ(checks, at, dim, sizes[dim]):
                    raise ConstraintViolationError(
                        f"Constraints violated ({source.text(self.slot_names)}.size()[{dim}])! You marked the size as dynamic but your "
                        f"code specialized it to be a constant ({sizes[dim]}). Either remove the mark_dynamic or use a less strict API "
                        "such as maybe_mark_dynamic."
                    )

    def _may_differ(self, checks: Any, at: int, dim: int, size: int) -> bool:
        for other in {2 * size, 2 * size + 3, size + 1, size - 1, 4 * size, size // 2} - {size, 0, 1}:
            together = [[other if s == size and i in dims else s for i, s in enumerate(sizes)] for _, sizes, dims, _ in self._traced]
            alone = [list(sizes) for _, sizes, _, _ in self._traced]
            alone[at][dim] = other
            if checks.hold(together) or checks.hold(alone):
                return True
        return False


def unbacked_dims(value: TensorValue) -> Any:
    """The dimensions whose sizes are symbols by which nothing may be decided (mark_unbacked)."""
    marks = getattr(value.original, "_dynamo_unbacked_indices", ())
    return set(marks) & set(value.dims) if marks else ()


def is_symbolic_operand(value: Value) -> bool:
    """Whether the value is a symbol or an int."""
    return isinstance(value, SymbolValue) or isinstance(value, Constant) and type(value.value) is int


def _is_argument(source: Source) -> bool:
    while source.kind in (TUPLE_ITEM, LIST_ITEM, DICT_ITEM) and source.parent is not None:
        source = source.parent
    return source.kind == SLOT
