"""Containers of modules and of parameters."""

from __future__ import annotations

import operator
import warnings
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from itertools import chain, islice
from typing import TypeVar

from ..._C import Tensor
from ..parameter import Parameter
from .module import Module, _addindent

T = TypeVar("T", bound=Module)  # for annotations

__all__ = ["Container", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]


class Container(Module):
    """A module of submodules given by name; deprecated in favour of Module."""

    def __init__(self, **kwargs):
        super().__init__()
        warnings.warn(
            "nn.Container is deprecated. All of it's functionality is now implemented in nn.Module. Subclass that instead.",
            FutureWarning, stacklevel=2,
        )  # fmt: skip
        for name, module in kwargs.items():
            self.add_module(name, module)


def _position(index: int, size: int) -> int:
    index = operator.index(index)
    if not -size <= index < size:
        raise IndexError(f"index {index} is out of range")
    return index % size


def _require_iterable(name: str, values) -> None:
    if not isinstance(values, Iterable) or isinstance(values, Tensor):
        raise TypeError(f"{name} should be called with an iterable, but got {type(values).__name__}")


def _pairs(name: str, values) -> Iterable:
    """The (key, value) pairs of a mapping or of an iterable of pairs."""
    _require_iterable(name, values)
    if isinstance(values, Mapping) or hasattr(values, "items"):
        return values.items()
    for i, pair in enumerate(values := list(values)):
        if not isinstance(pair, Iterable):
            raise TypeError(f"{name} sequence element #{i} should be Iterable; is {type(pair).__name__}")
        if len(pair) != 2:
            raise ValueError(f"{name} sequence element #{i} has length {len(pair)}; 2 is required")
    return values


