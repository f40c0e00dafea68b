"""Compares two lists of overloads: which calls that PyTorch accepts does ours reject or bind differently."""

from __future__ import annotations

import ast
import functools
from dataclasses import dataclass, field

# Types that a parameter with the first type accepts too.
WIDER = {
    "Number": {"int", "float", "bool", "Number"}, "float": {"int", "float", "bool", "Number"}, "int": {"bool", "int"},
    "device": {"device", "str", "int"}, "floats": {"floats", "ints"}, "str": {"str", "layout", "memory_format"},
}  # fmt: skip


@dataclass(frozen=True)
class Parameter:
    name: str
    types: frozenset[str] = frozenset()
    default: str | None = None  # its text; None if the parameter is required
    keyword_only: bool = False
    positional_only: bool = False
    star: str = ""  # * or **

    @property
    def required(self) -> bool:
        return self.default is None and not self.star


@dataclass(frozen=True)
class Overload:
    parameters: tuple[Parameter, ...]

    @property
    def positional(self) -> list[Parameter]:
        return [p for p in self.parameters if not p.keyword_only and p.star != "**"]

    def named(self, name: str) -> Parameter | None:
        return next((p for p in self.parameters if p.name == name and not p.star and not p.positional_only), None)

    def has(self, star: str) -> bool:
        return any(p.star == star for p in self.parameters)


@functools.cache
def parse(text: str) -> Overload:
    """An overload from the text of `text.described`. Names may be words that Python reserves."""
    a = ast.parse(f"def f({text.replace('lambda:', 'lambda_:').replace('from:', 'from_:')}): ...").body[0].args
    rows = []
    positional = [*a.posonlyargs, *a.args]
    defaults = [None] * (len(positional) - len(a.defaults)) + a.defaults
    for i, (p, d) in enumerate(zip(positional, defaults)):
        rows.append(_parameter(p, d, positional_only=i < len(a.posonlyargs)))
    if a.vararg:
        rows.append(_parameter(a.vararg, None, star="*"))
    rows += [_parameter(p, d, keyword_only=True) for p, d in zip(a.kwonlyargs, a.kw_defaults)]
    if a.kwarg:
        rows.append(_parameter(a.kwarg, None, star="**"))
    return Overload(tuple(rows))


def _parameter(p: ast.arg, default: ast.expr | None, **kind) -> Parameter:
    types = frozenset(ast.unparse(p.annotation).replace(" ", "").split("|")) if p.annotation else frozenset()
    return Parameter(p.arg, types, None if default is None else ast.unparse(default), **kind)


def _same_default(theirs: str, ours: str) -> bool:
    if "..." in (theirs, ours) or theirs == ours:
        return True
    a, b = ast.literal_eval(theirs), ast.literal_eval(ours)
    if a in ((), [], None) and b in ((), [], None):  # all dimensions, or the kernel's size
        return True
    if isinstance(a, (list, tuple)) or isinstance(b, (list, tuple)):
        a, b = (list(v) if isinstance(v, (list, tuple)) else [v] for v in (a, b))
        return a == b or len(set(a)) == 1 and len(set(b)) == 1 and a[:1] == b[:1]
    return a == b and isinstance(a, bool) == isinstance(b, bool)


def _missing_types(theirs: frozenset[str], ours: frozenset[str]) -> set[str]:
    if not theirs or not ours:
        return set()
    accepted = set(ours).union(*(WIDER.get(t, set()) for t in ours))
    return set(theirs) - accepted


@dataclass
class Match:
    """The differences between one overload of PyTorch's and one of ours."""

    differences: list[str] = field(default_factory=list)


def _compare(theirs: Overload, ours: Overload) -> Match:
    match = Match()
    add = match.differences.append
    if ours.has("**") and not theirs.has("**"):
        add("accepts any keyword")
    if ours.has("*") and not theirs.has("*") or theirs.has("*") and not ours.has("*"):
        add(("accepts" if ours.has("*") else "does not accept") + " any number of positional arguments")
    if theirs.has("**") and not ours.has("**"):
        add("does not accept further keywords")
    mine = ours.positional
    for i, p in enumerate(theirs.positional):
        q = mine[i] if i < len(mine) else None
        if p.star or q is not None and q.star:
            if p.star and q is not None and not q.star:
                add(f"{q.name}: not a variable number of arguments")
            continue
        if q is None or q.name != p.name and not p.positional_only:
            elsewhere = ours.named(p.name)
            if elsewhere is None:
                add(f"lacks {p.name}" if q is None else f"lacks {p.name} (position {i + 1} is {q.name})")
                continue
            add(f"{p.name}: position {i + 1} in PyTorch" + ("; keyword-only here" if elsewhere.keyword_only else ", not here"))
            q = elsewhere
        _compare_parameter(p, q, add)
    for p in theirs.parameters:
        if not p.keyword_only:
            continue
        q = ours.named(p.name)
        if q is None:
            add(f"lacks {p.name}")
        else:
            _compare_parameter(p, q, add)
    names = {p.name for p in theirs.parameters}
    for i, q in enumerate(ours.parameters):
        by_position = i < len(theirs.positional) and theirs.positional[i].positional_only
        if q.required and q.name not in names and not by_position and not theirs.has("*"):
            add(f"requires {q.name}")
    return match


def _compare_parameter(p: Parameter, q: Parameter, add) -> None:
    if p.default is not None and q.default is None:
        add(f"{p.name}{REQUIRED}{p.default} in PyTorch")
    elif p.default is not None and not _same_default(p.default, q.default):
        add(f"{p.name}: default {q.default}, in PyTorch {p.default}")
    if missing := _missing_types(p.types, q.types):
        add(f"{p.name}: does not accept {' or '.join(sorted(missing))}")


REQUIRED = ": required here, default "


def _accepted_without(theirs: Overload, name: str, ours: list[Overload]) -> bool:
    """Whether a call without an optional parameter of an overload is accepted by another overload of ours."""
    rest = Overload(tuple(p for p in theirs.parameters if p.name != name))
    return any(not _compare(rest, o).differences for o in ours)


def _extra(theirs: list[Overload], ours: list[Overload]) -> list[str]:
    """Parameters that no overload of PyTorch's has, and keyword-only parameters that are positional here."""
    if any(o.has("**") for o in theirs):
        return []
    known = {p.name for o in theirs for p in o.parameters}
    most = max((len(o.positional) for o in theirs), default=0)
    rows = []
    for o in ours:
        if any(t.has("*") for t in theirs):
            continue
        for i, q in enumerate(o.parameters):
            renamed = i < most and any(len(t.positional) > i and t.positional[i].positional_only for t in theirs)
            if q.name not in known and not q.star and not renamed and not q.required:
                rows.append(f"further parameter {q.name}")
    return list(dict.fromkeys(rows))


def differences(theirs: list[str], ours: list[str]) -> list[str]:
    """The differences that callers can observe; empty if every call that PyTorch's overloads accept is accepted here
    with the same meaning.
    """
    here, there = [parse(t) for t in ours], [parse(t) for t in theirs]
    found = []
    for overload in there:
        best = min((_compare(overload, o) for o in here), key=lambda m: sum(1 if REQUIRED in d else 2 for d in m.differences))
        found += [d for d in best.differences if not (REQUIRED in d and _accepted_without(overload, d.split(":")[0], here))]
    return list(dict.fromkeys(found + _extra(there, here)))
