"""Emits the block functions of the operators with a `body:`: one loop per compute type."""

from __future__ import annotations

import re
from pathlib import Path

from . import pointwise_cuda
from .body import (
    VOCABULARY,
    bodies,
    called,
    check_params,
    distinct,
    divisor_of,
    function,
    is_signless,
    locals_of,
    number_locals,
    probe,
    vocabulary,
)  # fmt: skip
from .declaration import Operator
from .schema import HEADER

# The functions are distributed over this many files by id, so that no file takes long to compile and adding an operator
# recompiles only one file.
NUM_FILES = 8
BINARY_PARTS = ("frexp_mantissa", "frexp_exponent")  # functions of binary_parts.h, which few files include

# Functions that take about as long as an addition.
_CHEAP = set(
    "abs maximum minimum fmax fmin clamp isnan isinf isfinite sign signbit copysign floor ceil trunc rint frac sqrt "
    "rsqrt relu shift_left shift_right T".split()
)


# Bodies whose results have the bits of an operand, but perhaps another sign, so that bfloat16 needs no rounding.
_SELECTING = ("-input", "abs(input)", "copysign(input, other)", "input < 0 ? T(0) : input", "maximum(input, other)",
              "minimum(input, other)")  # fmt: skip

# Headers in kernels/ that define loops of single functions for floating types.
LOOPS = ("cpu/isa/loops.h", "cpu/isa/special_loops.h", "cpu/isa/gamma_loops.h", "cpu/isa/polynomial_loops.h",
         "cpu/isa/activation_loops.h")  # fmt: skip


def loops(headers: str) -> set[str]:
    """Returns the functions for which the headers define loops."""
    return set(re.findall(r"^void loop_of_(\w+)\(int64_t \w+, const T\* const\* in, T\* out\) {", headers, re.MULTILINE))


def _loop(op: Operator, body: str, functions: set[str]) -> str | None:
    """Returns the function that `body` calls if it has a loop and the body is one call with all tensors in order, or
    operator_NAME if there is a loop for the operator itself."""
    if f"operator_{op.name}" in functions:
        return f"operator_{op.name}"
    call = re.fullmatch(r"(\w+)\((.*)\)", body)
    takes_tensors = all(p.is_tensor for p in op.params)
    in_order = call and call[2].split(", ") == [p.name for p in op.params]
    return call[1] if call and call[1] in functions and takes_tensors and in_order else None


def _functions(op: Operator, kind: str, body: str, functions: set[str], loop: str | None) -> str:
    name = f"{op.name}_{kind}"
    tensors = [p.name for p in op.params if p.is_tensor]
    pointers = "".join(
        f"  const T* in{i} = in[{i}];\n  [[maybe_unused]] const uint32_t low{i} = scalar_args.low_bits[{i}];\n"
        for i in range(len(tensors))
    )
    indices = {n: tensors.index(n) for n in tensors}
    values = ", ".join(f"value_of(in{indices[n]}[i], low{indices[n]})" if n in tensors else n for _, n in locals_of(op))
    own = f"  if constexpr (Real<T>) return loop_of_{loop}(length & -kLanes, in, out);\n" if loop else ""
    exact = ""
    if kind == "float" and body in _SELECTING and _computes_in_bfloat16(op, bodies(op)):
        low = " | ".join(f"low{i}" for i in range(len(tensors)))
        exact = f"""  if constexpr (std::is_same_v<T, BFloat16>) {{
    if (({low}) == 0) {{
#pragma GCC ivdep
      for (int64_t i = 0; i < length; ++i) out[i] = upper_bits(body_{name}<Value>({values}));
      return;
    }}
  }}
"""
    return f"""{function(op, kind, body, functions)}template <typename T>
void loop_{name}(int64_t length, const T* const* in, T* out, [[maybe_unused]] const ScalarArgs<T>& scalar_args) {{
{own}  using Value = ComputedIn<T>;
{pointers}{number_locals(op, "Value")}  length &= -kLanes;
{exact}#pragma GCC ivdep
  for (int64_t i = 0; i < length; ++i) out[i] = static_cast<T>(number<Value>(body_{name}<Value>({values})));
}}
template <typename T>
constexpr BlockFunction<T> find_{name}() {{
  using Value = ComputedIn<T>;
  if constexpr ({probe(op, kind, "Value")}) return &padded<T, {len(tensors)}, &loop_{name}<T>>;
  return nullptr;
}}
"""


def _unsigned(op: Operator, kind: str) -> str:
    """Returns the function that computes uint64 on the bits of int64, for bodies whose int64 function differs."""
    tensors = sum(p.is_tensor for p in op.params)
    return f"""template <typename T>
constexpr BlockFunction<int64_t> find_unsigned_{op.name}() {{
  if constexpr ({probe(op, kind)}) return &as_unsigned<{tensors}, &loop_{op.name}_{kind}<T>>;
  return nullptr;
}}
"""


def _is_costly(kinds: dict[str, str]) -> bool:
    """Whether a body calls a function that takes longer than loading its elements from memory."""
    return any(called(body) - _CHEAP for body in kinds.values())


