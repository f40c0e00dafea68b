"""Emits the CUDA kernels of the operators with a `body:`: one function object per body, and their table."""

from __future__ import annotations

from . import body as declared
from .body import (
    called,
    check_params,
    distinct,
    divisor_of,
    function,
    half_of,
    is_signless,
    locals_of,
    number_locals,
    probe,
)
from .declaration import Operator
from .schema import HEADER

# Operators are distributed by id over this many sources, which are compiled in parallel. Kernels for complex numbers
# and uint64 are in separate sources.
NUM_FILES = 8
NUM_EXTENDED_FILES = 4


def bodies(op: Operator) -> dict[str, str]:
    """Returns the bodies for real compute types."""
    return {kind: text for kind, text in declared.bodies(op).items() if kind != "complex"}


def _object(op: Operator, kind: str, body: str, functions: set[str]) -> str:
    name = f"{op.constant[1:]}{kind.title()}"
    half = half_of(op) if kind == "float" else None
    apart = _object(op, "half", half, functions) if half else ""
    own = f"  using Half = {op.constant[1:]}Half;\n" if half else ""
    tensors = [p.name for p in op.params if p.is_tensor]
    numbers = len(op.params) - len(tensors)
    values = ", ".join(f"in[{tensors.index(n)}]" if n in tensors else n for _, n in locals_of(op))
    divisor = divisor_of(op, bodies(op))
    return f"""{apart}{function(op, kind, body, functions)}struct {name} {{
{own}  static constexpr int kInputs = {len(tensors)}, kScalarArgs = {numbers}, kDivisor = {divisor};
  template <typename T>
  static constexpr bool kComputes = {probe(op, kind)};
  template <typename T>
  TT_FUNCTION static T call([[maybe_unused]] const T* in, [[maybe_unused]] const ScalarArgs<T, kScalarArgs>& scalar_args) {{
{number_locals(op).replace("  const", "    const")}    return number<T>(body_{op.name}_{kind}<T>({values}));
  }}
}};
"""


def _row(op: Operator, kinds: dict[str, str]) -> str:
    shared = distinct(kinds)

    def find(kind: str, ctype: str) -> str:
        return f"find<{op.constant[1:]}{shared[kind].title()}, {ctype}>()" if kind in kinds else "nullptr"

    launches = [find("float", "float"), find("float", "double"), find("int", "int64_t")]
    boolean = find("bool" if "bool" in kinds else "int", "int64_t")
    return f"      {{op_id::{op.constant}, {divisor_of(op, kinds)}, {', '.join(launches)}, {boolean}}},\n"


def emit_file(operators: list[Operator], index: int, functions: set[str]) -> str:
    """Returns one of the NUM_FILES sources, with the kernels for real dtypes other than uint64."""
    texts, rows = [], []
    for op in operators:
        if op.is_pointwise and op.id % NUM_FILES == index:
            check_params(op)
            kinds = bodies(op)
            texts += [_object(op, k, body, functions) for k, body in kinds.items() if distinct(kinds)[k] == k]
            rows.append(_row(op, kinds))
    return _source(texts, rows, ("kernels/cuda/pointwise/pointwise_kernels.h",), "PointwiseRow", f"pointwise_rows_{index}")


def _source(texts: list[str], rows: list[str], headers: tuple[str, ...], row: str, name: str) -> str:
    """Returns a source with bodies, and the function `name` that returns their rows."""
    table = "  return {};\n"
    if rows:
        table = (
            "  using namespace math;  // NOLINT: the functions above\n"
            f"  static const {row} rows[] = {{\n{''.join(rows)}  }};\n  return rows;\n"
        )
    included = "".join(f'#include "{header}"\n' for header in headers)
    return f"""{HEADER}#include "engine/schema/op_ids.h"
{included}namespace tt::math {{
inline namespace TT_ISA {{
namespace {{
using cuda::ScalarArgs;
{"".join(texts)}}}  // namespace
}}  // namespace TT_ISA
}}  // namespace tt::math
namespace tt::cuda {{
absl::Span<const {row}> {name}() {{
{table}}}
}}  // namespace tt::cuda
"""


