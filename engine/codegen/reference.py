"""Emits the operator reference: public names, implementation, gradient and backends of each operator."""

from __future__ import annotations

import re
from itertools import groupby
from pathlib import Path

from .declaration import Operator
from .kernels import defined_kernels
from .python_bindings import MODULES, name_in, names_of

# The places where Python exposes operators, and the format of their names there.
PLACES = {"torch": "torch.{}", "Tensor": "Tensor.{}", "F": "torch.nn.functional.{}"} | {
    place: f"torch.{place}.{{}}" for place in MODULES
}
# Sources that register, for every backend, kernels of operators that act on a session instead of on elements.
SESSION_SOURCES = (
    "autograd/operators.cc", "distributed/operators.cc", "distributed/pull_operators.cc", "engine/extension/query_operator.cc",
    "engine/session/graphs.cc", "engine/session/memory_snapshot.cc", "engine/session/profiler.cc", "engine/session/programs.cc",
    "server/checkpoint/operators.cc", "server/daemon/backends.cc", "server/session/program_cache.cc", "server/session/publish_service.cc",
    "server/session/shared_tensors.cc",
)  # fmt: skip


# Titles of declaration files whose name is that of a Python module or an abbreviation.
TITLES = {
    "linalg": "Linear algebra", "matmul": "Matrix products", "nn": "Layers", "optim": "Optimizer steps",
    "pull": "Copies between engines", "share": "Shared tensors",
}  # fmt: skip


def title_of(subject: str) -> str:
    """The title of the chapter of a declaration file, given its name without suffix."""
    return TITLES.get(subject, subject.replace("_", " ").capitalize())


def takes_device(op: Operator) -> bool:
    """Whether the operator's arguments determine the device."""
    return any(p.is_tensor or p.is_tensor_list or p.type == "Device" for p in op.params)


def backends(operators: list[Operator], kernels_folder: Path) -> dict[str, set[str]]:
    """Maps each backend to the names of the operators it can run."""
    root = kernels_folder.parent
    by_hand = {
        constant
        for name in SESSION_SOURCES
        for constant in re.findall(r"op_id::(k\w+)", (root / name).read_text())
    }
    # Operators without a device run on the CPU, with every backend.
    by_cpu = {op.kernel for op in operators if not takes_device(op)} & defined_kernels(kernels_folder, "cpu")
    found = {}
    for folder in sorted(file.parent for file in kernels_folder.glob("*/CMakeLists.txt")):
        defined = defined_kernels(kernels_folder, folder.name) | by_cpu
        found[folder.name] = {
            op.name for op in operators if not op.kernel or op.kernel in defined or op.constant in by_hand
        }
    return found


def _code(text: object) -> str:
    return f"`{' '.join(str(text).split())}`"


def python_calls(op: Operator) -> list[str]:
    """Returns all qualified Python names: `torch.sub`, `Tensor.sub`, `Tensor.sub_`, ..."""
    names = names_of(op)
    calls = [PLACES[place].format(name_in(place, name)) for place in PLACES if place in op.python for name in names]
    return ([] if op.is_inplace_only else calls) + [f"Tensor.{name.rstrip('_')}_" for name in names if op.has_inplace]


def _implementation(op: Operator) -> str:
    if op.is_pointwise:
        body = op.entry["body"]
        formulas = body.items() if isinstance(body, dict) else [("", body)]
        return "pointwise, " + "; ".join(f"{kind + ': ' if kind else ''}{_code(text)}" for kind, text in formulas)
    if op.is_composite:
        return f"composite, {_code(op.entry['composite'])}"
    return "a view" if op.is_view else "a kernel"


def _gradient(op: Operator) -> str:
    if op.custom_gradient:
        return f"custom, {_code(op.custom_gradient)} in autograd/"
    if op.is_composite:
        names = [p.name for p in op.params if p.name in op.differentiable_params]
        return f"through the operators it calls, for {', '.join(map(_code, names))}" if names else "none"
    return "; ".join(f"{_code(name)}: {_code(formula)}" for name, formula in op.gradients.items()) or "none"


def notes_of(op: Operator) -> list[str]:
    """Sentences about the operator's effects."""
    written = [_code(p.name) for p in op.params if p.written]
    notes = [f"Writes {', '.join(written)} in place."] if written else []
    if op.is_dynamic:
        notes.append("The result's sizes depend on the data: the call waits for them.")
    if waits := op.entry.get("waits"):
        when = "" if waits is True else f", unless {_code(waits)} is empty"
        notes.append(f"A call outside of programs waits until it is known whether the operator has failed{when}.")
    if op.is_random:
        notes.append("Uses the session's random number generator.")
    return notes


def rows(op: Operator, have: dict[str, set[str]]) -> list[tuple[str, str]]:
    """The properties of an operator: labels, and texts in Markdown."""
    shown = ", ".join(map(_code, python_calls(op))) or f"internal, `teletensor._C.ops.{op.name}`"
    found = [("Python", shown)]
    if op.aliases:
        found.append(("Aliases", ", ".join(map(_code, op.aliases))))
    if op.signature.num_outputs != 0:
        found.append(("Result dtype", ", ".join(map(_code, op.dtype_rules)) or "none"))
        found.append(("Result shape", ", ".join(map(_code, op.shape_rules)) or "depends on the data"))
    found.append(("Implementation", _implementation(op)))
    found.append(("Gradient", _gradient(op)))
    found.append(("Backends", ", ".join(backend for backend, names in have.items() if op.name in names) or "none"))
    return found


def _section(op: Operator, have: dict[str, set[str]]) -> str:
    listing = "".join(f"- {label}: {text}\n" for label, text in rows(op, have))
    return f"### {op.name}\n\n`{op.name}{op.entry['sig']}`\n\n{' '.join([op.doc, *notes_of(op)])}\n\n{listing}\n"


def _missing(operators: list[Operator], have: dict[str, set[str]]) -> str:
    rows = []
    for backend, names in have.items():
        lacking = [_code(op.name) for op in operators if op.name not in names]
        rows.append(f"- {backend}: {', '.join(lacking) or 'nothing'}\n")
    return "".join(rows)


def emit(operators: list[Operator], have: dict[str, set[str]]) -> str:
    """Returns the page, with one chapter per declaration file. `have` is the result of backends()."""
    chapters = []
    for source, group in groupby(sorted(operators, key=lambda op: (op.source, op.id)), lambda op: op.source):
        sections = "".join(_section(op, have) for op in group)
        chapters.append(f"## {title_of(Path(source).stem)}\n\n{sections}")
    return f"""# Operators

Generated from engine/ops/*.yaml by engine/codegen; do not edit. docs/operators.md explains rules and formulas.
{len(operators)} operators. Calling one that a backend lacks raises NotImplementedError.

## Missing

{_missing(operators, have)}
{"".join(chapters).rstrip()}
"""
