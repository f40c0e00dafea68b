"""Emits the gradients of operators: the values each formula saves, and the function that computes it."""

from __future__ import annotations

from pathlib import Path

from .declaration import Operator
from .expression import Compiler, Value, functions_of, language_type
from .saved import Part, custom_parts, formula_part
from .schema import HEADER


def _names(op: Operator, metas: set[str]) -> dict[str, Value]:
    outputs = op.signature.num_outputs
    if outputs < 0:
        names = {"g": Value("b.gradients()", "Tensors")}
    else:
        names = {f"g{i}": Value(f"b.gradient({i})", "Tensor") for i in range(outputs)}
        names |= {f"result{i}": Value(f"b.result({i})", "Tensor") for i in range(outputs)}
        names["g"], names["result"] = names["g0"], names["result0"]
    for i, p in enumerate(op.params):
        if p.is_tensor_list:
            names[p.name] = Value("b.shapes()", "Metas") if p.name in metas else Value(f"b.list({i})", "Tensors")
        elif p.is_tensor and p.name in metas:
            names[p.name] = Value(f"b.meta({i})", "Meta")
        elif p.is_tensor:
            takes_number = op.is_pointwise or p.accepts_number
            names[p.name] = Value(f"b.operand({i})", "Operand") if takes_number else Value(f"b.tensor({i})", "Tensor")
        else:
            names[p.name] = Value(p.accessor(f"b.arg({i})"), language_type(p))
    return names


def _emit_gradient(op: Operator, compiler: Compiler, keys: list[str], value: Value) -> str:
    """Returns the statement that passes a formula's value to the node's edges."""
    if len(keys) > 1:
        if value.type != "Tensors":
            raise compiler.fail(f"a formula for {len(keys)} parameters must return a list of tensors, not {value.type}")
        indices = ", ".join(str(op.signature.index(k)) for k in keys)
        return f"b.set_gradients({{{indices}}}, {value.code})"
    index = op.signature.index(keys[0])
    if op.params[index].is_tensor_list:
        if value.type != "Tensors":
            raise compiler.fail(f"the gradient of list {keys[0]!r} must be a list of tensors, not {value.type}")
        return f"b.set_gradient_list({index}, {value.code})"
    if value.is_number:
        return f"b.set_gradient({index}, ops::full_like(b.gradient(0), {value.code}, std::nullopt, std::nullopt))"
    if value.type not in ("Tensor", "Operand"):
        raise compiler.fail(f"the gradient of {keys[0]!r} must be a tensor, not {value.type}")
    if value.type == "Operand":
        raise compiler.fail(f"the gradient of {keys[0]!r} must be a tensor, but may be a number")
    return f"b.set_gradient({index}, {value.code})"


def _formulas(op: Operator, operators: dict[str, Operator], functions: dict[str, str]) -> tuple[str, list[Part]]:
    parts, statements, lists = [], [], set()
    for key, formula in op.gradients.items():
        keys, text = op.gradient_keys(key), str(formula)
        part, metas = formula_part(op, keys, text)
        compiler = Compiler(op, operators, functions, "formulas", _names(op, metas))
        statement = _emit_gradient(op, compiler, keys, compiler.compile(text))
        wanted = " || ".join(f"b.needs({op.signature.index(k)})" for k in keys)
        statements.append(f"  if ({wanted}) {statement};\n")
        parts.append(part)
        lists |= {p.name for p in op.params if p.is_tensor_list and p.name in metas}
        if len(lists) > 1:
            raise compiler.fail(f"gradients may read the sizes of one list, got {', '.join(sorted(lists))}")
    return f"void gradient_{op.name}(Backward& b) {{\n{''.join(statements)}}}\n", parts


def emit_gradients(operators: list[Operator], headers: list[Path]) -> str:
    """Returns the source of all gradients and their table; `headers` are autograd/formulas/formulas*.h."""
    by_name, functions = {op.name: op for op in operators}, functions_of(headers)
    bodies, rows, customs = [], [], {}
    for op in operators:
        if op.is_composite or not (op.gradients or op.custom_gradient):
            continue
        if op.custom_gradient:
            body, parts, run = "", custom_parts(op), op.custom_gradient
            customs[run] = f"void {run}(Backward& b);\n"
        else:
            body, parts = _formulas(op, by_name, functions)
            run = f"gradient_{op.name}"
        plain = 0
        for part in parts:
            plain |= part.plain
        conjugates = "true" if op.entry.get("holomorphic", True) else "false"
        bodies.append(f"{body}constexpr GradientPart k_parts_{op.name}[] = {{{', '.join(p.row() for p in parts)}}};\n")
        rows.append(f"  table[op_id::{op.constant}] = {{&{run}, k_parts_{op.name}, {plain:#x}, {conjugates}}};\n")
    includes = "".join(f'#include "autograd/formulas/{header.name}"\n' for header in headers)
    return f"""{HEADER}#include <array>
{includes}#include "autograd/nodes/custom_gradient.h"
#include "autograd/nodes/operator_node.h"
#include "engine/dispatch/expression.h"
#include "engine/schema/op_ids.h"
#include "engine/dispatch/ops.h"
namespace tt::autograd {{
{"".join(customs.values())}namespace {{
{"".join(bodies)}
constexpr std::array<Gradient, op_id::kMax + 1> make_table() {{
  std::array<Gradient, op_id::kMax + 1> table{{}};
{"".join(rows)}  return table;
}}
constexpr std::array<Gradient, op_id::kMax + 1> kTable = make_table();
}}  // namespace

const Gradient* find_gradient(uint16_t op) {{
  if (op > op_id::kMax) [[unlikely]]
    return find_custom_gradient(op);
  return kTable[op].run ? &kTable[op] : nullptr;
}}
}}  // namespace tt::autograd
"""
