"""Writes an operator's first declared sample as a Python program."""

from __future__ import annotations

import math

from .declaration import Operator
from .python_bindings import MODULES, name_in, names_of
from .signature import Param

_INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


def _dtype(spec: dict, default: str | None = None) -> str:
    name = spec.get("dtype", default)
    return f", dtype=torch.{name}" if name else ""


def _number(value: object) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    return repr(value)


def _values(value: object) -> str:
    return f"[{', '.join(map(_values, value))}]" if isinstance(value, list) else _number(value)


def _tensor(spec: list | dict) -> str:
    """A tensor declaration (docs/operators.md) as an expression."""
    if isinstance(spec, list):
        return f"torch.randn({spec})" if not spec else f"torch.randn({', '.join(map(str, spec))})"
    if "values" in spec:
        return f"torch.tensor({_values(spec['values'])}{_dtype(spec)})"
    size = spec["size"]
    if "int" in spec:
        low, high = spec["int"]
        dtype = spec.get("dtype", "float32")
        if dtype in _INTEGERS:
            return f"torch.randint({low}, {high}, {tuple(size)}{_dtype(spec)})"
        return f"torch.randint({low}, {high}, {tuple(size)}).to(torch.{dtype})"
    if "low" in spec:
        return f"torch.empty({size}{_dtype(spec)}).uniform_({_number(spec['low'])}, {_number(spec['high'])})"
    if spec.get("dtype") in _INTEGERS:
        return f"torch.zeros({size}{_dtype(spec)})"
    return f"torch.randn({size}{_dtype(spec)})"


def _named(op: Operator, spec: object) -> dict:
    """The sample as a map from parameters to values."""
    params = {p.name for p in op.params}
    if isinstance(spec, dict) and set(spec) <= params:
        return spec
    first = next((p for p in op.params if p.is_tensor), None)
    return {first.name: spec} if first else dict(spec)


def _argument(param: Param, value: object) -> tuple[str | None, str]:
    """The statement that makes the argument, if it needs one, and the expression in the call."""
    if param.is_tensor and isinstance(value, (list, dict)):
        return f"{param.name} = {_tensor(value)}", param.name
    if param.is_tensor_list:
        items = ", ".join("None" if v is None else _tensor(v) for v in value)
        return f"{param.name} = [{items}]", param.name
    if param.type == "DType" and isinstance(value, str):
        return None, f"torch.{value}"
    return None, _values(value)


def _callee(op: Operator) -> str:
    """The name by which the sample calls the operator, with the signature's parameters."""
    if op.entry.get("overload_of") or not op.python:
        return f"torch._C.ops.{op.name}"
    name = names_of(op)[0]
    for place, form in (("torch", "torch.{}"), ("F", "F.{}"), *((m, f"torch.{m}.{{}}") for m in MODULES)):
        if place in op.python and not op.is_inplace_only:
            return form.format(name_in(place, name))
    return f"torch._C.ops.{op.name}"


def sample_code(op: Operator) -> str:
    """A program of the first sample, or "" if the declaration has none."""
    samples = op.entry["samples"] or []
    if not samples:
        return ""
    given, statements, arguments, positional = _named(op, samples[0]), [], [], True
    for param in op.params:
        if param.name not in given:
            positional = False
            continue
        statement, expression = _argument(param, given[param.name])
        statements += [statement] if statement else []
        positional = positional and not param.keyword_only
        arguments.append(expression if positional else f"{param.name}={expression}")
    callee = _callee(op)
    imports = ["import teletensor as torch"] + (["import teletensor.nn.functional as F"] if callee.startswith("F.") else [])
    gap = [""] if statements else []
    return "\n".join([*imports, "", *statements, *gap, f"print({callee}({', '.join(arguments)}))", ""])