class _SequentialContainer(Module):
    """The common base of Sequential and ModuleList: modules by position, named "0", "1", ..."""

    def _name_at(self, index: int) -> str:
        return next(islice(self._modules, _position(index, len(self)), None))

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, self._name_at(index), module)

    def __delitem__(self, index) -> None:
        for name in list(self._modules)[index] if isinstance(index, slice) else [self._name_at(index)]:
            delattr(self, name)
        self._modules = OrderedDict((str(i), m) for i, m in enumerate(self._modules.values()))

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules.values())

    def append(self, module: Module):
        """Adds a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules):
        """Adds modules at the end."""
        _require_iterable(f"{type(self).__name__}.extend", modules)
        for module in list(modules):
            self.append(module)
        return self

    def _insert(self, index: int, module: Module) -> None:
        modules = [*self._modules.values()]
        modules.insert(index, module)
        self._modules = OrderedDict((str(i), m) for i, m in enumerate(modules))

    def pop(self, key):
        """Removes and returns one module, or the modules of a slice."""
        found = self[key]
        del self[key]
        return found


class Sequential(_SequentialContainer):
    """Calls its modules in sequence: the result of each is the input of the next.

    Args:
        args: modules, whose names are their positions, or one OrderedDict of modules by name.

    It has the methods of a list; a slice is a Sequential.

    Raises:
        TypeError: an argument is not a module.

    >>> net = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU())
    >>> net(torch.ones(4, 3)).shape, len(net), net[1]
    (torch.Size([4, 2]), 2, ReLU())
    """

    def __init__(self, *args):
        super().__init__()
        named = args[0].items() if len(args) == 1 and isinstance(args[0], OrderedDict) else enumerate(args)
        for name, module in named:
            self.add_module(str(name), module)

    def forward(self, input):
        for module in self:
            input = module(input)
        return input

    def extend(self, sequential) -> Sequential:
        """Adds modules at the end."""
        return super().extend(sequential)

    def __getitem__(self, index):
        if isinstance(index, slice):
            return type(self)(OrderedDict(list(self._modules.items())[index]))
        return self._modules[self._name_at(index)]

    def _require_sequential(self, other) -> Sequential:
        if not isinstance(other, Sequential):
            raise ValueError(f"add operator supports only objects of Sequential class, but {type(other)} is given.")
        return other

    def __add__(self, other) -> Sequential:
        return Sequential(*self, *self._require_sequential(other))

    def __iadd__(self, other) -> Sequential:
        return self.extend(self._require_sequential(other))

    def _check_factor(self, other) -> None:
        if not isinstance(other, int):
            raise TypeError(f"unsupported operand type(s) for *: {type(self)} and {type(other)}")
        if other <= 0:
            raise ValueError(f"Non-positive multiplication factor {other} for {type(self)}")

    def __mul__(self, other: int) -> Sequential:
        self._check_factor(other)
        return Sequential(*[*self] * other)

    __rmul__ = __mul__

    def __imul__(self, other: int) -> Sequential:
        self._check_factor(other)
        return self.extend([*self] * (other - 1))

    def insert(self, index: int, module: Module) -> Sequential:
        """Inserts a module before the index."""
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        if not -len(self) <= index <= len(self):
            raise IndexError(f"Index out of range: {index}")
        self._insert(index, module)
        return self


class ModuleList(_SequentialContainer):
    """A list of modules, which registers them: parameters() and to() include theirs. It cannot be called.

    Args:
        modules: the first modules, in order; None: no modules.

    Raises:
        TypeError: an element is not a module.

    >>> layers = torch.nn.ModuleList([torch.nn.Linear(2, 2, bias=False) for _ in range(3)])
    >>> layers.append(torch.nn.ReLU())[-1], [name for name, _ in layers.named_parameters()]
    (ReLU(), ['0.weight', '1.weight', '2.weight'])
    """

    def __init__(self, modules=None):
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def __getitem__(self, index):
        if isinstance(index, slice):
            return type(self)(list(self._modules.values())[index])
        return self._modules[self._name_at(index)]

    def __add__(self, other) -> ModuleList:
        return ModuleList(chain(self, other))

    def __iadd__(self, other) -> ModuleList:
        return self.extend(other)

    def insert(self, index: int, module: Module) -> None:
        """Inserts a module before the index."""
        self._insert(index, module)

    def __repr__(self) -> str:
        # Adjacent modules with the same repr are printed as one entry with their count.
        runs: list[tuple[int, int, str]] = []
        for i, module in enumerate(self):
            text = repr(module)
            runs.append((runs.pop()[0], i, text) if runs and runs[-1][2] == text else (i, i, text))
        if not runs:
            return f"{self._get_name()}()"
        lines = [f"({a}): {text}" if a == b else f"({a}-{b}): {b - a + 1} x {text}" for a, b, text in runs]
        return f"{self._get_name()}(\n  " + "\n  ".join(_addindent(line, 2) for line in lines) + "\n)"


class ModuleDict(Module):
    """A dict of modules by name, which registers them, in the order of insertion. It cannot be called.

    Args:
        modules: a mapping, or pairs of names and modules; None: no modules.

    Raises:
        TypeError: a key is not a str, or a value is not a module.
        KeyError: a name contains a dot, is empty or is an attribute of the ModuleDict.

    >>> choices = torch.nn.ModuleDict({"relu": torch.nn.ReLU(), "tanh": torch.nn.Tanh()})
    >>> choices["relu"](torch.tensor([-1.0, 2.0])).tolist(), list(choices)
    ([0.0, 2.0], ['relu', 'tanh'])
    """

    def __init__(self, modules=None):
        super().__init__()
        if modules is not None:
            self.update(modules)

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

    def clear(self) -> None:
        """Removes all modules."""
        self._modules.clear()

    def keys(self):
        """The names."""
        return self._modules.keys()

    def values(self):
        """The modules."""
        return self._modules.values()

    def items(self):
        """The (name, module) pairs."""
        return self._modules.items()

    def update(self, modules) -> None:
        """Adds the modules of a dict or of (name, module) pairs."""
        for key, module in _pairs("ModuleDict.update", modules):
            self[key] = module

    def pop(self, key: str) -> Module:
        """Removes and returns a module."""
        return self._modules.pop(key)


def _as_parameter(value):
    return Parameter(value) if isinstance(value, Tensor) and not isinstance(value, Parameter) else value


def _parameters_repr(items, kind_of) -> str:
    """Returns a text with one line per value of a list or dict of parameters. `kind_of` returns a tensor's type as text."""
    lines = []
    for key, value in items:
        if isinstance(value, Tensor):
            kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
            size, device = "x".join(map(str, value.shape)), f" ({value.device})" if value.is_cuda else ""
            lines.append(f"  ({key}): {kind} containing: [{kind_of(value)} of size {size}{device}]")
        else:
            lines.append(f"  ({key}): Object of type: {type(value).__name__}")
    return "\n".join(lines)


