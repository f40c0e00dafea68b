"""Optimizer: parameter groups and their state."""

from __future__ import annotations

import copy
import warnings
from collections import defaultdict
from collections.abc import Iterable
from typing import Callable

from .. import _C
from .._C import Tensor
from .._grad_mode import enable_grad, set_grad_enabled
from .._gradients import clear
from .._layouts import strided
from ._grouping import (  # noqa: F401 - other libraries' optimizers import these from here
    ParamsT,
    _default_to_fused_or_foreach,
    _get_capturable_supported_devices,
    _use_grad_for_differentiable,
    group_tensors,
)  # fmt: skip
from ._hooks import OptimizerHooks, profiled, register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from ._options import check_implementation, implementation, require_non_negative, state_dtype  # noqa: F401 - the optimizers import them from here
from ._torch_names import *  # noqa: F403 - as above

__all__ = ["Optimizer", "register_optimizer_step_post_hook", "register_optimizer_step_pre_hook"]


# Why step() of some optimizers cannot be part of a traced function.
UNTRACED = "steps of LBFGS, SparseAdam, Adafactor, Muon, and of classes that replace step(), cannot be part of it"


class _RequiredParameter:
    """The default of an option that every group must define."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _RequiredParameter()


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


def _type_name(value) -> str:
    kind = type(value)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


def _as_tensor(number) -> Tensor:
    """A number of a parameter's state as PyTorch saves it."""
    if isinstance(number, Tensor):
        return number.clone()  # parameters may share it
    return _C.tensor(float(number), dtype=state_dtype(), device="cpu")


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


def is_sparse(grad: Tensor) -> bool:
    """Whether a gradient has a sparse layout."""
    return _C._is_wrapper(grad) and grad.layout != strided


