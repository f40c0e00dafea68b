"""Module: named parameters, buffers and submodules, and operations on all of them."""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any, Callable, TypeVar

from ... import __future__
from ..._C import Tensor
from ..._C import device as _device
from ..._C import dtype as _dtype
from ..._grad_mode import no_grad
from ..._tensor_types import PYTHON_DTYPES
from ...utils._swap import swap_tensors
from ..parameter import Buffer, Parameter
from . import _calls
from ._calls import *  # noqa: F403 - PyTorch defines the registration of hooks here
from ._calls import ModuleCalls, registered
from ._hooks import RemovableHandle, _IncompatibleKeys  # noqa: F401 - PyTorch defines them here
from ._state import _EXTRA_STATE as _EXTRA_STATE_KEY_SUFFIX  # noqa: F401 - under PyTorch's name
from ._state import ModuleState

T = TypeVar("T", bound="Module")  # this and _grad_t: for annotations
_grad_t = tuple[Tensor, ...] | Tensor

__all__ = [  # noqa: F405
    "Module", "register_module_backward_hook", "register_module_buffer_registration_hook",
    "register_module_forward_hook", "register_module_forward_pre_hook", "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook", "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]  # fmt: skip


def _addindent(text: str, spaces: int) -> str:
    """Indents the lines after the first that are not blank."""
    first, *rest = text.split("\n")
    return "\n".join([first, *(" " * spaces + line if line.strip() else "" for line in rest)])


_HOOKS = (
    "_forward_hooks", "_forward_hooks_with_kwargs", "_forward_hooks_always_called", "_forward_pre_hooks",
    "_forward_pre_hooks_with_kwargs", "_state_dict_hooks", "_state_dict_pre_hooks", "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks", "_backward_hooks", "_backward_pre_hooks",
)  # fmt: skip


class Module(ModuleCalls, ModuleState):
    """The base of all networks. A subclass assigns parameters, buffers and modules to attributes and defines forward().

    Attributes of class Parameter or Module are registered, so that parameters(), state_dict(), to(), train() and the like
    include them. A call runs the hooks and forward().

    Raises:
        AttributeError: an attribute is assigned before ``super().__init__()``.

    >>> class Scaled(torch.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.factor = torch.nn.Parameter(torch.tensor(2.0))
    ...     def forward(self, x):
    ...         return x * self.factor
    >>> Scaled()(torch.ones(2)).tolist(), [name for name, _ in Scaled().named_parameters()]
    ([2.0, 2.0], ['factor'])
    """

    training: bool
    dump_patches: bool = False
    T_destination = TypeVar("T_destination", bound=dict)
    call_super_init: bool = False  # whether __init__ calls the next base class's __init__

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if (args or kwargs) and not self.call_super_init:
            raise TypeError(f"{type(self).__name__}.__init__() takes no arguments, got {args} and {kwargs}")
        set_plain = super().__setattr__
        set_plain("training", True)
        for registry in ("_parameters", "_buffers", "_modules", *_HOOKS):
            set_plain(registry, OrderedDict())
        set_plain("_non_persistent_buffers_set", set())
        set_plain("_is_full_backward_hook", None)
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Computes the module's result. Every subclass overrides this method."""
        raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

    # -- registries

    def __setattr__(self, name: str, value: Any) -> None:
        # Assigning to a registered name keeps its position.
        parameters = self.__dict__.get("_parameters")
        if parameters is None:
            for kind, what in ((Parameter, "parameters"), (Module, "module"), (Buffer, "buffer")):
                if isinstance(value, kind):
                    raise AttributeError(f"cannot assign {what} before Module.__init__() call")
            super().__setattr__(name, value)
        elif isinstance(value, Parameter):
            self._unregister(name, parameters)
            self.register_parameter(name, value)
        elif name in parameters:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{_typename(value)}' as parameter '{name}' (torch.nn.Parameter or None expected)"
                )
            self.register_parameter(name, None)
        elif isinstance(value, Module):
            self._unregister(name, self._modules)
            self._modules[name] = registered(_calls._global_module_registration_hooks, self, name, value)
        elif name in self._modules:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{_typename(value)}' as child module '{name}' (torch.nn.Module or None expected)"
                )
            self._modules[name] = registered(_calls._global_module_registration_hooks, self, name, None)
        elif isinstance(value, Buffer) or name in self._buffers:
            self._set_buffer(name, value)
        else:
            super().__setattr__(name, value)

    def _set_buffer(self, name: str, value: Any) -> None:
        if value is not None and not isinstance(value, Tensor):
            raise TypeError(
                f"cannot assign '{_typename(value)}' as buffer '{name}' (torch.nn.Buffer, torch.Tensor or None expected)"
            )
        persistent = value.persistent if isinstance(value, Buffer) else name not in self._non_persistent_buffers_set
        if isinstance(value, Buffer):
            self._unregister(name, self._buffers)
        self.register_buffer(name, value, persistent)

    def __getattr__(self, name: str) -> Any:
        for registry in ("_parameters", "_buffers", "_modules"):
            values = self.__dict__.get(registry)
            if values is not None and name in values:
                return values[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __delattr__(self, name: str) -> None:
        for registry in (self._parameters, self._buffers, self._modules):
            if name in registry:
                del registry[name]
                self._non_persistent_buffers_set.discard(name)
                return
        super().__delattr__(name)

    def __dir__(self) -> list[str]:
        names = {*super().__dir__(), *self._parameters, *self._buffers, *self._modules}
        return sorted(name for name in names if not name[0].isdigit())

    def _unregister(self, name: str, kept: dict) -> None:
        """Removes the name from all registries except `kept`, where the name will be set."""
        for registry in (self.__dict__, self._parameters, self._buffers, self._modules):
            if registry is not kept:
                registry.pop(name, None)
        self._non_persistent_buffers_set.discard(name)

    def _check_name(self, kind: str, name: str, registry: str) -> None:
        if registry not in self.__dict__:
            raise AttributeError(f"cannot assign {kind} before Module.__init__() call")
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {_typename(name)}")
        if "." in name:
            raise KeyError(f'{kind} name can\'t contain ".", got: {name}')
        if name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')
        if name not in self.__dict__[registry] and hasattr(self, name):
            raise KeyError(f"attribute '{name}' already exists")

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Adds a parameter."""
        self._check_name("parameter", name, "_parameters")
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(
                f"cannot assign '{_typename(param)}' object to parameter '{name}' (torch.nn.Parameter or None required)"
            )
        if param is not None and not param.is_leaf:
            raise ValueError(
                f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created explicitly. To "
                f"express '{name}' as a function of another Tensor, compute the value in the forward() method."
            )
        self._parameters[name] = registered(_calls._global_parameter_registration_hooks, self, name, param)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Adds a tensor that is part of the state but not trained; state_dict includes persistent buffers."""
        self._check_name("buffer", name, "_buffers")
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(f"cannot assign '{_typename(tensor)}' object to buffer '{name}' (torch Tensor or None required)")
        self._buffers[name] = registered(_calls._global_buffer_registration_hooks, self, name, tensor)
        (self._non_persistent_buffers_set.discard if persistent else self._non_persistent_buffers_set.add)(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Adds a submodule."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{_typename(module)} is not a Module subclass")
        self._check_name("module", name, "_modules")
        self._modules[name] = registered(_calls._global_module_registration_hooks, self, name, module)

    def register_module(self, name: str, module: Module | None) -> None:
        """Alias of add_module."""
        self.add_module(name, module)

    # -- traversal

    def named_modules(self, memo: set | None = None, prefix: str = "", remove_duplicate: bool = True):
        """The (name, module) pairs of this module and all its descendants, each once."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, f"{prefix}{'.' if prefix else ''}{name}", remove_duplicate)

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """This module and all its descendants."""
        return (module for _, module in self.named_modules(remove_duplicate=remove_duplicate))

    def named_children(self):
        """The (name, module) pairs of the direct submodules."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self) -> Iterator[Module]:
        """The direct submodules."""
        return (module for _, module in self.named_children())

    def _named_members(self, get_members_fn, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True):
        """The members that a function lists for each module, under their paths; None is left out."""
        seen = set()
        paths = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]
        for path, module in paths:
            for name, value in get_members_fn(module):
                if value is None or (remove_duplicate and id(value) in seen):
                    continue
                seen.add(id(value))
                yield f"{path}{'.' if path else ''}{name}", value

    def named_parameters(self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True):
        """The (name, parameter) pairs, each once."""
        return self._named_members(lambda module: module._parameters.items(), prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """The parameters, each once."""
        return (p for _, p in self.named_parameters(recurse=recurse))

    def named_buffers(self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True):
        """The (name, buffer) pairs, each once."""
        return self._named_members(lambda module: module._buffers.items(), prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """The buffers, each once."""
        return (b for _, b in self.named_buffers(recurse=recurse))

    def get_submodule(self, target: str) -> Module:
        """The module at a dotted path."""
        module = self
        for part in target.split(".") if target else ():
            if not hasattr(module, part):
                raise AttributeError(f"{module._get_name()} has no attribute `{part}`")
            module = getattr(module, part)
            if not isinstance(module, Module):
                raise AttributeError(f"`{part}` is not an nn.Module")
        return module

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Replaces (or, unless strict, adds) the module at a dotted path."""
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, Module):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if strict or hasattr(parent, name):
            parent.get_submodule(name)
        setattr(parent, name, module)

    def _member(self, target: str) -> tuple[Module, str, Any]:
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if not hasattr(module, name):
            raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
        return module, name, getattr(module, name)

    def get_parameter(self, target: str) -> Parameter:
        """The parameter at a dotted path."""
        _, name, value = self._member(target)
        if not isinstance(value, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return value

    def get_buffer(self, target: str) -> Tensor:
        """The buffer at a dotted path."""
        module, name, value = self._member(target)
        if name not in module._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return value

    def apply(self, fn: Callable[[Module], None]) -> Module:
        """Calls fn on every submodule and then on this module, children first."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    # -- modes and types

    def train(self, mode: bool = True) -> Module:
        """Sets training mode for this module and calls train() of its submodules."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Module:
        """Sets evaluation mode."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Module:
        """Sets whether gradients are computed for the parameters."""
        for p in self.parameters():
            p.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clears the parameters' gradients, or sets them to zeros."""
        from ..._gradients import clear

        clear(self.parameters(), set_to_none)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Module:
        """Applies fn to every parameter, gradient and buffer, and calls _apply() of the submodules."""
        if recurse:
            for module in self.children():
                module._apply(fn)
        for name, param in list(self._parameters.items()):
            if param is None:
                continue
            grad = param.grad
            with no_grad():
                applied = fn(param)
                made = self._convert_parameter(name, param, applied)
                if grad is not None:
                    made.grad = fn(grad)
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def _convert_parameter(self, name: str, param: Parameter, applied: Tensor) -> Parameter:
        """Gives a parameter the values that _apply() has computed, as torch.__future__ selects. Returns the parameter."""
        if __future__.get_swap_module_params_on_conversion():
            grad, param.grad = param.grad, None
            try:
                swap_tensors(param, Parameter(applied, requires_grad=param.requires_grad))
            except Exception as e:
                param.grad = grad
                raise RuntimeError(f"_apply(): Couldn't swap {self._get_name()}.{name}") from e
        elif __future__.get_overwrite_module_params_on_conversion() or (
            applied is not param and hasattr(type(applied), "__tensor_flatten__")  # a tensor of tensors has no data to replace
        ):
            self._parameters[name] = param = Parameter(applied, requires_grad=param.requires_grad)
        elif applied is not param:
            param.data = applied
        return param

    def to(self, *args, device=None, dtype=None, non_blocking: bool = False, memory_format=None) -> Module:
        """Moves and casts the parameters and buffers, in place; integer tensors keep their dtype."""
        device, dtype = _destination(args, device, dtype)
        if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
            raise TypeError(f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype}")

        def moved(t: Tensor) -> Tensor:
            result = t.to(device=device, dtype=dtype if t.is_floating_point() or t.is_complex() else None)
            return result if memory_format is None or t.dim() not in (4, 5) else result.to(memory_format=memory_format)

        return self._apply(moved)

    def to_empty(self, *, device, recurse: bool = True) -> Module:
        """Moves the module to a device without copying values."""
        from ... import empty_like

        return self._apply(lambda t: empty_like(t, device=device), recurse=recurse)

    def type(self, dst_type) -> Module:
        """Casts all parameters and buffers."""
        return self._apply(lambda t: t.type(dst_type))

    def cuda(self, device=None) -> Module:
        """Moves the module to a GPU."""
        return self.to("cuda" if device is None else _device(device))

    def share_memory(self) -> Module:
        """Calls share_memory_() of every parameter and buffer. Tensors are in the engine, which all processes can use."""
        return self._apply(lambda t: t.share_memory_())

    def compile(self, *args, **kwargs) -> None:
        """Makes calls of this module run compiled code; the arguments are those of torch.compile."""
        package = sys.modules[__name__.partition(".")[0]]  # imports the compiler at its first use
        self._compiled_call_impl = package.compile(self._call_impl, *args, **kwargs)

    def xpu(self, device=None) -> Module:
        """Raises NotImplementedError, as do ipu() and mtia(): engines have CPUs and CUDA GPUs only."""
        raise NotImplementedError("engines have CPUs and CUDA GPUs; there are no devices of type xpu, ipu or mtia")

    ipu = mtia = xpu

    def cpu(self) -> Module:
        """Moves the module to the CPU."""
        return self.to("cpu")

    def float(self) -> Module:
        """Casts floating-point parameters and buffers to float32."""
        return self._apply(lambda t: t.float() if t.is_floating_point() else t)

    def double(self) -> Module:
        """Casts floating-point parameters and buffers to float64."""
        return self._apply(lambda t: t.double() if t.is_floating_point() else t)

    def half(self) -> Module:
        """Casts floating-point parameters and buffers to float16."""
        return self._apply(lambda t: t.half() if t.is_floating_point() else t)

    def bfloat16(self) -> Module:
        """Casts floating-point parameters and buffers to bfloat16."""
        return self._apply(lambda t: t.bfloat16() if t.is_floating_point() else t)

    # -- printing

    def extra_repr(self) -> str:
        """The text between the parentheses of the module's repr."""
        return ""

    def _get_name(self) -> str:
        return type(self).__name__

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = [f"({name}): " + _addindent(repr(m), 2) for name, m in self._modules.items()]
        if not children and len(lines) <= 1:
            return f"{self._get_name()}({extra})"
        return f"{self._get_name()}(\n  " + "\n  ".join(lines + children) + "\n)"

    def __getstate__(self) -> dict:
        state = dict(self.__dict__)
        state.pop("_compiled_call_impl", None)
        return state

    def _replicate_for_data_parallel(self) -> Module:
        """A shallow copy without parameters. DataParallel sets them to copies on another device."""
        replica = type(self).__new__(type(self))
        replica.__dict__ = {**self.__dict__, "_parameters": {}, "_buffers": self._buffers.copy(), "_modules": self._modules.copy()}
        replica.__dict__["_is_replica"] = True
        return replica

    def __setstate__(self, state: dict) -> None:
        self.__dict__.update(state)
        for registry in _HOOKS:
            self.__dict__.setdefault(registry, OrderedDict())
        self.__dict__.setdefault("_non_persistent_buffers_set", set())
        self.__dict__.setdefault("_is_full_backward_hook", None)


def _destination(args: tuple, device, dtype) -> tuple:
    """The device and dtype that positional arguments of to() name: device, dtype and non_blocking; or tensor, non_blocking."""
    flags = len(args) - 1 if args and isinstance(args[-1], bool) else len(args)
    for i, arg in enumerate(args[:flags]):
        if isinstance(arg, Tensor) and i == 0 and flags == 1:
            device, dtype = arg.device, arg.dtype
        elif isinstance(arg, _dtype):
            dtype = arg
        elif i == 0 and isinstance(arg, (str, _device, int)) and not isinstance(arg, bool):
            device = arg
        elif isinstance(arg, type) and arg in PYTHON_DTYPES:
            dtype = arg
        elif arg is not None:
            raise TypeError(f"to() received an invalid combination of arguments - got {tuple(type(a).__name__ for a in args)}")
    return device, PYTHON_DTYPES.get(dtype, dtype)


def _typename(value: Any) -> str:
    """The qualified name of the value's type, as in PyTorch's messages."""
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
