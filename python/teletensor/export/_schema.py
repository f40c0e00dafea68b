"""Numbers and texts of the .pt2 format: dtypes, memory formats, expressions of sizes."""

from __future__ import annotations

import ast
import re
from typing import Any

from .. import _C
from ..fx.experimental._size_fit import Expression
from ._file_names import identifier, integer

DTYPES = {
    "uint8": 1, "int8": 2, "int16": 3, "int32": 4, "int64": 5, "float16": 6, "float32": 7, "float64": 8, "complex64": 10,
    "complex128": 11, "bool": 12, "bfloat16": 13, "uint16": 28, "float8_e4m3fn": 29, "float8_e5m2": 30, "uint32": 34, "uint64": 35,
}  # fmt: skip
MEMORY_FORMATS = {"contiguous_format": 1, "channels_last": 2, "channels_last_3d": 3, "preserve_format": 4}
STRIDED = 7
_LONGEST, _TERMS = 4096, 64  # of an expression that is read


def dtype_number(dtype: Any) -> int:
    """The number of a dtype."""
    return DTYPES[str(dtype).removeprefix("torch.")]


def dtype_of(number: int) -> Any:
    """The dtype with a number. Raises NotImplementedError if it does not exist here."""
    integer(number, "the number of a dtype", 0, 255)
    name = next((n for n, i in DTYPES.items() if i == number), None)
    if name is None:
        raise NotImplementedError(f"[export.load] the dtype number {number} of the .pt2 format")
    return getattr(_C, name)


# PyTorch takes symbols that begin so for numbers that depend on values: such names of sizes are stored behind "s_".
_RESERVED = re.compile(r"(?:s_)*(?:u|zf|zuf)\w*", re.IGNORECASE)
_NUMBERED = re.compile(r"z?uf?\d+")  # those that do depend on values


def stored_symbol(name: str) -> str:
    """The name of a symbol in the format."""
    return f"s_{name}" if _RESERVED.fullmatch(name) and not _NUMBERED.fullmatch(name) else name


def symbol_of(stored: str) -> str:
    """The symbol that the format stores by a name."""
    name = stored.removeprefix("s_")
    return name if stored_symbol(name) == stored else stored


def expression_text(text: str) -> str:
    """An expression of symbols, such as "2*b + 1", as the format stores it."""
    return _stored(ast.parse(text, mode="eval").body)


def _stored(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        depends_on_values = node.id.startswith("u") and node.id[1:].isdigit()
        return f"Symbol('{stored_symbol(node.id)}', {'' if depends_on_values else 'positive=True, '}integer=True)"
    if isinstance(node, ast.Constant):
        return f"Integer({node.value})"
    if isinstance(node, ast.UnaryOp):
        return f"Mul(Integer(-1), {_stored(node.operand)})"
    if isinstance(node, ast.Call):
        assert isinstance(node.func, ast.Name)
        return f"{node.func.id.removeprefix('sym_').title()}({', '.join(map(_stored, node.args))})"
    assert isinstance(node, ast.BinOp)
    if isinstance(node.op, ast.Sub):
        return f"Add({_stored(node.left)}, Mul(Integer(-1), {_stored(node.right)}))"
    name = {ast.Add: "Add", ast.Mult: "Mul", ast.FloorDiv: "FloorDiv"}[type(node.op)]
    return f"{name}({_stored(node.left)}, {_stored(node.right)})"


def expression_of(text: str) -> Expression | None:
    """The expression that the format stores; None for one that is no sum of products of symbols."""
    if not isinstance(text, str) or len(text) > _LONGEST:
        raise RuntimeError(f"[export.load] expected the expression of a size as a text of at most {_LONGEST} characters")
    try:
        return _read(ast.parse(text, mode="eval").body)
    except (SyntaxError, ValueError, MemoryError):  # MemoryError: too many parentheses for the parser
        return None


def _symbol(name: str) -> Expression:
    return Expression({(symbol_of(identifier(name, "a symbol")),): 1})


def _read(node: ast.expr) -> Expression:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return Expression({(): node.value})
    if isinstance(node, ast.Name):
        return _symbol(node.id)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        raise ValueError(ast.dump(node))
    if node.func.id == "Symbol" and node.args and isinstance(node.args[0], ast.Constant):
        return _symbol(node.args[0].value)
    if node.func.id == "Integer":
        return Expression({(): integer(ast.literal_eval(node.args[0]), "a number of an expression")})
    parts = [_read(a) for a in node.args]
    if not parts:
        raise ValueError(node.func.id)
    if node.func.id == "FloorDiv" and len(parts) == 2 and parts[1].terms.keys() == {()} and parts[0].divisor == 1:
        return Expression(parts[0].terms, parts[1].terms[()])
    if node.func.id not in ("Add", "Mul") or any(p.divisor != 1 for p in parts):
        raise ValueError(node.func.id)
    total = parts[0].terms
    for part in parts[1:]:
        made: dict[tuple[str, ...], int] = dict(total) if node.func.id == "Add" else {}
        for names, c in part.terms.items():
            for others, d in total.items() if node.func.id == "Mul" else [((), 1)]:
                key = tuple(sorted((*names, *others)))
                made[key] = made.get(key, 0) + c * d
        total = made
        if len(total) > _TERMS or any(len(k) > _TERMS or abs(c) >= 2**63 for k, c in total.items()):
            raise ValueError("too large an expression")
    return Expression(total)
