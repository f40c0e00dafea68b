"""Layout and SizeNodes: the sizes of a recording's tensors as expressions, and the nodes of its graph that compute them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ... import _C
from ..._C import SizeFacts, Tensor
from ..._library import aten
from ..._symbolic_bool import SymBool
from ..node import Node
from ._sizes import RecordedFloat, RecordedSize, SizeLog, is_expression, symbol_of, value_of
from ._unbacked_checks import function_of


class _StandIn(Tensor):
    """A tensor for the rules of sizes, whose sizes are numbers of SizeFacts."""

    __torch_function__ = _C._disabled_torch_function_impl


class Layout:
    """The sizes, strides and offset of a recorded tensor, as numbers of SizeFacts of which at least one stands for an expression.

    Attributes:
        is_guess: whether the strides may be others for sizes of 0 and 1.
    """

    __slots__ = ("_stand_in", "is_guess", "offset", "sizes", "strides")

    def __init__(self, sizes: Sequence[int], strides: Sequence[int], offset: int, is_guess: bool = False) -> None:
        self.sizes, self.strides, self.offset, self._stand_in = list(sizes), list(strides), offset, None
        self.is_guess = is_guess

    @staticmethod
    def of(facts: SizeFacts, value: Tensor, is_guess: bool, sizes: Sequence[int], strides: Sequence[int], offset: int) -> Layout | None:
        """The layout of a call's result, which is `value` in the example; None if it is the same in all runs."""
        sizes = [facts.simplified(n) for n in sizes]
        if [facts.example(n) for n in sizes] != list(value.shape):
            raise AssertionError(f"[make_fx] a rule gave other sizes than the call: {[facts.example(n) for n in sizes]}, {value.shape}")
        if not any(map(is_expression, (*sizes, *strides, offset))):
            return None
        if [facts.example(n) for n in strides] != list(value.stride()):  # of a result that keeps the order of its argument
            return Layout.dense(facts, value, sizes, True)
        return Layout(sizes, [facts.simplified(n) for n in strides], facts.simplified(offset), is_guess)

    @staticmethod
    def given(log: SizeLog, node: Node, value: Tensor, sizes: Sequence[int]) -> Layout:
        """The layout of an input: dense, or with strides and an offset that the graph reads of it."""
        made = Layout.dense(log.facts, value, sizes)
        if [log.facts.example(n) for n in made.strides] != list(value.stride()):
            for i, stride in enumerate(value.stride()):
                made.strides[i] = stride if stride == 1 else log.unknown_size(stride)
                log.name_unknown(made.strides[i], f"{node}.stride()[{i}]")
        if made.offset:
            made.offset = log.unknown_size(made.offset)
            log.name_unknown(made.offset, f"{node}.storage_offset()")
        return made

    @staticmethod
    def dense(facts: SizeFacts, value: Tensor, sizes: Sequence[int], is_guess: bool = False) -> Layout:
        """Sizes of a dense tensor whose dimensions have the order of `value`'s strides."""
        order = sorted(range(len(sizes)), key=lambda i: (value.stride(i), -i))
        strides, step = [0] * len(sizes), 1
        for i in order:
            strides[i] = 0 if value.stride(i) == 0 and value.shape[i] > 1 else step
            step = facts.compute("*", step, facts.compute("max", sizes[i], 1))
        return Layout(sizes, strides, value.storage_offset(), is_guess)

    def stand_in(self, value: Tensor) -> Tensor:
        """A tensor for the rules of sizes. `value` has the dtype."""
        if self._stand_in is None:
            self._stand_in = _C._make_wrapper(_StandIn, self.sizes, self.strides, self.offset, value.dtype, value.device)
        return self._stand_in


