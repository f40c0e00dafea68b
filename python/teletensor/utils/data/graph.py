"""torch.utils.data.graph: the graph of a data pipe and the pipes that it reads."""

from __future__ import annotations

import io
import pickle
import warnings
from collections.abc import Collection
from typing import Any

from .datapipes.datapipe import IterDataPipe, MapDataPipe

__all__ = ["traverse", "traverse_dps"]

_KINDS = (IterDataPipe, MapDataPipe)


def _collections_only(state: Any) -> Any:
    """The pipes and collections of a pipe's state. Other attributes need not be picklable."""
    kinds = (*_KINDS, Collection)
    if isinstance(state, dict):
        return {k: v for k, v in state.items() if isinstance(v, kinds)}
    if isinstance(state, (list, tuple)):
        return [v for v in state if isinstance(v, kinds)]
    return state if isinstance(state, kinds) else None


def _direct_sources(pipe: Any, only_datapipe: bool, path: set[int]) -> list[Any]:
    """The pipes among a pipe's attributes, except those of `path`. Found by pickling the pipe."""
    found: list[Any] = []
    seen = set(path)

    def reduce(other: Any) -> tuple:
        if id(other) in seen:
            raise NotImplementedError  # pickled as usual
        seen.add(id(other))
        found.append(other)
        return str, ()

    try:
        for kind in _KINDS:
            kind.set_reduce_ex_hook(reduce)
            if only_datapipe:
                kind.set_getstate_hook(_collections_only)
        pickle.Pickler(io.BytesIO()).dump(pipe)
    finally:
        for kind in _KINDS:
            kind.set_reduce_ex_hook(None)
            if only_datapipe:
                kind.set_getstate_hook(None)
    return found


def _graph(pipe: Any, only_datapipe: bool, path: set[int]) -> dict[int, tuple]:
    if not isinstance(pipe, _KINDS):
        raise RuntimeError(f"Expected `IterDataPipe` or `MapDataPipe`, but {type(pipe)} is found")
    path = path | {id(pipe)}
    sources: dict[int, tuple] = {}
    for source in _direct_sources(pipe, only_datapipe, path):
        sources.update(_graph(source, only_datapipe, path))
    return {id(pipe): (pipe, sources)}


def traverse_dps(datapipe: Any) -> dict[int, tuple]:
    """The graph of a pipe: a dict from its id to the pipe and the graph of the pipes among its attributes and their collections."""
    return _graph(datapipe, True, set())


def traverse(datapipe: Any, only_datapipe: bool | None = None) -> dict[int, tuple]:
    """traverse_dps() with a warning. Unless `only_datapipe` is True, all attributes are considered, and must be picklable."""
    warnings.warn("`traverse` function is deprecated. Please use `traverse_dps` instead.", FutureWarning, stacklevel=2)
    return _graph(datapipe, bool(only_datapipe), set())
