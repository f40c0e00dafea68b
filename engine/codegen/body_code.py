"""Translates bodies of a few instructions to the code that kernels/cpu/compiled/ makes machine code from.

A body is compiled if it consists of arithmetic, comparisons and selections only. Its instructions give the bits that the
C++ compiler's translation of the body gives: products whose only uses are sums are contracted as GCC contracts them.
"""

from __future__ import annotations

from dataclasses import dataclass

from .body import bodies, tokens_of
from .declaration import Operator
from .schema import HEADER

# Operands are bytes: tensors, numbers (first the operator's, then the constants), and results of earlier instructions.
FIRST_NUMBER, FIRST_RESULT = 4, 32
MAX_INSTRUCTIONS = 24  # longer bodies gain little from staying in registers

_COMPARISONS = {
    "==": "kEqual",
    "!=": "kNotEqual",
    "<": "kLess",
    "<=": "kLessEqual",
    ">": "kGreater",
    ">=": "kGreaterEqual",
}
_PRECEDENCE = {
    "||": 1,
    "&&": 2,
    "|": 3,
    "&": 3,
    "==": 4,
    "!=": 4,
    "<": 5,
    "<=": 5,
    ">": 5,
    ">=": 5,
    "+": 6,
    "-": 6,
    "*": 7,
    "/": 7,
}
_ARITHMETIC = {"+": "kAdd", "-": "kSubtract", "*": "kMultiply", "/": "kDivide"}
_UNARY = {"abs": "kAbs", "sqrt": "kSqrt", "floor": "kFloor", "ceil": "kCeil", "trunc": "kTrunc", "rint": "kRint"}
_BINARY = {"maximum": "kMaximum", "minimum": "kMinimum", "fmax": "kFmax", "fmin": "kFmin"}


class Uncompiled(Exception):
    """The body contains something that is not compiled."""


@dataclass(eq=False)
class Node:
    """An instruction, or a leaf: ("tensor", index) or ("number", value or parameter)."""

    code: str
    args: tuple
    is_mask: bool = False


class _Reader:
    """Reads a body into nodes, each before those that use it. Equal nodes are one."""

    def __init__(self, op: Operator, body: str):
        self._tokens = [text for _, text in tokens_of(body)]
        self._at = 0
        tensors = [p.name for p in op.params if p.is_tensor]
        others = [p for p in op.params if not p.is_tensor]
        self._leaves = {name: Node("tensor", (i,)) for i, name in enumerate(tensors)}
        # The value of an absent number is 0, which only bodies that ask `has_name` treat in another way.
        self._leaves |= {p.name: Node("number", (i,)) for i, p in enumerate(others) if p.type != "bool"}
        self.nodes: list[Node] = []
        self._known: dict[tuple, Node] = {}

    def read(self) -> Node:
        result = self._choice()
        if self._at != len(self._tokens):
            raise Uncompiled
        return result

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _next(self) -> str:
        self._at += 1
        return self._tokens[self._at - 1]

    def _expect(self, text: str) -> None:
        if self._peek() != text:
            raise Uncompiled
        self._at += 1

    def _emit(self, code: str, *args: Node, is_mask: bool = False) -> Node:
        key = (code, *(id(a) for a in args))
        if key not in self._known:
            self._known[key] = Node(code, args, is_mask)
            self.nodes.append(self._known[key])
        return self._known[key]

    def _constant(self, value: float) -> Node:
        return self._known.setdefault(("constant", value), Node("constant", (value,)))

    def _number(self, node: Node) -> Node:
        """A mask as 1 and 0."""
        return self._emit("kSelect", node, self._constant(1.0), self._constant(0.0)) if node.is_mask else node

    def _choice(self) -> Node:
        condition = self._operation(1)
        if self._peek() != "?":
            return condition
        self._expect("?")
        yes = self._number(self._choice())
        self._expect(":")
        no = self._number(self._choice())
        if not condition.is_mask:
            condition = self._emit("kNotEqual", condition, self._constant(0.0), is_mask=True)
        return self._emit("kSelect", condition, yes, no)

    def _operation(self, least: int) -> Node:
        left = self._operand()
        while (rank := _PRECEDENCE.get(self._peek(), 0)) >= least:
            left = self._apply(self._next(), left, self._operation(rank + 1))
        return left

    def _apply(self, text: str, a: Node, b: Node) -> Node:
        if text in ("&&", "||", "&", "|"):
            if not (a.is_mask and b.is_mask):
                raise Uncompiled
            return self._emit("kAnd" if text[0] == "&" else "kOr", a, b, is_mask=True)
        if a.is_mask or b.is_mask:
            raise Uncompiled
        if text in _COMPARISONS:
            return self._emit(_COMPARISONS[text], a, b, is_mask=True)
        return self._emit(_ARITHMETIC[text], a, b)

    def _operand(self) -> Node:
        text = self._next() if self._peek() else ""
        if text == "(":
            inner = self._choice()
            self._expect(")")
            return inner
        if text == "-":
            inner = self._operand()
            if inner.code == "constant":
                return self._constant(-inner.args[0])
            return self._emit("kNegate", self._real(inner))
        if text[:1].isdigit() or text[:1] == ".":
            return self._constant(float(text))
        if self._peek() == "(":
            return self._call(text)
        if text not in self._leaves:
            raise Uncompiled
        return self._leaves[text]

    @staticmethod
    def _real(node: Node) -> Node:
        if node.is_mask:
            raise Uncompiled
        return node

    def _call(self, name: str) -> Node:
        self._expect("(")
        args = [self._choice()]
        while self._peek() == ",":
            self._expect(",")
            args.append(self._choice())
        self._expect(")")
        if name == "T" and len(args) == 1:
            return self._number(args[0])
        args = [self._real(a) for a in args]
        if name == "isnan":
            return self._emit("kNotEqual", args[0], args[0], is_mask=True)
        if name == "rsqrt":
            return self._emit("kDivide", self._constant(1.0), self._emit("kSqrt", args[0]))
        code = _UNARY.get(name) if len(args) == 1 else _BINARY.get(name)
        if code is None:
            raise Uncompiled
        return self._emit(code, *args)


