"""Emits engine/program/may_return_views.h: the operators whose results may share memory with an argument."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from .declaration import Operator
from .schema import HEADER

# Functions of engine/composites/ that compute their results, whatever their arguments are. Others may return a view.
COMPUTING = frozenset(
    "add_product add_outer clamped convolve convolve_transposed cosine rms_normalize run_chain scaled_dot_product_attention "
    "smoothed_cross_entropy".split()
)
# Those that return their first argument or a result computed from it.
PASSING = frozenset({"reduce_loss"})


def _computes(node: ast.expr, operators: Mapping[str, Operator]) -> bool:
    """Whether the value of a composite's expression is new memory."""
    match node:
        case ast.Call(func=ast.Name(id=name), args=[first, *_]) if name in PASSING:
            return _computes(first, operators)
        case ast.Call(func=ast.Name(id=name)):
            return makes_new_results(operators[name], operators) if name in operators else name in COMPUTING
        case ast.List(elts=parts):
            return all(_computes(part, operators) for part in parts)
        case ast.IfExp(body=body, orelse=orelse):
            return _computes(body, operators) and _computes(orelse, operators)
        case ast.Subscript(value=value):
            return _computes(value, operators)
        case ast.BinOp() | ast.UnaryOp() | ast.Compare():
            return True
    return False  # an argument


def makes_new_results(op: Operator, operators: Mapping[str, Operator]) -> bool:
    """Whether no result of the operator shares memory with an argument."""
    if op.is_view:
        return False
    if not op.is_composite:
        return True
    return _computes(ast.parse(str(op.entry["composite"]).strip(), mode="eval").body, operators)


def emit(operators: list[Operator]) -> str:
    by_name = {op.name: op for op in operators}
    ids = "".join(f"    op_id::{op.constant},\n" for op in operators if not makes_new_results(op, by_name))
    return f"""{HEADER}#pragma once
#include <cstdint>
#include "engine/schema/op_ids.h"
namespace tt {{
// Views, and composites that may return one.
inline constexpr uint16_t kMayReturnViews[] = {{
{ids}}};
}}  // namespace tt
"""
