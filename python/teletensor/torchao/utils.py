"""torchao.utils: the base class of weights that are stored quantized."""

from __future__ import annotations

import re
from typing import Any, Callable

from .. import _C
from .._C import Tensor
from ..nn import functional as F

__all__ = ["TorchAOBaseTensor"]


def _arguments(kind: type) -> tuple[list[str], list[str]]:
    """The names of a class's tensors and of its other attributes."""
    tensors = [*kind.tensor_data_names, *kind.optional_tensor_data_names]
    return tensors, [*kind.tensor_attribute_names, *kind.optional_tensor_attribute_names]


class TorchAOBaseTensor(Tensor):
    """A tensor without values of its own, which holds other tensors: the base class of quantized weights.

    A subclass names its tensors (``tensor_data_names``, ``optional_tensor_data_names``) and its other attributes
    (``tensor_attribute_names``, ``optional_tensor_attribute_names``), which its constructor takes by these names, defines
    ``dequantize()``, and may implement functions with ``implements_torch_function``. Functions that it does not implement
    compute with the dequantized values and return ordinary tensors; functions that would write into the tensor, or return a
    view of it into which a program could write, raise NotImplementedError.
    """

    tensor_data_names: list[str] = []
    tensor_attribute_names: list[str] = []
    optional_tensor_data_names: list[str] = []
    optional_tensor_attribute_names: list[str] = []
    _saved_with_state = True  # torch.save writes its attributes
    _functions: dict[Any, Callable] = {}
    _operators: dict[Any, Callable] = {}

    def __new__(cls, *args: Any, **kwargs: Any) -> TorchAOBaseTensor:
        tensors, others = cls.tensor_data_names, cls.tensor_attribute_names
        order = [*tensors, *others, *cls.optional_tensor_data_names, *cls.optional_tensor_attribute_names]
        given = {**dict(zip(order, args, strict=False)), **kwargs}
        shape, dtype = cls._outer(given)
        return Tensor._make_wrapper_subclass(cls, tuple(shape), dtype=dtype, device=given[tensors[0]].device)

    @classmethod
    def _outer(cls, given: dict[str, Any]) -> tuple[Any, Any]:
        """The shape and dtype of a weight with these attributes: those of its first tensor and its attribute ``dtype``."""
        return given[cls.tensor_data_names[0]].shape, given["dtype"]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._functions, cls._operators = dict(cls._functions), dict(cls._operators)

    @classmethod
    def implements(cls, operators: Any) -> Callable:
        """A decorator for a function (func, types, args, kwargs) that implements operators of ``torch.ops``."""
        return cls._register(cls._operators, operators)

    @classmethod
    def implements_torch_function(cls, functions: Any) -> Callable:
        """A decorator for a function (func, types, args, kwargs) that implements functions, such as F.linear."""
        return cls._register(cls._functions, functions)

    @classmethod
    def _register(cls, table: dict, keys: Any) -> Callable:
        def register(function: Callable) -> Callable:
            for key in keys if isinstance(keys, (list, tuple)) else (keys,):
                table[key] = function
            return function

        return register

    def dequantize(self, output_dtype: Any = None) -> Tensor:
        """The values as an ordinary tensor."""
        raise NotImplementedError(f"{type(self).__name__} must define dequantize()")

    def _state(self) -> dict[str, Any]:
        tensors, others = _arguments(type(self))
        return {name: getattr(self, name) for name in (*tensors, *others)}

    def _stored(self) -> dict[str, Tensor]:
        """The tensors as they are stored, which may be other ones than those that the constructor takes."""
        return {name: value for name, value in vars(self).items() if isinstance(value, Tensor)}

    def _apply_fn_to_data(self, fn: Callable[[Tensor], Tensor]) -> TorchAOBaseTensor:
        """The same weight with each of its tensors replaced by ``fn`` of it."""
        moved = {name: fn(value) for name, value in self._stored().items()}
        device = next(iter(moved.values())).device
        made = Tensor._make_wrapper_subclass(type(self), tuple(self.shape), dtype=self.dtype, device=device)
        made.__dict__.update({**{k: v for k, v in vars(self).items() if k != "_parameter_type"}, **moved})
        return made

    def _file_state(self) -> dict[str, Any]:
        """The attributes that files contain, as torchao writes them."""
        return {name: value for name, value in self._state().items() if name not in ("dtype", "shape")}

    def __tensor_flatten__(self) -> tuple[list[str], dict[str, Any]]:
        tensors, others = _arguments(type(self))
        return [n for n in tensors if getattr(self, n) is not None], {n: getattr(self, n) for n in others}

    @classmethod
    def __tensor_unflatten__(cls, tensors: dict, attributes: Any, _outer_size: Any, _outer_stride: Any) -> TorchAOBaseTensor:
        return cls(**{name: tensors.get(name) for name in _arguments(cls)[0]}, **attributes)

    def __deepcopy__(self, memo: dict) -> TorchAOBaseTensor:
        if id(self) not in memo:
            copied = self._apply_fn_to_data(lambda t: t.clone())
            if "_parameter_type" in vars(self):
                copied._parameter_type = self._parameter_type
            memo[id(self)] = copied
        return memo[id(self)]

    def __setstate__(self, state: Any) -> None:
        """Sets the attributes that a file contains, which the constructor checks."""
        tensors, others = _arguments(type(self))
        if not isinstance(state, dict) or not set(state) <= {*tensors, *others}:
            raise ValueError(f"expected the attributes of a {type(self).__name__}, got {state!r:.200}")
        for name in tensors:
            if state.get(name) is not None and not isinstance(state[name], Tensor):
                raise ValueError(f"expected a tensor {name} of a {type(self).__name__}, got {type(state[name]).__name__}")
        own = {name: getattr(self, name) for name in ("dtype", "shape") if name in others and name not in state}
        made = type(self)(**state, **own)
        if made.shape != self.shape or made.dtype != self.dtype:
            raise ValueError(f"expected data of shape {tuple(self.shape)} and {self.dtype}, got {tuple(made.shape)} and {made.dtype}")
        self.__dict__.update(vars(made))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value}' for name, value in self._state().items())}, shape={self.shape})"

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        own = _first((*args, *kwargs.values()), cls)
        found = type(own)._functions.get(func) if own is not None else None
        if found is not None:
            return found(func, types, args, kwargs)
        if not all(issubclass(cls, kind) for kind in types):
            return NotImplemented
        if func is Tensor.__setitem__ and isinstance(args[0], TorchAOBaseTensor):
            raise _no_write("__setitem__", args[0])
        with _C.DisableTorchFunctionSubclass():
            return func(*args, **kwargs)

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        own = _first((*args, *kwargs.values()), TorchAOBaseTensor)
        if own is not None and (found := type(own)._operators.get(func)) is not None:
            return found(func, types, args, kwargs)
        name = func._schema.name.partition("::")[2].split(".")[0]
        if name == "linear" and own is not None and (found := type(own)._functions.get(F.linear)) is not None:
            return found(F.linear, types, args, kwargs)  # in exported graphs
        if name in _COPIES:
            return _COPIES[name](*args, **kwargs)
        if name.endswith("_") or _first((kwargs.get("out"),), TorchAOBaseTensor) is not None:
            raise _no_write(name, own)
        if _VIEW.search(str(func._schema)) and args and isinstance(args[0], TorchAOBaseTensor):
            raise NotImplementedError(f"[{name}] a {cls.__name__} has no views; dequantize() returns an ordinary tensor")
        return func(*_dequantized(args), **_dequantized(kwargs))


