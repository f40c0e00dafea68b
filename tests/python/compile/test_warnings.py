"""Warnings of compiled functions: each is shown once, by the capture."""

from __future__ import annotations

import threading
import warnings

import pytest

import teletensor as torch
from teletensor._dynamo.exc import Unsupported
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


def test_calls_that_warn_within_a_block_that_ignores_it():
    def f(x):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return float(x.sum()), F.softmax(x)

    def reset(x):
        with warnings.catch_warnings():
            warnings.resetwarnings()
            warnings.filterwarnings("ignore")
            y = F.softmax(x)
        return str(x)[:2], y

    for function in (f, reset):
        for options in ({}, {"fullgraph": True}):
            torch._dynamo.reset()
            compiled = torch.compile(function, **options)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                for _ in range(2):
                    try:
                        got = compiled(torch.ones(2, 3))
                    except Unsupported:
                        assert options
                        continue
                    assert repr(got) == repr(function(torch.ones(2, 3)))


def test_a_warning_before_a_break_is_shown_once():
    def f(x):
        y = F.softmax(x)
        print(end="")
        return y

    def g(x):
        y = F.softmax(x)
        str(y)
        return F.log_softmax(y)

    assert len(_shown(torch.compile(f), torch.ones(3, 3))) == 1
    assert len(_shown(torch.compile(g), torch.ones(3, 3))) == 2


def test_blocks_that_are_kept():
    class Holder:
        block = None

    def keeps(x, holder):
        holder.block = warnings.catch_warnings()
        return x * 2

    def enters_what_is_kept(x, holder):
        if holder.block is None:
            holder.block = warnings.catch_warnings()
        with holder.block:
            return x * 2

    def asks(x, holder):
        block = warnings.catch_warnings()
        return x * (isinstance(block, warnings.catch_warnings) + 2 * (type(block) is warnings.catch_warnings)) + len(type(block).__name__)

    for function in (keeps, enters_what_is_kept, asks):
        x, holder = torch.ones(3), Holder()
        assert torch.compile(function)(x, holder).tolist() == function(x, Holder()).tolist()
        if holder.block is not None:
            assert type(holder.block) is warnings.catch_warnings
    holder = Holder()
    torch.compile(keeps)(torch.ones(3), holder)
    with holder.block:
        pass


def test_a_block_that_the_function_leaves_open():
    def opens(x):
        block = warnings.catch_warnings()
        block.__enter__()
        warnings.simplefilter("error")
        return x * 2

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert torch.compile(opens)(torch.ones(3)).tolist() == [2, 2, 2]
        assert warnings.filters[0][0] == "error"
