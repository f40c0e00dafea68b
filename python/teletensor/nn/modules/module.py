"""Module: parameters, buffers and submodules by name, and what is done to all of them."""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any, Callable

from ..._C import Tensor
from ..._C import device as _device
from ..parameter import Buffer, Parameter


def _addindent(text: str, spaces: int) -> str:
    """The lines after the first, moved right."""
    return text.replace("\n", "\n" + " " * spaces)


class RemovableHandle:
    """Removes a hook when asked to."""

    def __init__(self, hooks: dict):
        self.hooks, self.key = hooks, next(RemovableHandle.keys)

    keys = itertools.count()

    def remove(self) -> None:
        self.hooks.pop(self.key, None)

    def __enter__(self):
        return self

    def __exit__(self, *exc) -> None:
        self.remove()


class _IncompatibleKeys(tuple):
    """What load_state_dict found missing and unexpected."""

    def __new__(cls, missing_keys: list[str], unexpected_keys: list[str]):
        return super().__new__(cls, (missing_keys, unexpected_keys))

    missing_keys = property(lambda self: self[0])
    unexpected_keys = property(lambda self: self[1])

    def __repr__(self) -> str:
        if not any(self):
            return "<All keys matched successfully>"
        return f"IncompatibleKeys(missing_keys={self[0]}, unexpected_keys={self[1]})"


