"""IterDataPipe and MapDataPipe: datasets with methods that other pipes have registered, such as `pipe.map(f).batch(4)`."""

from __future__ import annotations

import functools
import importlib
import typing
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from ..dataset import Dataset, IterableDataset

__all__ = ["DFIterDataPipe", "DataChunk", "IterDataPipe", "MapDataPipe"]

T = TypeVar("T")


class DataChunk(list):
    """A batch: a list, whose raw_iterator() yields the items as they were given."""

    def __init__(self, items: Iterable) -> None:
        items = list(items)
        super().__init__(items)
        self.items = items

    def as_str(self, indent: str = "") -> str:
        """The items' text, after `indent`."""
        return indent + "[" + ", ".join(str(i) for i in self) + "]"

    def raw_iterator(self) -> Iterator:
        """Yields the items."""
        yield from self.items


class _OnlyIterator:
    """The iterator of an IterDataPipe that was created last; an earlier one raises RuntimeError."""

    def __init__(self, pipe: IterDataPipe, source: Iterator) -> None:
        self._pipe, self._source, self._number = pipe, source, pipe._valid_iterator_id

    def __iter__(self) -> _OnlyIterator:
        return self

    def __next__(self) -> Any:
        if self._number != self._pipe._valid_iterator_id:
            raise RuntimeError(
                "This iterator has been invalidated because another iterator has been created from the same IterDataPipe: "
                f"{self._pipe!r}\nThis may be caused multiple references to the same IterDataPipe. We recommend using `.fork()` if that "
                "is necessary.\nFor feedback regarding this single iterator per IterDataPipe constraint, feel free to comment on this "
                "issue: https://github.com/pytorch/data/issues/45."
            )
        item = next(self._source)
        self._pipe._number_of_samples_yielded += 1
        return item


def _single(function: Callable) -> Callable:
    """An __iter__ that resets the pipe and makes earlier iterators invalid."""

    @functools.wraps(function)
    def iterate(self: IterDataPipe) -> Iterator:
        if getattr(self, "_is_iterating", False):  # the __iter__ of a base class
            return function(self)
        self._valid_iterator_id = (self._valid_iterator_id or 0) + 1
        self._number_of_samples_yielded = 0
        self.reset()
        self._is_iterating = True
        try:
            source = function(self)
        finally:
            self._is_iterating = False
        return _OnlyIterator(self, _next_of(self) if source is self else iter(source))

    return iterate


def _next_of(pipe: Any) -> Iterator:
    while True:
        try:
            yield pipe.__next__()
        except StopIteration:
            return


def element_type(cls: type) -> Any:
    """T of a class that derives from IterDataPipe[T]; Any by default."""
    for base in getattr(cls, "__orig_bases__", ()):
        origin, arguments = typing.get_origin(base), typing.get_args(base)
        if isinstance(origin, type) and issubclass(origin, Dataset) and arguments and not isinstance(arguments[0], TypeVar):
            return arguments[0]
    return next((t for t in map(element_type, cls.__bases__) if t is not Any), Any) if cls is not object else Any


class _Functions:
    """The attribute `functions` of a class of pipes: the functions by the name of the method. Reading it registers this package's."""

    def __init__(self) -> None:
        self.registered: dict[str, Callable] = {}

    def __get__(self, _pipe: Any, _cls: type) -> dict[str, Callable]:
        _register_pipes()
        return self.registered


class _Registry:
    """What both kinds of pipes have: functions that are their methods, and hooks for pickling and text."""

    functions: Any  # _Functions
    _registered: dict[str, Callable]  # its functions
    reduce_ex_hook: Callable | None = None
    getstate_hook: Callable | None = None
    str_hook: Callable | None = None
    repr_hook: Callable | None = None

    def __getattr__(self, attribute_name: str) -> Any:
        functions = type(self)._registered
        if not attribute_name.startswith("_") and attribute_name not in functions:
            _register_pipes()
        if attribute_name in functions:
            return functools.partial(functions[attribute_name], self)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{attribute_name}'")

    @classmethod
    def register_function(cls, function_name: str, function: Callable) -> None:
        """Makes a function a method of all pipes."""
        cls._registered[function_name] = function

    @classmethod
    def register_datapipe_as_function(cls, function_name: str, cls_to_register: Callable) -> None:
        """Makes a pipe's constructor a method of all pipes; its first argument is the pipe."""
        if not getattr(cls_to_register, "__module__", "").startswith(f"{__package__}."):
            _register_pipes()
        if function_name in cls._registered:
            raise Exception(f"Unable to add DataPipe function name {function_name} as it is already taken")  # noqa: TRY002 - as PyTorch
        cls._registered[function_name] = cls_to_register

    @classmethod
    def set_getstate_hook(cls, hook_fn: Callable | None) -> None:
        """Sets a function that changes the state of pipes that are pickled."""
        if cls.getstate_hook is not None and hook_fn is not None:
            raise RuntimeError("Attempt to override existing getstate_hook")
        cls.getstate_hook = staticmethod(hook_fn) if hook_fn else None

    @classmethod
    def set_reduce_ex_hook(cls, hook_fn: Callable | None) -> None:
        """Sets a function that pickles pipes; it may raise NotImplementedError."""
        if cls.reduce_ex_hook is not None and hook_fn is not None:
            raise RuntimeError("Attempt to override existing reduce_ex_hook")
        cls.reduce_ex_hook = staticmethod(hook_fn) if hook_fn else None

    def __getstate__(self) -> Any:
        return self.getstate_hook(self.__dict__) if self.getstate_hook is not None else self.__dict__

    def __reduce_ex__(self, protocol: Any) -> Any:
        if self.reduce_ex_hook is not None:
            try:
                return self.reduce_ex_hook(self)
            except NotImplementedError:
                pass
        return super().__reduce_ex__(protocol)

    def __repr__(self) -> str:
        return self.repr_hook(self) if self.repr_hook is not None else type(self).__qualname__

    def __str__(self) -> str:
        return self.str_hook(self) if self.str_hook is not None else type(self).__qualname__

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *type(self).functions]


class IterDataPipe(_Registry, IterableDataset[T]):
    """A dataset that is iterated. Only the iterator that was created last is valid; creating one calls reset()."""

    functions = _Functions()
    _registered = functions.registered
    _valid_iterator_id: int | None = None
    _number_of_samples_yielded: int = 0

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "__iter__" in cls.__dict__:
            cls.__iter__ = _single(cls.__dict__["__iter__"])

    def __iter__(self) -> Iterator[T]:
        return self  # type: ignore[return-value]

    @classmethod
    def register_datapipe_as_function(cls, function_name: str, cls_to_register: Callable, enable_df_api_tracing: bool = False) -> None:
        """Makes a pipe's constructor a method of all pipes; its first argument is the pipe. Data frames are not traced."""
        if enable_df_api_tracing:
            raise NotImplementedError("[functional_datapipe] operations of data frames are not traced")
        super().register_datapipe_as_function(function_name, cls_to_register)

    def reset(self) -> None:
        """Called before an iteration: clears buffers. By default has no effect."""


class DFIterDataPipe(IterDataPipe):
    """The class of pipes of data frames."""

    def _is_dfpipe(self) -> bool:
        return True


class MapDataPipe(_Registry, Dataset[T]):
    """A dataset with keys: subclasses have __getitem__, and perhaps __len__."""

    functions = _Functions()
    _registered = functions.registered


def _register_pipes() -> None:
    """Imports the modules whose pipes are methods of all pipes."""
    for module in ("iter._combining", "iter._files", "iter._items", "map._items"):
        importlib.import_module(f"{__package__}.{module}")
