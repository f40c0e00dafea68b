"""Decorators of data pipes: their functional names, determinism, and checks of types."""

from __future__ import annotations

import functools
import inspect
import threading
import types
import typing
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from .datapipe import IterDataPipe, MapDataPipe, element_type


class functional_datapipe:  # noqa: N801 - PyTorch's name
    """Makes a class of pipes a method of all pipes: `@functional_datapipe("map")` allows `pipe.map(f)`."""

    def __init__(self, name: str, enable_df_api_tracing: bool = False) -> None:
        self.name, self.enable_df_api_tracing = name, enable_df_api_tracing

    def __call__(self, cls: Any) -> Any:
        """Registers the class."""
        kind = cls.cls if isinstance(cls, non_deterministic) else getattr(getattr(cls, "__self__", None), "cls", cls)
        if isinstance(kind, type) and issubclass(kind, IterDataPipe):
            IterDataPipe.register_datapipe_as_function(self.name, cls, self.enable_df_api_tracing)
        elif isinstance(kind, type) and issubclass(kind, MapDataPipe):
            MapDataPipe.register_datapipe_as_function(self.name, cls)
        else:
            raise TypeError("`functional_datapipe` can only decorate IterDataPipe")
        return cls


class _Settings(threading.local):
    deterministic = False
    validates = True


_settings = _Settings()


class guaranteed_datapipes_determinism:  # noqa: N801 - PyTorch's name
    """A context in which pipes that are not deterministic cannot be created."""

    def __init__(self) -> None:
        self.prev, _settings.deterministic = _settings.deterministic, True

    def __enter__(self) -> None:
        return None

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        _settings.deterministic = self.prev


class non_deterministic:  # noqa: N801 - PyTorch's name
    """Marks a class of pipes as not deterministic: always, or if a function of the constructor's arguments returns True."""

    cls: type | None = None

    def __init__(self, arg: Any) -> None:
        if isinstance(arg, type):
            if not issubclass(arg, IterDataPipe):
                raise TypeError(f"Only `IterDataPipe` can be decorated with `non_deterministic`, but {arg.__name__} is found")
            self.cls = arg
        elif callable(arg):
            self.deterministic_fn = arg
        else:
            raise TypeError(f"{arg} can not be decorated by non_deterministic")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Creates a pipe; or, with a function, takes the class."""
        if self.cls is not None:
            if _settings.deterministic:
                raise TypeError(
                    f"{self.cls.__name__} is non-deterministic, but you set 'guaranteed_datapipes_determinism'. You can turn off "
                    "determinism for this DataPipe if that is acceptable for your application"
                )
            return self.cls(*args, **kwargs)
        if not (isinstance(args[0], type) and issubclass(args[0], IterDataPipe)):
            raise TypeError(f"Only `IterDataPipe` can be decorated, but {args[0].__name__} is found")
        self.cls = args[0]
        return self.deterministic_wrapper_fn

    def deterministic_wrapper_fn(self, *args: Any, **kwargs: Any) -> Any:
        """Creates a pipe, unless it would not be deterministic in a context that requires it."""
        answer = self.deterministic_fn(*args, **kwargs)
        if not isinstance(answer, bool):
            raise TypeError(
                f"deterministic_fn of `non_deterministic` decorator is required to return a boolean value, but {type(answer)} is found"
            )
        assert self.cls is not None
        if _settings.deterministic and answer:
            raise TypeError(
                f"{self.cls.__name__} is non-deterministic with the inputs, but you set 'guaranteed_datapipes_determinism'. You can turn "
                "off determinism for this DataPipe if that is acceptable for your application"
            )
        return self.cls(*args, **kwargs)


def _origin(hint: Any) -> Any:
    return typing.get_origin(hint) or hint


def _is_pipe(hint: Any) -> bool:
    return isinstance(_origin(hint), type) and issubclass(_origin(hint), IterDataPipe)


def is_instance(value: Any, hint: Any) -> bool:
    """Whether a value has an annotated type: classes, unions, and lists, tuples, sets and dicts of such types."""
    if hint is Any or isinstance(hint, TypeVar):
        return True
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return any(is_instance(value, part) for part in arguments)
    if hint is None:
        return value is None
    if not isinstance(value, origin or hint):
        return False
    if origin is tuple and arguments and arguments[-1] is not Ellipsis:
        return len(value) == len(arguments) and all(map(is_instance, value, arguments))
    if origin is dict and arguments:
        return all(is_instance(k, arguments[0]) and is_instance(v, arguments[1]) for k, v in value.items())
    return all(is_instance(item, arguments[0]) for item in value) if origin in (list, tuple, set, frozenset) and arguments else True


def is_subtype(kind: Any, of: Any) -> bool:
    """Whether an annotated type is another one or a part of it."""
    if of is Any or isinstance(of, TypeVar) or kind == of:
        return True
    if kind is Any or isinstance(kind, TypeVar):
        return False
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        return all(is_subtype(part, of) for part in typing.get_args(kind))
    if typing.get_origin(of) in (typing.Union, types.UnionType):
        return any(is_subtype(kind, part) for part in typing.get_args(of))
    first, second = _origin(kind), _origin(of)
    if not (isinstance(first, type) and isinstance(second, type) and issubclass(first, second)):
        return False
    mine, theirs = typing.get_args(kind), typing.get_args(of)
    return not theirs or (len(mine) == len(theirs) and all(map(is_subtype, mine, theirs)))


def argument_validation(f: Callable) -> Callable:
    """Checks arguments that are annotated as IterDataPipe[T]: they must be pipes of T."""
    signature, hints = inspect.signature(f), typing.get_type_hints(f)

    @functools.wraps(f)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        for name, value in signature.bind(*args, **kwargs).arguments.items():
            hint = hints.get(name)
            if hint is None or not _is_pipe(hint):
                continue
            if not isinstance(value, IterDataPipe):
                raise TypeError(f"Expected argument '{name}' as an IterDataPipe, but found {type(value)}")
            wanted, found = next(iter(typing.get_args(hint)), Any), element_type(type(value))
            if not is_subtype(found, wanted):
                raise TypeError(f"Expected type of argument '{name}' as a subtype of hint {wanted}, but found {found}")
        return f(*args, **kwargs)

    return wrapper


class runtime_validation_disabled:  # noqa: N801 - PyTorch's name
    """A context in which runtime_validation checks nothing."""

    def __init__(self) -> None:
        self.prev, _settings.validates = _settings.validates, False

    def __enter__(self) -> None:
        return None

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        _settings.validates = self.prev


def runtime_validation(f: Callable) -> Callable:
    """Checks the items that an `__iter__` yields: each must be a T, for a class that derives from IterDataPipe[T]."""
    if f.__name__ != "__iter__":
        raise TypeError(f"Can not decorate function {f.__name__} with 'runtime_validation'")

    @functools.wraps(f)
    def wrapper(self: Any) -> Iterator:
        expected = element_type(type(self))
        for item in f(self):
            if _settings.validates and not is_instance(item, expected):
                raise RuntimeError(f"Expected an instance as subtype of {expected}, but found {item}({type(item)})")
            yield item

    return wrapper
