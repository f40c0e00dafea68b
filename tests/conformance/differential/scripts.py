"""Steps of the calls of calls.yaml, for functions and classes that have no operator samples."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import torch

import teletensor

from ..op_db.convert import difference
from ..signatures import check
from . import written
from .steps import Outcome, Step, outcome, refused_by_both


def names() -> list[str]:
    return list(written.entries())


def steps(name: str, most: int) -> Iterator[Step]:
    """All calls of a name; `most` does not apply, there is one base call."""
    path = name.split("#")[0]
    overload = f"{path}#0" if path in check.recorded() else ""
    for what, call in written.calls(name):
        yield Step(path, what, functools.partial(_compared, name, call), overload)


def _compared(name: str, call: str) -> Iterator[Outcome]:
    scopes = [written.scope(name, package) for package in (teletensor, torch)]
    results = [_outcome(call, scope) for scope in scopes]
    if (found := refused_by_both(results[0][1], results[1][1])) is not None:
        yield _judged(call, found)
        return
    for scope, (result, _) in zip(scopes, results):
        scope["x"] = result
    for probe in written.probes(name):
        (mine, refusal), (theirs, refused) = (_outcome(probe, scope) for scope in scopes)
        found = refused_by_both(refusal, refused)
        yield _judged(probe, difference(mine, theirs, tolerance_factor=10) if found is None else found)


def _outcome(text: str, scope: dict) -> tuple[Any, Exception | None]:
    return outcome(lambda: eval(text, scope), teletensor.Tensor)  # noqa: S307 - the table in this folder


def _judged(text: str, found: str) -> Outcome:
    return ("failed", f"{text}: {found}"[:500]) if found else ("passed", "")