def _computes_in_bfloat16(op: Operator, kinds: dict[str, str]) -> bool:
    """Whether converting bfloat16 to blocks of floats takes longer than computing."""
    return "float" in kinds and not _is_costly({"float": kinds["float"]}) and op.dtype_rules[0] != "boolean()"


def _row(op: Operator, kinds: dict[str, str]) -> str:
    shared = distinct(kinds)

    def find(kind: str, ctype: str) -> str:
        return f"find_{op.name}_{shared[kind]}<{ctype}>()" if kind in kinds else "nullptr"

    boolean = "bool" if "bool" in kinds else "int"
    functions = [find("float", "float"), find("float", "double"), find("int", "int32_t"), find("int", "int64_t")]
    signless = is_signless(kinds.get("int", ""))
    unsigned = find("int", "int64_t") if signless else f"find_unsigned_{op.name}<uint64_t>()"
    tensors = sum(p.is_tensor for p in op.params)
    bf16 = find("float", "BFloat16") if _computes_in_bfloat16(op, kinds) else "nullptr"
    return (
        f"      {{op_id::{op.constant}, {tensors}, {divisor_of(op, kinds)}, "
        f"{'true' if _is_costly(kinds) else 'false'}, "
        f"{', '.join(functions)}, {find(boolean, 'int32_t')}, {unsigned}, "
        f"{find('complex', 'Complex<float>')}, {find('complex', 'Complex<double>')}, {bf16}}},\n"
    )


def emit_file(operators: list[Operator], index: int, functions: set[str], with_loops: set[str] = frozenset()) -> str:
    """Returns one of the NUM_FILES sources, which are compiled once per instruction set."""
    texts, rows, used = [], [], set()
    for op in operators:
        if op.is_pointwise and op.id % NUM_FILES == index:
            check_params(op)
            kinds = bodies(op)
            for kind, body in kinds.items():
                if distinct(kinds)[kind] == kind:
                    loop = _loop(op, body, with_loops)
                    texts.append(_functions(op, kind, body, functions, loop))
                    if loop:
                        used.add(loop)
            if not is_signless(kinds.get("int", "")):
                texts.append(_unsigned(op, distinct(kinds)["int"]))
            rows.append(_row(op, kinds))
    table = "  return {nullptr, 0};\n"
    if rows:
        table = (
            "  using namespace math::TT_ISA;  // NOLINT: the functions above\n"
            f"  static const PointwiseRow rows[] = {{\n{''.join(rows)}  }};\n  return {{rows, {len(rows)}}};\n"
        )
    own = "".join(f'#include "kernels/{header}"\n' for header in LOOPS) if used else ""
    if any(f"{name}(" in text for name in BINARY_PARTS for text in texts):
        own += '#include "kernels/common/math/binary_parts.h"\n'
    named = "".join(f"using cpu::TT_ISA::loop_of_{name};\n" for name in sorted(used))
    return f"""{HEADER}#include "engine/schema/op_ids.h"
{own}#include "kernels/cpu/isa/padded.h"
namespace tt::math {{
inline namespace TT_ISA {{
namespace {{
using cpu::BlockFunction;
using cpu::ComputedIn;
using cpu::ScalarArgs;
using cpu::TT_ISA::kLanes;
using cpu::TT_ISA::as_unsigned;
using cpu::TT_ISA::padded;
using cpu::TT_ISA::upper_bits;
using cpu::TT_ISA::value_of;
{named}{"".join(texts)}}}  // namespace
}}  // namespace TT_ISA
}}  // namespace tt::math
namespace tt::cpu::TT_ISA {{
PointwiseTable pointwise_rows_{index}() {{
{table}}}
}}  // namespace tt::cpu::TT_ISA
"""


def emit_table() -> str:
    """Returns the source that collects the rows of all files. It is compiled once per instruction set."""
    declarations = "".join(f"PointwiseTable pointwise_rows_{i}();\n" for i in range(NUM_FILES))
    calls = ", ".join(f"pointwise_rows_{i}()" for i in range(NUM_FILES))
    return f"""{HEADER}#include "kernels/cpu/iteration/block.h"
namespace tt::cpu::TT_ISA {{
{declarations}const PointwiseTable* pointwise_files(int* count) {{
  static const PointwiseTable files[] = {{{calls}}};
  *count = {NUM_FILES};
  return files;
}}
}}  // namespace tt::cpu::TT_ISA
"""


def outputs(operators: list[Operator], kernels_folder: Path) -> dict[str, str]:
    """Maps paths in the generated tree to file contents."""
    # Fused chains use only the functions of the first header. The other functions take so long that fusion gains
    # little.
    headers = [(kernels_folder / "common/math" / name).read_text() for name in VOCABULARY]
    functions = vocabulary("".join(headers))
    further = vocabulary("".join(headers[1:])) - vocabulary(headers[0])
    own = loops("".join((kernels_folder / header).read_text() for header in LOOPS))
    files = {f"kernels/cpu/isa/pointwise_{i}.cc": emit_file(operators, i, functions, own) for i in range(NUM_FILES)}
    files["kernels/cpu/isa/pointwise_rows.cc"] = emit_table()
    return files | pointwise_cuda.outputs(operators, functions, headers[0], further)
