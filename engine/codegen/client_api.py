"""Emits `teletensor/ops.h`: one typed C++ function of the client per public operator."""

from __future__ import annotations

from .api import default_text
from .declaration import Operator
from .schema import HEADER

# Operators that are omitted because client headers or C++ use these names for something else.
RESERVED_NAMES = {"backward", "grad", "connect", "record"}
# Operators that Python wraps by hand and C++ users call directly.
EXTRA_OPERATORS = {"manual_seed"}


def _type(param) -> str:
    if param.is_tensor:
        return "const Operand&"
    if param.is_tensor_list:
        return "absl::Span<const Tensor>"
    return param.kernel_type


def _needs_session(op: Operator) -> bool:
    """Whether the function needs a session parameter, because no argument determines the session."""
    return not any((p.is_tensor or p.is_tensor_list) and not p.optional for p in op.params)


def _result(op: Operator) -> str:
    outputs = op.signature.num_outputs
    return "void" if outputs == 0 else "Tensor" if outputs == 1 else "Tensors"


def _parameters(op: Operator, defaults: bool) -> str:
    texts = [default_text(p) if defaults else "" for p in op.params]
    # C++ defaults form a suffix: a parameter without a default drops the defaults before it.
    last_without = max((i for i, text in enumerate(texts) if not text), default=-1)
    rows = ["Session& session"] if _needs_session(op) else []
    rows += [f"{_type(p)} {p.name}{t if i > last_without else ''}" for i, (p, t) in enumerate(zip(op.params, texts))]
    return ", ".join(rows)


def _functions(operators: list[Operator]) -> list[Operator]:
    return [op for op in operators if (op.python or op.name in EXTRA_OPERATORS) and op.name not in RESERVED_NAMES]


def _body(op: Operator, into: str) -> str:
    lists = "".join(f"  const ListArg list_{p.name}({p.name});\n" for p in op.params if p.is_tensor_list)
    args = [
        f"{p.name}.arg()" if p.is_tensor else f"list_{p.name}.arg()" if p.is_tensor_list else f"Arg({p.name})"
        for p in op.params
    ]
    array = f"  const Arg args[] = {{{', '.join(args)}}};\n" if args else "  const Args args;\n"
    session = "session" if _needs_session(op) else f"session_of({op.constant}Name, args)"
    call = f"call_op({session}, op_id::{op.constant}, args{into})"
    outputs = op.signature.num_outputs
    last = f"  {call};\n" if outputs == 0 else f"  return {call}[0];\n" if outputs == 1 else f"  return {call};\n"
    return lists + array + last.replace(f"{op.constant}Name", f'"{op.name}"')


def _inplace_parameters(op: Operator, defaults: bool) -> str:
    first, *rest = _parameters(op, defaults).split(", ", 1)
    return ", ".join([first.replace("const Operand&", "const Tensor&"), *rest])


def _has_inplace(op: Operator) -> bool:
    return op.has_inplace and op.signature.num_outputs == 1 and bool(op.params) and op.params[0].is_tensor


def emit_header(operators: list[Operator]) -> str:
    rows = []
    for op in _functions(operators):
        rows.append(f"// {op.doc}\n{_result(op)} {op.name}({_parameters(op, True)});\n")
        if _has_inplace(op):
            rows.append(f"Tensor {op.name}_({_inplace_parameters(op, True)});  // in place, in its first argument\n")
    return f"""{HEADER}#pragma once
#include <cmath>
#include <optional>
#include <string_view>
#include "client/session/operand.h"
namespace tt::client {{
{"".join(rows)}}}  // namespace tt::client
"""


def emit_source(operators: list[Operator]) -> str:
    rows = []
    for op in _functions(operators):
        rows.append(f"{_result(op)} {op.name}({_parameters(op, False)}) {{\n{_body(op, '')}}}\n")
        if _has_inplace(op):
            body = _body(op, f", {{&{op.params[0].name}, 1}}").replace(
                f"{op.params[0].name}.arg()", f"Arg({op.params[0].name}.get())", 1
            )
            rows.append(f"Tensor {op.name}_({_inplace_parameters(op, False)}) {{\n{body}}}\n")
    return f"""{HEADER}#include "teletensor/ops.h"
#include "engine/schema/op_ids.h"
namespace tt::client {{
{"".join(rows)}}}  // namespace tt::client
"""
