"""Translates operators' scalar `body:` expressions to C++ for any backend."""

from __future__ import annotations

import re

from .declaration import Operator
from .signature import DeclarationError, Param

_TOKEN = re.compile(
    r"\s*(?P<number>(?:0x[0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?))"
    r"|\s*(?P<name>[A-Za-z_]\w*)|\s*(?P<string>'[^']*'|\"[^\"]*\")"
    r"|\s*(?P<op>&&|\|\||==|!=|<=|>=|<<|>>|[-+*/%<>!~&|^?:(),])"
)
_CONSTANTS = {"true", "false"}
_DIVIDES = re.compile(r"\b(?:floor_divide|trunc_divide|remainder|fmod)\(\s*\w+\s*,\s*(\w+)\s*\)")


# Headers in kernels/common/math with the functions that bodies may call.
VOCABULARY = ("scalar_math.h", "half_math.h", "special_math.h", "complex_math.h", "complex_libm.h", "binary_parts.h")

# Expressions that give the same bits for signed and unsigned integers.
_SIGNLESS = re.compile(r"^(?:[\w\s+\-*&|^~(),]|==|!=)*$")


def vocabulary(headers: str) -> set[str]:
    """Returns the functions in the headers' text that bodies may call."""
    return set(re.findall(r"^TT_HOST_DEVICE .*?(\w+)\(", headers, re.MULTILINE)) | set(
        re.findall(r"^TT_LIBM_\w+\((\w+)[,)]", headers, re.MULTILINE)
    )


def called(body: str) -> set[str]:
    """Returns the functions that a body calls."""
    return set(re.findall(r"([A-Za-z_]\w*)\s*\(", body))


def tokens_of(body: str) -> list[tuple[str, str]]:
    tokens, at = [], 0
    while at < len(body.rstrip()):
        match = _TOKEN.match(body, at)
        if not match:
            raise DeclarationError(f"expected a name, a number or an operator, got {body[at:]!r} in body {body!r}")
        kind = match.lastgroup or ""
        tokens.append((kind, match[kind]))
        at = match.end()
    return tokens


class _Translator:
    """Translates a body to C++: literals have the compute type T, and `a ? b : c` becomes `where(a, b, c)`."""

    def __init__(self, op: Operator, body: str, functions: set[str]):
        self._tokens = tokens_of(body)
        self._names = {p.name for p in op.params} | {f"has_{p.name}" for p in op.params if p.optional}
        self._functions = functions
        self._at = 0
        self._body = body

    def translate(self) -> str:
        text = self._expression()
        if self._at != len(self._tokens):
            raise DeclarationError(f"expected the end of the body, got {self._peek()!r} in body {self._body!r}")
        return text

    def _peek(self) -> str:
        return self._tokens[self._at][1] if self._at < len(self._tokens) else ""

    def _take(self, expected: str) -> None:
        if self._peek() != expected:
            raise DeclarationError(f"expected {expected!r}, got {self._peek() or 'the end'!r} in body {self._body!r}")
        self._at += 1

    def _expression(self) -> str:
        condition = self._flat()
        if self._peek() != "?":
            return condition
        self._take("?")
        yes = self._expression()
        self._take(":")
        return f"where({condition}, {yes}, {self._expression()})"

    def _flat(self) -> str:
        """Translates tokens up to the end of an operand of `?:`."""
        parts = []
        while self._at < len(self._tokens) and self._peek() not in ("?", ":", ",", ")"):
            kind, text = self._tokens[self._at]
            self._at += 1
            if text == "(":
                inner = [] if self._peek() == ")" else [self._expression()]
                while self._peek() == ",":
                    self._take(",")
                    inner.append(self._expression())
                self._take(")")
                parts.append(f"({', '.join(inner)})")
            elif kind == "number":
                parts.append(f"T({text})")
            elif kind == "name":
                parts.append(self._name(text))
            else:
                parts.append(text)
        return " ".join(parts).replace(" (", "(")

    def _name(self, text: str) -> str:
        if self._peek() == "(":
            if text not in self._functions and text != "T":
                raise DeclarationError(f"{text}() is not a function of kernels/common/math/{' or '.join(VOCABULARY)}")
        elif text not in self._names and text not in _CONSTANTS:
            raise DeclarationError(f"{text!r} in body {self._body!r} is not a parameter")
        return text


