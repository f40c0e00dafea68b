"""Emits teletensor/_declarations.py: what the package's Python code needs of the declarations and `_C` does not offer."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from .declaration import Operator
from .expression import names_in
from .python_bindings import names_of
from .stubs import HEADER


def aten_name(op: Operator) -> str:
    """The name of the operator in PyTorch's namespace aten, if PyTorch has it."""
    return op.entry.get("aten", op.entry.get("overload_of", op.name))


def _is_pointwise(op: Operator, operators: Mapping[str, Operator]) -> bool:
    """Whether each element of the result depends on the same elements of the arguments only: a composite, if all operators
    that it calls are so, and it reads no sizes."""
    if not op.is_composite:
        return op.is_pointwise
    tree = ast.parse(op.entry["composite"], mode="eval")
    if any(isinstance(node, (ast.Attribute, ast.Subscript, ast.List)) for node in ast.walk(tree)):
        return False
    called = [getattr(node.func, "id", "") for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return all(name in operators and _is_pointwise(operators[name], operators) for name in called)


def sharding(op: Operator, operators: Mapping[str, Operator]) -> str | None:
    """The sharding rule that follows from the declaration: which dimensions of a DTensor an operator computes apart."""
    if op.is_composite and _is_pointwise(op, operators):
        return "pointwise"
    rule = op.shape_rules[0] if op.shape_rules else ""
    first = op.params[0].name if op.params else ""
    if rule.startswith((f"reduced({first}", f"reduced_nonempty({first}")):
        return "reduction"
    return "along dim" if rule == f"require_dim({first}, dim)" else None


def _evaluated(op: Operator) -> str | None:
    """The expression of a composite that reads no sizes, so that it also holds for tensors with a further dimension."""
    if not op.is_composite:
        return None
    text = " ".join(str(op.entry["composite"]).split())
    attributes = [node.attr for node in ast.walk(ast.parse(text, mode="eval")) if isinstance(node, ast.Attribute)]
    return text if all(name == "dtype" for name in attributes) else None


def _formulas(op: Operator) -> dict[str, str]:
    """The gradient formula of each parameter that has one of its own."""
    rows = {key: " ".join(str(formula).split()) for key, formula in op.gradients.items() if len(op.gradient_keys(key)) == 1}
    return {key: text for key, text in rows.items() if not text.startswith(("not_differentiable(", "no_second_derivative("))}


def _multipliers(op: Operator) -> dict[str, str]:
    """The formulas of a pointwise operator: its Jacobian is diagonal, so that they also are the derivative along `g`."""
    return {key: " ".join(str(formula).split()) for key, formula in op.gradients.items()} if op.is_pointwise else {}


def _linear(op: Operator) -> dict[str, tuple[str, ...]]:
    """The parameters in which an operator is affine, since their gradients read neither them nor results; for each one, the
    others of these that are added to it, and not multiplied."""
    formulas = {} if op.is_random else _formulas(op)
    read = {key: names_in(text)[0] for key, text in formulas.items()}
    results = {"result", *(f"result{i}" for i in range(10))}
    found = [
        key for key, names in read.items()
        if key not in names and results.isdisjoint(names) and formulas[key] != "zeros_like(g)"
    ]  # fmt: skip
    return {p: tuple(q for q in found if q != p and not (q in read[p] and p in read[q])) for p in found}


def _table(name: str, comment: str, rows: Mapping[str, object]) -> str:
    listed = "".join(f"    {key!r}: {value!r},\n" for key, value in sorted(rows.items()))
    return f"\n# {comment}\n{name} = {{\n{listed}}}\n"


def emit(operators: list[Operator]) -> str:
    by_name = {op.name: op for op in operators}
    shardings = {op.name: rule for op in operators if (rule := sharding(op, by_name))}
    orders = {name: tuple(op.entry["older_orders"]) for op in operators if "older_orders" in op.entry for name in names_of(op)}
    return (
        f'{HEADER}"""Tables of operators, from their declarations."""\n'
        + _table("ATEN_NAMES", "Names in torch.ops.aten that differ from the engine's.",
                 {op.name: aten_name(op) for op in operators if aten_name(op) != op.name})
        + _table("OLDER_ORDERS", "Older orders of arguments, by function.", orders)
        + _table("COMPOSITES", "Operators that are expressions of others, without those that read sizes.",
                 {op.name: text for op in operators if (text := _evaluated(op))})
        + _table("MULTIPLIERS", "Gradient formulas of pointwise operators by parameter; `g` is the result's gradient.",
                 {op.name: rows for op in operators if (rows := _multipliers(op))})
        + _table("NOT_HOLOMORPHIC", "Those of which the formulas of complex arguments are no derivatives of a holomorphic function.",
                 {op.name: True for op in operators if op.is_pointwise and not op.entry.get("holomorphic", True)})
        + _table("LINEAR", "Parameters in which an operator that is not pointwise is affine, with those that are added to each.",
                 {op.name: rows for op in operators if not op.is_pointwise and (rows := _linear(op))})
        + _table("SHARDING", "Sharding rules of DTensor that follow from shape rules and composites.", shardings)
    )  # fmt: skip
