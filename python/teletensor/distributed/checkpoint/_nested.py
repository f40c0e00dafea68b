"""Nested state dicts as flat ones, whose keys are the paths joined by dots, and back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..._C import Tensor
from ._shards import is_sharded

Path = tuple[str | int, ...]


def _has_tensors(value) -> bool:
    if isinstance(value, Mapping):
        return any(map(_has_tensors, value.values()))
    if isinstance(value, list | tuple):
        return any(map(_has_tensors, value))
    return isinstance(value, Tensor) or is_sharded(value)


def flatten_state_dict(state_dict: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Path]]:
    """Returns the leaves by name, and the path of each name. Lists without tensors, and empty containers, are leaves.

    Raises:
        ValueError: two leaves have the same name.
    """
    flat: dict[str, Any] = {}
    paths: dict[str, Path] = {}

    for path, value in _leaves((), state_dict):
        name = ".".join(map(str, path))
        if name in flat:
            raise ValueError(f"[checkpoint] the state dict has two values named '{name}'")
        flat[name], paths[name] = value, path
    return flat, paths


def _leaves(path: Path, value: Any) -> Iterator[tuple[Path, Any]]:
    if isinstance(value, Mapping) and (not path or (value and all(isinstance(key, str | int) for key in value))):
        for key, entry in value.items():
            yield from _leaves((*path, key), entry)
    elif isinstance(value, list | tuple) and _has_tensors(value):
        for i, entry in enumerate(value):
            yield from _leaves((*path, i), entry)
    else:
        yield path, value


def set_element(state_dict, path: Path, value) -> None:
    """Replaces the value at a path.

    Raises:
        ValueError: a tuple contains the value.
    """
    for key in path[:-1]:
        state_dict = state_dict[key]
    if isinstance(state_dict, tuple):
        raise ValueError(f"[checkpoint] cannot load a value into a tuple (at {'.'.join(map(str, path))})")
    state_dict[path[-1]] = value


def insert_element(state_dict: dict, path: tuple, value: Any) -> None:
    """Stores a value at a path. Containers on the way are lists where the next key is the number of an entry."""
    container: Any = state_dict
    for key, following in zip(path[:-1], path[1:], strict=True):
        is_new = key not in container if isinstance(container, dict) else key >= len(container)
        if is_new:
            _store(container, key, [] if following == 0 and type(following) is int else {})
        container = container[key]
    _store(container, path[-1], value)


def _store(container: Any, key: Any, value: Any) -> None:
    if isinstance(container, list) and key == len(container):
        container.append(value)
    else:
        container[key] = value
