"""PassManager: runs passes in an order that satisfies constraints."""

from __future__ import annotations

import inspect
from collections import deque
from functools import wraps
from typing import Any, Callable

from .... import nn
from ...graph_module import GraphModule
from .pass_base import PassResult

__all__ = ["pass_result_wrapper", "this_before_that_pass_constraint", "PassManager"]

Pass = Callable[..., Any]
Constraint = Callable[[Pass, Pass], bool]  # whether the first pass may come before the second


def pass_result_wrapper(fn: Pass | None) -> Pass | None:
    """Makes a function that changes a module in place, or returns a new one, a pass that returns a PassResult."""
    if fn is None:
        return None

    @wraps(fn)
    def wrapped(gm: nn.Module) -> PassResult | None:
        result = fn(gm)
        if result is None:
            return PassResult(gm, True)
        if isinstance(result, PassResult):
            return result
        return PassResult(result, True) if isinstance(result, nn.Module) else None

    if not inspect.isfunction(fn):
        wrapped.__name__ = type(fn).__name__
    return wrapped


def _validate_pass_schedule_constraint(constraint: Constraint, passes: list[Pass]) -> None:
    for i, a in enumerate(passes):
        for j, b in enumerate(passes[i + 1 :], i + 1):
            if not constraint(a, b):
                raise RuntimeError(
                    f"pass schedule constraint violated. Expected {a} before {b} but found {a} at index {i} and {b} at index "
                    f"{j} in pass list."
                )


def _topological_sort_passes(passes: list[Pass], constraints: list[Constraint]) -> list[Pass]:
    """The passes in an order that satisfies the constraints, otherwise as given.

    Raises:
        RuntimeError: no order does.
    """
    if not constraints:
        return passes
    after: dict[Pass, list[Pass]] = {p: [] for p in passes}
    waits_for = dict.fromkeys(passes, 0)
    for a in passes:
        for b in passes:
            for constraint in constraints:
                if a != b and not constraint(a, b):
                    after[b].append(a)
                    waits_for[a] += 1
    ready = deque(p for p in passes if waits_for[p] == 0)
    ordered: list[Pass] = []
    while ready:
        ordered.append(ready.popleft())
        for p in after[ordered[-1]]:
            waits_for[p] -= 1
            if waits_for[p] == 0:
                ready.append(p)
    if len(ordered) < len(waits_for):
        circular = [p for p, count in waits_for.items() if count]
        raise RuntimeError(f"Circular dependency detected within the following passes: {circular}")
    return ordered


def this_before_that_pass_constraint(this: Pass, that: Pass) -> Constraint:
    """A constraint: `this` comes before `that`."""
    return lambda a, b: a != that or b != this


class PassManager:
    """Runs passes, each of which returns a PassResult, in an order that satisfies the constraints.

    Args:
        passes: the passes.
        constraints: functions of two passes: whether the first may come before the second.
        steps: maximum number of repetitions; they stop when no pass changes the module.
        run_checks_after_each_pass: calls check() after each pass.
        suppress_check_failures: must be False; failing checks raise.
    """

    def __init__(
        self,
        passes: list[Pass] | None = None,
        constraints: list[Constraint] | None = None,
        steps: int | None = None,
        run_checks_after_each_pass: bool = False,
        suppress_check_failures: bool = False,
    ) -> None:
        if suppress_check_failures:
            raise NotImplementedError("[PassManager] suppress_check_failures=True is not implemented: failing checks raise")
        self.passes, self.constraints, self.steps = passes or [], constraints or [], steps or 1
        self.run_checks_after_each_pass = run_checks_after_each_pass
        self.suppress_check_failures = suppress_check_failures
        self._validated = False

    def add_pass(self, _pass: Pass) -> None:
        """Adds a pass at the end."""
        self.passes.append(_pass)
        self._validated = False

    def add_constraint(self, constraint: Constraint) -> None:
        """Adds a constraint."""
        self.constraints.append(constraint)
        self._validated = False

    def validate_constraints(self) -> None:
        """Raises RuntimeError if the order of the passes does not satisfy the constraints."""
        if not self._validated:
            for constraint in self.constraints:
                _validate_pass_schedule_constraint(constraint, self.passes)
            self._validated = True

    def solve_constraints(self) -> None:
        """Orders the passes so that they satisfy the constraints."""
        self.passes = _topological_sort_passes(self.passes, self.constraints)
        self._validated = True

    def add_checks(self, check: Callable[[nn.Module], None]) -> None:
        """Sets the function that check() calls.

        Raises:
            TypeError: it does not take exactly one argument.
        """
        if len(inspect.signature(check).parameters) != 1:
            raise TypeError("PassManager check function should only take in one variable, a module")
        self.check = check

    def check(self, module: nn.Module) -> None:
        """Checks the module; does nothing unless add_checks() was called or a subclass overrides it."""
        return

    def __call__(self, module: nn.Module) -> PassResult:
        """Runs the passes on a module; returns the result with whether any pass changed it."""
        if not self._validated:
            self.solve_constraints()
        self.check(module)
        ever_modified = False
        for _ in range(self.steps):
            modified = False
            for i, fn in enumerate(self.passes):
                module, changed = self._run(fn, i, module)
                modified = modified or changed
            ever_modified = ever_modified or modified
            if not modified:
                break
        return PassResult(module, ever_modified)

    def _run(self, fn: Pass, index: int, module: nn.Module) -> tuple[nn.Module, bool]:
        """Runs one pass."""
        try:
            result = fn(module)
            if not isinstance(result, PassResult) and not hasattr(result, "graph_module"):
                raise TypeError(
                    f"The result of the pass {_name(fn)} should be type PassResult.Please wrap it with pass_result_wrapper()"
                )
            if isinstance(result.graph_module, GraphModule):
                result.graph_module.recompile()
            if self.run_checks_after_each_pass:
                self.check(result.graph_module)
        except Exception as e:
            before = [_name(p) for p in self.passes[:index]]
            raise Exception(
                f"An error occurred when running the '{_name(fn)}' pass after the following passes: {before}"
            ) from e
        return result.graph_module, result.modified


def _name(fn: Pass) -> str:
    return fn.__name__ if inspect.isfunction(fn) else type(fn).__name__
