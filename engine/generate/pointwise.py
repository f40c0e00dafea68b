"""Emits the block functions of the operators with a `body:`: one loop for each type that it computes in."""

from __future__ import annotations

import re
from pathlib import Path

from .declaration import Operator
from .schema import HEADER
from .signature import DeclarationError, Param

# The functions go into so many files, by id, so that none takes long to compile and adding an
# operator recompiles one.
NUM_FILES = 8

_TOKEN = re.compile(
    r"\s*(?P<number>(?:0x[0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?))"
    r"|\s*(?P<name>[A-Za-z_]\w*)|\s*(?P<string>'[^']*'|\"[^\"]*\")"
    r"|\s*(?P<op>&&|\|\||==|!=|<=|>=|<<|>>|[-+*/%<>!~&|^?:(),])"
)
_CONSTANTS = {"true", "false"}
# Functions that take no longer than an addition, or hardly.
_CHEAP = set(
    "abs maximum minimum fmax fmin clamp isnan isinf isfinite sign signbit copysign floor ceil trunc rint frac sqrt "
    "rsqrt relu shift_left shift_right T".split()
)
_DIVIDES = re.compile(r"\b(?:floor_divide|trunc_divide|remainder|fmod)\(\s*\w+\s*,\s*(\w+)\s*\)")


def vocabulary(scalar_math: str) -> set[str]:
    """The functions that kernels/common/scalar_math.h offers to bodies."""
    return set(re.findall(r"^TT_HOST_DEVICE .*?(\w+)\(", scalar_math, re.MULTILINE)) | set(
        re.findall(r"^TT_LIBM_\d\((\w+)\)", scalar_math, re.MULTILINE)
    )


def _tokens(body: str) -> list[tuple[str, str]]:
    tokens, at = [], 0
    while at < len(body.rstrip()):
        match = _TOKEN.match(body, at)
        if not match:
            raise DeclarationError(f"not a body: {body!r} at {body[at:]!r}")
        kind = match.lastgroup or ""
        tokens.append((kind, match[kind]))
        at = match.end()
    return tokens


class _Translator:
    """A body as C++: literals in the compute type T, and `a ? b : c` as `where(a, b, c)`."""

    def __init__(self, op: Operator, body: str, functions: set[str]):
        self._tokens = _tokens(body)
        self._names = {p.name for p in op.params} | {f"has_{p.name}" for p in op.params if p.optional}
        self._functions = functions
        self._at = 0
        self._body = body

    def translate(self) -> str:
        text = self._expression()
        if self._at != len(self._tokens):
            raise DeclarationError(f"unbalanced body: {self._body!r}")
        return text

    def _peek(self) -> str:
        return self._tokens[self._at][1] if self._at < len(self._tokens) else ""

    def _take(self, expected: str) -> None:
        if self._peek() != expected:
            raise DeclarationError(f"{expected!r} expected in body {self._body!r}")
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
        """Everything up to what ends an operand of `?:`."""
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
                raise DeclarationError(f"{text}() is no function of kernels/common/scalar_math.h")
        elif text not in self._names and text not in _CONSTANTS:
            raise DeclarationError(f"{text!r} in body {self._body!r} is no parameter")
        return text


def bodies(op: Operator) -> dict[str, str]:
    """Kind of compute type (float, int, bool) -> body as written."""
    body = op.entry["body"]
    if isinstance(body, dict):
        if unknown := set(body) - {"float", "int", "bool"}:
            raise DeclarationError(f"{op.source}: {op.name}: bodies are by float, int, bool, got {sorted(unknown)}")
        return {kind: str(text) for kind, text in body.items()}
    kinds = {"float": str(body)}
    if not (op.entry.get("compute") or op.dtype_rules[0]).startswith("floating"):
        kinds["int"] = str(body)
    return kinds


def _locals(op: Operator) -> list[tuple[str, str, str]]:
    """(type, name, value) of each of a body's parameters, in a loop over i."""
    rows: list[tuple[str, str, str]] = []
    tensors = numbers = 0
    for p in op.params:
        if p.is_tensor:
            rows.append(("T", p.name, f"in{tensors}[i]"))
            tensors += 1
            continue
        rows.append(("bool", p.name, p.name) if p.type == "bool" else ("T", p.name, p.name))
        if p.optional:
            rows.append(("bool", f"has_{p.name}", f"has_{p.name}"))
        numbers += 1
    return rows


def _number_locals(op: Operator) -> str:
    lines = []
    for i, p in enumerate(p for p in op.params if not p.is_tensor):
        value = f"numbers.value[{i}]"
        lines.append(
            f"  const bool {p.name} = {value} != 0;\n" if p.type == "bool" else f"  const T {p.name} = {value};\n"
        )
        if p.optional:
            lines.append(f"  const bool has_{p.name} = (numbers.present >> {i}) & 1;\n")
    return "".join(lines)


def _check_params(op: Operator) -> None:
    def fits(p: Param) -> bool:
        return (p.is_tensor and not p.optional) or p.type in ("Scalar", "int", "float", "bool")

    for p in op.params:
        if not fits(p):
            raise DeclarationError(f"{op.source}: {op.name}: a body cannot take {p.name}, a {p.type}")
    if sum(p.is_tensor for p in op.params) > 4 or sum(not p.is_tensor for p in op.params) > 8:
        raise DeclarationError(f"{op.source}: {op.name}: a body takes at most 4 tensors and 8 numbers")