def _choose_extremes(nodes: list[Node]) -> None:
    """Makes x < y ? y : x and the like one instruction."""
    larger = {"kGreater": "kLarger", "kLess": "kSmaller"}
    smaller = {"kGreater": "kSmaller", "kLess": "kLarger"}
    for node in nodes:
        if node.code != "kSelect" or node.args[0].code not in larger:
            continue
        compared, (yes, no) = node.args[0], node.args[1:]
        if (yes, no) == compared.args:
            node.code, node.args = larger[compared.code], (yes, no)
        elif (no, yes) == compared.args:
            node.code, node.args = smaller[compared.code], (yes, no)


def _contract(nodes: list[Node], result: Node) -> list[Node]:
    """Replaces sums of products by one instruction where GCC does: a product that is used in sums only becomes part of
    each of them, unless the sum has another product already."""
    replaced: dict[int, Node] = {}

    def current(node: Node) -> Node:
        return replaced.get(id(node), node)

    for product in [n for n in nodes if n.code == "kMultiply"]:
        uses = [n for n in nodes if any(current(a) is product for a in n.args if isinstance(a, Node))]
        if product is result or not uses:
            continue
        if any(current(n).code not in ("kAdd", "kSubtract") or n.args[0] is n.args[1] for n in uses):
            continue
        for use in uses:
            a, b = product.args
            first = use.args[0] is product
            other = use.args[1] if first else use.args[0]
            code = "kMultiplyAdd" if use.code == "kAdd" else "kMultiplySubtract" if first else "kSubtractProduct"
            use.code, use.args = code, (a, b, other)
        product.code = "unused"
    return [n for n in nodes if n.code != "unused"]


def _needed(nodes: list[Node], result: Node) -> list[Node]:
    used = {id(result)}
    for node in reversed(nodes):
        if id(node) in used:
            used |= {id(a) for a in node.args if isinstance(a, Node)}
    return [n for n in nodes if id(n) in used]


def code_of(op: Operator) -> tuple[list[tuple[str, list[int]]], list[float]] | None:
    """Returns (instructions, constants) of the operator's body for floating types; None if it is not compiled."""
    body = bodies(op).get("float")
    if body is None:
        return None
    try:
        reader = _Reader(op, body)
        result = reader.read()
        if result.is_mask:
            result = reader._number(result)
    except Uncompiled:
        return None
    _choose_extremes(reader.nodes)
    nodes = _needed(_contract(reader.nodes, result), result)
    if not nodes or len(nodes) > MAX_INSTRUCTIONS or result is not nodes[-1]:
        return None
    numbers = sum(not p.is_tensor for p in op.params)
    constants: list[float] = []
    places = {id(node): FIRST_RESULT + i for i, node in enumerate(nodes)}

    def place(node: Node) -> int:
        if node.code == "tensor":
            return node.args[0]
        if node.code == "number":
            return FIRST_NUMBER + node.args[0]
        if node.code == "constant":
            if node.args[0] not in constants:
                constants.append(node.args[0])
            return FIRST_NUMBER + numbers + constants.index(node.args[0])
        return places[id(node)]

    instructions = [(node.code, [place(a) for a in node.args]) for node in nodes]
    return (instructions, constants) if FIRST_NUMBER + numbers + len(constants) <= FIRST_RESULT else None


def emit(operators: list[Operator]) -> str:
    """Returns the source of the table of compiled bodies."""
    texts, rows = [], []
    for op in operators:
        code = code_of(op) if op.is_pointwise else None
        if code is None:
            continue
        instructions, constants = code
        lines = "".join(f"    {{BodyCode::{name}, {{{', '.join(map(str, args))}}}}},\n" for name, args in instructions)
        texts.append(f"constexpr BodyInstruction {op.name}_code[] = {{\n{lines}}};\n")
        values = f"{op.name}_constants" if constants else "{}"
        if constants:
            texts.append(f"constexpr double {op.name}_constants[] = {{{', '.join(map(repr, constants))}}};\n")
        tensors = sum(p.is_tensor for p in op.params)
        rows.append(
            f"      {{op_id::{op.constant}, {tensors}, {len(op.params) - tensors}, {op.name}_code, {values}}},\n"
        )
    return f"""{HEADER}#include "engine/schema/op_ids.h"
#include "kernels/cpu/compiled/body_table.h"
namespace tt::cpu {{
namespace {{
{"".join(texts)}}}  // namespace
absl::Span<const Body> compiled_bodies() {{
  static constexpr Body rows[] = {{
{"".join(rows)}  }};
  return rows;
}}
}}  // namespace tt::cpu
"""
