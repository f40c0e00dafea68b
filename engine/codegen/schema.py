"""Emits the operator table: ids, parameters, and the infer functions that compose the rules."""

from __future__ import annotations

import ast

from .body import bodies
from .declaration import DeclarationError, Operator
from .saved import saved_parts
from .signature import Param

HEADER = "// Generated from engine/ops/*.yaml by engine/codegen; do not edit.\n"


def cpp_string(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def schema_digest(operators: list[Operator]) -> int:
    """Returns a digest of all ids and signatures."""
    digest = 0xCBF29CE484222325
    for byte in "".join(f"{op.id} {op.name}{op.entry['sig']}\n" for op in operators).encode():
        digest = (digest ^ byte) * 0x100000001B3 % 2**64
    return digest


def emit_ids(operators: list[Operator]) -> str:
    lines = "".join(f"inline constexpr uint16_t {op.constant} = {op.id};\n" for op in operators)
    return f"""{HEADER}#pragma once
#include <cstdint>
namespace tt::op_id {{
{lines}inline constexpr uint16_t kMax = {max(op.id for op in operators)};
}}  // namespace tt::op_id
namespace tt {{
// Digest of the operators' ids and signatures, at the time of compilation.
inline constexpr uint64_t kSchemaDigest = {schema_digest(operators):#x}u;
}}  // namespace tt
"""


def rule_call(op: Operator, rule: str, vocabulary: str) -> str:
    """Translates a rule to C++ calls of `vocabulary`'s functions; parameters become accessors of `a[i]`."""
    try:
        tree = ast.parse(rule, mode="eval").body
    except SyntaxError:
        raise DeclarationError(f"{op.source}: {op.name}: expected a rule, got {rule!r}") from None

    def emit(node: ast.expr) -> str:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            return f"{vocabulary}::{node.func.id}({', '.join(emit(a) for a in node.args)})"
        if isinstance(node, ast.Name):
            for i, p in enumerate(op.params):
                if p.name == node.id:
                    return p.accessor(f"a[{i}]")
            raise DeclarationError(f"{op.source}: {op.name}: {node.id!r} in {rule!r} is not a parameter")
        if isinstance(node, ast.Constant):
            if isinstance(node.value, bool):
                return "true" if node.value else "false"
            if isinstance(node.value, str):
                return cpp_string(node.value)
            return repr(node.value)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return f"-{emit(node.operand)}"
        raise DeclarationError(
            f"{op.source}: {op.name}: a rule may contain only calls, parameters and literals, got {rule!r}"
        )

    return emit(tree)


def _default(param: Param, statics: list[str], prefix: str) -> str:
    value = param.default
    if value is None:
        return "Arg()"
    if param.type in ("int[]", "float[]"):
        values = [value] * (param.list_size or 1) if isinstance(value, (int, float)) else list(value)
        ctype = "SymInt" if param.type == "int[]" else "double"
        name = f"{prefix}_{param.name}"
        if not values:
            return f"Arg(absl::Span<const {ctype}>())"
        statics.append(f"constexpr {ctype} {name}[] = {{{', '.join(map(str, values))}}};\n")
        return f"Arg(absl::Span<const {ctype}>({name}))"
    if param.type == "DType":
        return f"Arg(DType::{value})"
    if isinstance(value, bool):
        return f"Arg({'true' if value else 'false'})"
    if isinstance(value, int) and param.type == "float":
        return f"Arg(double{{{value}}})"
    if isinstance(value, int):
        return f"Arg(int64_t{{{value}}})"
    if isinstance(value, float):
        return f"Arg(double{{{value!r}}})" if abs(value) != float("inf") else f"Arg({'-' if value < 0 else ''}HUGE_VAL)"
    return f"Arg(std::string_view({cpp_string(str(value))}))"


def _params(op: Operator) -> str:
    statics: list[str] = []
    rows = []
    for p in op.params:
        flags = [p.optional, p.has_default, p.keyword_only]
        number = p.accepts_number or (p.is_tensor and op.is_pointwise)
        tail = [p.optional_entries, p.name in op.differentiable_params, p.written, number, p.variadic]
        cpp = lambda flag: "true" if flag else "false"  # noqa: E731
        rows.append(
            f"    {{{cpp_string(p.name)}, ParamType::{p.param_type}, {', '.join(map(cpp, flags))}, {p.list_size}, "
            f"{', '.join(map(cpp, tail))}, {_default(p, statics, 'k_' + op.name)}}},\n"
        )
    if not rows:
        return ""
    return f"{''.join(statics)}constexpr Param k_params_{op.name}[] = {{\n{''.join(rows)}}};\n"


def _infer(op: Operator) -> str:
    lines = []
    dtypes = [rule_call(op, r, "dtype_rules") for r in op.dtype_rules]
    if op.is_pointwise:
        compute = op.entry.get("compute")
        if not compute and op.dtype_rules == ["boolean()"]:
            compute = f"promote({', '.join(p.name for p in op.params if p.is_tensor)})"
        lines.append(f"  out->compute = {rule_call(op, compute, 'dtype_rules') if compute else dtypes[0]};\n")
        if "complex" not in bodies(op):
            lines.append("  dtype_rules::require_real(out->compute);\n")
    if op.is_dynamic:
        lines += [f"  shape_rules::add_dynamic(out, {dtype});\n" for dtype in dtypes]
    else:
        lines += [f"  shape_rules::add(out, {d}, {rule_call(op, s, 'shape_rules')});\n" for d, s in zip(dtypes, op.shape_rules)]
    return (
        f"void infer_{op.name}([[maybe_unused]] Args a, [[maybe_unused]] Inference* out) {{\n"
        f"{''.join(lines)}}}\n"
    )


def _saved(op: Operator) -> str:
    """Returns the table of the values that the operator's gradient formulas read; empty if they read none."""
    rows = [f"{{{part.params:#x}, {part.args:#x}, {part.results:#x}}}" for part in saved_parts(op) if part.args or part.results]
    return f"constexpr SavedPart k_saved_{op.name}[] = {{{', '.join(rows)}}};\n" if rows else ""


def _row(op: Operator) -> str:
    cpp = lambda flag: "true" if flag else "false"  # noqa: E731
    params = f"k_params_{op.name}" if op.params else "{}"
    saved = f"k_saved_{op.name}" if _saved(op) else "{}"
    flags = [op.is_pointwise, op.is_view, op.is_dynamic, op.is_random, bool(op.differentiable_params)]
    flags += [op.is_composite, op.entry.get("device") == "any", bool(op.entry.get("float8"))]
    return (
        f"    {{{op.id}, {cpp_string(op.name)}, {params}, {op.signature.num_outputs}, "
        f"{', '.join(map(cpp, flags))}, {_waits(op)}, SessionUse::k{op.session.capitalize()}, {saved}, OutRule::k{op.out.capitalize()}, "
        f"&op_rules::infer_{op.name}}},\n"
    )


def _waits(op: Operator) -> str:
    """Returns the value of Op::waits."""
    waits = op.entry.get("waits")
    return {None: "Op::kNever", True: "Op::kAlways"}.get(waits) or str([p.name for p in op.params].index(waits))


def emit_table(operators: list[Operator]) -> str:
    """Returns the source of the table."""
    return f"""{HEADER}#include "engine/schema/op_table.h"

#include <cmath>

#include "engine/schema/op_ids.h"
#include "engine/schema/op_rules.h"

namespace tt {{

namespace op_rules {{
{"".join(f"void infer_{op.name}(Args a, Inference* out);" + chr(10) for op in operators)}}}  // namespace op_rules

namespace {{

{"".join(_params(op) + _saved(op) for op in operators)}
constexpr Op kOps[] = {{
{"".join(_row(op) for op in operators)}}};
}}  // namespace

absl::Span<const Op> op_table() {{ return kOps; }}
uint64_t schema_digest() {{ return kSchemaDigest; }}

}}  // namespace tt
"""


def emit_rules(operators: list[Operator]) -> str:
    """Returns the source of the operators' rules."""
    rows = "".join(f"    {{{op.id}, &infer_{op.name}}},\n" for op in operators)
    return f"""{HEADER}#include "engine/schema/op_rules.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "engine/schema/op_ids.h"
#include "engine/schema/rules/dtype_rules.h"
#include "engine/schema/rules/shape_rules.h"

namespace tt::op_rules {{

{"".join(map(_infer, operators))}
namespace {{

constexpr struct Rule {{
  uint16_t id;
  Op::Infer infer;
}} kRules[] = {{
{rows}}};

}}  // namespace

Op::Infer find(uint16_t id) {{
  const auto before = [](const Rule& rule, uint16_t sought) {{ return rule.id < sought; }};
  const Rule* const found = std::lower_bound(std::begin(kRules), std::end(kRules), id, before);
  return found != std::end(kRules) && found->id == id ? found->infer : nullptr;
}}

}}  // namespace tt::op_rules
"""


def emit_autocast(operators: list[Operator]) -> str:
    """Returns the source of the table of autocast policies, indexed by operator id."""
    policies = {op.id: op.autocast for op in operators if op.autocast != ("none", "none")}
    name = lambda policy: "k" + policy.title().replace("_", "")  # noqa: E731
    rows = [f"{{{', '.join(map(name, policies.get(i, ('none', 'none'))))}}},\n" for i in range(max(policies, default=-1) + 1)]
    return f"""{HEADER}#include "engine/schema/autocast_table.h"

namespace tt {{
namespace {{

using enum AutocastPolicy;
constexpr AutocastPolicies kPolicies[] = {{
{"".join(f"    {row}" for row in rows) or "    {},"}}};
}}  // namespace

absl::Span<const AutocastPolicies> autocast_table() {{ return kPolicies; }}

}}  // namespace tt
"""