class Optimizer(OptimizerHooks):
    """The base of all optimizers; subclasses define the step of one group.

    Args:
        params: parameters, (name, parameter) pairs, or dicts of them and options ("param groups").
        defaults: the options of groups that do not override them.
    """

    # The numbers in a parameter's state. The client stores them, so that a step does not wait for the engine; state_dict()
    # returns them as tensors, as PyTorch does.
    _numbers: tuple[str, ...] = ()
    _recorded_options: tuple[str, ...] = ()  # options whose gradients a differentiable step records if they are tensors
    _group_tensors_by_device_and_dtype = staticmethod(group_tensors)

    def __init__(self, params: Iterable, defaults: dict):
        if isinstance(params, Tensor):
            raise TypeError(
                f"params argument given to the optimizer should be an iterable of Tensors or dicts, but got {params.type()}"
            )
        if isinstance(params, set):
            warnings.warn(
                "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in sets will "
                "change between runs. Please use a list instead. This will be an error in a future release.",
                FutureWarning, stacklevel=3,
            )  # fmt: skip
        self.defaults = defaults
        self._make_registries()
        self._patch_step_function()
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
        """Adds a group: a dict with "params" and options. Missing options get their defaults."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        given = param_group["params"]
        if isinstance(given, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in sets will "
                "change between runs. Please use a list instead."
            )
        given = [given] if isinstance(given, Tensor) else list(given)
        names = [p[0] for p in given if isinstance(p, tuple)]
        params = param_group["params"] = [p[1] if isinstance(p, tuple) else p for p in given]
        if names:
            if len(names) != len(params):
                raise ValueError("all optimizer params should be with/without names. Some param names are missing")
            param_group["param_names"] = names
        for p in params:
            if not isinstance(p, Tensor):
                raise TypeError(f"optimizer can only optimize Tensors, but one of the params is {_type_name(p)}")
            if not (self.defaults.get("differentiable") or p.is_leaf or p.retains_grad):
                raise ValueError("can't optimize a non-leaf Tensor")
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(f"parameter group didn't specify a value of required optimization parameter {name}")
            param_group.setdefault(name, default)
        self._check_membership(param_group)
        self.param_groups.append(param_group)

    def _check_membership(self, group: dict) -> None:
        params = group["params"]
        if len({id(p) for p in params}) != len(params):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this will cause an error; see "
                "github.com/pytorch/pytorch/issues/40967 for more information",
                stacklevel=4,
            )
        known = {id(p) for other in self.param_groups for p in other["params"]}
        if any(id(p) in known for p in params):
            raise ValueError("some parameters appear in more than one parameter group")
        if self.param_groups and ("param_names" in self.param_groups[0]) != ("param_names" in group):
            what = "with" if "param_names" in group else "without"
            raise ValueError(
                "all optimizer param groups should be with/without names. cannot add param group "
                f"{what} names to the optimizer"
            )

    def step(self, closure: Callable | None = None):
        """Updates the parameters by their gradients; returns the closure's loss, if a closure is given."""
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        with set_grad_enabled(bool(self.defaults.get("differentiable"))):
            for group in self.param_groups:
                params = [p for p in group["params"] if p.grad is not None]
                if params:
                    check_implementation(group, params, self._recorded_options)
                    grads = [p.grad for p in params]
                    if any(map(is_sparse, grads)):
                        params, grads = self._update_sparse_ones(group, params, grads)
                    if params:
                        self._update(group, params, grads)
        return loss

    def _trace_step(self, args: tuple, kwargs: dict) -> None:
        """Called instead of step() while a function is traced."""
        raise NotImplementedError(
            f"[{type(self).__name__}] step() in a traced function: {UNTRACED}; call it after the function, which stores "
            "the gradients"
        )

    def _update_sparse_ones(self, group: dict, params: list, grads: list) -> tuple[list, list]:
        """Performs one step for the parameters with sparse gradients; returns the others and their gradients."""
        for p, grad in zip(params, grads):
            if is_sparse(grad):
                self._update_sparse(group, p, grad)
        rest = [(p, grad) for p, grad in zip(params, grads) if not is_sparse(grad)]
        return [p for p, _ in rest], [grad for _, grad in rest]

    def _update_sparse(self, group: dict, param: Tensor, grad: Tensor) -> None:
        """Performs one step for a parameter whose gradient is sparse. Optimizers that have none raise RuntimeError, as in PyTorch."""
        raise RuntimeError(f"{type(self).__name__} does not support sparse gradients, please consider SparseAdam instead")

    def _update(self, group: dict, params: list[Tensor], grads: list[Tensor]) -> None:
        """Performs one step for the parameters of a group that have gradients."""
        raise NotImplementedError

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clears the gradients, or sets them to zeros, with one instruction."""
        with profiled("zero_grad", self):
            clear((p for group in self.param_groups for p in group["params"]), set_to_none)

    def state_dict(self) -> dict:
        """The state and options, with parameters identified by number."""
        for hook in self._optimizer_state_dict_pre_hooks.values():
            hook(self)
        numbers: dict[int, int] = {}
        groups = []
        for group in self.param_groups:
            for p in group["params"]:
                numbers.setdefault(id(p), len(numbers))
            options = {k: v for k, v in group.items() if k != "params"}
            groups.append({**options, "params": [numbers[id(p)] for p in group["params"]]})
        state = {
            numbers[id(p)] if isinstance(p, Tensor) else p: self._saved(p, s) if isinstance(p, Tensor) else s
            for p, s in self.state.items()
        }
        result = {"state": state, "param_groups": groups}
        for hook in self._optimizer_state_dict_post_hooks.values():
            changed = hook(self, result)
            if changed is not None:
                result = changed
        return result

    def _saved(self, param: Tensor, state: dict) -> dict:
        """A copy of a parameter's state for state_dict()."""
        return {k: _as_tensor(v) if k in self._numbers else v for k, v in _shards(param, state).items()}

    def load_state_dict(self, state_dict: dict) -> None:
        """Restores a state returned by state_dict, for parameters in the same order. Waits for the engine once."""
        state_dict = state_dict.copy()
        for hook in self._optimizer_load_state_dict_pre_hooks.values():
            changed = hook(self, state_dict)
            if changed is not None:
                state_dict = changed
        saved = state_dict["param_groups"]
        if len(saved) != len(self.param_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if [len(g["params"]) for g in saved] != [len(g["params"]) for g in self.param_groups]:
            raise ValueError("loaded state dict contains a parameter group that doesn't match the size of optimizer's group")
        own = {
            n: p for old, group in zip(saved, self.param_groups) for n, p in zip(old["params"], group["params"])
        }
        names = [{"param_names": g["param_names"]} if "param_names" in g else {} for g in self.param_groups]
        options = copy.deepcopy([{k: v for k, v in old.items() if k != "params"} for old in saved])  # with their shared tensors
        groups = [
            {**self.defaults, **named, **given, "params": group["params"]}
            for given, group, named in zip(options, self.param_groups, names)
        ]
        state, loaded = defaultdict(dict), {}
        for n, values in state_dict["state"].items():
            param = own.get(int(n) if isinstance(n, str) and n.isdigit() else n)
            if param is None:  # not a parameter's state
                state[n] = values
            else:
                loaded[param] = values
                state[param] = {
                    k: None if k in self._numbers else _to_param_dtype_and_device(k, v, param) for k, v in values.items()
                }
        self._load_numbers(loaded, state)
        self.__setstate__({"state": state, "param_groups": groups})
        for hook in self._optimizer_load_state_dict_post_hooks.values():
            hook(self)

    def _load_numbers(self, states: dict[Tensor, dict], into: dict[Tensor, dict]) -> None:
        """Reads the numbers in all states, with one request, and stores them in the states `into`."""
        found = [(p, k, values[k]) for p, values in states.items() for k in self._numbers if k in values]
        tensors = [v.detach().to(dtype=_C.float64).reshape(()).cpu() for _, _, v in found if isinstance(v, Tensor)]
        read = iter(_C.torch.stack(tensors).tolist() if tensors else ())
        for param, key, value in found:
            number = next(read) if isinstance(value, Tensor) else value
            into[param][key] = int(number) if key == "step" else number

    def __getstate__(self) -> dict:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict) -> None:
        self.__dict__.update(state)
        self._make_registries()
        self._patch_step_function()
        self.defaults.setdefault("differentiable", False)

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.param_groups):
            lines += [""] * (i > 0) + [f"Parameter Group {i}"]
            lines += [f"    {k}: {v}" for k, v in sorted(group.items()) if k != "params"]
        return "\n".join(lines) + "\n)"
