"""`python -m tests.conformance.differential.worker`: reads requests, writes events, one line of JSON each.

The first event, ["ready"], follows the imports. A request is [name, most base calls, first step]. The events of one request:
["at", step, path, argument, overload] before a step, [kind, text or count] for its outcomes, ["done"] at the end. The request
"?" is answered by the names and PyTorch's version. Requires an interpreter with PyTorch. The parent restarts the process if
a call ends it or hangs.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterator

import torch

import teletensor
from teletensor import _connection

from ..worker_loop import replies, requests, text_of
from . import modules, operators, scripts
from .steps import Step


def makers() -> dict[str, Callable[[str, int], Iterator[Step]]]:
    """The function that makes the steps of each name: operators, modules and optimizers, written calls."""
    return {n: operators.steps for n in sorted(operators.infos())} | modules.names() | {n: scripts.steps for n in scripts.names()}


def answer(name: str, most: int, first: int, make: Callable, emit: Callable[[list], None]) -> None:
    """Runs the steps of a name from step `first` on."""
    for n, step in enumerate(make(name, most)):
        if n < first:
            continue
        emit(["at", n, step.path, step.argument, step.overload])
        passed = 0
        for kind, text in step.outcomes():
            if kind == "passed":
                passed += 1
            else:
                emit([kind, text])
        if passed:
            emit(["passed", passed])
    emit(["done"])


def main() -> int:
    emit = replies()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    if os.environ.get("TELETENSOR_IN_PROCESS"):
        _connection._current = teletensor._C.connect_in_process()
        teletensor._C.set_session(_connection._current)
    known = makers()
    emit(["ready"])
    for name, most, first in requests():
        if name == "?":
            emit(["names", list(known), torch.__version__])
            continue
        try:
            answer(name, most, first, known[name], emit)
        except Exception as e:  # noqa: BLE001 - a fault in making the samples
            emit(["broken", text_of(e)])
    return 0


if __name__ == "__main__":
    sys.exit(main())
