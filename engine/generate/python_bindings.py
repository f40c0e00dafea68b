"""Emits the tables behind the Python functions and methods (python/bindings/operators.h)."""

from __future__ import annotations

from dataclasses import dataclass, field

from .declaration import Operator
from .schema import HEADER, cpp_string


@dataclass
class PythonName:
    """One name in Python: its overloads in the order in which they are tried."""

    name: str
    operators: list[Operator] = field(default_factory=list)

    @property
    def places(self) -> set[str]:
        return {place for op in self.operators for place in op.python}

    @property
    def results(self) -> list[str]:
        named = [op.signature.results for op in self.operators if op.signature.num_outputs > 1]
        return named[0] if named and all(named[0]) else []

    @property
    def doc(self) -> str:
        lines = [f"{self.name}{op.entry['sig'].replace('(w)', '')}\n\n{op.doc}" for op in self.operators]
        return "\n\n".join(lines)

    def of(self, place: str) -> bool:
        return any(place in op.python for op in self.operators)


def python_names(operators: list[Operator]) -> list[PythonName]:
    """All names, aliases included; an operator that is an `overload_of` another shares its name."""
    names: dict[str, PythonName] = {}
    for op in operators:
        base = op.entry.get("overload_of", op.name)
        for name in dict.fromkeys([base, *op.aliases]):
            names.setdefault(name, PythonName(name)).operators.append(op)
    return list(names.values())


def _methods(table: str, rows: list[str]) -> str:
    return f"PyMethodDef {table}[] = {{\n{''.join(rows)}    {{nullptr, nullptr, 0, nullptr}}}};\n"


def _row(name: str, template: str, index: int, doc: str) -> str:
    return (
        f"    {{{cpp_string(name)}, reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&{template}<{index}>)), "
        f"METH_FASTCALL | METH_KEYWORDS, {cpp_string(doc)}}},\n"
    )


def emit(operators: list[Operator]) -> str:
    names = python_names(operators)
    # Every operator is also reachable by its own name, for the package's own Python code.
    own = [PythonName(op.name, [op]) for op in operators]
    entries, arrays = [], []
    tables: dict[str, list[str]] = {"torch": [], "F": [], "methods": [], "ops": []}
    for i, entry in enumerate(names + own):
        ids = ", ".join(f"op_id::{op.constant}" for op in entry.operators)
        arrays.append(f"constexpr uint16_t kOps{i}[] = {{{ids}}};\n")
        results = "{}"
        if entry.results:
            arrays.append(f"constexpr const char* kResults{i}[] = {{{', '.join(map(cpp_string, entry.results))}}};\n")
            results = f"kResults{i}"
        entries.append(f"    {{{cpp_string(entry.name)}, kOps{i}, {results}}},\n")
        if i >= len(names):
            tables["ops"].append(_row(entry.name, "function", i, entry.doc))
            continue
        if entry.of("torch"):
            tables["torch"].append(_row(entry.name, "function", i, entry.doc))
        if entry.of("F"):
            tables["F"].append(_row(entry.name, "function", i, entry.doc))
        if entry.of("Tensor"):
            tables["methods"].append(_row(entry.name, "method", i, entry.doc))
        if any(op.has_inplace for op in entry.operators):
            doc = f"{entry.name} in place: the result lands in the tensor itself, which is returned."
            tables["methods"].append(_row(entry.name.rstrip("_") + "_", "method_in_place", i, doc))
    listing = "".join(_methods(f"k_{table}", rows) for table, rows in tables.items())
    return f"""{HEADER}#include <Python.h>

#include "engine/op_ids.h"
#include "python/bindings/operators.h"

namespace tt::python {{
namespace {{
{"".join(arrays)}{listing}}}  // namespace

const Entry kEntries[] = {{
{"".join(entries)}}};

MethodTables method_tables() {{ return {{k_torch, k_F, k_methods, k_ops}}; }}

}}  // namespace tt::python
"""
