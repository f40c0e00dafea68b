"""Optimizer: parameter groups and their state."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Iterable
from typing import Callable

from .._C import Tensor
from .._grad_mode import enable_grad, no_grad
from .._gradients import clear


def require_non_negative(values: dict[str, float]) -> None:
    """Raises ValueError if an option is negative. The keys are PyTorch's names of the options."""
    for name, value in values.items():
        if not 0.0 <= value:
            raise ValueError(f"Invalid {name}: {value}")


def implementation(**flags) -> dict:
    """Checks and returns the options that select one of PyTorch's implementations of a step.

    The options have no other effect, because there is only one implementation here.

    Raises:
        NotImplementedError: ``differentiable`` is True. Steps are not recorded for gradients.
    """
    if flags.get("differentiable"):
        raise NotImplementedError("differentiable=True is not supported: an optimizer's step is not recorded for gradients")
    if flags.get("fused") and flags.get("foreach"):
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
    return flags


def _to_param_dtype_and_device(key: str, value, param: Tensor):
    """Converts a saved value of a parameter's state to the parameter's dtype and device."""
    if isinstance(value, Tensor):
        if key == "step":
            return value.detach().clone()
        dtype = param.dtype if param.is_floating_point() else value.dtype
        return value.detach().to(device=param.device, dtype=dtype, copy=True)
    if isinstance(value, dict):
        return {k: _to_param_dtype_and_device(k, v, param) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_to_param_dtype_and_device(key, v, param) for v in value)
    return value


def _shards(param: Tensor, values: dict) -> dict:
    """A copy of a parameter's state. If other ranks have parts of the parameter (FSDP), tensors of its shape are marked as
    parts too, for checkpoints."""
    shard_like = getattr(param, "_shard_like", None)
    if shard_like is None:
        return dict(values)
    return {
        key: shard_like(value) if isinstance(value, Tensor) and value.dim() and value.shape == param.shape else value
        for key, value in values.items()
    }


class Optimizer:
    """The base of all optimizers; subclasses define the step of one group.

    Args:
        params: parameters, or dicts of parameters and options ("param groups").
        defaults: the options of groups that do not override them.
    """

    def __init__(self, params: Iterable, defaults: dict):
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, but got Tensor"
            )
        self.defaults = defaults
        self.state: dict[Tensor, dict] = defaultdict(dict)
        self.param_groups: list[dict] = []
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def add_param_group(self, param_group: dict) -> None:
        """Adds a group: a dict with "params" and the options that differ from the defaults."""
        params = param_group["params"]
        if isinstance(params, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in sets will "
                "change between runs. Please use a list instead."
            )
        params = [params] if isinstance(params, Tensor) else list(params)
        for p in params:
            if isinstance(p, tuple):
                raise TypeError("named parameters are not supported: pass model.parameters()")
            if not isinstance(p, Tensor):
                raise TypeError(f"optimizer can only optimize Tensors, but one of the params is {type(p).__name__}")
            if not p.is_leaf:
                raise ValueError("can't optimize a non-leaf Tensor")
        if len({id(p) for p in params}) != len(params):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this will cause an error",
                stacklevel=3,
            )
        known = {id(p) for group in self.param_groups for p in group["params"]}
        if any(id(p) in known for p in params):
            raise ValueError("some parameters appear in more than one parameter group")
        self.param_groups.append({**self.defaults, **param_group, "params": params})

    def step(self, closure: Callable | None = None):
        """Updates the parameters by their gradients; returns the closure's loss, if a closure is given."""
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        with no_grad():
            for group in self.param_groups:
                params = [p for p in group["params"] if p.grad is not None]
                if params:
                    self._update(group, params, [p.grad for p in params])
        return loss

    def _update(self, group: dict, params: list[Tensor], grads: list[Tensor]) -> None:
        """Performs one step for the parameters of a group that have gradients."""
        raise NotImplementedError

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clears the gradients, or sets them to zeros, with one instruction."""
        clear((p for group in self.param_groups for p in group["params"]), set_to_none)

    def state_dict(self) -> dict:
        """The state and options, with parameters identified by number."""
        numbers: dict[int, int] = {}
        groups = []
        for group in self.param_groups:
            for p in group["params"]:
                numbers.setdefault(id(p), len(numbers))
            groups.append({**group, "params": [numbers[id(p)] for p in group["params"]]})
        return {"state": {numbers[id(p)]: _shards(p, s) for p, s in self.state.items()}, "param_groups": groups}

    def load_state_dict(self, state_dict: dict) -> None:
        """Restores a state returned by state_dict, for parameters in the same order."""
        saved = state_dict["param_groups"]
        if len(saved) != len(self.param_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if [len(g["params"]) for g in saved] != [len(g["params"]) for g in self.param_groups]:
            raise ValueError("loaded state dict contains a parameter group that doesn't match the size of optimizer's group")
        own = {
            n: p for old, group in zip(saved, self.param_groups) for n, p in zip(old["params"], group["params"])
        }
        self.param_groups = [
            {**self.defaults, **old, "params": group["params"]} for old, group in zip(saved, self.param_groups)
        ]
        self.state = defaultdict(dict)
        for n, values in state_dict["state"].items():
            param = own[int(n)]
            self.state[param] = {k: _to_param_dtype_and_device(k, v, param) for k, v in values.items()}

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {i}")
            lines += [f"    {k}: {v}" for k, v in sorted(group.items()) if k != "params"]
        return "\n".join(lines) + "\n)"
