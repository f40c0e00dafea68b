"""Warnings of compiled functions: each is shown once, by the capture."""

from __future__ import annotations

import threading
import warnings

import pytest

import teletensor as torch
from teletensor.nn import functional as F


def _shown(function, *args) -> list[str]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        function(*args)
    return [str(each.message)[:20] for each in found]


@pytest.mark.parametrize(
    ("function", "count"),
    [
        (lambda x: F.softmax(x), 1),
        (lambda x: F.log_softmax(F.softmax(x)), 2),
        (lambda x: F.mse_loss(x, x[:1]), 1),
    ],
    ids=["softmax", "two", "sizes"],
)
def test_calls_warn_as_often_as_without_compilation(function, count):
    x = torch.ones(3, 3)
    assert len(_shown(function, x)) == count
    compiled = torch.compile(function)
    assert len(_shown(compiled, x)) == count
    assert _shown(compiled, x) in ([], _shown(function, x))  # a Program does not warn; single calls do


def test_backends_of_users_warn():
    def backend(module, _inputs):
        warnings.warn("a backend", stacklevel=2)
        return module.forward

    assert _shown(torch.compile(lambda x: x.relu(), backend=backend), torch.ones(3)) == ["a backend"]
    shown = _shown(torch.compile(lambda x: F.softmax(x), backend=backend), torch.ones(3))
    assert shown.count("a backend") == 1


def test_other_threads_warn_meanwhile():
    began, warned = threading.Event(), threading.Event()

    def other():
        began.wait(60)
        warnings.warn("another thread", stacklevel=2)
        warned.set()

    thread = threading.Thread(target=other)
    thread.start()

    def backend_of_engine(x):
        began.set()
        assert warned.wait(60)
        return F.softmax(x)

    from teletensor.compiler import _engine_backend

    made = _engine_backend.GraphProgram

    def waiting(gm, inputs):
        backend_of_engine(torch.ones(3))
        return made(gm, inputs)

    _engine_backend.GraphProgram = waiting
    try:
        shown = _shown(torch.compile(lambda x: F.softmax(x)), torch.ones(3))
    finally:
        _engine_backend.GraphProgram = made
        thread.join()
    assert shown.count("another thread") == 1
    assert len(shown) == 2
