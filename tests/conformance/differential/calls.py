"""Calls made from one valid call: by keyword, by position, and with each argument moved."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from ..signatures.compare import Overload
from .moved import moved

NUMBERS = (int, float, complex, bool)


@dataclass
class Call:
    what: str  # "by keyword", "by position", or "name=value"
    args: tuple
    kwargs: dict[str, Any] = field(default_factory=dict)


def _fits(value, types: frozenset[str]) -> bool:
    """Whether a value may be of one of the types of a declaration."""
    if not types or value is None:
        return True
    if isinstance(value, torch.Tensor):
        return "Tensor" in types
    if isinstance(value, bool):
        return bool(types & {"bool", "int", "float", "Number"})
    if isinstance(value, int):
        return bool(types & {"int", "float", "Number", "ints", "device"})
    if isinstance(value, NUMBERS):
        return bool(types & {"float", "Number"})
    if isinstance(value, str):
        return bool(types & {"str", "device"})
    return True


def bind(overload: Overload, args: tuple, kwargs: dict) -> dict[str, Any] | None:
    """The arguments by name, in the overload's order; None if the call does not match it.

    Arguments of a parameter with a star have the name "*"."""
    if overload.has("**"):
        return None
    positional = [p for p in overload.positional if not p.star]
    star = next((p for p in overload.parameters if p.star), None)
    args, rest = args[: len(positional)], args[len(positional) :]
    if star is not None and "int" in star.types and len(rest) == 1 and isinstance(rest[0], (list, tuple)):
        rest = tuple(rest[0])
    if rest and (star is None or not all(_fits(value, star.types) for value in rest)):
        return None
    bound = {p.name: a for p, a in zip(positional, args)}
    if bound.keys() & kwargs.keys():
        return None
    bound |= kwargs
    by_name = {p.name: p for p in overload.parameters if not p.star}
    if not bound.keys() <= by_name.keys() or any(p.required and p.name not in bound for p in by_name.values()):
        return None
    if not all(_fits(value, by_name[name].types) for name, value in bound.items()):
        return None
    return {p.name: bound[p.name] for p in overload.parameters if p.name in bound} | ({"*": rest} if star is not None else {})


def variations(overload: Overload, bound: dict[str, Any]) -> Iterator[Call]:
    """The calls made from the arguments of one valid call."""
    bound = dict(bound)
    star = bound.pop("*", ())
    positional = [p.name for p in overload.positional if not p.star]
    first = 0
    while first < len(positional) and positional[first] in bound:
        first += 1
    only = sum(p.positional_only for p in overload.parameters)
    least = len(positional) if star else only  # positional arguments that cannot be keywords
    if first < least:
        return
    head = tuple(bound[n] for n in positional[:first])
    rest = {n: v for n, v in bound.items() if n not in positional[:first]}
    if not star:
        yield Call("by keyword", head[:only], {n: v for n, v in bound.items() if n not in positional[:only]})
    if first or star:
        yield Call("by position", (*head, *star), rest)
    for p in overload.parameters:
        for text in moved(p):
            value = eval(text, {"torch": torch, "float": float})  # noqa: S307 - the table in this folder
            if not _fits(value, p.types) or p.name in bound and _same(bound[p.name], value):
                continue
            if p.name in positional[:first]:
                i = positional.index(p.name)
                yield Call(f"{p.name}={text}", (*head[:i], value, *head[i + 1 :], *star), rest)
            elif not p.positional_only:
                yield Call(f"{p.name}={text}", (*head, *star), {**rest, p.name: value})


def _same(a, b) -> bool:
    return type(a) is type(b) and not isinstance(a, torch.Tensor) and a == b