_VIEW = re.compile(r"\(Tensor\(a( -> \*)?\) ")  # the schema of an operator whose result shares the first argument's memory


def _no_write(name: str, tensor: Any) -> NotImplementedError:
    return NotImplementedError(f"[{name}] cannot write into a {type(tensor).__name__}; dequantize() returns an ordinary tensor")


def bound(names: str, args: tuple, kwargs: dict) -> dict[str, Any]:
    """The arguments of a call by name; the names that the call leaves out are None.

    Args:
        names: of the function's parameters in their order, such as "input weight bias".
    """
    order = names.split()
    return {**dict.fromkeys(order), **dict(zip(order, args, strict=False)), **kwargs}


def _first(values: Any, cls: type) -> Any:
    """The first object of a class among arguments and lists of arguments."""
    for value in values:
        if isinstance(value, cls):
            return value
        if isinstance(value, (list, tuple)) and (found := _first(value, cls)) is not None:
            return found
    return None


def _dequantized(value: Any) -> Any:
    if isinstance(value, TorchAOBaseTensor):
        return value.dequantize()
    if isinstance(value, (list, tuple)):
        return type(value)(map(_dequantized, value))
    return {name: _dequantized(item) for name, item in value.items()} if isinstance(value, dict) else value


def _to_copy(self: TorchAOBaseTensor, *, dtype: Any = None, device: Any = None, **_: Any) -> TorchAOBaseTensor:
    """The weight on another device, or dequantized to another dtype."""
    moved = self if device is None else self._apply_fn_to_data(lambda t: t.to(device))
    return moved if dtype is None or dtype == self.dtype else moved._with_dtype(dtype)


