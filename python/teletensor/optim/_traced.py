"""Steps of optimizers in traced functions (torch.compiler.trace): instructions that are the same in every run.

What may change between runs, the learning rate above all, is a tensor in the engine, which is written before a run if a
number has changed. SGD, Adam and AdamW count their steps in the engine. The others (_per_parameter.py) count them in the
client, which computes the coefficients of each step before the run.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

from .. import _C, _trace_runs
from .._grad_mode import no_grad
from ._hooks import step_hooks
from ._skipped_steps import has_own_step
from .optimizer import UNTRACED

if TYPE_CHECKING:
    from .optimizer import Optimizer


def _numbers(values: tuple[float, ...]) -> _C.Tensor:
    return _C.tensor(list(values), dtype=_C.float64, device="cpu")


class _Step:
    """One group's step in a Program; called before each run.

    Attributes:
        options: the group's numbers, float64 on the CPU.
    """

    def __init__(self, optimizer: Optimizer, group: dict, params: list[_C.Tensor]) -> None:
        self.optimizer, self.group, self.params = optimizer, group, params
        self.groups, self.members = list(optimizer.param_groups), list(group["params"])
        self.numbers: tuple[float, ...] = ()
        self.constants = optimizer._traced_constants(group)
        self.hooks = step_hooks(optimizer)
        # Of optimizers that count in the client: the parameters with equal coefficients.
        self.rows: list[list[_C.Tensor]] | None = None
        self.options: _C.Tensor
        self.states: list[tuple[_C.Tensor, dict, list]] = []
        self._before: list[tuple[dict, dict]] = []  # numbers of states before the last call has counted a step

    def start(self) -> None:
        """Creates the state that the optimizer lacks, and keeps which tensors the Program updates."""
        optimizer, state = self.optimizer, self.optimizer.state
        optimizer._start_traced(self.group, self.params)
        if self._is_counted_in_client():
            self.rows = optimizer._traced_rows(self.params)
            count = len(optimizer._all_coefficients(self.group, {**state[self.params[0]], "step": 1}))
            self.numbers = (float("nan"),) * (count * len(self.rows))  # those of the first run differ
        else:
            self.numbers = optimizer._traced_numbers(self.group)
        self.options = _numbers(self.numbers)
        self.states = [(p, state[p], _tensors(state[p])) for p in self.params if p in state]

    def _is_counted_in_client(self) -> bool:
        return hasattr(self.optimizer, "_traced_rows")

    def record(self) -> None:
        """Records the step as instructions."""
        if self.rows is not None:
            self.optimizer._record_traced_rows(self.group, self.rows, self.options)
        else:
            self.optimizer._record_traced(self.group, self.params, [p.grad for p in self.params], self.options)

    def __call__(self) -> None:
        self._before = []
        optimizer, state = self.optimizer, self.optimizer.state
        name = type(optimizer).__name__
        if (
            not _are_same(optimizer.param_groups, self.groups)
            or not _are_same(self.group["params"], self.members)
            or any(
                state.get(p) is not known or not _are_same(_tensors(known), values)
                for p, known, values in self.states
            )
        ):
            raise RuntimeError(
                f"[{name}] the optimizer's groups, parameters or state are others than when the function was traced: by "
                "load_state_dict(), add_param_group(), or a step of other parameters; trace the function again"
            )
        constants = optimizer._traced_constants(self.group)
        if constants != self.constants:
            raise RuntimeError(
                f"[{name}] expected {self.constants} as traced, got {constants}; trace the function again"
            )
        if not _are_same(step_hooks(optimizer), self.hooks):
            raise RuntimeError(
                f"[{name}] the hooks of step() are others than when the function was traced, and a Program contains what they "
                "called then; trace the function again"
            )
        if self.rows is not None:
            counted = [state[p] for row in self.rows for p in row]
            self._before = [(known, {name: known[name] for name in optimizer._numbers if name in known}) for known in counted]
            numbers = optimizer._advanced_numbers(self.group, self.rows)
        else:
            numbers = optimizer._traced_numbers(self.group)
        if numbers != self.numbers:
            with no_grad():
                self.options.copy_(_numbers(numbers))
            self.numbers = numbers

    def undo(self) -> None:
        """Takes the last count of a step back, of which the Program has not run."""
        for known, numbers in self._before:
            known.update(numbers)
        self._before = []


def _are_same(a: list, b: list) -> bool:
    """Whether the lists contain the same objects."""
    return len(a) == len(b) and all(map(operator.is_, a, b))


def _tensors(state: dict) -> list[_C.Tensor]:
    return [value for value in state.values() if isinstance(value, _C.Tensor)]


def _is_known(optimizer: Optimizer) -> bool:
    """Whether the optimizer's step is that of the class which says how it is traced."""
    for base in type(optimizer).__mro__:
        if "_record_traced" in vars(base):
            return type(optimizer)._update is base._update and not has_own_step(optimizer)
    return False


def why_not(optimizer: Optimizer, args: tuple, kwargs: dict) -> str | None:
    """Why a traced function cannot contain the optimizer's step."""
    if not _is_known(optimizer):
        return UNTRACED
    if args or any(v is not None for v in kwargs.values()):
        return "it takes no closure there"
    for group in optimizer.param_groups:
        if group.get("differentiable"):
            return "a differentiable step is recorded"
        if any(p.is_complex() or _C._is_wrapper(p) for p in group["params"]):
            return "its parameters are complex or of a wrapper subclass"
    return None


def record(optimizer: Optimizer, args: tuple, kwargs: dict) -> None:
    """Records a step, and what runs do before it.

    Raises:
        NotImplementedError: a run cannot repeat the step.
    """
    reason = why_not(optimizer, args, kwargs)
    if reason is not None:
        raise NotImplementedError(
            f"[{type(optimizer).__name__}] step() in a traced function: {reason}; call it after the function, which stores the "
            "gradients"
        )
    with no_grad():
        for group in optimizer.param_groups:
            params = [p for p in group["params"] if p.grad is not None]
            if not params:
                continue
            with _C.TracePause():
                step = _Step(optimizer, group, params)
                step.start()
            step.record()
            _trace_runs.before_each_run(step)
