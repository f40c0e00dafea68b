"""Hooks of optimizers: around step, state_dict and load_state_dict."""

from __future__ import annotations

import contextlib
import functools
from collections import OrderedDict
from typing import Any, Callable

from .. import _C, _active_profile
from ..nn.modules._hooks import RemovableHandle, register

_global_optimizer_pre_hooks: OrderedDict = OrderedDict()
_global_optimizer_post_hooks: OrderedDict = OrderedDict()

REGISTRIES = tuple(
    f"_optimizer_{what}_{when}_hooks" for what in ("step", "state_dict", "load_state_dict") for when in ("pre", "post")
)


def register_optimizer_step_pre_hook(hook: Callable) -> RemovableHandle:
    """Calls ``hook(optimizer, args, kwargs)`` before step() of every optimizer."""
    return register(_global_optimizer_pre_hooks, hook)


def register_optimizer_step_post_hook(hook: Callable) -> RemovableHandle:
    """Calls ``hook(optimizer, args, kwargs)`` after step() of every optimizer."""
    return register(_global_optimizer_post_hooks, hook)


_NO_RANGE = contextlib.nullcontext()


def profiled(name: str, optimizer: Any) -> Any:
    """A range of the profile in progress, named as PyTorch's; without a profile, a context without effect."""
    if _active_profile.active is None:
        return _NO_RANGE
    return _active_profile.record_function(f"Optimizer.{name}#{type(optimizer).__name__}.{name}")


def has_step_hooks(optimizer: Any) -> bool:
    """Whether step() of the optimizer calls hooks."""
    return bool(
        optimizer._optimizer_step_pre_hooks or optimizer._optimizer_step_post_hooks or _global_optimizer_pre_hooks
        or _global_optimizer_post_hooks
    )  # fmt: skip


def step_hooks(optimizer: Any) -> list[Callable]:
    """The hooks that step() of the optimizer calls, in order."""
    return [
        *_global_optimizer_pre_hooks.values(), *optimizer._optimizer_step_pre_hooks.values(),
        *optimizer._optimizer_step_post_hooks.values(), *_global_optimizer_post_hooks.values(),
    ]  # fmt: skip


def hooked(step: Callable) -> Callable:
    """A step method with the hooks before and after it."""

    @functools.wraps(step)
    def wrapper(self, *args: Any, **kwargs: Any) -> Any:
        is_tracing = _C.is_tracing()
        if not has_step_hooks(self):
            if is_tracing:
                return self._trace_step(args, kwargs)
            with profiled("step", self):
                return step(self, *args, **kwargs)
        given: tuple = (self, *args)
        for hook in (*_global_optimizer_pre_hooks.values(), *self._optimizer_step_pre_hooks.values()):
            changed = hook(self, given, kwargs)
            if changed is not None:
                if not isinstance(changed, tuple) or len(changed) != 2:
                    raise RuntimeError(f"{step} must return None or a tuple of (new_args, new_kwargs), but got {changed}.")
                given, kwargs = changed
        with profiled("step", self):
            result = self._trace_step(given[1:], kwargs) if is_tracing else step(*given, **kwargs)
        for hook in (*self._optimizer_step_post_hooks.values(), *_global_optimizer_post_hooks.values()):
            hook(self, given, kwargs)
        return result

    wrapper.hooked = True
    return wrapper


class OptimizerHooks:
    """Implements the registration of hooks. A base of Optimizer."""

    OptimizerPreHook = Callable[[Any, tuple, dict], "tuple[tuple, dict] | None"]
    OptimizerPostHook = Callable[[Any, tuple, dict], None]

    def _make_registries(self) -> None:
        for name in REGISTRIES:
            self.__dict__.setdefault(name, OrderedDict())

    def _patch_step_function(self) -> None:
        if not getattr(type(self).step, "hooked", False):
            type(self).step = hooked(type(self).step)

    profile_hook_step = staticmethod(hooked)

    def register_step_pre_hook(self, hook: Callable) -> RemovableHandle:
        """Calls ``hook(optimizer, args, kwargs)`` before step(); it may return (args, kwargs). The optimizer is args[0]."""
        return register(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable) -> RemovableHandle:
        """Calls ``hook(optimizer, args, kwargs)`` after step()."""
        return register(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Calls ``hook(optimizer)`` before state_dict()."""
        return register(self._optimizer_state_dict_pre_hooks, hook, prepend=prepend)

    def register_state_dict_post_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Calls ``hook(optimizer, state_dict)`` after state_dict(); it may change the dict or return another one."""
        return register(self._optimizer_state_dict_post_hooks, hook, prepend=prepend)

    def register_load_state_dict_pre_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Calls ``hook(optimizer, state_dict)`` before load_state_dict(); it may change the dict or return another one."""
        return register(self._optimizer_load_state_dict_pre_hooks, hook, prepend=prepend)

    def register_load_state_dict_post_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Calls ``hook(optimizer)`` after load_state_dict()."""
        return register(self._optimizer_load_state_dict_post_hooks, hook, prepend=prepend)
