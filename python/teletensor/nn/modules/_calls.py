"""ModuleCalls: calling a Module, with the hooks of its forward and backward passes."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from typing import Any, Callable

from ._hooks import RemovableHandle, register

__all__ = [
    "register_module_backward_hook", "register_module_buffer_registration_hook", "register_module_forward_hook",
    "register_module_forward_pre_hook", "register_module_full_backward_hook", "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook", "register_module_parameter_registration_hook", "_global_backward_hooks",
    "_global_backward_pre_hooks", "_global_buffer_registration_hooks", "_global_forward_hooks",
    "_global_forward_hooks_always_called", "_global_forward_hooks_with_kwargs", "_global_forward_pre_hooks",
    "_global_module_registration_hooks", "_global_parameter_registration_hooks",
]  # fmt: skip

# Hooks of all modules, by the names that PyTorch's tools use.
_global_forward_pre_hooks: OrderedDict = OrderedDict()
_global_forward_hooks: OrderedDict = OrderedDict()
_global_forward_hooks_with_kwargs: dict = {}
_global_forward_hooks_always_called: dict = {}
_global_backward_pre_hooks: OrderedDict = OrderedDict()
_global_backward_hooks: OrderedDict = OrderedDict()
_global_is_full: list[bool] = []  # empty, or whether the hooks of all modules are full backward hooks
_MIXED = "Cannot use both regular backward hooks and full backward hooks on {}. Please use only one of them."
_global_buffer_registration_hooks: OrderedDict = OrderedDict()
_global_module_registration_hooks: OrderedDict = OrderedDict()
_global_parameter_registration_hooks: OrderedDict = OrderedDict()


def registered(hooks: dict, module: Any, name: str, value: Any) -> Any:
    """The value that a module registers under a name: that of the last hook that does not return None."""
    for hook in hooks.values():
        changed = hook(module, name, value)
        value = value if changed is None else changed
    return value


def _apply_forward_hook(hook: Callable, with_kwargs: bool, module: Any, args: tuple, kwargs: dict, result: Any) -> Any:
    changed = hook(module, args, kwargs, result) if with_kwargs else hook(module, args, result)
    return result if changed is None else changed


class ModuleCalls:
    """Implements __call__ and the hooks around it. A base of Module, which owns the registries."""

    _compiled_call_impl: Callable | None = None  # set by compile()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._compiled_call_impl is not None:
            return self._compiled_call_impl(*args, **kwargs)
        if type(self)._call_impl is not _call_impl:  # a subclass or a program has replaced it
            return self._call_impl(*args, **kwargs)
        if not (
            self._forward_hooks or self._forward_pre_hooks or self._backward_hooks or self._backward_pre_hooks
            or _global_forward_hooks or _global_forward_pre_hooks or _global_backward_hooks or _global_backward_pre_hooks
        ):  # fmt: skip
            return self.forward(*args, **kwargs)
        return self._call_with_hooks(args, kwargs)

    def _call_impl(self, *args: Any, **kwargs: Any) -> Any:
        """The implementation of __call__; compile() compiles it."""
        return self._call_with_hooks(args, kwargs)

    _wrapped_call_impl = _call_impl

    def _call_with_hooks(self, args: tuple, kwargs: dict) -> Any:
        result, called = None, set()
        try:
            args, kwargs = self._run_pre_hooks(args, kwargs)
            backward = self._backward_hook()
            if backward is not None:
                args = backward.setup_input_hook(args)
            result = self.forward(*args, **kwargs)
            for key, hook, with_kwargs, _ in self._all_forward_hooks():
                called.add(key)
                result = _apply_forward_hook(hook, with_kwargs, self, args, kwargs, result)
            if backward is not None:
                from ._backward_hooks import warn_about_result

                warn_about_result(result)
                result = backward.setup_output_hook(result)
            return result
        except Exception:
            self._run_remaining_hooks(called, args, kwargs, result)
            raise

    def _run_pre_hooks(self, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        for key, hook in (*_global_forward_pre_hooks.items(), *self._forward_pre_hooks.items()):
            if key in self._forward_pre_hooks_with_kwargs:
                changed = hook(self, args, kwargs)
                if changed is not None:
                    if not isinstance(changed, tuple) or len(changed) != 2:
                        raise RuntimeError(
                            f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {changed}."
                        )
                    args, kwargs = changed
            else:
                changed = hook(self, args)
                if changed is not None:
                    args = changed if isinstance(changed, tuple) else (changed,)
        return args, kwargs

    def _all_forward_hooks(self) -> list[tuple[int, Callable, bool, bool]]:
        """(key, hook, whether it receives kwargs, whether it is always called), those of all modules first."""
        kwargs, always = _global_forward_hooks_with_kwargs, _global_forward_hooks_always_called
        found = [(k, hook, k in kwargs, k in always) for k, hook in _global_forward_hooks.items()]
        kwargs, always = self._forward_hooks_with_kwargs, self._forward_hooks_always_called
        return found + [(k, hook, k in kwargs, k in always) for k, hook in self._forward_hooks.items()]

    def _run_remaining_hooks(self, called: set[int], args: tuple, kwargs: dict, result: Any) -> None:
        """Calls the hooks that are called also after an exception."""
        for key, hook, with_kwargs, always in self._all_forward_hooks():
            if not always or key in called:
                continue
            try:
                result = _apply_forward_hook(hook, with_kwargs, self, args, kwargs, result)
            except Exception as e:  # noqa: BLE001 - the first exception is raised
                kind = "global module" if key in _global_forward_hooks else "module"
                warnings.warn(
                    f"{kind} forward hook with ``always_call=True`` raised an exception that was silenced as another error was "
                    f"raised in forward: {e}",
                    stacklevel=3,
                )

    def _backward_hook(self):
        hooks = [*_global_backward_hooks.values(), *self._backward_hooks.values()]
        pre_hooks = [*_global_backward_pre_hooks.values(), *self._backward_pre_hooks.values()]
        if not (hooks or pre_hooks):
            return None
        from ._backward_hooks import BackwardHook, OperationHook

        is_full = (not self._backward_hooks or self._is_full_backward_hook) and (not _global_backward_hooks or _global_is_full[0])
        return (BackwardHook if is_full else OperationHook)(self, hooks, pre_hooks)

    # -- registration

    def register_forward_hook(
        self, hook: Callable, *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> RemovableHandle:
        """Calls ``hook(module, args, result)`` after forward; a return value other than None replaces the result.

        Args:
            prepend: adds the hook before the existing ones.
            with_kwargs: calls ``hook(module, args, kwargs, result)``.
            always_call: calls the hook also if forward raises.
        """
        return register(self._forward_hooks, hook, prepend=prepend, options={
            "with_kwargs": (self._forward_hooks_with_kwargs, with_kwargs),
            "always_call": (self._forward_hooks_always_called, always_call),
        })  # fmt: skip

    def register_forward_pre_hook(self, hook: Callable, *, prepend: bool = False, with_kwargs: bool = False) -> RemovableHandle:
        """Calls ``hook(module, args)`` before forward; a return value other than None replaces the arguments.

        Args:
            prepend: adds the hook before the existing ones.
            with_kwargs: calls ``hook(module, args, kwargs)``, which returns None or (args, kwargs).
        """
        return register(self._forward_pre_hooks, hook, prepend=prepend, options={
            "with_kwargs": (self._forward_pre_hooks_with_kwargs, with_kwargs),
        })  # fmt: skip

    def register_full_backward_pre_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Calls ``hook(module, grad_output)`` when the gradients of the result are known, with a tuple of them.

        A return value other than None replaces the gradients. The hook runs in the client.
        """
        return register(self._backward_pre_hooks, hook, prepend=prepend)

    def register_full_backward_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Calls ``hook(module, grad_input, grad_output)`` when the gradients of the positional arguments are known.

        A return value other than None replaces grad_input. The hook runs in the client.
        """
        if self._is_full_backward_hook is False:
            raise RuntimeError(_MIXED.format("a single Module"))
        self._is_full_backward_hook = True
        return register(self._backward_hooks, hook, prepend=prepend)

    def register_backward_hook(self, hook: Callable) -> RemovableHandle:
        """Calls ``hook(module, grad_input, grad_output)`` with the gradients of the module's last operation. Deprecated.

        A forward pass raises NotImplementedError unless its result is one operation on the module's arguments, as for
        activations and losses.
        """
        if self._is_full_backward_hook is True:
            raise RuntimeError(_MIXED.format("a single Module"))
        self._is_full_backward_hook = False
        return register(self._backward_hooks, hook)


_call_impl = ModuleCalls._call_impl


def register_module_forward_pre_hook(hook: Callable) -> RemovableHandle:
    """Calls ``hook(module, args)`` before forward of every module."""
    return register(_global_forward_pre_hooks, hook)


def register_module_forward_hook(hook: Callable, *, with_kwargs: bool = False, always_call: bool = False) -> RemovableHandle:
    """Calls ``hook(module, args, result)`` after forward of every module."""
    return register(_global_forward_hooks, hook, options={
        "with_kwargs": (_global_forward_hooks_with_kwargs, with_kwargs),
        "always_call": (_global_forward_hooks_always_called, always_call),
    })  # fmt: skip


def register_module_full_backward_pre_hook(hook: Callable) -> RemovableHandle:
    """Calls ``hook(module, grad_output)`` in the backward pass of every module."""
    return register(_global_backward_pre_hooks, hook)


def register_module_full_backward_hook(hook: Callable) -> RemovableHandle:
    """Calls ``hook(module, grad_input, grad_output)`` in the backward pass of every module."""
    if _global_is_full == [False]:
        raise RuntimeError(_MIXED.format("as a global Module hook"))
    _global_is_full[:] = [True]
    return register(_global_backward_hooks, hook)


def register_module_backward_hook(hook: Callable) -> RemovableHandle:
    """Like Module.register_backward_hook, for every module. Deprecated."""
    if _global_is_full == [True]:
        raise RuntimeError(_MIXED.format("as a global Module hook"))
    _global_is_full[:] = [False]
    return register(_global_backward_hooks, hook)


def register_module_buffer_registration_hook(hook: Callable) -> RemovableHandle:
    """Calls ``hook(module, name, buffer)`` when a module registers a buffer; a result other than None replaces it."""
    return register(_global_buffer_registration_hooks, hook)


def register_module_module_registration_hook(hook: Callable) -> RemovableHandle:
    """Calls ``hook(module, name, submodule)`` when a module registers a submodule; a result other than None replaces it."""
    return register(_global_module_registration_hooks, hook)


def register_module_parameter_registration_hook(hook: Callable) -> RemovableHandle:
    """Calls ``hook(module, name, parameter)`` when a module registers a parameter; a result other than None replaces it."""
    return register(_global_parameter_registration_hooks, hook)