def _functions(op: Operator, kind: str, body: str, functions: set[str]) -> str:
    try:
        expression = _Translator(op, body, functions).translate()
    except DeclarationError as e:
        raise DeclarationError(f"{op.source}: {op.name}: {e}") from None
    name = f"{op.name}_{kind}"
    rows = _locals(op)
    params = ", ".join(f"[[maybe_unused]] {t} {n}" for t, n, _ in rows)
    tensors = [p for p in op.params if p.is_tensor]
    pointers = "".join(f"  const T* in{i} = in[{i}];\n" for i in range(len(tensors)))
    probe = ", ".join(f"{t}()" for t, _, _ in rows)
    return f"""template <typename T>
TT_HOST_DEVICE auto body_{name}({params}) -> decltype({expression}) {{
  return {expression};
}}
template <typename T>
void loop_{name}(int64_t n, const T* const* in, T* out, [[maybe_unused]] const Numbers<T>& numbers) {{
{pointers}{_number_locals(op)}  n &= -kLanes;
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) out[i] = number<T>(body_{name}<T>({", ".join(v for _, _, v in rows)}));
}}
template <typename T>
constexpr BlockFunction<T> find_{name}() {{
  if constexpr (requires {{ body_{name}<T>({probe}); }}) return &padded<T, {len(tensors)}, &loop_{name}<T>>;
  return nullptr;
}}
"""


def _divisor(op: Operator, kinds: dict[str, str]) -> int:
    """Which tensor must hold no zero where the body computes in integers; -1 for none."""
    body = kinds.get("int", "")
    tensors = [p.name for p in op.params if p.is_tensor]
    found = {name for name in _DIVIDES.findall(body) if name in tensors}
    return tensors.index(found.pop()) if found else -1


def _is_costly(kinds: dict[str, str]) -> bool:
    """Whether a body calls what takes longer than its elements take to come from memory."""
    called = {name for body in kinds.values() for name in re.findall(r"([A-Za-z_]\w*)\s*\(", body)}
    return bool(called - _CHEAP)


def _distinct(kinds: dict[str, str]) -> dict[str, str]:
    """Kind -> the first kind with the same body, whose functions it shares."""
    return {kind: next(k for k, text in kinds.items() if text == body) for kind, body in kinds.items()}


def _row(op: Operator, kinds: dict[str, str]) -> str:
    shared = _distinct(kinds)

    def find(kind: str, ctype: str) -> str:
        return f"find_{op.name}_{shared[kind]}<{ctype}>()" if kind in kinds else "nullptr"

    boolean = "bool" if "bool" in kinds else "int"
    functions = [find("float", "float"), find("float", "double"), find("int", "int32_t"), find("int", "int64_t")]
    tensors = sum(p.is_tensor for p in op.params)
    return (
        f"      {{op_id::{op.constant}, {tensors}, {_divisor(op, kinds)}, "
        f"{'true' if _is_costly(kinds) else 'false'}, "
        f"{', '.join(functions)}, {find(boolean, 'int32_t')}}},\n"
    )


def emit_file(operators: list[Operator], index: int, functions: set[str]) -> str:
    """One of the NUM_FILES sources; each instruction set compiles all of them."""
    texts, rows = [], []
    for op in operators:
        if op.is_pointwise and op.id % NUM_FILES == index:
            _check_params(op)
            kinds = bodies(op)
            texts += [_functions(op, kind, body, functions) for kind, body in kinds.items() if _distinct(kinds)[kind] == kind]
            rows.append(_row(op, kinds))
    table = "  return {nullptr, 0};\n"
    if rows:
        table = (
            "  using namespace math::TT_ISA;  // NOLINT: the functions above\n"
            f"  static const PointwiseRow rows[] = {{\n{''.join(rows)}  }};\n  return {{rows, {len(rows)}}};\n"
        )
    return f"""{HEADER}#include "engine/op_ids.h"
#include "kernels/cpu/isa/padded.h"
namespace tt::math {{
inline namespace TT_ISA {{
namespace {{
using cpu::BlockFunction;
using cpu::Numbers;
using cpu::TT_ISA::kLanes;
using cpu::TT_ISA::padded;
{"".join(texts)}}}  // namespace
}}  // namespace TT_ISA
}}  // namespace tt::math
namespace tt::cpu::TT_ISA {{
PointwiseRows pointwise_rows_{index}() {{
{table}}}
}}  // namespace tt::cpu::TT_ISA
"""


def emit_table() -> str:
    """The source that collects the rows of all files, compiled once an instruction set."""
    declarations = "".join(f"PointwiseRows pointwise_rows_{i}();\n" for i in range(NUM_FILES))
    calls = ", ".join(f"pointwise_rows_{i}()" for i in range(NUM_FILES))
    return f"""{HEADER}#include "kernels/cpu/block.h"
namespace tt::cpu::TT_ISA {{
{declarations}const PointwiseRows* pointwise_files(int* count) {{
  static const PointwiseRows files[] = {{{calls}}};
  *count = {NUM_FILES};
  return files;
}}
}}  // namespace tt::cpu::TT_ISA
"""


def outputs(operators: list[Operator], kernels_folder: Path) -> dict[str, str]:
    """Path under the generated tree -> text."""
    functions = vocabulary((kernels_folder / "common" / "scalar_math.h").read_text())
    files = {
        f"kernels/cpu/isa/pointwise_{i}.cc": emit_file(operators, i, functions) for i in range(NUM_FILES)
    }
    return files | {"kernels/cpu/isa/pointwise_rows.cc": emit_table()}
