"""Steps that the engine skips: GradScaler sets the optimizer's attribute found_inf, a number in the engine.

The client does not know whether a step is skipped, so the engine also counts the steps of Adam.
"""

from __future__ import annotations

import inspect

from .. import _C
from .._C import Tensor
from .optimizer import Optimizer


def has_own_step(optimizer: Optimizer) -> bool:
    """Whether a subclass replaces step(), which then decides what a skipped step does."""
    return inspect.unwrap(type(optimizer).step) is not inspect.unwrap(Optimizer.step)


def are_on(optimizer: Optimizer, device) -> bool:
    """Whether all parameters are on the device, and no step is recorded for gradients."""
    return all(
        not group.get("differentiable") and all(p.device == device for p in group["params"])
        for group in optimizer.param_groups
    )


def is_counter(step, device) -> bool:
    """Whether an optimizer's step number is in the engine, as a tensor that adam_step() can increase."""
    return isinstance(step, Tensor) and step.dtype is _C.float32 and step.numel() == 1 and step.device == device


def count_in_engine(active: list[dict], idle: list[dict], device) -> None:
    """Replaces the step numbers in states by counters in the engine, which states of equal numbers share.

    Args:
        active: the states of the parameters that take part in the step.
        idle: the other states of the group, whose counters must not change.
    """
    used_elsewhere = {id(state["step"]) for state in idle if isinstance(state.get("step"), Tensor)}
    counters: dict = {}
    for state in active:
        step = state["step"]
        if not is_counter(step, device):
            number = int(step)
            if number not in counters:
                counters[number] = _C.torch.full((), float(number), dtype=_C.float32, device=device)
            state["step"] = counters[number]
        elif id(step) in used_elsewhere:
            if id(step) not in counters:
                counters[id(step)] = step.clone()
            state["step"] = counters[id(step)]
