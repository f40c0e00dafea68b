"""Which tensors each gradient formula of an operator reads, and the engine therefore saves."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .declaration import Operator
from .expression import names_in


@dataclass
class Part:
    """Bit sets of one formula: the parameters it computes gradients for, and the values it reads."""

    params: int
    args: int = 0
    metas: int = 0
    results: int = 0
    plain: int = 0

    def row(self) -> str:
        return f"{{{self.params:#x}, {self.args:#x}, {self.metas:#x}, {self.results:#x}}}"


def result_index(op: Operator, name: str) -> int | None:
    """Returns 0 for `result`, i for `result<i>`, None for other names."""
    match = re.fullmatch(r"result(\d*)", name)
    if not match or name in {p.name for p in op.params}:
        return None
    return int(match[1] or 0)


def formula_part(op: Operator, keys: list[str], formula: str) -> tuple[Part, set[str]]:
    """Returns the bit sets of a formula, and the names from which it reads only attributes."""
    values, metas = names_in(formula.strip())
    part = Part(params=sum(1 << op.signature.index(k) for k in keys))
    for i, p in enumerate(op.params):
        if p.name in values and (p.is_tensor or p.is_tensor_list):
            part.args |= 1 << i
        elif p.name in metas and (p.is_tensor or p.is_tensor_list):
            part.metas |= 1 << i
        elif p.name in values:
            part.plain |= 1 << i
    for name in values | metas:
        index = result_index(op, name)
        if index is not None:
            part.results |= 1 << index
    return part, metas


def custom_parts(op: Operator) -> list[Part]:
    """Returns the part of a hand-written gradient, which saves all tensor arguments, or the names listed in `saves`."""
    names = op.entry["grad"].get("saves", [p.name for p in op.params if p.is_tensor or p.is_tensor_list])
    part = Part(params=sum(1 << i for i, p in enumerate(op.params) if p.name in op.differentiable_params))
    for name in names:
        index = result_index(op, name)
        if index is None:
            part.args |= 1 << op.signature.index(name)
        else:
            part.results |= 1 << index
    part.metas = sum(1 << i for i, p in enumerate(op.params) if p.is_tensor) & ~part.args
    part.plain = sum(1 << i for i, p in enumerate(op.params) if not p.is_tensor and not p.is_tensor_list)
    return [part]


def saved_parts(op: Operator) -> list[Part]:
    """Returns the parts of an operator's gradient; none for operators without a gradient of their own."""
    if op.is_composite:
        return []
    if op.custom_gradient:
        return custom_parts(op)
    return [formula_part(op, op.gradient_keys(key), str(formula))[0] for key, formula in op.gradients.items()]
