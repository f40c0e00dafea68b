"""The calls of calls.yaml, as text in which `torch` is either package. Needs neither."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import yaml

from tests.python.distributions.cases import DISTRIBUTIONS

from ..signatures import check
from ..signatures.compare import parse
from .moved import moved

TABLE = yaml.safe_load(Path(__file__).with_name("calls.yaml").read_text())


@functools.cache
def entries() -> dict[str, tuple[str, dict[str, str], str]]:
    """(group, arguments as text, text of `value`) by name; several entries of one class have a number."""
    found = {}
    for group, table in TABLE.items():
        for name, given in table.get("given", {}).items():
            found[f"{table['module']}.{name}"] = (group, given, "None")
    for i, (name, tensors, others, values) in enumerate(DISTRIBUTIONS):
        texts = {k: f"torch.tensor({v})" for k, v in tensors.items()} | {k: repr(v) for k, v in others.items()}
        found[f"torch.distributions.{name}#{i}"] = ("distributions", texts, f"torch.tensor({values})")
    return found


def calls(name: str) -> list[tuple[str, str]]:
    """(what is moved, the call's text) of every call of a name."""
    path = name.split("#")[0]
    group, given, _ = entries()[name]
    moves = TABLE[group].get("moved", {})
    rows = check.recorded().get(path, ())
    unnamed = {"self"} | {p.name for row in rows for p in parse(row).parameters if p.positional_only}

    def text(arguments: dict[str, str]) -> str:
        given = [v if k.strip("_") in unnamed else f"{k}={v}" for k, v in arguments.items()]
        return f"{path}({', '.join(given)})"

    calls = [("by keyword", text(given))]
    for row in rows:
        overload = parse(row)
        positional = [p.name for p in overload.positional]
        named = [n for n in given if n.strip("_") != "self"]
        if named == positional[: len(named)]:
            calls.append(("by position", f"{path}({', '.join(given.values())})"))
        for p in overload.parameters:
            for value in moves.get(p.name, moved(p)):
                if value not in (p.default, given.get(p.name)):
                    calls.append((f"{p.name}={value}", text(given | {p.name: value})))
    return calls


def scope(name: str, package) -> dict[str, Any]:
    """The names that a call's text uses: `torch` is `package`."""
    group, _, value = entries()[name]
    found = {**HELPERS, "torch": package}
    exec(TABLE[group]["setup"], found)  # noqa: S102 - the table in this folder
    package.manual_seed(0)
    found["value"] = eval(value, found)  # noqa: S307
    return found


def probes(name: str) -> list[str]:
    """Expressions of the result `x` that are compared."""
    return TABLE[entries()[name][0]]["probes"]


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
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [flag for part in value for flag in _flags(part)]
    return [bool(value.requires_grad)] if hasattr(value, "requires_grad") else []


def _bounds(t) -> list[float]:
    """The smallest absolute value, the mean and the standard deviation, rounded: equal for equal distributions of many
    numbers."""
    t = t.detach()
    return [round(float(t.abs().min()), 1), round(float(t.mean()), 1), round(float(t.std()), 1)]


HELPERS = {"flags": _flags, "bounds": _bounds, "schedule": _schedule, "sorted_flat": _sorted_flat,
           "shape": _shape, "float": float, "sorted": sorted, "list": list}  # fmt: skip
