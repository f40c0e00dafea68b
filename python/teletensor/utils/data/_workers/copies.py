"""Copies of a data set for workers that are threads."""

from __future__ import annotations

import contextlib
import copy
import sys
from types import MethodType
from typing import Any

from ..datapipes.datapipe import IterDataPipe
from .choice import MAX_OBJECTS, OPAQUE

_LONG = 100  # elements


class WorkerCopies:
    """Gives one worker its own data set and functions, as a process has them: what it assigns to attributes, or to elements of
    lists and dictionaries, is not seen by other workers. Tensors, arrays, elements of long containers, and objects that
    cannot be copied or define how they are pickled are shared.
    """

    def __init__(self) -> None:
        self._copies: dict[int, Any] = {}

    def copy(self, value: Any) -> Any:
        """The worker's copy of an object; the same one for the same object."""
        found = self._copies.get(id(value))
        if found is None:
            found = value
            if len(self._copies) < MAX_OBJECTS and not isinstance(value, OPAQUE):
                with contextlib.suppress(Exception):  # of the object's own functions
                    found = self._new_copy(value)
        return found

    def _new_copy(self, value: Any) -> Any:
        kind = type(value)
        if kind is MethodType:
            return MethodType(value.__func__, self.copy(value.__self__))
        if kind is tuple:
            return tuple(map(self.copy, value)) if len(value) <= _LONG else value
        numpy = sys.modules.get("numpy.random")
        generators = (numpy.Generator, numpy.RandomState) if numpy is not None else ()
        if isinstance(value, (IterDataPipe, *generators)):
            return self._copies.setdefault(id(value), copy.deepcopy(value))
        attributes = getattr(value, "__dict__", None)
        if kind not in (list, dict) and (kind.__reduce_ex__ is not object.__reduce_ex__ or not isinstance(attributes, dict)):
            return value
        new = self._copies[id(value)] = copy.copy(value)
        if kind is list and len(value) <= _LONG:
            new[:] = map(self.copy, value)
        elif kind is dict and len(value) <= _LONG:
            new.update({key: self.copy(each) for key, each in value.items()})
        elif attributes is not None:
            vars(new).update({name: self.copy(each) for name, each in attributes.items()})
        return new
