"""The ways to call an operator, and our counterparts: function, aliases, method, in place, operator symbol."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from types import FunctionType
from typing import Callable

import teletensor

from .convert import rebind


class MissingOperator(Exception):
    """teletensor has nothing of that name."""


@dataclass(frozen=True)
class Form:
    """One way to call an operator, in both packages. `changes`: whether it writes to its first argument."""

    name: str
    theirs: Callable
    ours: Callable
    changes: bool = False


def find(path: str) -> Callable:
    """The object that corresponds to `torch.<path>`."""
    found, path = teletensor, path.removeprefix("torch.")
    for part in path.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise MissingOperator(f"torch.{path}") from None
    return found


def _method(name: str) -> Callable:
    try:
        return getattr(teletensor.Tensor, name)
    except AttributeError:
        raise MissingOperator(f"Tensor.{name}") from None


def _ours(function: Callable, path: str) -> Callable:
    """Our counterpart: a function of PyTorch's tests rebound to teletensor, else the object of the same name."""
    if isinstance(function, FunctionType) and function.__module__.startswith("torch.testing"):
        return rebind(function)
    if type(function).__name__ in ("method_descriptor", "wrapper_descriptor") or function.__module__ == "torch._tensor":
        return _method(function.__name__)
    return find(path)


def _ours_of(variant: Callable) -> Callable:
    """Like _ours, for a variant: a method, or a call with bound arguments (`partial(relu, inplace=True)`)."""
    if isinstance(variant, functools.partial):
        path = f"{variant.func.__module__}.{variant.func.__name__}".removeprefix("torch.")
        return functools.partial(find(path), *variant.args, **variant.keywords)
    if isinstance(variant, FunctionType) and variant.__module__.startswith("torch.testing"):
        return rebind(variant)
    return _method(variant.__name__)


def function_of(info) -> Form:
    """The operator's function. Raises MissingOperator."""
    return Form("function", info.op, _ours(info.op, info.name))


def other_forms(info) -> tuple[list[Form], list[str]]:
    """All other forms, and the names of the missing ones."""
    wanted = []
    for alias in info.aliases:
        wanted.append((f"alias {alias.name}", alias.op, lambda a=alias: _ours(a.op, a.name), False))
    for owner in (info, *info.aliases):
        for what, variant in (("method", owner.method_variant), ("in place", owner.inplace_variant)):
            if variant is not None:
                name = owner.name.split(".")[-1] + "_" * (what == "in place")
                wanted.append((f"{what} {name}", variant, lambda v=variant: _ours_of(v), what == "in place"))
    for variant, changes in ((info.operator_variant, False), (info.inplace_operator_variant, True)):
        if variant is not None:
            wanted.append((f"operator {variant.__name__}", variant, lambda v=variant: v, changes))
    forms, missing = [], []
    for name, theirs, ours, changes in wanted:
        try:
            forms.append(Form(name, theirs, ours(), changes))
        except MissingOperator as e:
            missing.append(str(e))
    return forms, missing
