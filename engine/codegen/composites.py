"""Emits one C++ function per composite operator, which calls the typed operator functions."""

from __future__ import annotations

from pathlib import Path

from .declaration import Operator
from .expression import Compiler, Value, functions_of, language_type, names_in
from .schema import HEADER
from .signature import Param


def _binding(p: Param, i: int) -> str:
    if p.accepts_number:
        return f"  const Operand {p.name}(call.args[{i}]);\n"
    return f"  const auto {p.name} = boxing::From<std::remove_cvref_t<{p.kernel_type}>>::get(call, call.args[{i}]);\n"


def _function(op: Operator, operators: dict[str, Operator], functions: dict[str, str]) -> str:
    names = {p.name: Value(p.name, language_type(p)) for p in op.params}
    compiler = Compiler(op, operators, functions, "composites", names)
    result = compiler.compile(str(op.entry["composite"]))
    if result.type not in ("Tensor", "Tensors"):
        raise compiler.fail(f"a composite must return tensors, not {result.type}")
    values, metas = names_in(str(op.entry["composite"]).strip())
    bindings = "".join(_binding(p, i) for i, p in enumerate(op.params) if p.name in values | metas)
    return f"void composite_{op.name}(Call& call) {{\n{bindings}  finish_composite(call, {result.code});\n}}\n"


def emit_composites(operators: list[Operator], headers: list[Path]) -> str:
    """Returns the source that defines and registers all composites; `headers` are engine/composites/*.h."""
    by_name, functions = {op.name: op for op in operators}, functions_of(headers)
    composites = [op for op in operators if op.is_composite]
    bodies = "".join(_function(op, by_name, functions) for op in composites)
    rows = "".join(f"  dispatcher.set_composite(op_id::{op.constant}, &composite_{op.name});\n" for op in composites)
    includes = "".join(f'#include "engine/composites/{header.name}"\n' for header in headers)
    return f"""{HEADER}#include "engine/dispatch/boxed.h"
{includes}#include "engine/schema/op_ids.h"
#include "engine/dispatch/ops.h"
namespace tt {{
namespace {{
{bodies}}}  // namespace

void register_composites([[maybe_unused]] Dispatcher& dispatcher) {{
{rows}}}
}}  // namespace tt
"""
