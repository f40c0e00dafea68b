"""Base calls written as text (calls.yaml), for functions and classes that have no operator samples.

The same text runs in both packages; each probe of the result is compared.
"""

from __future__ import annotations

import functools
import warnings
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import torch
import yaml

import teletensor
from tests.python.distributions.cases import DISTRIBUTIONS

from ..op_db.checks import REFUSALS, kind_difference
from ..op_db.convert import difference, leaves
from ..signatures import check
from ..signatures.compare import parse
from .moved import moved

TABLE = yaml.safe_load(Path(__file__).with_name("calls.yaml").read_text())
ERRORS = (*REFUSALS, ZeroDivisionError, KeyError)


@functools.cache
def _entries() -> dict[str, tuple[str, dict[str, str], str]]:
    """(group, arguments as text, text of `value`) by name; several entries of one class have a number."""
    found = {}
    for group, table in TABLE.items():
        for name, given in table.get("given", {}).items():
            found[f"{table['module']}.{name}"] = (group, given, "None")
    for i, (name, tensors, others, values) in enumerate(DISTRIBUTIONS):
        texts = {k: f"torch.tensor({v})" for k, v in tensors.items()} | {k: repr(v) for k, v in others.items()}
        found[f"torch.distributions.{name}#{i}"] = ("distributions", texts, f"torch.tensor({values})")
    return found


def names() -> list[str]:
    return list(_entries())


def _schedule(scheduler, steps: int) -> list:
    """The learning rates and momenta of `steps` steps, and the scheduler's state."""
    optimizer = getattr(scheduler, "optimizer", None) or scheduler._schedulers[0].optimizer
    rows = []
    for i in range(steps):
        optimizer.step()
        scheduler.step(*([1.0 if i < 3 else 2.0] if type(scheduler).__name__ == "ReduceLROnPlateau" else []))
        rows.append([[float(g["lr"]), float(g["momentum"])] for g in optimizer.param_groups])
        rows.append([float(v) for v in scheduler.get_last_lr()])
    state = {k: v for k, v in scheduler.state_dict().items() if isinstance(v, (int, float, str, bool, type(None)))}
    return [rows, sorted(state), dict(sorted(state.items()))]


def _sorted_flat(x) -> Any:
    rows = [r.tolist() if hasattr(r, "tolist") else r for r in x]
    flat = [v for r in rows for v in (r if isinstance(r, (list, tuple)) else [r])]
    return [len(rows), sorted(map(repr, flat))]


def _shape(t) -> list:
    return [list(t.shape), str(t.dtype)]


def _flags(value) -> list[bool]:
    """`requires_grad` of every tensor of a result."""
    return [bool(leaf.requires_grad) for leaf in leaves(value) if isinstance(leaf, (torch.Tensor, teletensor.Tensor))]


def _bounds(t) -> list[float]:
    """The smallest and largest absolute values, rounded: equal for equal distributions of many numbers."""
    return [round(float(t.detach().abs().min()), 1), round(float(t.detach().abs().max()), 1)]


HELPERS = {"flags": _flags, "bounds": _bounds, "schedule": _schedule, "sorted_flat": _sorted_flat,
           "shape": _shape, "float": float, "sorted": sorted, "list": list}  # fmt: skip


def _outcome(text: str, scope: dict) -> tuple[Any, Exception | None]:
    try:
        value = eval(text, scope)  # noqa: S307 - the table in this folder
        for leaf in leaves(value):
            if isinstance(leaf, teletensor.Tensor):
                leaf.detach().reshape(-1)[:1].tolist()
        return value, None
    except ERRORS as e:
        return None, e


def _calls(name: str, given: dict[str, str], moves: dict[str, list[str]]) -> list[tuple[str, str]]:
    """(what is moved, the call's text) of every call of a name."""
    path = name.split("#")[0]

    def text(arguments: dict[str, str]) -> str:
        return f"{path}({', '.join(v if k == 'self' else f'{k}={v}' for k, v in arguments.items())})"

    calls = [("by keyword", text(given))]
    for row in check.recorded().get(path, ()):
        overload = parse(row)
        positional = [p.name for p in overload.positional]
        named = [n for n in given if n != "self"]
        if named == positional[: len(named)]:
            calls.append(("by position", f"{path}({', '.join(given.values())})"))
        for p in overload.parameters:
            for value in moves.get(p.name, moved(p)):
                if value not in (p.default, given.get(p.name)):
                    calls.append((f"{p.name}={value}", text(given | {p.name: value})))
    return calls


def row(name: str) -> dict:
    """The counts and differences of one name."""
    group, given, value = _entries()[name]
    table = TABLE[group]
    counts: Counter[str] = Counter()
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for what, call in _calls(name, given, table.get("moved", {})):
        scopes = []
        for package in (teletensor, torch):
            scope = {**HELPERS, "torch": package}
            exec(table["setup"], scope)  # noqa: S102 - the table in this folder
            package.manual_seed(0)
            scopes.append(scope)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for probe, text in _compare(call, value, table["probes"], scopes):
                counts["failed" if text else "passed"] += 1
                if text:
                    found[(name.split("#")[0], what)].append(f"{probe}: {text}"[:500])
    return {"name": name, "counts": counts, "found": [[*key, *texts[:2], len(texts)] for key, texts in found.items()]}


def _compare(call: str, value: str, probes: list[str], scopes: list[dict]):
    """Yields (probe, how the two results differ); empty if they do not."""
    for scope in scopes:
        scope["value"] = eval(value, scope)  # noqa: S307
    results = [_outcome(call, scope) for scope in scopes]
    if any(error is not None for _, error in results):
        yield call, kind_difference(results[0][1], results[1][1])
        return
    for scope, (result, _) in zip(scopes, results):
        scope["x"] = result
    for probe in probes:
        (mine, refusal), (theirs, refused) = (_outcome(probe, scope) for scope in scopes)
        if refusal is not None or refused is not None:
            yield probe, kind_difference(refusal, refused)
        else:
            yield probe, difference(mine, theirs, tolerance_factor=10)