class SizeNodes:
    """The nodes that compute numbers of sizes in the graph of a recording."""

    def __init__(self, recording: Any) -> None:
        self.recording = recording
        self.nodes: dict[Any, Node] = {}  # by number, or by the text of a float or bool
        self.layouts: dict[Node, Layout] = {}
        self._origins: dict[int, tuple[Node, int]] = {}  # by number: the first tensor's dimension that has it
        self._last: Node | None = None  # of those that read the placeholders' sizes
        self._seen = 0  # guards when the numbers were simplified

    def add(self, tensor: Any) -> None:
        """Notes a tensor of the graph."""
        if tensor._layout is None:
            return
        for dim, number in enumerate(tensor._layout.sizes):
            if is_expression(number := self.recording.log.facts.simplified(number)):
                self._origins.setdefault(number, (tensor._node, dim))
                self.recording.log.name_unknown(number, f"{tensor._node}.size()[{dim}]")
        self.layouts[tensor._node] = tensor._layout
        self._describe(tensor._node, tensor._layout)

    def _describe(self, node: Node, layout: Layout) -> None:
        log = self.recording.log
        numbers = {d: n for d, n in enumerate(map(log.facts.simplified, layout.sizes)) if is_expression(n)}
        node.meta["symbolic_sizes"] = {d: log.known_text(n) for d, n in numbers.items()}

    def describe(self) -> None:
        """Writes expressions into the nodes' metadata by all that is known at the end of the recording."""
        for node, layout in self.layouts.items():
            self._describe(node, layout)
        for number, node in self.nodes.items():
            if is_expression(number):
                node.meta["symbolic_value"] = self.recording.log.known_text(number)

    def of(self, value: Any) -> Any:
        """The node that computes a number; the number if it is the same in all runs."""
        if self._is_foreign(value):
            return bool(value) if type(value) is SymBool else value._specialised()
        if type(value) is RecordedSize:
            return self._of_size(value)
        if type(value) not in (RecordedFloat, SymBool):
            return value
        key = id(value)
        if key not in self.nodes:
            kind, operands = (value.sign, value.operands) if type(value) is SymBool else (value.recipe[0], value.recipe[1:])
            given = [self.of(v) for v in operands]
            if not any(isinstance(v, Node) for v in given):
                return value_of(value)
            self.nodes[key] = self._call(function_of("sym_not" if kind == "not" else kind), given, value_of(value))
            self.nodes[key].meta["computes"] = value  # keeps the object, whose id is the key
        return self.nodes[key]

    def _is_foreign(self, value: Any) -> bool:
        """Whether a number, or one of a bool's, belongs to another recording."""
        if type(value) is SymBool:
            return any(map(self._is_foreign, (v for c in value.comparisons() for v in c.operands)))
        log = self.recording.log
        return type(value) in (RecordedSize, RecordedFloat) and (log is None or value.log.facts is not log.facts)

    def _of_size(self, size: RecordedSize) -> Any:
        facts = self.recording.log.facts
        number = facts.simplified(size.number)
        if not is_expression(number):
            return number
        kind, *operands = size.recipe
        if kind in ("stride", "offset") and operands[0].graph is self.recording.graph:
            key = (kind, *operands)
            if key not in self.nodes:
                self.nodes[key] = self._read(kind, operands)
                self.nodes[key].meta["symbolic_value"] = self.recording.log.known_text(number)
            return self.nodes[key]
        if (found := self._known(number)) is not None:
            return found
        if kind in ("size", "stride", "offset", "input"):
            made = self._read(kind, operands) if operands[0].graph is self.recording.graph else self._normal(number)
        else:
            given = [self.of(v) for v in operands]
            made = self._call(function_of(kind), given, size.plain()) if any(isinstance(v, Node) for v in given) else None
        if made is None:  # this graph, which is a part of another one, does not receive the size
            return int(size)
        return self._noted(number, made)

    def _noted(self, number: int, node: Node) -> Node:
        node.meta["symbolic_value"] = self.recording.log.known_text(number)
        self.nodes[number] = node
        return node

    def _known(self, number: int) -> Node | None:
        """The node of a number, or one that reads it of a tensor that has it as a size."""
        log = self.recording.log
        if self._seen != len(log.guards):  # known equalities make numbers one
            self._seen = len(log.guards)
            for table in (self.nodes, self._origins):
                for key in [k for k in table if is_expression(k)]:
                    table.setdefault(log.facts.simplified(key), table[key])
        if number in self.nodes:
            return self.nodes[number]
        if number in self._origins:
            return self._noted(number, self._read("size", self._origins[number]))
        return None

    def _read(self, kind: str, operands: Sequence[Any]) -> Node:
        """A node that reads a number of a tensor."""
        graph, node = self.recording.graph, operands[0]
        if kind == "input":
            return node
        name, overload = ("storage_offset", "default") if kind == "offset" else (kind, "int")
        at = node
        if node.op == "placeholder":
            placeholders = [n for n in graph.nodes if n.op == "placeholder"]
            at = self._last or placeholders[-1]
        with graph.inserting_after(at):
            target = getattr(aten.packet(f"sym_{name}"), overload)
            made = graph.create_node("call_function", target, tuple(operands), {}, f"sym_{name}_{overload}")
        if node.op == "placeholder":
            self._last = made
        tensor = node.meta["val"]
        with _C.DisableTorchFunction():
            of = {"size": tensor.size, "stride": tensor.stride}.get(kind)
            made.meta["val"] = tensor.storage_offset() if of is None else of(operands[1])
        return made

    def _normal(self, number: int) -> Any:
        """A node that computes an expression from its symbols; None if the graph does not receive one."""
        facts, total = self.recording.log.facts, None
        for coefficient, factors in facts.parts(number):
            term: Any = coefficient if coefficient != 1 or not factors else None
            for factor in factors:
                if (made := self._factor(*factor)) is None:
                    return None
                term = made if term is None else self._call(function_of("*"), [made, term], None)
            total = term if total is None else self._call(function_of("+"), [total, term], None)
        return self._with_value(total, number)

    def _with_value(self, node: Any, number: int) -> Any:
        if isinstance(node, Node):
            node.meta["val"] = self.recording.log.facts.example(number)
            node.meta.setdefault("symbolic_value", self.recording.log.known_text(number))
        return node

    def _factor(self, sign: str, symbol: int, operands: list[int]) -> Any:
        log = self.recording.log
        if sign == "symbol":
            if symbol in log.unknown:
                return self._known(log.numbers[symbol])
            if symbol in log.defined:
                return self.of(log.defined[symbol])
            number = next(n for n in log.symbols.values() if symbol_of(log.facts, n) == symbol)
            return self._known(number) or self._solved(symbol)
        given = [self._known(n) or self._normal(n) if is_expression(n) else n for n in operands]
        if None in given:
            return None
        made = given[0]
        for other in given[1:]:
            made = self._call(function_of(sign if sign == "//" else f"sym_{sign}"), [made, other], None)
        return made

    def _solved(self, symbol: int) -> Node | None:
        """A node that computes a symbol from a size that is a multiple of it with a constant added."""
        log = self.recording.log
        for number, origin in self._origins.items():
            parts = log.facts.parts(number)
            factors = [(c, f) for c, f in parts if f]
            if len(factors) == 1 and len(factors[0][1]) == 1 and factors[0][1][0][:2] == ("symbol", symbol):
                offset, node = sum(c for c, f in parts if not f), self._known(number) or self._read("size", origin)
                value = log.facts.example(number) - offset
                if offset:
                    node = self._call(function_of("-"), [node, offset], value)
                return self._call(function_of("//"), [node, factors[0][0]], value // factors[0][0])
        return None

    def _call(self, function: Callable, given: list[Any], value: Any) -> Node:
        made = self.recording.graph.call_function(function, tuple(given))
        if value is None:
            value = function(*(v.meta["val"] if isinstance(v, Node) else v for v in given))
        made.meta |= {"val": value, "symbolic_value": None}
        return made
