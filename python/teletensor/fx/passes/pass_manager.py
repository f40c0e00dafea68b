"""PassManager for passes that return a value directly, and helpers that make passes."""

from __future__ import annotations

import logging
from functools import wraps
from inspect import unwrap
from typing import Any, Callable

from .infra import pass_manager
from .infra.pass_manager import Constraint, Pass, this_before_that_pass_constraint

__all__ = [
    "PassManager", "inplace_wrapper", "log_hook", "loop_pass", "this_before_that_pass_constraint",
    "these_before_those_pass_constraint",
]  # fmt: skip

logger = logging.getLogger(__name__)


def inplace_wrapper(fn: Callable) -> Callable:
    """Makes a function that changes its first argument in place return it."""

    @wraps(fn)
    def wrapped(gm: Any, *args: Any, **kwargs: Any) -> Any:
        fn(gm, *args, **kwargs)
        return gm

    return wrapped


def log_hook(fn: Callable, level: int = logging.INFO) -> Callable:
    """Logs each result of a pass."""

    @wraps(fn)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        result = fn(*args, **kwargs)
        logger.log(level, "Ran pass %s\t Return value: %s", fn, result)
        return result

    return wrapped


def loop_pass(base_pass: Callable, n_iter: int | None = None, predicate: Callable | None = None) -> Callable:
    """A pass that repeats another pass n_iter times, or while the predicate of its result is true."""
    if (n_iter is None) == (predicate is None):
        raise AssertionError("Exactly one of `n_iter`or `predicate` must be specified.")
    if n_iter is not None and n_iter <= 0:
        raise RuntimeError(
            f"loop_pass must be given positive int n_iter (given {n_iter}) xor predicate (given {predicate})"
        )

    @wraps(base_pass)
    def repeated(source: Any) -> Any:
        if n_iter is not None:
            for _ in range(n_iter):
                source = base_pass(source)
        else:
            while predicate(source):
                source = base_pass(source)
        return source

    return repeated


def these_before_those_pass_constraint(these: Pass, those: Pass) -> Constraint:
    """A constraint: passes that wrap `these` come before those that wrap `those`."""
    return lambda a, b: unwrap(a) != those or unwrap(b) != these


class PassManager:
    """Runs passes in order; each receives the result of the one before it.

    Args:
        passes: the passes.
        constraints: functions of two passes: whether the first may come before the second.
    """

    def __init__(self, passes: list[Pass] | None = None, constraints: list[Constraint] | None = None) -> None:
        self.passes, self.constraints, self._validated = passes or [], constraints or [], False

    @classmethod
    def build_from_passlist(cls, passes: list[Pass]) -> PassManager:
        """A manager of the passes, without constraints."""
        return PassManager(passes)

    add_pass, add_constraint = pass_manager.PassManager.add_pass, pass_manager.PassManager.add_constraint
    validate = pass_manager.PassManager.validate_constraints

    def remove_pass(self, _passes: list[str]) -> None:
        """Removes the passes of these names."""
        if _passes is not None:
            self.passes = [p for p in self.passes if p.__name__ not in _passes]
            self._validated = False

    def replace_pass(self, _target: Pass, _replacement: Pass) -> None:
        """Replaces the passes of the target's name."""
        self.passes = [_replacement if p.__name__ == _target.__name__ else p for p in self.passes]
        self._validated = False

    def __call__(self, source: Any) -> Any:
        """Runs the passes."""
        self.validate()
        for p in self.passes:
            source = p(source)
        return source
