"""Modules of modules, and lists and dicts of parameters."""

from __future__ import annotations

import operator
from collections import OrderedDict
from itertools import islice

from ..parameter import Parameter
from .module import Module

__all__ = ["ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]


def _at(values, index: int):
    size = len(values)
    index = operator.index(index)
    if not -size <= index < size:
        raise IndexError(f"index {index} is out of range")
    return next(islice(values, index % size, None))


class Sequential(Module):
    """Calls its modules one after the other."""

    def __init__(self, *args):
        super().__init__()
        named = args[0].items() if len(args) == 1 and isinstance(args[0], OrderedDict) else enumerate(args)
        for name, module in named:
            self.add_module(str(name), module)

    def forward(self, input):
        for module in self._modules.values():
            input = module(input)
        return input

    def __getitem__(self, index):
        if isinstance(index, slice):
            return type(self)(OrderedDict(list(self._modules.items())[index]))
        return _at(self._modules.values(), index)

    def __setitem__(self, index: int, module: Module) -> None:
        self._modules[_at(self._modules, index)] = module

    def __delitem__(self, index) -> None:
        for key in list(self._modules)[index] if isinstance(index, slice) else [_at(self._modules, index)]:
            del self._modules[key]
        self._modules = OrderedDict((str(i), m) for i, m in enumerate(self._modules.values()))

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules.values())

    def append(self, module: Module) -> Sequential:
        """Adds a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules) -> Sequential:
        """Adds modules at the end."""
        for module in modules:
            self.append(module)
        return self


class ModuleList(Module):
    """A list whose modules are registered."""

    def __init__(self, modules=None):
        super().__init__()
        self.extend(modules or [])

    def __getitem__(self, index):
        if isinstance(index, slice):
            return type(self)(list(self._modules.values())[index])
        return _at(self._modules.values(), index)

    def __setitem__(self, index: int, module: Module) -> None:
        self._modules[_at(self._modules, index)] = module

    def __delitem__(self, index) -> None:
        modules = list(self._modules.values())
        del modules[index]
        self._modules.clear()
        self.extend(modules)

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules.values())

    def append(self, module: Module) -> ModuleList:
        """Adds a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules) -> ModuleList:
        """Adds modules at the end."""
        for module in modules:
            self.append(module)
        return self

    def insert(self, index: int, module: Module) -> None:
        """Adds a module before that place."""
        modules = list(self._modules.values())
        modules.insert(index, module)
        self._modules.clear()
        self.extend(modules)


class ModuleDict(Module):
    """A dict whose modules are registered."""

    def __init__(self, modules=None):
        super().__init__()
        self.update(modules or {})

    def __getitem__(self, key: str) -> Module:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules)

    def __contains__(self, key: str) -> bool:
        return key in self._modules

    def keys(self):
        """The names."""
        return self._modules.keys()

    def values(self):
        """The modules."""
        return self._modules.values()

    def items(self):
        """(name, module)."""
        return self._modules.items()

    def update(self, modules) -> None:
        """Adds those of a dict or of pairs."""
        for key, module in modules.items() if hasattr(modules, "items") else modules:
            self[key] = module

    def pop(self, key: str) -> Module:
        """Removes and returns one."""
        return self._modules.pop(key)


class ParameterList(Module):
    """A list whose parameters are registered."""

    def __init__(self, values=None):
        super().__init__()
        self.extend(values or [])

    def __getitem__(self, index):
        if isinstance(index, slice):
            return type(self)(list(self._parameters.values())[index])
        return _at(self._parameters.values(), index)

    def __setitem__(self, index: int, value) -> None:
        self._parameters[_at(self._parameters, index)] = value

    def __len__(self) -> int:
        return len(self._parameters)

    def __iter__(self):
        return iter(self._parameters.values())

    def append(self, value) -> ParameterList:
        """Adds a parameter at the end; a tensor becomes one."""
        parameter = value if isinstance(value, Parameter) else Parameter(value)
        self.register_parameter(str(len(self)), parameter)
        return self

    def extend(self, values) -> ParameterList:
        """Adds parameters at the end."""
        for value in values:
            self.append(value)
        return self


class ParameterDict(Module):
    """A dict whose parameters are registered."""

    def __init__(self, parameters=None):
        super().__init__()
        for key, value in (parameters or {}).items():
            self[key] = value

    def __getitem__(self, key: str):
        return self._parameters[key]

    def __setitem__(self, key: str, value) -> None:
        self._parameters[key] = value if isinstance(value, Parameter) else Parameter(value)

    def __len__(self) -> int:
        return len(self._parameters)

    def __iter__(self):
        return iter(self._parameters)

    def __contains__(self, key: str) -> bool:
        return key in self._parameters

    def keys(self):
        """The names."""
        return self._parameters.keys()

    def values(self):
        """The parameters."""
        return self._parameters.values()

    def items(self):
        """(name, parameter)."""
        return self._parameters.items()
