"""Emits engine/program/may_return_views.h: the operators whose results may share memory with an argument."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from .declaration import Operator
from .schema import HEADER

# Functions of engine/composites/ that compute their results, whatever their arguments are. Others may return a view.
COMPUTING = frozenset(
    "add_product add_outer attention_with_nan clamped convolve convolve_transposed correlation cosine covariance distance "
    "exclusive_or_of_bits fake_quantize_channels huber largest_of_windows multi_margin multilabel_margin renormalize "
    "rms_normalize run_chain scaled_dot_product_attention slice_norms vandermonde".split()
)
# Those that return their first argument or a result computed from it.
PASSING = frozenset({"reduce_loss"})
# Kernels that may return an argument: a gradient that is passed on as it is.
RETURNING = frozenset({"backward"})


def _computes(node: ast.expr, operators: Mapping[str, Operator]) -> bool:
    """Whether the value of a composite's expression is new memory."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        name = node.func.id
        if name in PASSING:
            return _computes(node.args[0], operators)
        return makes_new_results(operators[name], operators) if name in operators else name in COMPUTING
    if isinstance(node, ast.List):
        return all(_computes(part, operators) for part in node.elts)
    if isinstance(node, ast.IfExp):
        return _computes(node.body, operators) and _computes(node.orelse, operators)
    if isinstance(node, ast.Subscript):
        return _computes(node.value, operators)
    if isinstance(node, (ast.BinOp, ast.UnaryOp, ast.Compare)):
        return True
    return False  # an argument


def makes_new_results(op: Operator, operators: Mapping[str, Operator]) -> bool:
    """Whether no result of the operator shares memory with an argument."""
    if op.is_view or op.name in RETURNING:
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
// Views, and operators that may return one or an argument.
inline constexpr uint16_t kMayReturnViews[] = {{
{ids}}};
}}  // namespace tt
"""