class ParameterList(Module):
    """A list that registers its parameters; tensors become parameters, other values are stored unchanged."""

    def __init__(self, values=None):
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def __getitem__(self, index):
        if isinstance(index, slice):
            return type(self)([self[i] for i in range(len(self))[index]])
        return getattr(self, str(_position(index, len(self))))

    def __setitem__(self, index: int, value) -> None:
        setattr(self, str(_position(index, len(self))), _as_parameter(value))

    def __len__(self) -> int:
        return self._size

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    def __iadd__(self, values) -> ParameterList:
        return self.extend(values)

    def append(self, value) -> ParameterList:
        """Adds a value at the end."""
        self._size += 1
        self[self._size - 1] = value
        return self

    def extend(self, values) -> ParameterList:
        """Adds values at the end."""
        _require_iterable("ParameterList.extend", values)
        for value in list(values):
            self.append(value)
        return self

    def extra_repr(self) -> str:
        return _parameters_repr(enumerate(self), lambda value: value.dtype)

    def __call__(self, *args, **kwargs):
        raise RuntimeError("ParameterList should not be called.")


class ParameterDict(Module):
    """A dict that registers its parameters; tensors become parameters, other values are stored unchanged."""

    def __init__(self, parameters=None):
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def __getitem__(self, key: str):
        self._check_key(key)
        return getattr(self, key)

    def __setitem__(self, key: str, value) -> None:
        self._check_key(key)
        setattr(self, key, _as_parameter(value))
        self._keys[key] = None

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, key)

    def _check_key(self, key) -> None:
        if not isinstance(key, str):
            raise TypeError(f"ParameterDict expected a key of type str, got {key!r} of type {type(key).__name__}")

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self):
        return iter(self._keys)

    def __reversed__(self):
        return reversed(self._keys)

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def copy(self) -> ParameterDict:
        """A shallow copy with the same parameters."""
        return ParameterDict(OrderedDict(self.items()))

    def setdefault(self, key: str, default=None):
        """Returns the value of a name; sets it to `default` if missing."""
        if key not in self:
            self[key] = default
        return self[key]

    def clear(self) -> None:
        """Removes all values."""
        for key in list(self._keys):
            del self[key]

    def pop(self, key: str):
        """Removes and returns a value."""
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple:
        """Removes and returns the last (name, value) pair."""
        if not self._keys:
            raise KeyError("popitem(): the ParameterDict is empty")
        key = next(reversed(self._keys))
        return key, self.pop(key)

    def get(self, key: str, default=None):
        """The value of a name, or `default`."""
        return self[key] if key in self else default

    def fromkeys(self, keys, default=None) -> ParameterDict:
        """A new ParameterDict with the given names, all with the same value."""
        return ParameterDict((key, default) for key in keys)

    def keys(self):
        """The names."""
        return self._keys.keys()

    def values(self):
        """The values."""
        return (self[key] for key in self._keys)

    def items(self):
        """The (name, value) pairs."""
        return ((key, self[key]) for key in self._keys)

    def update(self, parameters) -> None:
        """Adds the values of a dict or of (name, value) pairs. Sorts a dict that is not an OrderedDict by name."""
        pairs = _pairs("ParameterDict.update", parameters)
        plain = isinstance(parameters, Mapping) and not isinstance(parameters, OrderedDict)
        for key, value in sorted(pairs) if plain else pairs:
            self[key] = value

    def extra_repr(self) -> str:
        return _parameters_repr(self.items(), lambda value: value.type())

    def __call__(self, *args, **kwargs):
        raise RuntimeError("ParameterDict should not be called.")

    def __or__(self, other: ParameterDict) -> ParameterDict:
        result = self.copy()
        result.update(other)
        return result

    def __ror__(self, other: ParameterDict) -> ParameterDict:
        result = other.copy()
        result.update(self)
        return result

    def __ior__(self, other: ParameterDict) -> ParameterDict:
        self.update(other)
        return self
