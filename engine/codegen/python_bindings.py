"""Emits the tables of Python functions and methods (python/bindings/tensor/operators.h)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from .declaration import Operator
from .schema import HEADER, cpp_string

# Namespaces that are separate modules: operator `linalg_inv` is named `linalg.inv` there.
MODULES = ("linalg", "special", "fft")


def name_in(place: str, name: str) -> str:
    """Returns the name that an operator has in a place, such as `inv` for `linalg_inv` in `linalg`."""
    return name.removeprefix(f"{place}_") if place in MODULES else name


@dataclass
class PythonName:
    """One Python name with its overloads, in the order in which they are tried."""

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


def names_of(op: Operator) -> list[str]:
    """Returns the Python names of an operator: its name (or the name it overloads) and its aliases."""
    return list(dict.fromkeys([op.entry.get("overload_of", op.name), *op.aliases]))


def _collect(pairs: Iterable[tuple[str, Operator]]) -> list[PythonName]:
    names: dict[str, PythonName] = {}
    for name, op in pairs:
        names.setdefault(name, PythonName(name)).operators.append(op)
    return list(names.values())


def python_names(operators: list[Operator]) -> list[PythonName]:
    """Returns all names except those of in-place methods."""
    return _collect((name, op) for op in operators if not op.is_inplace_only for name in names_of(op))


def in_place_names(operators: list[Operator]) -> list[PythonName]:
    """Returns the in-place names such as `add_`, each with the operators that support it."""
    return _collect((f"{name.rstrip('_')}_", op) for op in operators if op.has_inplace for name in names_of(op))


def _methods(table: str, rows: list[str]) -> str:
    return f"PyMethodDef {table}[] = {{\n{''.join(rows)}    {{nullptr, nullptr, 0, nullptr}}}};\n"


def _row(name: str, template: str, index: int, doc: str) -> str:
    return (
        f"    {{{cpp_string(name)}, reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&{template}<{index}>)), "
        f"METH_FASTCALL | METH_KEYWORDS, {cpp_string(doc)}}},\n"
    )


def emit(operators: list[Operator]) -> str:
    names, in_place = python_names(operators), in_place_names(operators)
    # Every operator is also available under its own name, for the package's Python code.
    own = [PythonName(op.name, [op]) for op in operators]
    entries, arrays = [], []
    tables: dict[str, list[str]] = {"torch": [], "F": [], "methods": [], "ops": []} | {place: [] for place in MODULES}
    for i, entry in enumerate(names + in_place + own):
        ids = ", ".join(f"op_id::{op.constant}" for op in entry.operators)
        arrays.append(f"constexpr uint16_t kOps{i}[] = {{{ids}}};\n")
        results = "{}"
        if entry.results:
            arrays.append(f"constexpr const char* kResults{i}[] = {{{', '.join(map(cpp_string, entry.results))}}};\n")
            results = f"kResults{i}"
        entries.append(f"    {{{cpp_string(entry.name)}, kOps{i}, {results}}},\n")
        if i >= len(names + in_place):
            tables["ops"].append(_row(entry.name, "internal_function", i, entry.doc))
            continue
        if i >= len(names):
            doc = f"{entry.name.rstrip('_')} in place: writes the result to the tensor and returns it."
            tables["methods"].append(_row(entry.name, "method_in_place", i, doc))
            continue
        if entry.of("torch"):
            tables["torch"].append(_row(entry.name, "function", i, entry.doc))
        if entry.of("F"):
            tables["F"].append(_row(entry.name, "function", i, entry.doc))
        for place in MODULES:
            if entry.of(place):
                tables[place].append(_row(name_in(place, entry.name), "function", i, entry.doc))
        if entry.of("Tensor"):
            tables["methods"].append(_row(entry.name, "method", i, entry.doc))
    modules = "".join(f"    {{{cpp_string(place)}, k_{place}}},\n" for place in MODULES)
    listing = "".join(_methods(f"k_{table}", rows) for table, rows in tables.items())
    return f"""{HEADER}#include <Python.h>

#include "engine/schema/op_ids.h"
#include "python/bindings/tensor/operators.h"

namespace tt::python {{
namespace {{
{"".join(arrays)}{listing}
const ModuleTable k_modules[] = {{
{modules}}};
}}  // namespace

const Entry kEntries[] = {{
{"".join(entries)}}};

MethodTables method_tables() {{ return {{k_torch, k_F, k_methods, k_ops, k_modules}}; }}

}}  // namespace tt::python
"""
