"""Functions with assert statements, which pytest rewrites in the files of tests."""

from __future__ import annotations

import contextlib

import teletensor as torch

log = []


def of_values(x):
    assert (x >= 0).all(), "negative"
    assert not x.isnan().any()
    return x * 2


def of_values_with_sizes(x):
    assert (x >= 0).all(), f"negative, of {x.shape}"
    return x * 2


def caught(x):
    try:
        assert (x >= 0).all()
    except AssertionError:
        return x * 5
    return x * 2


def caught_by_the_caller(x):
    try:
        return of_values(x)
    except AssertionError:
        return x * 5


def suppressed(x):
    with contextlib.suppress(AssertionError):
        assert (x >= 0).all()
        return x * 2
    return x * 5


class Suppresses:
    """A context that suppresses errors."""

    def __enter__(self):
        return self

    def __exit__(self, *raised):
        return True


def suppressed_by_a_class(x):
    with Suppresses():
        assert (x >= 0).all()
        return x * 2
    return x * 5


def written_finally(x):
    try:
        assert (x >= 0).all()
    finally:
        log.append("finally")
    return x * 2


def after_a_write(x):
    log.append("before")
    assert (x >= 0).all()
    return x * 2


def in_a_loop(x):
    for i in range(3):
        assert (x < 3 - i).all()
        log.append(i)
    return x


@torch.no_grad()
def without_gradients(x):
    with torch.enable_grad(), torch.no_grad():
        return of_values(x)


def without_gradients_but_caught(x):
    try:
        with torch.no_grad():
            return of_values(x)
    except AssertionError:
        return x * 5


counted = 0


def after_a_global(x):
    global counted
    counted += 1
    log.append(counted > 0)
    assert (x >= 0).all()
    return x


CAUGHT = [
    caught, caught_by_the_caller, suppressed, suppressed_by_a_class, written_finally, after_a_write, in_a_loop, after_a_global,
    without_gradients_but_caught,
]  # fmt: skip


def under_autocast(x, y):
    with torch.autocast("cpu"):
        assert (x < 100).all(), "bad"
        return x[:, None] @ y[None]
