"""The language of `grad` and `composite`: Python expressions over operators, compiled to typed C++.

Every expression has a type that is known at generation time: `Tensor`, `Operand` (a tensor or a number instead),
`Tensors`, `shapes` (the sizes of a list of tensors), `ints`, `floats`, `int`, `float`, `bool`, `Scalar`, `str`,
`DType`, `Device` or `None`. `?` after a scalar type or `ints` makes the type optional. Type errors raise
DeclarationError with the operator and the formula.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path

from .declaration import Operator
from .signature import DeclarationError, Param

# C++ types of functions in formulas.h and composites.h, mapped to types of the language.
CPP_TYPES = {
    "Tensor": "Tensor", "Tensors": "Tensors", "Sizes": "ints", "SizesView": "ints", "int64_t": "int", "double": "float",
    "bool": "bool", "Scalar": "Scalar", "DType": "DType", "Device": "Device", "std::string_view": "str",
}  # fmt: skip
DTYPES = {
    "bool_": "kBool", "uint8": "kUInt8", "int8": "kInt8", "int16": "kInt16", "int32": "kInt32", "int64": "kInt64",
    "float16": "kFloat16", "bfloat16": "kBFloat16", "float32": "kFloat32", "float64": "kFloat64",
}  # fmt: skip
TENSOR_OPERATORS = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.Pow: "pow", ast.MatMult: "matmul",
    ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq", ast.NotEq: "ne",
}  # fmt: skip
NUMBER_OPERATORS = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.FloorDiv: "floordiv", ast.Mod: "mod",
    ast.Pow: "pow",
}  # fmt: skip
COMPARISONS = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
OPTIONALS = {name: f"std::optional<{cpp}>" for name, cpp in (
    ("Scalar", "Scalar"), ("int", "int64_t"), ("float", "double"), ("bool", "bool"), ("str", "std::string_view"),
    ("DType", "DType"), ("Device", "Device"), ("ints", "SizesView"), ("floats", "absl::Span<const double>"),
)}  # fmt: skip
NUMBERS = ("bool", "int", "float", "Scalar")
ATTRIBUTES = {"sizes": "ints", "dtype": "DType", "dim": "int", "numel": "int", "device": "Device"}


@dataclass(frozen=True)
class Value:
    """A C++ expression and its type in the language."""

    code: str
    type: str

    @property
    def is_tensor(self) -> bool:
        return self.type in ("Tensor", "Operand")

    @property
    def is_number(self) -> bool:
        return self.type in NUMBERS


def language_type(param: Param) -> str:
    """Returns the type of a parameter inside an expression."""
    if param.is_tensor or param.is_tensor_list:
        return "Tensors" if param.is_tensor_list else "Operand" if param.accepts_number else "Tensor"
    return {"int[]": "ints", "float[]": "floats"}.get(param.type, param.type) + ("?" if param.optional else "")


def functions_of(headers: list[Path]) -> dict[str, str]:
    """Maps the functions that headers declare to their result types in the language."""
    found = {}
    text = "\n".join(header.read_text() for header in headers)
    for result, name in re.findall(r"^(?:inline )?([\w:]+) (\w+)\(", text, re.MULTILINE):
        if result in CPP_TYPES:
            found[name] = CPP_TYPES[result]
    return found


def names_in(formula: str) -> tuple[set[str], set[str]]:
    """Returns the names whose values a formula reads, and those from which it reads only attributes (sizes, ...)."""
    values, metas = set(), set()
    tree = ast.parse(formula, mode="eval")
    attributed = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Attribute) and n.attr in ATTRIBUTES}
    called = {id(n.func) for n in ast.walk(tree) if isinstance(n, ast.Call)}
    for call in (n for n in ast.walk(tree) if isinstance(n, ast.Call)):
        if isinstance(call.func, ast.Name) and call.func.id == "needs":
            called |= {id(a) for a in call.args}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and id(node) not in called:
            (metas if id(node) in attributed else values).add(node.id)
    return values, metas - values


class Compiler:
    """Compiles the expressions of one operator.

    Expressions may use the names in `names`, which maps them to values, and may call operators and the functions in
    `functions`, which maps names to result types. A call of a function is emitted as a call of `<namespace>::<name>`.
    """

    def __init__(
        self, op: Operator, operators: dict[str, Operator], functions: dict[str, str], namespace: str,
        names: dict[str, Value],
    ):  # fmt: skip
        self.op, self.operators, self.functions, self.namespace, self.names = op, operators, functions, namespace, names
        self.formula = ""

    def fail(self, what: str) -> DeclarationError:
        return DeclarationError(f"{self.op.source}: {self.op.name}: {what}, in {self.formula!r}")

    def compile(self, formula: str) -> Value:
        self.formula = formula
        try:
            tree = ast.parse(formula.strip(), mode="eval").body
        except SyntaxError:
            raise DeclarationError(
                f"{self.op.source}: {self.op.name}: expected a Python expression, got {formula!r}"
            ) from None
        return self.emit(tree)

    def emit(self, node: ast.expr) -> Value:
        method = getattr(self, f"emit_{type(node).__name__}", None)
        if method is None:
            raise self.fail(f"{ast.unparse(node)!r} is not supported")
        return method(node)

    # Leaves.

    def emit_Name(self, node: ast.Name) -> Value:
        if node.id in self.names:
            return self.names[node.id]
        if node.id in DTYPES:
            return Value(f"DType::{DTYPES[node.id]}", "DType")
        raise self.fail(f"{node.id!r} is unknown")

    def emit_Constant(self, node: ast.Constant) -> Value:
        value = node.value
        if value is None:
            return Value("std::nullopt", "None")
        if isinstance(value, bool):
            return Value("true" if value else "false", "bool")
        if isinstance(value, int):
            return Value(f"int64_t{{{value}}}", "int")
        if isinstance(value, float):
            return Value(repr(value) if abs(value) != float("inf") else "HUGE_VAL", "float")
        if isinstance(value, str):
            return Value(f'std::string_view("{value}")', "str")
        raise self.fail(f"{value!r} is not supported")

    def emit_List(self, node: ast.List) -> Value:
        items = [self.emit(e) for e in node.elts]
        if items and all(v.type in ("Tensor", "None") for v in items):
            return Value(f"Tensors{{{', '.join(self.to_tensor(v) for v in items)}}}", "Tensors")
        if items and any(v.type == "float" for v in items):
            return Value(f"Floats{{{', '.join(self.to_scalar(v, 'float') for v in items)}}}", "floats")
        return Value(f"Sizes{{{', '.join(self.to_scalar(v, 'int') for v in items)}}}", "ints")

    def emit_Attribute(self, node: ast.Attribute) -> Value:
        if node.attr not in ATTRIBUTES:
            raise self.fail(f"a tensor has {', '.join(ATTRIBUTES)}, not {node.attr!r}")
        value = self.emit(node.value)
        if value.type == "Metas" and node.attr == "sizes":
            return Value(value.code, "shapes")
        if value.type not in ("Tensor", "Operand", "Meta"):
            raise self.fail(f"{ast.unparse(node.value)!r} is {value.type}, not a tensor")
        return Value(f"{node.attr}_of({value.code})", ATTRIBUTES[node.attr])

    def emit_Subscript(self, node: ast.Subscript) -> Value:
        value = self.emit(node.value)
        if value.type not in ("Tensors", "ints", "floats"):
            raise self.fail(f"{ast.unparse(node.value)!r} is {value.type}, not a list")
        if isinstance(node.slice, ast.Slice):
            if value.type != "ints" or node.slice.step:
                raise self.fail("only lists of ints can be sliced, with step 1")
            bounds = [self.to_scalar(self.emit(b), "int") if b else "std::nullopt" for b in (node.slice.lower, node.slice.upper)]
            return Value(f"slice_list({value.code}, {', '.join(bounds)})", "ints")
        index = self.to_scalar(self.emit(node.slice), "int")
        return Value(f"at({value.code}, {index})", {"Tensors": "Tensor", "ints": "int", "floats": "float"}[value.type])

    # Operations.

    def emit_UnaryOp(self, node: ast.UnaryOp) -> Value:
        value = self.emit(node.operand)
        if isinstance(node.op, ast.Not):
            return Value(f"!{self.truth(value)}", "bool")
        if not isinstance(node.op, ast.USub):
            raise self.fail(f"{ast.unparse(node)!r} is not supported")
        if value.is_tensor:
            return self.call_operator("neg", [value], {})
        if value.type in ("int", "float"):
            return Value(f"(-{value.code})", value.type)
        return Value(f"number::neg({self.to_scalar(value, 'Scalar')})", "Scalar")

    def emit_BinOp(self, node: ast.BinOp) -> Value:
        left, right = self.emit(node.left), self.emit(node.right)
        if left.is_tensor or right.is_tensor:
            if type(node.op) not in TENSOR_OPERATORS:
                raise self.fail(f"{ast.unparse(node)!r} is not supported for tensors")
            return self.call_operator(TENSOR_OPERATORS[type(node.op)], [left, right], {})
        if left.type == right.type == "ints" and isinstance(node.op, ast.Add):
            return Value(f"concatenate({left.code}, {right.code})", "ints")
        name = NUMBER_OPERATORS.get(type(node.op))
        if name is None:
            raise self.fail(f"{ast.unparse(node)!r} is not supported")
        types = {v.type.rstrip("?") for v in (left, right)}
        kind = "Scalar" if "Scalar" in types else "float" if "float" in types or name in ("div", "pow") else "int"
        a, b = self.to_scalar(left, kind), self.to_scalar(right, kind)
        return Value(f"number::{name}({a}, {b})", kind)

    def emit_Compare(self, node: ast.Compare) -> Value:
        if len(node.ops) != 1:
            raise self.fail("chained comparisons are not supported")
        left, operator, right = self.emit(node.left), node.ops[0], self.emit(node.comparators[0])
        if isinstance(operator, (ast.Is, ast.IsNot)):
            if right.type != "None":
                raise self.fail("'is' can only compare with None")
            present = f"static_cast<bool>({left.code})" if left.type == "Tensor" else f"{left.code}.has_value()"
            if not left.is_tensor and not left.type.endswith("?"):
                raise self.fail(f"{ast.unparse(node.left)!r} is {left.type}, which is never None")
            return Value(f"(!{present})" if isinstance(operator, ast.Is) else f"({present})", "bool")
        if type(operator) not in COMPARISONS:
            raise self.fail(f"{ast.unparse(node)!r} is not supported")
        if left.is_tensor or right.is_tensor:
            return self.call_operator(TENSOR_OPERATORS[type(operator)], [left, right], {})
        if left.type.rstrip("?") in NUMBERS and right.type.rstrip("?") in NUMBERS:
            kind = "int" if {left.type.rstrip("?"), right.type.rstrip("?")} <= {"int", "bool"} else "float"
            left, right = Value(self.to_scalar(left, kind), kind), Value(self.to_scalar(right, kind), kind)
        elif left.type.rstrip("?") != right.type.rstrip("?"):
            raise self.fail(f"{ast.unparse(node)!r} compares {left.type} with {right.type}")
        return Value(f"({left.code} {COMPARISONS[type(operator)]} {right.code})", "bool")

    def emit_BoolOp(self, node: ast.BoolOp) -> Value:
        word = " && " if isinstance(node.op, ast.And) else " || "
        return Value(f"({word.join(self.truth(self.emit(v)) for v in node.values)})", "bool")

    def emit_IfExp(self, node: ast.IfExp) -> Value:
        test, then, other = self.truth(self.emit(node.test)), self.emit(node.body), self.emit(node.orelse)
        kind = self.common_type(then, other)
        wrap = OPTIONALS[kind[:-1]] if kind.endswith("?") else "SizesView" if kind == "ints" else ""
        return Value(f"({test} ? {wrap}({self.to_type(then, kind)}) : {wrap}({self.to_type(other, kind)}))", kind)

    def emit_Call(self, node: ast.Call) -> Value:
        if not isinstance(node.func, ast.Name):
            raise self.fail(f"{ast.unparse(node.func)!r} is not a function")
        name = node.func.id
        if name == "needs":
            return self.names_needed(node)
        arguments = [self.emit(a) for a in node.args]
        keywords = {k.arg: self.emit(k.value) for k in node.keywords}
        if name == "len" and len(arguments) == 1 and arguments[0].type in ("Tensors", "shapes", "ints", "floats"):
            return Value(f"static_cast<int64_t>({arguments[0].code}.size())", "int")
        if name == "given_or" and len(arguments) == 2:
            optional, default = arguments
            kind = optional.type.removesuffix("?")
            if kind not in OPTIONALS or kind == optional.type:
                raise self.fail(f"expected an optional, got {optional.code} of type {optional.type}")
            return Value(f"{optional.code}.value_or({self.to_type(default, kind)})", kind)
        if name in self.operators:
            return self.call_operator(name, arguments, keywords)
        if name not in self.functions:
            raise self.fail(f"{name!r} is neither an operator nor a function of {self.namespace}")
        if keywords:
            raise self.fail(f"{name!r} takes no keyword arguments")
        codes = ", ".join("{}" if v.type == "None" else v.code for v in arguments)
        return Value(f"{self.namespace}::{name}({codes})", self.functions[name])

    def names_needed(self, node: ast.Call) -> Value:
        """Emits needs(x): whether the gradient of parameter x is required."""
        if "g" not in self.names and "g0" not in self.names or len(node.args) != 1:
            raise self.fail("needs(parameter) is only allowed in gradients")
        index = self.op.signature.index(ast.unparse(node.args[0]))
        return Value(f"b.needs({index})", "bool")

    def call_operator(self, name: str, arguments: list[Value], keywords: dict[str, Value]) -> Value:
        if name not in self.operators:
            raise self.fail(f"operator {name!r} is unknown")
        target = self.operators[name]
        if len(arguments) > len(target.params):
            raise self.fail(f"{name} takes {len(target.params)} arguments, got {len(arguments)}")
        given = {p.name: v for p, v in zip(target.params, arguments)}
        for keyword, value in keywords.items():
            if keyword in given or keyword not in {p.name for p in target.params}:
                raise self.fail(f"{name} has no parameter {keyword!r}, or it is given twice")
            given[keyword] = value
        codes = []
        for p in target.params:
            if p.name in given:
                codes.append(self.to_param(given[p.name], p, name))
            elif p.has_default:
                codes.append(self.default(p))
            else:
                raise self.fail(f"{name} requires the argument {p.name!r}")
        outputs = target.signature.num_outputs
        return Value(f"ops::{name}({', '.join(codes)})", "Tensor" if outputs == 1 else "Tensors")

    # Conversions.

    def default(self, p: Param) -> str:
        value = p.default
        if value is None:
            return "Operand()" if p.is_tensor else "std::nullopt"
        if p.type in ("int[]", "float[]"):
            values = list(value) if isinstance(value, (list, tuple)) else [value] * max(p.list_size, 1)
            return f"{'Sizes' if p.type == 'int[]' else 'Floats'}{{{', '.join(map(str, values))}}}"
        if p.type == "DType":
            return f"DType::{value}"
        return self.to_type(self.emit_Constant(ast.Constant(value)), p.type)

    def to_param(self, value: Value, p: Param, operator: str) -> str:
        if p.is_tensor:
            if value.type == "None":
                return "Operand()"
            if value.type.endswith("?") or not (value.is_tensor or value.is_number):
                raise self.fail(f"{p.name!r} of {operator} must be a tensor, not {value.type}")
            return value.code
        if p.is_tensor_list:
            if value.type != "Tensors":
                raise self.fail(f"{p.name!r} of {operator} must be a list of tensors, not {value.type}")
            return value.code
        if p.type == "int[]" and value.type == "int":
            return f"Sizes{{{', '.join([value.code] * max(p.list_size, 1))}}}"
        return self.to_type(value, language_type(p))

    def to_type(self, value: Value, kind: str) -> str:
        if value.type == kind:
            return value.code
        if kind.endswith("?"):
            return value.code if value.type == "None" else f"{OPTIONALS[kind[:-1]]}({self.to_type(value, kind[:-1])})"
        if kind in NUMBERS:
            return self.to_scalar(value, kind)
        if kind == "Tensor":
            return self.to_tensor(value)
        if kind == "Operand" and (value.is_tensor or value.is_number):
            return f"Operand({value.code})"
        if value.type == f"{kind}?":
            return f"{value.code}.value()"
        if kind == "floats" and value.type == "ints":
            return f"floats_of({value.code})"
        raise self.fail(f"expected {kind}, got {value.code} of type {value.type}")

    def to_scalar(self, value: Value, kind: str) -> str:
        """Converts a number to another numeric type. Raises DeclarationError if a value could be lost."""
        if value.type.endswith("?") and value.type[:-1] in NUMBERS:
            value = Value(f"{value.code}.value()", value.type[:-1])
        if value.type == kind:
            return value.code
        if kind == "Scalar" and value.is_number:
            return f"Scalar({value.code})"
        if kind == "float" and value.is_number:
            return f"{value.code}.to_double()" if value.type == "Scalar" else f"static_cast<double>({value.code})"
        if kind == "int" and value.type in ("bool", "Scalar"):
            return f"{value.code}.to_int()" if value.type == "Scalar" else f"static_cast<int64_t>({value.code})"
        raise self.fail(f"expected {kind}, got {value.code} of type {value.type}")

    def to_tensor(self, value: Value) -> str:
        if value.type == "Tensor":
            return value.code
        if value.type == "None":
            return "Tensor()"
        raise self.fail(f"expected a tensor, got {value.code} of type {value.type}")

    def truth(self, value: Value) -> str:
        if value.type == "bool":
            return value.code
        raise self.fail(f"expected bool, got {value.code} of type {value.type}")

    def common_type(self, a: Value, b: Value) -> str:
        """Returns the common type of both branches of a conditional."""
        if a.type == b.type:
            return a.type
        for one, other in ((a, b), (b, a)):
            if one.type == "None":
                return "Tensor" if other.type == "Tensor" else other.type.rstrip("?") + "?"
            if one.is_tensor and (other.is_tensor or other.is_number):
                return "Operand"
            if one.type == f"{other.type}?":
                return one.type
        if a.is_number and b.is_number:
            return "Scalar" if "Scalar" in (a.type, b.type) else "float" if "float" in (a.type, b.type) else "int"
        raise self.fail(f"the branches of a conditional have incompatible types {a.type} and {b.type}")