class Module:
    """The base of all networks; see torch.nn.Module."""

    training: bool

    def __init__(self) -> None:
        set_plain = super().__setattr__
        set_plain("training", True)
        for registry in ("_parameters", "_buffers", "_modules"):
            set_plain(registry, OrderedDict())
        set_plain("_non_persistent", set())
        for hooks in ("_forward_hooks", "_forward_pre_hooks", "_state_dict_hooks", "_load_state_dict_pre_hooks"):
            set_plain(hooks, OrderedDict())

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module computes; every subclass says it."""
        raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self._forward_hooks and not self._forward_pre_hooks:
            return self.forward(*args, **kwargs)
        for hook in list(self._forward_pre_hooks.values()):
            changed = hook(self, args)
            if changed is not None:
                args = changed if isinstance(changed, tuple) else (changed,)
        result = self.forward(*args, **kwargs)
        for hook in list(self._forward_hooks.values()):
            changed = hook(self, args, result)
            result = result if changed is None else changed
        return result

    def register_forward_hook(self, hook: Callable, **ignored) -> RemovableHandle:
        """Calls ``hook(module, args, result)`` after forward; what it returns replaces the result."""
        handle = RemovableHandle(self._forward_hooks)
        self._forward_hooks[handle.key] = hook
        return handle

    def register_forward_pre_hook(self, hook: Callable, **ignored) -> RemovableHandle:
        """Calls ``hook(module, args)`` before forward; what it returns replaces the arguments."""
        handle = RemovableHandle(self._forward_pre_hooks)
        self._forward_pre_hooks[handle.key] = hook
        return handle

    # -- registries

    def __setattr__(self, name: str, value: Any) -> None:
        registries = self.__dict__.get("_parameters"), self.__dict__.get("_modules"), self.__dict__.get("_buffers")
        if isinstance(value, (Parameter, Module)) and registries[0] is None:
            raise AttributeError(f"cannot assign {type(value).__name__.lower()} before Module.__init__() call")
        if isinstance(value, Parameter):
            self._forget(name)
            self.register_parameter(name, value)
        elif isinstance(value, Module):
            self._forget(name)
            self._modules[name] = value
        elif isinstance(value, Buffer):
            self._forget(name)
            self.register_buffer(name, value, persistent=value.persistent)
        elif registries[0] is not None and name in self._parameters:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{type(value).__name__}' as parameter '{name}' (torch.nn.Parameter or None expected)"
                )
            self._parameters[name] = None
        elif registries[1] is not None and name in self._modules and value is None:
            self._modules[name] = None
        elif registries[2] is not None and name in self._buffers:
            self._buffers[name] = value
        else:
            super().__setattr__(name, value)

    def __getattr__(self, name: str) -> Any:
        for registry in ("_parameters", "_buffers", "_modules"):
            values = self.__dict__.get(registry)
            if values is not None and name in values:
                return values[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __delattr__(self, name: str) -> None:
        if not self._forget(name):
            super().__delattr__(name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._parameters, *self._buffers, *self._modules})

    def _forget(self, name: str) -> bool:
        found = False
        for registry in (self.__dict__, self._parameters, self._buffers, self._modules):
            found = registry.pop(name, registry) is not registry or found
        self._non_persistent.discard(name)
        return found

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Adds a parameter under that name."""
        if "." in name or not name:
            raise KeyError(f"parameter name can't be empty or contain '.', got {name!r}")
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(f"cannot assign '{type(param).__name__}' object to parameter '{name}'")
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Adds a tensor that is state but is not trained; persistent ones are in state_dict."""
        if hasattr(self, name) and name not in self._buffers:
            raise KeyError(f"attribute '{name}' already exists")
        self._buffers[name] = tensor
        (self._non_persistent.discard if persistent else self._non_persistent.add)(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Adds a submodule under that name."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{type(module).__name__} is not a Module subclass")
        self._modules[name] = module

    register_module = add_module

    # -- walking

    def named_modules(self, memo: set | None = None, prefix: str = "", remove_duplicate: bool = True):
        """(name, module) of itself and everything below, each once."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, f"{prefix}{'.' if prefix else ''}{name}", remove_duplicate)

    def modules(self) -> Iterator[Module]:
        """Itself and everything below."""
        return (module for _, module in self.named_modules())

    def named_children(self):
        """(name, module) of the direct submodules."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self) -> Iterator[Module]:
        """The direct submodules."""
        return (module for _, module in self.named_children())

    def _named(self, registry: str, prefix: str, recurse: bool, remove_duplicate: bool = True):
        seen = set()
        for path, module in self.named_modules(prefix=prefix) if recurse else [(prefix, self)]:
            for name, value in getattr(module, registry).items():
                if value is None or (remove_duplicate and id(value) in seen):
                    continue
                seen.add(id(value))
                yield f"{path}{'.' if path else ''}{name}", value

    def named_parameters(self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True):
        """(name, parameter), each once."""
        return self._named("_parameters", prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """The parameters, each once."""
        return (p for _, p in self.named_parameters(recurse=recurse))

    def named_buffers(self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True):
        """(name, buffer), each once."""
        return self._named("_buffers", prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """The buffers, each once."""
        return (b for _, b in self.named_buffers(recurse=recurse))

    def get_submodule(self, target: str) -> Module:
        """The module at a dotted path."""
        module = self
        for part in filter(None, target.split(".")):
            module = getattr(module, part)
        return module

    def get_parameter(self, target: str) -> Parameter:
        """The parameter at a dotted path."""
        path, _, name = target.rpartition(".")
        return self.get_submodule(path)._parameters[name]

    def apply(self, fn: Callable[[Module], None]) -> Module:
        """Calls fn on every submodule and itself, children first."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    # -- state

    def state_dict(self, *, destination=None, prefix: str = "", keep_vars: bool = False) -> OrderedDict:
        """All parameters and persistent buffers by dotted name."""
        destination = OrderedDict() if destination is None else destination
        for name, value in self._parameters.items():
            if value is not None:
                destination[prefix + name] = value if keep_vars else value.detach()
        for name, value in self._buffers.items():
            if value is not None and name not in self._non_persistent:
                destination[prefix + name] = value if keep_vars else value.detach()
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        return destination

    def load_state_dict(self, state_dict: dict, strict: bool = True, assign: bool = False) -> _IncompatibleKeys:
        """Copies values in by name; strict: every name must match. Says all that is wrong at once."""
        own = self.state_dict(keep_vars=True)
        missing = [k for k in own if k not in state_dict]
        unexpected = [k for k in state_dict if k not in own]
        problems = []
        if strict and missing:
            problems.append("Missing key(s) in state_dict: " + ", ".join(f'"{k}"' for k in missing) + ". ")
        if strict and unexpected:
            problems.append("Unexpected key(s) in state_dict: " + ", ".join(f'"{k}"' for k in unexpected) + ". ")
        for key, target in own.items():
            value = state_dict.get(key)
            if value is not None and tuple(value.shape) != tuple(target.shape):
                problems.append(
                    f"size mismatch for {key}: copying a param with shape {value.shape} from checkpoint, "
                    f"the shape in current model is {target.shape}."
                )
            elif value is not None:
                target.detach().copy_(value)
        if problems:
            raise RuntimeError(f"Error(s) in loading state_dict for {type(self).__name__}:\n\t" + "\n\t".join(problems))
        return _IncompatibleKeys(missing, unexpected)

    # -- modes and types

    def train(self, mode: bool = True) -> Module:
        """Sets training mode for itself and everything below."""
        for module in self.modules():
            module.training = mode
        return self

    def eval(self) -> Module:
        """Leaves training mode."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Module:
        """Sets whether gradients are computed for the parameters."""
        for p in self.parameters():
            p.requires_grad = requires_grad
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forgets the parameters' gradients, or zeroes them."""
        from ..._gradients import clear

        clear(self.parameters(), set_to_none)

    def _apply(self, fn: Callable[[Tensor], Tensor]) -> Module:
        for module in self.modules():
            for param in module._parameters.values():
                if param is not None:
                    changed = fn(param.detach())
                    if changed.dtype is not param.dtype or changed.device != param.device:
                        param.data = changed
            for name, buffer in module._buffers.items():
                if buffer is not None:
                    module._buffers[name] = fn(buffer)
        return self

    def to(self, *args, device=None, dtype=None, non_blocking: bool = False, memory_format=None) -> Module:
        """Moves and casts the parameters and buffers, in place; integers keep their type."""
        for arg in args:
            if isinstance(arg, (str, _device, int)) and not isinstance(arg, bool):
                device = arg
            elif isinstance(arg, Tensor):
                device, dtype = arg.device, arg.dtype
            elif not isinstance(arg, bool):
                dtype = arg
        return self._apply(lambda t: t.to(device=device, dtype=dtype if t.is_floating_point() else None))

    def cuda(self, device=None) -> Module:
        """Moves to a GPU."""
        return self.to("cuda" if device is None else _device(device))

    def cpu(self) -> Module:
        """Moves to the CPU."""
        return self.to("cpu")

    def float(self) -> Module:
        """Casts floating parameters and buffers to float32."""
        return self._apply(lambda t: t.float() if t.is_floating_point() else t)

    def double(self) -> Module:
        """Casts floating parameters and buffers to float64."""
        return self._apply(lambda t: t.double() if t.is_floating_point() else t)

    def half(self) -> Module:
        """Casts floating parameters and buffers to float16."""
        return self._apply(lambda t: t.half() if t.is_floating_point() else t)

    def bfloat16(self) -> Module:
        """Casts floating parameters and buffers to bfloat16."""
        return self._apply(lambda t: t.bfloat16() if t.is_floating_point() else t)

    # -- printing

    def extra_repr(self) -> str:
        """What stands between the parentheses of a module without children."""
        return ""

    def _get_name(self) -> str:
        return type(self).__name__

    def __repr__(self) -> str:
        extra = self.extra_repr()
        children = [f"({name}): " + _addindent(repr(m), 2) for name, m in self._modules.items()]
        if not children:
            return f"{self._get_name()}({extra})"
        return f"{self._get_name()}(\n  " + "\n  ".join(([extra] if extra else []) + children) + "\n)"

    def __getstate__(self) -> dict:
        return dict(self.__dict__)

    def __setstate__(self, state: dict) -> None:
        self.__dict__.update(state)