def _with_dtype(self: TorchAOBaseTensor, dtype: Any) -> TorchAOBaseTensor:
    """The same stored values with another dtype of the dequantized ones."""
    if "dtype" in (*self.tensor_attribute_names, *self.optional_tensor_attribute_names):
        return type(self)(**{**self._state(), "dtype": dtype})
    raise NotImplementedError(f"[to] the dtype of a {type(self).__name__} is that of its scales")


def _copy(self: Tensor, source: Tensor, non_blocking: bool = False) -> Tensor:
    """Copies the tensors of another weight that is quantized in the same way.

    Raises:
        ValueError: the other weight has another class, shape or dtype, or other attributes; nothing is copied.
    """
    if not isinstance(self, TorchAOBaseTensor) and isinstance(source, TorchAOBaseTensor):
        return self.copy_(source.dequantize(), non_blocking)
    if type(self) is not type(source) or self.shape != source.shape:
        raise ValueError(
            f"[copy_] expected a {type(self).__name__} of shape {tuple(self.shape)}, got a {type(source).__name__} of shape "
            f"{tuple(source.shape)}"
        )
    mine, theirs = self._stored(), source._stored()
    if mine.keys() != theirs.keys():
        raise ValueError(f"[copy_] expected a weight with the tensors {sorted(mine)}, got {sorted(theirs)}")
    for name in _arguments(type(self))[1]:
        if (own := getattr(self, name)) != (other := getattr(source, name)):
            raise ValueError(f"[copy_] expected a {type(self).__name__} with {name}={own}, got {other}")
    for name, value in mine.items():
        if value.shape != theirs[name].shape or value.dtype != theirs[name].dtype:
            got = theirs[name]
            raise ValueError(f"[copy_] expected {name} of shape {tuple(value.shape)}, {value.dtype}, got {tuple(got.shape)}, {got.dtype}")
    for name, value in mine.items():
        value.copy_(theirs[name], non_blocking)
    vars(self).pop("_symmetric", None)  # what was known of the values
    return self


TorchAOBaseTensor._with_dtype = _with_dtype
_COPIES: dict[str, Callable] = {
    "detach": lambda t: t._apply_fn_to_data(lambda x: x.detach()),
    "alias": lambda t: t._apply_fn_to_data(lambda x: x),
    "clone": lambda t, memory_format=None: t._apply_fn_to_data(lambda x: x.clone()),  # noqa: ARG005
    "contiguous": lambda t, memory_format=None: t._apply_fn_to_data(lambda x: x.contiguous()),  # noqa: ARG005
    "_to_copy": _to_copy,
    "copy_": _copy,
}
