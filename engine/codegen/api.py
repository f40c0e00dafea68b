"""Emits `tt::ops`: one typed C++ function per operator, which dispatches the call."""

from __future__ import annotations

from .declaration import Operator
from .schema import HEADER


def _result_type(op: Operator) -> str:
    outputs = op.signature.num_outputs
    if outputs == 0:
        return "void"
    return "Tensor" if outputs == 1 else "Tensors"


def default_text(param) -> str:
    """Returns a parameter's default as C++ text; empty if there is none or C++ has no literal for it."""
    if not param.has_default:
        return ""
    value = param.default
    if value is None:
        return " = {}" if param.is_tensor else " = std::nullopt"
    if param.type == "DType":
        return f" = DType::{value}"
    if isinstance(value, bool):
        return f" = {'true' if value else 'false'}"
    if isinstance(value, str):
        return f' = "{value}"'
    if isinstance(value, int) and param.type == "Scalar":
        return f" = int64_t{{{value}}}"
    if isinstance(value, float) and abs(value) == float("inf"):
        return f" = {'-' if value < 0 else ''}HUGE_VAL"
    if isinstance(value, (list, tuple)) or param.type in ("int[]", "float[]"):
        return ""  # a span has no literal, so callers must pass one
    return f" = {value!r}"


def _declaration(op: Operator, defaults: bool) -> str:
    texts = [default_text(p) if defaults else "" for p in op.params]
    # C++ defaults form a suffix: a parameter without a default drops the defaults before it.
    last_without = max((i for i, t in enumerate(texts) if not t), default=-1)
    params = ", ".join(
        f"{p.api_type} {p.name}{t if i > last_without else ''}" for i, (p, t) in enumerate(zip(op.params, texts))
    )
    return f"{_result_type(op)} {op.name}({params})"


def emit_header(operators: list[Operator]) -> str:
    rows = "".join(f"// {op.doc}\n{_declaration(op, True)};\n" for op in operators)
    return f"""{HEADER}#pragma once
#include <cmath>
#include <optional>
#include <string_view>
#include "engine/dispatch/operand.h"
namespace tt::ops {{
{rows}}}  // namespace tt::ops
"""


def emit_source(operators: list[Operator]) -> str:
    rows = []
    for op in operators:
        lists = [f"  ListArg list_{p.name}({p.name});\n" for p in op.params if p.is_tensor_list]
        args = ", ".join(
            f"{p.name}.arg()" if p.is_tensor else f"list_{p.name}.arg()" if p.is_tensor_list else f"Arg({p.name})"
            for p in op.params
        )
        call = f"call(op_id::{op.constant}, args)"
        outputs = op.signature.num_outputs
        result = call if outputs == 0 else f"return {call}[0]" if outputs == 1 else f"return {call}"
        array = f"  const Arg args[] = {{{args}}};\n" if op.params else "  const Args args;\n"
        rows.append(f"{_declaration(op, False)} {{\n{''.join(lists)}{array}  {result};\n}}\n")
    return f"""{HEADER}#include "engine/dispatch/ops.h"
#include "engine/schema/op_ids.h"
namespace tt::ops {{
{"".join(rows)}}}  // namespace tt::ops
"""
