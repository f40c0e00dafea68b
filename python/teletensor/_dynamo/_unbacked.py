"""Unbacked ints: numbers and sizes that depend on values of tensors, so that the capture does not know them.

They come from `item()` of an int tensor that is used as a number (capture_scalar_outputs), and from sizes of results of `nonzero()`,
`masked_select()`, `unique()`, `bincount()` and masks (capture_dynamic_output_shape_ops), or from either with fullgraph=True. All sizes of
a tensor that was computed with one are unbacked too. Nothing is decided by them, except what torch._check() has required: everything
else ends the graph.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable
from typing import Any

from .. import _C, _grad_mode, _ops
from .._C import Tensor
from ..amp.autocast_mode import autocast
from ..fx.experimental import symbolic_shapes
from ..fx.node import has_side_effect
from ..utils import _pytree as pytree
from . import config
from ._source import constant
from ._values import (
    Break,
    ComputedFloat,
    ComputedItem,
    ConditionValue,
    Constant,
    DictValue,
    FloatValue,
    ItemValue,
    MethodValue,
    SequenceValue,
    SliceValue,
    SymbolValue,
    TensorValue,
    Value,
)

_REFLECTED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
_DENIED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}
_COMPARISONS = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
_HINT_OF_FLOAT = 0.5
_LARGE_HINT_OF_FLOAT = 41.5  # converts to int8
_OF_FLOATS = {
    **{sign: (f"({{}} {sign} {{}})", function) for sign, function in (
        ("+", operator.add), ("-", operator.sub), ("*", operator.mul), ("/", operator.truediv), ("//", operator.floordiv),
        ("%", operator.mod), ("**", operator.pow),
    )},
    "neg": ("(-{})", operator.neg), "abs": ("abs({})", abs), "max": ("max({}, {})", max), "min": ("min({}, {})", min),
}  # fmt: skip
_HINT = 2  # a number for which most calls infer metadata
# Calls whose number of results or of dimensions depends on sizes.
_BY_SIZES = frozenset((
    "squeeze", "squeeze_", "split", "chunk", "tensor_split", "unbind", "hsplit", "vsplit", "dsplit", "unsafe_split", "unsafe_chunk",
    "split_with_sizes", "meshgrid", "block_diag", "atleast_1d", "atleast_2d", "atleast_3d",
    "t_", "transpose_", "swapdims_", "swapaxes_", "unsqueeze_", "as_strided_", "resize_",  # which change the sizes of a known tensor
))  # fmt: skip
# Calls whose number of dimensions depends on an int that is no size.
_BY_INTS = frozenset(("flatten", "tensordot"))
# Context managers that let exceptions pass.
_MODES = (_grad_mode.no_grad, _grad_mode.enable_grad, _grad_mode.set_grad_enabled, _grad_mode.inference_mode, autocast)
# Functions of a tensor of unbacked sizes whose results the capture would take from its example.
OF_SIZES = frozenset((
    "stride", "is_contiguous", "is_same_size", "nbytes", "broadcast_shapes", "__len__", "equal",
))  # fmt: skip


@has_side_effect
def check_assertion(condition: Any, wanted: bool, message: tuple) -> None:
    """An assert statement about a tensor. Waits for it."""
    if bool(condition) != wanted:
        raise AssertionError(*message)


def _checked(function: Callable, name: str) -> Callable:
    """The function as the target of nodes that are neither removed nor moved, because it raises errors; adds no frame to tracebacks."""
    made = functools.partial(function)
    made.__name__ = made.__qualname__ = name
    made.__module__ = __name__
    return has_side_effect(made)


# Pickled graphs import them by these names.
checked_truediv = _checked(operator.truediv, "checked_truediv")
checked_floordiv = _checked(operator.floordiv, "checked_floordiv")
checked_mod = _checked(operator.mod, "checked_mod")
checked_pow = _checked(operator.pow, "checked_pow")
_CHECKED = {"/": checked_truediv, "//": checked_floordiv, "%": checked_mod, "**": checked_pow}


class ItemExample(float):
    """The example of a float that item() returns, which check_floats() replaces by plain floats."""

    def __new__(cls) -> ItemExample:
        return super().__new__(cls, _HINT_OF_FLOAT)


class Unbacked:
    """A part of Executor."""

    uses_unbacked = False
    is_whole = False  # with fullgraph=True, which captures such numbers whatever the settings are
    _facts: set[tuple]

    def begin_unbacked(self) -> None:
        """Begins a capture in which nothing is unbacked."""
        self._facts = set()
        self._bounds: dict[int, list[int | None]] = {}  # of a symbol, inclusive

    def has_unbacked(self, values: list[Value]) -> bool:
        """Whether a number or size among values and in their containers is unbacked."""
        for value in values:
            value = self.real(value)
            if isinstance(value, (SymbolValue, TensorValue)) and value.is_unbacked or isinstance(value, ItemValue) and value.cls is int:
                return True
            if isinstance(value, SequenceValue) and self.has_unbacked(value.items):
                return True
            if isinstance(value, SliceValue) and self.has_unbacked(value.parts):
                return True
            if isinstance(value, DictValue) and self.has_unbacked([v for _, v in value.items.values()]):
                return True
        return False

    def as_number(self, value: Value) -> Value:
        """The symbol of an int that item() returns; other values themselves."""
        if not isinstance(value, ItemValue) or value.cls is not int:
            return value
        if value.symbol is None:
            self._begin_use()
            value.symbol = SymbolValue(self._hint_of_item(value), ("item", value), is_unbacked=True)
        return value.symbol

    def float_of_items(self, sign: str, *operands: Value) -> Value | None:
        """The result of an operation of numbers of which one at least is a float that item() returns; None if it is not followed."""
        operands = tuple(self.as_number(v) for v in operands)
        is_float = sign == "/" or any(isinstance(v, Constant) and type(v.value) is float for v in operands)
        if sign not in _OF_FLOATS or not any(is_item(v) or is_float and is_unknown(v) for v in operands):
            return None
        if sign == "**" and not (isinstance(operands[1], Constant) and type(operands[1].value) is int and operands[1].value >= 0):
            return None  # it may be a complex number
        text, function = _OF_FLOATS[sign]
        for value in operands:
            is_number = isinstance(value, Constant) and type(value.value) in (int, float)
            if not (is_number or is_item(value) or isinstance(value, SymbolValue)):
                return None
        divisor = operands[-1] if sign in ("/", "//", "%") else None
        if isinstance(divisor, Constant) and divisor.value == 0:
            raise Break(f"{sign} by zero")
        made = ComputedItem(text, function, operands)
        if sign == "**" or divisor is not None and self.may_be_zero(divisor):
            made.node = self.checked_node(sign, operands)
        else:
            made.place = self.place()
        return made

    def may_be_zero(self, divisor: Value) -> bool:
        """Whether a divisor depends on values, and nothing has required that it is not zero."""
        is_known = isinstance(divisor, SymbolValue) and self._decided("!=", divisor, Constant(0))
        return is_unknown(divisor) and not is_known

    def checked_node(self, sign: str, operands: tuple[Value, ...]) -> Any:
        """The node of an operation of numbers that may raise an error. It is made at once, because later writes must not precede it."""
        if self._catches(self.frame):
            raise Break(f"{sign} of numbers that depend on values, whose error may be caught")
        if self.has_effects():
            raise Break(f"{sign} of numbers that depend on values, whose error would follow writes to Python objects")
        self._begin_use()
        node = self.graph.call_function(_CHECKED[sign], tuple(self.arguments(v)[0] for v in operands))
        self.note_place(node)
        self.calls += 1
        return node

    def node_of_item(self, value: ItemValue | ComputedItem) -> Any:
        """The node of the graph whose result is a float."""
        if value.node is None:
            self._begin_use()
            if isinstance(value, ItemValue):
                value.node = self.graph.call_method("item", (self.node_of(value.tensor),))
                self.note_place(value.node)
            else:
                value.node = self.graph.call_function(value.function, tuple(self.arguments(v)[0] for v in value.operands))
                self.note_place(value.node, value.place)
        return value.node

    def _begin_use(self) -> None:
        if self._bodies:
            raise Break("a size that depends on values in a function that an operator calls")
        self.uses_unbacked = True

    def _hint_of_item(self, value: ItemValue) -> int:
        tensor = value.source_tensor
        if tensor is None or tensor.original is None or self.mutates:
            return _HINT
        return max(int(tensor.original.item()), _HINT)

    def unbacked_size(self, value: TensorValue, expression: tuple, example: Any) -> SymbolValue:
        """A size of a tensor with unbacked sizes; the same value each time."""
        key = ("size", *expression[2:])
        if key not in value.attributes:
            number = example if type(example) is _C.SymInt else int(example)  # of a marked size the trace follows the symbol
            made = value.attributes[key] = SymbolValue(number, expression, is_unbacked=True)
            if not value.is_unbacked:  # an input that is marked
                least, most = getattr(value.original, "_dynamo_dynamic_ranges", {}).get(expression[2], (None, None))
                self.keep.append(made)
                self._bounds[id(made)] = [max(2, least or 2), most]
        return value.attributes[key]

    # -- comparisons

    def condition(self, sign: str, a: Value, b: Value) -> Value:
        """A comparison of ints of which one is unbacked: a constant if it follows from what was required."""
        found = self._decided(sign, a, b)
        return ConditionValue(sign, a, b) if found is None else Constant(found)

    def _key(self, value: Value) -> Any:
        return ("is", id(value)) if isinstance(value, SymbolValue) else value.value

    def _decided(self, sign: str, a: Value, b: Value) -> bool | None:
        if a is b:
            return sign in ("==", "<=", ">=")
        fact = sign, self._key(a), self._key(b)
        if fact in self._facts:
            return True
        if (_DENIED[sign], *fact[1:]) in self._facts:
            return False
        if isinstance(a, Constant):
            a, b, sign = b, a, _REFLECTED[sign]
        if not isinstance(b, Constant):
            return None
        least, most = self._bounds.get(id(a), (None, None))
        n = b.value
        below, above = most is not None and most < n, least is not None and least > n
        at_most, at_least = most is not None and most <= n, least is not None and least >= n
        yes, no = {
            "<": (below, at_least), "<=": (at_most, above), ">": (above, at_most), ">=": (at_least, below),
            "==": (at_most and at_least, below or above), "!=": (below or above, at_most and at_least),
        }[sign]  # fmt: skip
        return True if yes else False if no else None

    def require(self, condition: ConditionValue) -> None:
        """Follows what a check in the graph requires."""
        sign, a, b = condition.sign, condition.left, condition.right
        self.keep += [a, b]
        self._facts |= {(sign, self._key(a), self._key(b)), (_REFLECTED[sign], self._key(b), self._key(a))}
        if isinstance(a, Constant):
            a, b, sign = b, a, _REFLECTED[sign]
        if not isinstance(b, Constant):
            return
        bounds = self._bounds.setdefault(id(a), [None, None])
        least = {">": b.value + 1, ">=": b.value, "==": b.value}.get(sign)
        most = {"<": b.value - 1, "<=": b.value, "==": b.value}.get(sign)
        if least is not None:
            bounds[0] = least if bounds[0] is None else max(bounds[0], least)
        if most is not None:
            bounds[1] = most if bounds[1] is None else min(bounds[1], most)

    def truth_of_condition(self, condition: ConditionValue) -> bool:
        """Whether a comparison holds. Ends the graph if that is not known."""
        found = self._decided(condition.sign, condition.left, condition.right)
        if found is None:
            raise Break("data-dependent control flow: a comparison of a number that depends on values; torch._check() can require it")
        return found

    def asserts(self, frame: Any, jump: Any, wanted: bool) -> bool:
        """Makes a node of an assert statement about a tensor, to whose end `jump` leads if the truth is `wanted`."""
        value, after = self.real(frame.stack[-1]), frame.instructions[jump.index + 1 : jump.index + 6]
        names = [i.name for i in after if i.name != "PRECALL"]
        if self._catches(frame) or self.has_effects():
            return False
        if not isinstance(value, TensorValue) or value.example.numel() != 1 or names[0] != "LOAD_ASSERTION_ERROR":
            return False
        if names[1] == "RAISE_VARARGS":
            message: tuple = ()
        elif names[1:4] == ["LOAD_CONST", "CALL", "RAISE_VARARGS"]:
            message = (frame.code.co_consts[after[1].arg],)
        else:
            return False
        self._begin_use()
        self.note_place(self.graph.call_function(check_assertion, (self.node_of(value), wanted, message)))
        self.calls += 1
        return True

    @staticmethod
    def _catches(frame: Any) -> bool:
        """Whether the frame or a caller may catch an exception, which a node raises outside of both."""
        while frame is not None:
            i = frame.instructions[max(frame.at - 1, 0)]
            while i.handler is not None:
                target, depth, _ = i.handler
                names = [each.name for each in frame.instructions[target.index : target.index + 2]]
                if names == ["PUSH_EXC_INFO", "WITH_EXCEPT_START"]:
                    leave = frame.stack[depth - 1]
                    if not (isinstance(leave, MethodValue) and leave.self.cls in _MODES):
                        return True
                elif names[0] != "COPY":  # with which the end of a handler begins
                    return True
                i = next(each for each in frame.instructions[target.index :] if each.name == "RERAISE")
            frame = frame.caller
        return False

    def has_effects(self) -> bool:
        """Whether the function has had effects in Python, which are lost if the graph raises an exception."""
        is_written = any(v.source is not None for v in self.written.values())
        return bool(is_written or self.globals or self.classes or self.releases or self.draws or self.prints)

    # -- calls

    def check_floats(self, name: str, infer: Callable, args: list, kwargs: dict[str, Any]) -> tuple[list, dict[str, Any]]:
        """Ends the graph at a call whose results have other sizes, strides or dtypes for other floats of item().

        Args:
            name: of the function that is called.
            infer: returns results without values.
            args, kwargs: examples of the arguments, with an ItemExample for each such float.

        Returns:
            The examples, with plain floats.
        """
        leaves, spec = pytree.tree_flatten((args, kwargs))
        count = sum(type(leaf) is ItemExample for leaf in leaves)
        if count == 0:
            return args, kwargs

        def with_floats(numbers: Iterable[float], copies: bool) -> Any:
            given = iter(numbers)
            copied = [leaf.clone() if copies and isinstance(leaf, Tensor) else leaf for leaf in leaves]
            return pytree.tree_unflatten([next(given) if type(leaf) is ItemExample else leaf for leaf in copied], spec)

        def metadata(numbers: Iterable[float]) -> Any:
            given, keywords = with_floats(numbers, True)  # copies, because the call may write to its arguments
            try:
                found = pytree.tree_leaves(infer(*given, **keywords))
            except Exception:  # noqa: BLE001 - the call itself raises it if both floats do
                return None
            return [(x.shape, x.stride(), x.dtype) if isinstance(x, Tensor) else x for x in found]

        small = [_HINT_OF_FLOAT] * count
        if metadata(small) != metadata(_LARGE_HINT_OF_FLOAT + 2 * i for i in range(count)):  # also of differences, as in arange(a, b)
            raise Break(f"{name}() with a float that depends on values, which may set a size")
        return with_floats(small, False)

    def check_unbacked_call(self, name: str, args: list[Value], kwargs: dict[str, Value], result: Any) -> None:
        """Ends the graph at a call with unbacked sizes whose result has another structure for other sizes."""
        numbers = [v for v in (*args, *kwargs.values()) if not isinstance(self.real(v), TensorValue)]
        if name in _BY_SIZES or type(result) in (list, tuple) or name in _BY_INTS and self.has_unbacked(numbers):
            raise Break(f"{name}() with sizes that depend on values")

    def call_of_dynamic_shape(self, op: str, target: Any, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
        """A call whose results' sizes depend on values, such as x.nonzero() and x[mask], if graphs may contain them; else None.

        Args:
            op, target: of the node: "call_method" with a name, or "call_function" with a function.
        """
        value = self.real(args[0]) if args else None
        if not (config.capture_dynamic_output_shape_ops or self.is_whole) or not isinstance(value, TensorValue):
            return None
        if value.example.numel() == 0:
            return None
        name = target if isinstance(target, str) else target.__name__
        made = _results_by_values(self, name, value, args[1:], kwargs)
        if made is None:
            return None
        self._begin_use()
        keywords = {k: self.arguments(v)[0] for k, v in kwargs.items()}
        node = self.graph.create_node(op, target, tuple(self.arguments(a)[0] for a in args), keywords)
        self.note_place(node)
        self.calls += 1
        found = self._result(made, node, {}, True)
        if name in ("nonzero", "argwhere") and isinstance(found, TensorValue):
            found.known_dims = (1, -1)
        return found

    def has_known_dim(self, name: str, args: list[Value], kwargs: dict[str, Value]) -> bool:
        """Whether squeeze() or unbind() is that of a dimension whose size does not depend on values, of rows of indices."""
        value = self.real(args[0]) if args else None
        given = [*args[1:], *kwargs.values()]
        if name not in ("squeeze", "unbind") or not isinstance(value, TensorValue) or len(given) != 1:
            return False
        dim = self.real(given[0])
        return isinstance(dim, Constant) and dim.value in value.known_dims

    def call_check(self, function: Any, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """torch._check(condition) and the like: a node of the graph if the condition is unbacked."""
        condition = self.real(args[0]) if args else None
        if not isinstance(condition, ConditionValue):
            return self.inline(self.wrap(function, constant(function)), args, kwargs)
        self._add_check(function, condition, args[1] if len(args) > 1 else kwargs.get("message"))
        return Constant(None)

    def place(self) -> tuple:
        """The user's line, as text and as a tuple."""
        return self.stack_text(), self.site()

    def note_place(self, node: Any, place: tuple | None = None) -> None:
        """Remembers the user's line of a node, which errors name when the graph runs; `place`: that of an earlier instruction."""
        node.meta["stack_trace"], node.meta["site"] = place or self.place()

    def call_check_is_size(self, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """torch._check_is_size(n, max=)."""
        number = self.as_number(self.real(args[0])) if args else None
        if not isinstance(number, SymbolValue) or not number.is_unbacked:
            function = _ops.assertions._check_is_size
            return self.inline(self.wrap(function, constant(function)), args, kwargs)
        message = args[1] if len(args) > 1 else kwargs.get("message")
        self._add_check(_ops.assertions._check, ConditionValue(">=", number, Constant(0)), message)
        most = self.real(kwargs["max"]) if "max" in kwargs else Constant(None)
        if not isinstance(most, Constant) or most.value is not None:
            self._add_check(_ops.assertions._check, ConditionValue("<=", number, self.as_number(most)), message)
        return Constant(None)

    def _add_check(self, function: Any, condition: ConditionValue, message: Value | None) -> None:
        message = Constant(None) if message is None else self.real(message)
        if isinstance(message, Constant) and isinstance(message.value, (str, type(None))):
            text = message.value
        else:
            text = str(self.python_value(self.call(message, [], {})))  # ends the graph if it is not known
        self.note_place(self.graph.call_function(function, (self.node_of_condition(condition), *([] if text is None else [text]))))
        self.calls += 1
        self.require(condition)

    def node_of_condition(self, condition: ConditionValue) -> Any:
        """The node that computes a comparison."""
        sides = [self.node_of_symbol(v) if isinstance(v, SymbolValue) else v.value for v in (condition.left, condition.right)]
        return self.graph.call_function(_COMPARISONS[condition.sign], tuple(sides))


def is_item(value: Value) -> bool:
    """Whether the value is a float that item() returns, or that is computed from one."""
    return isinstance(value, ComputedItem) or isinstance(value, ItemValue) and value.cls is float


def is_unknown(value: Value) -> bool:
    """Whether a number depends on values."""
    return is_item(value) or isinstance(value, SymbolValue) and value.is_unbacked


# Functions and methods whose results' sizes depend on values.
BY_VALUES = frozenset(("nonzero", "argwhere", "where", "masked_select", "bincount", "unique", "unique_consecutive", "repeat_interleave"))


def _results_by_values(ex: Any, name: str, value: TensorValue, args: list[Value], kwargs: dict[str, Value]) -> Any:
    """What a call returns if it finds _HINT elements; None if its sizes do not depend on values, or it is not known."""
    example = value.example
    if name == "getitem":
        return _selected(ex, example, args[0])
    others = [ex.real(v) for v in args]
    if name == "masked_select":
        mask = others[0] if len(others) == 1 and not kwargs else None
        is_mask = isinstance(mask, TensorValue) and mask.example.dtype == _C.bool
        return example.flatten()[:1].expand(_HINT) if is_mask else None
    if name == "repeat_interleave":
        return _repeated(ex, example, others, kwargs)
    if any(isinstance(v, TensorValue) for v in [*others, *map(ex.real, kwargs.values())]):
        return None
    options = {k: ex.python_value(v) for k, v in kwargs.items()}
    if name in ("nonzero", "argwhere", "where"):
        is_tuple = name == "where" or options == {"as_tuple": True}
        if others or options and options.keys() != {"as_tuple"}:
            return None
        dims = example.dim()
        if is_tuple:
            return tuple(_indices(example) for _ in range(max(dims, 1)))
        return _C.torch.empty([_HINT, dims], dtype=_C.int64, device=example.device)
    if name == "bincount":
        least = ex.python_value(others[-1]) if len(others) == 2 else options.get("minlength", 0)
        is_known = not options.keys() - {"minlength"} and len(others) != 1 and type(least) is int
        return _indices(example).new_empty(max(least, _HINT)) if is_known else None
    parts = ["return_inverse", "return_counts"]
    if others or options.keys() - {"sorted", "dim", *parts} or options.get("dim") is not None:
        return None
    found = [example.flatten()[:1].expand(_HINT).clone()]
    if options.get("return_inverse"):
        found.append(_C.torch.empty(example.shape, dtype=_C.int64, device=example.device))
    if options.get("return_counts"):
        found.append(_indices(example))
    return found[0] if len(found) == 1 else tuple(found)


def _repeated(ex: Any, example: Any, others: list[Value], kwargs: dict[str, Value]) -> Any:
    """repeat_interleave() with counts in a tensor."""
    given = dict(zip(("repeats", "dim"), others)) | {k: ex.real(v) for k, v in kwargs.items()}
    dim = ex.python_value(given.pop("dim", Constant(None)))
    if not isinstance(given.pop("repeats", None), TensorValue) or given or not (dim is None or type(dim) is int):
        return None
    if dim is None:
        return example.flatten()[:1].expand(_HINT).clone()
    return example.narrow(dim, 0, 1).repeat_interleave(_HINT, dim)


def _indices(example: Any) -> Any:
    return _C.torch.zeros([_HINT], dtype=_C.int64, device=example.device)


def _selected(ex: Any, example: Any, index: Value) -> Any:
    """x[index] with a mask in the index."""
    index = ex.real(index)
    parts = index.items if isinstance(index, SequenceValue) and index.cls is tuple else [index]
    parts = [ex.real(part) for part in parts]
    if not any(isinstance(p, TensorValue) and p.example.dtype == _C.bool and p.example.dim() > 0 for p in parts):
        return None
    places: list[Any] = []
    dim = 0
    for part in parts:
        if isinstance(part, TensorValue) and part.example.dtype == _C.bool:
            dims = part.example.dim()
            if dims == 0:
                return None
            if part.example.shape != example.shape[dim : dim + dims]:
                mask, of = list(part.example.shape), list(example.shape)
                raise Break(f"IndexError: The shape of the mask {mask} at index {dim} does not match the shape of the indexed tensor {of}")
            places += [_indices(example)] * dims  # a mask selects as the indices of its elements do
            dim += dims
            continue
        places.append(ex.arguments(part)[1])
        if isinstance(part, Constant) and part.value is ...:
            return None
        dim += not (isinstance(part, Constant) and part.value is None)
    return example[tuple(places)]


def _ask(default: bool) -> Any:
    """The handler of guard_or_false() and the like: the outcome of a comparison, or `default` if it is not known."""

    def known(ex: Any, args: list, kwargs: dict) -> Value:
        condition = ex.real(args[0] if args else next(iter(kwargs.values())))
        if not isinstance(condition, ConditionValue):
            return Constant(ex.truth(condition))
        found = ex._decided(condition.sign, condition.left, condition.right)
        return Constant(default if found is None else found)

    return known


def _ask_if_false(ex: Any, args: list, kwargs: dict) -> Value:
    return Constant(not _ask(True)(ex, args, kwargs).value)


def _is_symbolic(expected: bool) -> Any:
    def asked(ex: Any, args: list, kwargs: dict) -> Value:
        value = ex.real(args[0] if args else next(iter(kwargs.values())))
        return Constant(isinstance(value, (SymbolValue, ItemValue, ConditionValue, FloatValue, ComputedFloat)) == expected)

    return asked


FUNCTIONS = {
    **{f: _ask(False) for f in (symbolic_shapes.guard_or_false, symbolic_shapes.statically_known_true)},
    symbolic_shapes.guard_or_true: _ask(True), symbolic_shapes.statically_known_false: _ask_if_false,
    symbolic_shapes.is_symbolic: _is_symbolic(True),
    **{
        f: _is_symbolic(False) for f in (
            symbolic_shapes.is_concrete_int, symbolic_shapes.is_concrete_float, symbolic_shapes.is_concrete_bool,
            symbolic_shapes.has_static_value,
        )
    },
    **{
        function: lambda ex, args, kwargs, function=function: ex.call_check(function, args, kwargs)
        for function in (_ops.assertions._check, _ops.assertions._check_value, _ops.assertions._check_index)
    },
    _ops.assertions._check_is_size: lambda ex, args, kwargs: ex.call_check_is_size(args, kwargs),
}