def bodies(op: Operator) -> dict[str, str]:
    """Maps kinds of compute type (float, int, bool, complex) to the bodies as written."""
    body = op.entry["body"]
    if isinstance(body, dict):
        if unknown := set(body) - {"float", "half", "int", "bool", "complex"}:
            raise DeclarationError(
                f"{op.source}: {op.name}: body keys must be float, half, int, bool or complex, got {sorted(unknown)}"
            )
        if "half" in body and "float" not in body:
            raise DeclarationError(f"{op.source}: {op.name}: a half body requires a float body, which it replaces")
        kinds = {kind: str(text) for kind, text in body.items() if kind != "half"}
    else:
        kinds = {"float": str(body)}
        if not (op.entry.get("compute") or op.dtype_rules[0]).startswith("floating"):
            kinds["int"] = str(body)
    if op.entry.get("complex"):
        kinds["complex"] = kinds["float"]
    return kinds


def half_of(op: Operator) -> str | None:
    """Returns the declared body for 16-bit floats, computed in float with 16-bit accuracy; None if there is none."""
    body = op.entry["body"]
    return str(body["half"]) if isinstance(body, dict) and "half" in body else None


def is_signless(body: str) -> bool:
    """Whether unsigned integers can be computed as signed ones with the same bits."""
    return bool(_SIGNLESS.match(body)) and not called(body)


def locals_of(op: Operator) -> list[tuple[str, str]]:
    """Returns (type, name) of each parameter of a body."""
    rows: list[tuple[str, str]] = []
    for p in op.params:
        rows.append(("bool" if p.type == "bool" else "T", p.name))
        if p.optional and not p.is_tensor:
            rows.append(("bool", f"has_{p.name}"))
    return rows


def number_locals(op: Operator, ctype: str = "T") -> str:
    """Returns C++ declarations that read a body's number parameters from `scalar_args`, as `ctype`."""
    lines = []
    for i, p in enumerate(p for p in op.params if not p.is_tensor):
        value = f"scalar_args.value[{i}]"
        lines.append(
            f"  const bool {p.name} = {value} != 0;\n" if p.type == "bool" else f"  const {ctype} {p.name} = {value};\n"
        )
        if p.optional:
            lines.append(f"  const bool has_{p.name} = (scalar_args.present >> {i}) & 1;\n")
    return "".join(lines)


def check_params(op: Operator) -> None:
    """Checks that a body supports the operator's parameters."""
    def fits(p: Param) -> bool:
        return (p.is_tensor and not p.optional) or p.type in ("Scalar", "int", "float", "bool")

    for p in op.params:
        if not fits(p):
            raise DeclarationError(f"{op.source}: {op.name}: a body cannot take {p.name}, a {p.type}")
    if sum(p.is_tensor for p in op.params) > 4 or sum(not p.is_tensor for p in op.params) > 8:
        raise DeclarationError(f"{op.source}: {op.name}: a body takes at most 4 tensors and 8 numbers")


def function(op: Operator, kind: str, body: str, functions: set[str]) -> str:
    """Returns the C++ function `body_<operator>_<kind>`, defined only for compute types T that the body supports."""
    try:
        expression = _Translator(op, body, functions).translate()
    except DeclarationError as e:
        raise DeclarationError(f"{op.source}: {op.name}: {e}") from None
    params = ", ".join(f"[[maybe_unused]] {t} {n}" for t, n in locals_of(op))
    return f"""template <typename T>
TT_HOST_DEVICE auto body_{op.name}_{kind}({params}) -> decltype({expression}) {{
  return {expression};
}}
"""


def probe(op: Operator, kind: str, ctype: str = "T") -> str:
    """Returns a C++ requires-expression that is true if the body can compute in `ctype`."""
    values = ", ".join("bool()" if t == "bool" else f"{ctype}()" for t, _ in locals_of(op))
    return f"requires {{ body_{op.name}_{kind}<{ctype}>({values}); }}"


def divisor_of(op: Operator, kinds: dict[str, str]) -> int:
    """Returns the index of the tensor that must not contain zeros if the body computes in integers; -1 if none."""
    body = kinds.get("int", "")
    tensors = [p.name for p in op.params if p.is_tensor]
    found = {name for name in _DIVIDES.findall(body) if name in tensors}
    return tensors.index(found.pop()) if found else -1


def distinct(kinds: dict[str, str]) -> dict[str, str]:
    """Maps each kind to the first kind with the same body, whose functions it shares."""
    return {kind: next(k for k, text in kinds.items() if text == body) for kind, body in kinds.items()}