def emit_extended_dtypes_file(operators: list[Operator], index: int, functions: set[str]) -> str:
    """Returns one of the NUM_EXTENDED_FILES sources, with the kernels for complex numbers and uint64."""
    texts, rows = [], []
    for op in operators:
        if not op.is_pointwise or op.id % NUM_EXTENDED_FILES != index:
            continue
        kinds = declared.bodies(op)
        signless = is_signless(kinds.get("int", "0"))
        wanted = {kind: kinds[kind] for kind in (() if signless else ("int",)) + ("complex",) if kind in kinds}
        texts += [_object(op, kind, text, functions) for kind, text in wanted.items()]

        def find(kind: str, ctype: str) -> str:
            return f"find<{op.constant[1:]}{kind.title()}, {ctype}>()" if kind in wanted else "nullptr"  # noqa: B023

        launches = [find("int", "uint64_t"), find("complex", "Complex<float>"), find("complex", "Complex<double>")]
        is_int = "true" if signless and "int" in kinds else "false"
        rows.append(f"      {{op_id::{op.constant}, {is_int}, {', '.join(launches)}}},\n")
    headers = "kernels/common/math/complex_elementary.h", "kernels/cuda/pointwise/pointwise_kernels.h"
    return _source(texts, rows, headers, "ExtendedDTypeRow", f"extended_rows_{index}")


def _table(row: str, stem: str, count: int) -> str:
    declarations = "".join(f"absl::Span<const {row}> {stem}_rows_{i}();\n" for i in range(count))
    calls = ", ".join(f"{stem}_rows_{i}()" for i in range(count))
    return f"""{declarations}std::vector<absl::Span<const {row}>> {stem}_files() {{
  return {{{calls}}};
}}
"""


def emit_table() -> str:
    """Returns the source that collects the rows of all files."""
    return f"""{HEADER}#include "kernels/cuda/pointwise/pointwise_rows.h"
namespace tt::cuda {{
{_table("PointwiseRow", "pointwise", NUM_FILES)}{_table("ExtendedDTypeRow", "extended", NUM_EXTENDED_FILES)}}}  // namespace tt::cuda
"""


def emit_bodies(operators: list[Operator], functions: set[str], scalar_math: str, apart: set[str]) -> str:
    """Returns the bodies as source text for chains compiled at run time, without bodies that call `apart` functions."""
    rows = []
    for op in operators:
        if not op.is_pointwise:
            continue
        kinds = bodies(op)
        cells = []
        for kind in ("float", "int"):
            looks_for_zeros = kind == "int" and divisor_of(op, kinds) >= 0
            stays_out = looks_for_zeros or called(kinds.get(kind, "")) & apart
            used = None if stays_out else distinct(kinds).get(kind)
            text = function(op, used, kinds[used], functions) if used else ""
            cells.append(f'"body_{op.name}_{used}", R"TT({text})TT"' if used else '"", ""')
        rows.append(f"      {{op_id::{op.constant}, {', '.join(cells)}}},\n")
    # The code that compiles the chains provides the includes.
    math = "".join(f"{line}\n" for line in scalar_math.splitlines() if not line.startswith(("#include", "#pragma once")))
    return f"""{HEADER}#include "engine/schema/op_ids.h"
#include "kernels/cuda/pointwise/chain_source.h"
namespace tt::cuda {{
absl::Span<const ChainBody> chain_bodies() {{
  static const ChainBody bodies[] = {{
{"".join(rows)}  }};
  return bodies;
}}
std::string_view chain_functions() {{
  return R"TT({math})TT";
}}
}}  // namespace tt::cuda
"""


def outputs(operators: list[Operator], functions: set[str], scalar_math: str, apart: set[str]) -> dict[str, str]:
    """Maps paths in the generated tree to file contents."""
    files = {f"kernels/cuda/pointwise_{i}.cu": emit_file(operators, i, functions) for i in range(NUM_FILES)}
    files |= {
        f"kernels/cuda/pointwise_extended_{i}.cu": emit_extended_dtypes_file(operators, i, functions) for i in range(NUM_EXTENDED_FILES)
    }
    files["kernels/cuda/pointwise_files.cu"] = emit_table()
    files["kernels/cuda/chain_bodies.cu"] = emit_bodies(operators, functions, scalar_math, apart)
    return files
