"""Emits the declarations and the registration of a backend's kernels for `kernel:` operators."""

from __future__ import annotations

import re
from pathlib import Path

from .declaration import Operator
from .schema import HEADER

# The folder of sources that every backend compiles.
OPERATORS = "common/operators"


def _declaration(op: Operator) -> str:
    params = [f"{p.kernel_type} {p.name}" for p in op.params]
    outputs = op.signature.num_outputs
    names = [name or "out" for name in op.signature.results]
    params += ["Tensors& out"] if outputs < 0 else [f"Tensor& {name}" for name in names]
    return f"void {op.kernel}({', '.join(params)});"


def emit_declarations(operators: list[Operator], backend: str) -> str:
    seen: dict[str, str] = {}
    for op in operators:
        if op.kernel:
            seen.setdefault(op.kernel, _declaration(op))
    rows = "\n".join(seen.values())
    return f"""{HEADER}#pragma once
#include <optional>
#include <string_view>
#include "engine/tensor/tensor.h"
namespace tt::{backend} {{
{rows}
}}  // namespace tt::{backend}
"""


def defined_kernels(kernels_folder: Path, backend: str) -> set[str]:
    """Returns the kernels that a backend's sources define. Calling any other kernel raises NotImplementedError."""
    definition = re.compile(r"(?<!>\n)^void (\w+)\(", re.MULTILINE)  # skips templates, which are a file's own loops
    sources = (path for name in (backend, OPERATORS) for path in sorted((kernels_folder / name).rglob("*.c[cu]")))
    return {name for path in sources for name in definition.findall(path.read_text())}


def emit_registration(operators: list[Operator], backend: str, key: str, defined: set[str]) -> str:
    rows = "".join(
        f"  dispatcher.set(op_id::{op.constant}, Key::{key}, &{op.entry.get('out_variant', 'boxed')}<&{op.kernel}>);\n"
        for op in operators
        if op.kernel in defined
    )
    return f"""{HEADER}#include "engine/dispatch/boxed.h"
#include "engine/schema/op_ids.h"
#include "kernels/common/out_variant.h"
#include "kernels/{backend}/kernels.h"
namespace tt::{backend} {{
void register_kernels(Dispatcher& dispatcher) {{
{rows}}}
}}  // namespace tt::{backend}
"""
