"""Emits type stubs of `teletensor._C` for editors and type checkers."""

from __future__ import annotations

import re
from pathlib import Path

from .declaration import Operator
from .python_bindings import MODULES, PythonName, in_place_names, name_in, python_names
from .signature import Param

# Type aliases of the hand-written part: `dtype`, `bool` and other names mean something else inside Tensor.
SCALARS = {
    "Scalar": "_Number", "int": "_int", "float": "_float", "bool": "_bool", "str": "str", "DType": "_dtype",
    "Device": "_DeviceLike", "int[]": "_int | Sequence[_int]", "float[]": "Sequence[_float]",
}  # fmt: skip
HEADER = "# Generated from engine/ops/*.yaml by engine/codegen; do not edit.\n"
TYPES = ("Tensor", "_bool", "_DeviceLike", "_dtype", "_float", "_int", "_Number")  # imported by submodules


def _type(op: Operator, param: Param) -> str:
    if param.is_tensor:
        text = "Tensor | _Number" if op.is_pointwise or param.accepts_number else "Tensor"
    elif param.is_tensor_list:
        text = "Sequence[Tensor | None]" if param.optional_entries else "Sequence[Tensor]"
    else:
        text = SCALARS[param.type]
    return f"{text} | None" if param.optional else text


def _default(param: Param) -> str:
    value = param.default
    if param.type == "DType" and value is not None or value in (float("inf"), float("-inf")):
        return "..."  # Python has no literal for it
    return repr(tuple(value) if isinstance(value, list) else value)


def _parameters(op: Operator, method: bool, variadic: bool) -> str:
    """Returns the parameter list. If `variadic`, an `int[*]` is passed as separate arguments instead of as a list."""
    rows, starred = [], False
    for i, p in enumerate(op.params):
        if method and i == 0:
            rows.append("self")
            continue
        if p.keyword_only and not starred:
            rows.append("*")
            starred = True
        if p.variadic and variadic:
            rows.append(f"*{p.name}: _int")
            starred = True
            continue
        # An optional parameter may be omitted if all positional parameters after it may be omitted.
        after = [q for q in op.params[i:] if not q.keyword_only]
        may = p.has_default or (p.optional and all(q.has_default or q.optional for q in after))
        rows.append(f"{p.name}: {_type(op, p)}" + (f" = {_default(p)}" if may else ""))
    further = []
    if not method and not op.is_view and op.signature.num_outputs != 0:
        further.append("out: Tensor | tuple[Tensor, ...] | None = None")
    # Keywords of the parser that are not parameters of the operator (python/bindings/tensor/parse.cc).
    if any(p.type == "Device" for p in op.params):  # creates a tensor
        further += ["layout: str | None = None", "pin_memory: _bool = False", "memory_format: str | None = None"]
        further.append("requires_grad: _bool = False")
    if op.name in ("clone", "contiguous"):
        further.append("memory_format: str | None = None")
    if op.is_random:
        further.append("generator: None = None")
    return ", ".join(rows + ([] if starred or not further else ["*"]) + further)


def _result_class(names: list[str]) -> str:
    return "_" + "".join(name.title().replace("_", "") for name in names)


def _result(op: Operator, entry: PythonName) -> str:
    outputs = op.signature.num_outputs
    if outputs in (0, 1):
        return "Tensor" if outputs else "None"
    return _result_class(entry.results) if len(entry.results) == outputs else "tuple[Tensor, ...]"


def _functions(entry: PythonName, operators: list[Operator], method: bool, place: str = "") -> str:
    """Returns the stubs of one name: a function, or one overload per operator and calling convention."""
    indent = "    " if method else ""
    heads = [
        f"def {name_in(place, entry.name)}({_parameters(op, method, variadic)}) -> {_result(op, entry)}: ..."
        for op in operators
        for variadic in ([True, False] if any(p.variadic for p in op.params) else [False])
    ]
    heads = list(dict.fromkeys(heads))
    mark = f"{indent}@overload\n" if len(heads) > 1 else ""
    return "".join(f"{mark}{indent}{head}\n" for head in heads)


def _module(entries: list[PythonName], place: str | None) -> str:
    shown = [(e, [op for op in e.operators if place is None or place in op.python]) for e in entries]
    functions = "".join(_functions(e, operators, False, place or "") for e, operators in shown if operators)
    used = sorted({*re.findall(r"-> (_\w+):", functions), *(t for t in TYPES if re.search(rf"\b{t}\b", functions))})
    return f"{HEADER}from typing import Sequence, overload\n\nfrom . import {', '.join(used)}\n\n{functions}"


def _methods(operators: list[Operator], by_hand: set[str]) -> str:
    methods = [(e, [op for op in e.operators if "Tensor" in op.python]) for e in python_names(operators)]
    methods += [(e, e.operators) for e in in_place_names(operators)]
    return "".join(_functions(e, shown, True) for e, shown in methods if shown and e.name not in by_hand)


def emit(operators: list[Operator], by_hand: str) -> dict[str, str]:
    """Returns the stub package's files. `by_hand` is the stub of the hand-written bindings, with class Tensor last."""
    entries = python_names(operators)
    results = {tuple(e.results) for e in entries if e.results}
    classes = "".join(
        f"\nclass {_result_class(list(names))}(NamedTuple):\n" + "".join(f"    {name}: Tensor\n" for name in names)
        for names in sorted(results)
    )
    of_tensor = by_hand.partition("\nclass Tensor:\n")[2]  # the last class
    methods = _methods(operators, set(re.findall(r"^    def (\w+)\(", of_tensor, re.MULTILINE)))
    return {
        "__init__.pyi": f"{HEADER}{by_hand}{methods}{classes}",
        "torch.pyi": _module(entries, "torch"),
        "functional.pyi": _module(entries, "F"),
        **{f"{place}.pyi": _module(entries, place) for place in MODULES},
        "ops.pyi": _module([PythonName(op.name, [op]) for op in operators], None),
    }


def outputs(operators: list[Operator], bindings: Path) -> dict[str, str]:
    """Maps paths in the generated tree to file contents."""
    files = emit(operators, (bindings / "_C.pyi").read_text())
    return {f"stubs/_C/{name}": text for name, text in files.items()}
