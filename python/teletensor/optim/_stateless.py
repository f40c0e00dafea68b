"""Optimizers as functions of lists of tensors, and an optimizer's step on other parameters."""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Callable

from .._C import Tensor
from .optimizer import Optimizer

_NO_EFFECT = ("foreach", "fused", "has_complex", "has_sparse_grad")
# States and flags that several optimizers have.
MOMENTS = {"exp_avgs": "exp_avg", "exp_avg_sqs": "exp_avg_sq"}
STEPS = {"state_steps": "step"}
SCALING = {"grad_scale": None, "found_inf": None}
COMMON = "foreach maximize differentiable capturable has_complex"


def flags(names: str) -> dict:
    """Arguments with their defaults: None for foreach and fused, else False."""
    return {n: None if n in ("foreach", "fused") else False for n in names.split()}


def stateless(kind: type[Optimizer], name: str, states: dict[str, str], extra: dict, options: tuple[str, ...]) -> Callable:
    """A function that performs one step of an optimizer, in place, on lists of parameters, gradients and states.

    Args:
        states: the arguments with one tensor per parameter, and the names of these tensors in the optimizer's state.
        extra: further arguments with their defaults.
        options: arguments that must be given by keyword; "foreach=None" has a default.
    """
    empty, both, keyword = (getattr(inspect.Parameter, k) for k in ("empty", "POSITIONAL_OR_KEYWORD", "KEYWORD_ONLY"))
    names = ["params", "d_p_list" if name == "sgd" else "grads", *states]
    signature = inspect.Signature(
        [inspect.Parameter(n, both) for n in names] + [inspect.Parameter(n, both, default=v) for n, v in extra.items()]
        + [inspect.Parameter(n.removesuffix("=None"), keyword, default=None if "=" in n else empty) for n in options]
    )  # fmt: skip

    def function(*args: Any, **kwargs: Any) -> None:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        given = bound.arguments
        for scaling in ("grad_scale", "found_inf"):
            if given.pop(scaling, None) is not None:
                raise NotImplementedError(f"[{name}] expected {scaling} to be None: gradients are unscaled before a step")
        _step(kind, [given.pop(n) for n in names], states, given)

    function.__name__ = function.__qualname__ = name
    function.__module__ = kind.__module__
    function.__signature__ = signature
    function.__doc__ = f"One step of {kind.__name__}, in place; waits for the engine, to read the step's number."
    return function


def _step(kind: type[Optimizer], lists: list, states: dict[str, str], options: dict) -> None:
    """Calls an optimizer's _update with the given states, and writes changed numbers back to their tensors."""
    params, grads, *tensors = lists
    optimizer = kind.__new__(kind)
    optimizer.defaults, optimizer.state = {}, defaultdict(dict)
    group = {k: v for k, v in options.items() if k not in _NO_EFFECT}
    for parts, names in ((("betas",), ("beta1", "beta2")), (("etas",), ("etaminus", "etaplus")), (("eps",), ("eps1", "eps2"))):
        if names[0] in group:
            group[parts[0]] = tuple(group.pop(n) for n in names)
    if "step_size_min" in group:
        group["step_sizes"] = (group.pop("step_size_min"), group.pop("step_size_max"))
        group.setdefault("lr", 0.0)
    for key in ("differentiable", "capturable", "maximize", "amsgrad", "nesterov", "decoupled_weight_decay"):
        group.setdefault(key, False)
    for key, values in zip(states.values(), tensors):
        for p, value in zip(params, values):
            if value is not None:
                number = key in kind._numbers and isinstance(value, Tensor)
                optimizer.state[p][key] = value.item() if number else value
    optimizer._update(group, params, grads)
    for key, values in zip(states.values(), tensors):
        for i, p in enumerate(params):
            found = optimizer.state[p].get(key)
            if key in kind._numbers and i < len(values):
                values[i].fill_(found)
            elif i < len(values) and values[i] is None:
                values[i] = found  # SGD's momentum, created by the first step


@contextmanager
def swap_in_optimizer_params_and_state(
    optimizer: Optimizer, swapin_parameters: dict[str, Tensor], swapin_optim_state: dict[str, Any]
) -> Iterator[None]:
    """Replaces the parameters and the state of an optimizer, which has made a step, within a context.

    Args:
        swapin_parameters: the parameters, in the order of the optimizer's.
        swapin_optim_state: a dict like that of state_dict(). Its tensors are changed in place; numbers are not.
    """
    groups = _checked_groups(optimizer, swapin_optim_state)
    params = iter(swapin_parameters.values())
    if len(swapin_parameters) != sum(len(g["params"]) for g in groups):
        raise RuntimeError("swapin_parameters has a different number of parameters than the optimizer")
    state, before = optimizer.state, [dict(group) for group in optimizer.param_groups]
    try:
        optimizer.state, numbers = defaultdict(dict), {}
        for group, other in zip(optimizer.param_groups, groups):
            group.update(other)
            group["params"] = [next(params) for _ in other["params"]]
            for p, key in zip(group["params"], other["params"]):
                optimizer.state[p] = dict(swapin_optim_state["state"].get(key, {}))
                numbers[p] = optimizer.state[p]
        optimizer._load_numbers(numbers, optimizer.state)
        yield
    finally:
        for group, old in zip(optimizer.param_groups, before):
            group.clear()
            group.update(old)
        optimizer.state = state


def _checked_groups(optimizer: Optimizer, saved: Any) -> list[dict]:
    what = "swap_in_optimizer_params_and_state requires"
    if not optimizer.state:
        raise RuntimeError(f"{what} initialized optimizer state.")
    if not isinstance(saved, dict) or not isinstance(saved.get("state"), dict):
        raise RuntimeError(f"{what} swapin_optim_state['state'] to be a dict mapping packed parameter ids to per-param state dicts")
    groups = saved.get("param_groups")
    if not isinstance(groups, list):
        raise RuntimeError(f"{what} swapin_optim_state['param_groups'] to be a list of param-group dicts, got {type(groups).__name__}.")
    if len(groups) != len(optimizer.param_groups):
        raise RuntimeError("swapin_optim_state has a different number of parameter groups than the live optimizer.")
    for i, (group, own) in enumerate(zip(groups, optimizer.param_groups)):
        if len(group["params"]) != len(own["params"]):
            raise RuntimeError(
                f"swapin_optim_state param group {i} has a different number of params than the live optimizer param group."
            )
        if set(group) != set(own):
            raise RuntimeError(
                f"{what} optimizer.state_dict()-style param group keys to exactly match the live optimizer group keys for group {i}. "
                f"Keys only in swap-in: {sorted(set(group) - set(own))}. Keys only in live: {sorted(set(own) - set(group))}."
            )
    return groups
