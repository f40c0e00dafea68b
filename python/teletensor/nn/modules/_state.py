"""ModuleState: saving and loading of a Module's state, with hooks and methods that subclasses override."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Callable

from ..._C import Tensor
from ..._grad_mode import no_grad
from ..parameter import Parameter, is_lazy
from ._hooks import ModuleHook, RemovableHandle, _IncompatibleKeys, register

_EXTRA_STATE = "_extra_state"


class ModuleState:
    """Implements state_dict and load_state_dict. A base of Module, which owns the registries."""

    _version: int = 1  # saved in state_dict()._metadata; subclasses that change their keys increment it

    def get_extra_state(self) -> Any:
        """State other than parameters and buffers. A subclass with such state overrides this and set_extra_state."""
        raise RuntimeError("get_extra_state() is not implemented by this class")

    def set_extra_state(self, state: Any) -> None:
        """Restores state returned by get_extra_state."""
        raise RuntimeError("set_extra_state() is not implemented by this class")

    def _overrides(self, name: str) -> bool:
        return getattr(type(self), name, None) is not getattr(ModuleState, name)

    # -- saving

    def _save_to_state_dict(self, destination: dict, prefix: str, keep_vars: bool) -> None:
        """Writes the state of this module, without its submodules, to `destination`."""
        persistent = ((k, v) for k, v in self._buffers.items() if k not in self._non_persistent_buffers_set)
        for name, value in (*self._parameters.items(), *persistent):
            if value is not None:
                destination[prefix + name] = value if keep_vars else value.detach()
        if self._overrides("get_extra_state"):
            destination[prefix + _EXTRA_STATE] = self.get_extra_state()

    def state_dict(self, *args, destination=None, prefix: str = "", keep_vars: bool = False) -> OrderedDict:
        """All parameters and persistent buffers by dotted name; ``_metadata`` contains the modules' versions."""
        if args:
            warnings.warn("Positional args are being deprecated, use kwargs instead.", FutureWarning, stacklevel=2)
            destination = args[0] if destination is None else destination
            prefix = args[1] if len(args) > 1 and prefix == "" else prefix
            keep_vars = args[2] if len(args) > 2 and not keep_vars else keep_vars
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = metadata
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        for hook in self._state_dict_hooks.values():
            result = hook(self, destination, prefix, metadata)
            if result is not None:
                if getattr(hook, "_from_public_api", False):
                    raise RuntimeError("state_dict post-hook must return None")
                destination = result
        return destination

    # -- loading

    def _load_from_state_dict(
        self, state_dict: dict, prefix: str, local_metadata: dict, strict: bool, missing_keys: list, unexpected_keys: list,
        error_msgs: list,
    ) -> None:  # fmt: skip
        """Loads the state of this module, without its submodules; appends mismatches to the lists."""
        for hook in self._load_state_dict_pre_hooks.values():
            hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        persistent = {k: v for k, v in self._buffers.items() if k not in self._non_persistent_buffers_set}
        own = {k: v for k, v in {**self._parameters, **persistent}.items() if v is not None}
        assign = local_metadata.get("assign_to_params_buffers", False)
        for name, target in own.items():
            key = prefix + name
            if key in state_dict:
                problem = self._load_tensor(name, key, target, state_dict[key], assign)
                if problem:
                    error_msgs.append(problem)
            elif strict:
                missing_keys.append(key)
        extra = prefix + _EXTRA_STATE
        if self._overrides("set_extra_state"):
            if extra in state_dict:
                self.set_extra_state(state_dict[extra])
            elif strict:
                missing_keys.append(extra)
        elif strict and extra in state_dict:
            unexpected_keys.append(extra)
        if strict:
            for key in state_dict:
                if key.startswith(prefix) and key != extra:
                    name, dot, _ = key[len(prefix) :].partition(".")
                    if name not in (self._modules if dot else own):
                        unexpected_keys.append(key)

    def _load_tensor(self, name: str, key: str, target: Tensor, value: Any, assign: bool) -> str | None:
        """Copies or assigns one value; returns an error message or None."""
        if not isinstance(value, Tensor):
            return (
                f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like object from checkpoint '
                f"but received {type(value)}"
            )
        # the value is uninitialised too: LazyModuleMixin materializes the parameter for other values
        if is_lazy(target):
            return None
        nested = target.is_nested, value.is_nested
        if not any(nested) and target.dim() == 0 and tuple(value.shape) == (1,):  # the format of PyTorch before 0.4
            value = value[0]
        # copy_() compares the sizes of two nested tensors
        if any(nested) and not all(nested) or not any(nested) and tuple(value.shape) != tuple(target.shape):
            return (
                f"size mismatch for {key}: copying a param with shape {_shape(value)} from checkpoint, "
                f"the shape in current model is {_shape(target)}."
            )
        if target.device.type == "meta" and value.device.type != "meta" and not assign:
            warnings.warn(
                f"for {key}: copying from a non-meta parameter in the checkpoint to a meta parameter in the current model, "
                "which is a no-op. (Did you mean to pass `assign=True` to assign items in the state dictionary to their "
                "corresponding key in the module instead of copying them in place?)",
                stacklevel=2,
            )
            return None
        try:
            with no_grad():
                if not assign:
                    target.copy_(value)
                else:
                    if isinstance(target, Parameter):
                        trained = target.requires_grad and not getattr(type(value), "_saved_with_state", False)  # quantized weights
                        value = value if isinstance(value, Parameter) else Parameter(value, trained)
                        value.requires_grad_(trained)
                    setattr(self, name, value)
        except Exception as e:  # noqa: BLE001 - all errors are reported together
            return (
                f'While copying the parameter named "{key}", whose dimensions in the model are {_shape(target)} and '
                f"whose dimensions in the checkpoint are {_shape(value)}, an exception occurred : {e.args}."
            )
        return None

    def load_state_dict(self, state_dict: Mapping, strict: bool = True, assign: bool = False) -> _IncompatibleKeys:
        """Loads values by name into this module and its submodules.

        Args:
            state_dict: values by name, as returned by state_dict(); not modified.
            strict: whether all names must match.
            assign: whether the tensors become the parameters and buffers, instead of being copied into them.

        Raises:
            RuntimeError: names or sizes do not match; the message lists all mismatches.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        missing: list[str] = []
        unexpected: list[str] = []
        problems: list[str] = []
        metadata = getattr(state_dict, "_metadata", None)
        state_dict = OrderedDict(state_dict)
        if metadata is not None:
            state_dict._metadata = metadata

        def load(module: ModuleState, values: dict, prefix: str) -> None:
            local = dict(metadata.get(prefix[:-1], {})) if metadata is not None else {}
            if assign:
                local["assign_to_params_buffers"] = assign
            module._load_from_state_dict(values, prefix, local, True, missing, unexpected, problems)
            for name, child in module._modules.items():
                if child is not None:
                    below = f"{prefix}{name}."
                    load(child, {k: v for k, v in values.items() if k.startswith(below)}, below)
            found = _IncompatibleKeys(missing, unexpected)
            for hook in module._load_state_dict_post_hooks.values():
                if hook(module, found) is not None:
                    raise AssertionError(
                        "Hooks registered with ``register_load_state_dict_post_hook`` are not expected to return new values, "
                        "if incompatible_keys need to be modified, it should be done inplace."
                    )

        load(self, state_dict, "")
        load = None  # it refers to itself
        if strict:
            for title, keys in (("Unexpected", unexpected), ("Missing", missing)):
                if keys:
                    problems.insert(0, f"{title} key(s) in state_dict: " + ", ".join(f'"{k}"' for k in keys) + ". ")
        if problems:
            raise RuntimeError(f"Error(s) in loading state_dict for {type(self).__name__}:\n\t" + "\n\t".join(problems))
        return _IncompatibleKeys(missing, unexpected)

    # -- hooks

    def _register_state_dict_hook(self, hook: Callable) -> RemovableHandle:
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError(
                "Cannot register the same function as the state dict post hook that was previously registered via "
                "register_state_dict_post_hook"
            )
        return register(self._state_dict_hooks, hook)

    def register_state_dict_post_hook(self, hook: Callable) -> RemovableHandle:
        """Calls ``hook(module, state_dict, prefix, local_metadata)`` after state_dict; the hook may modify the dict."""
        hook._from_public_api = True
        return register(self._state_dict_hooks, hook)

    def register_state_dict_pre_hook(self, hook: Callable) -> RemovableHandle:
        """Calls ``hook(module, prefix, keep_vars)`` before the state is collected."""
        return register(self._state_dict_pre_hooks, hook)

    def _register_load_state_dict_pre_hook(self, hook: Callable, with_module: bool = False) -> RemovableHandle:
        return register(self._load_state_dict_pre_hooks, ModuleHook(hook, self) if with_module else hook)

    def register_load_state_dict_pre_hook(self, hook: Callable) -> RemovableHandle:
        """Calls a hook before the module is loaded.

        Arguments: (module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs).
        """
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def register_load_state_dict_post_hook(self, hook: Callable) -> RemovableHandle:
        """Calls ``hook(module, incompatible_keys)`` after the module and its submodules are loaded."""
        return register(self._load_state_dict_post_hooks, hook)


def _shape(tensor: Tensor) -> Any:
    """The shape, for errors; of a nested tensor, those of its constituents."""
    return [tuple(t.shape) for t in tensor.unbind()] if tensor.is_nested else tensor.shape
