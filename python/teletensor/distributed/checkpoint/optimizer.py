"""load_sharded_optimizer_state_dict."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ... import _C
from ._nested import insert_element
from ._shards import boxes_of
from .default_planner import DefaultLoadPlanner
from .metadata import TensorStorageMetadata
from .planner import LoadPlanner
from .state_dict_loader import load
from .storage import StorageReader

__all__ = ["load_sharded_optimizer_state_dict"]


def load_sharded_optimizer_state_dict(
    model_state_dict: Mapping[str, Any], optimizer_key: str, storage_reader: StorageReader, planner: LoadPlanner | None = None
) -> dict[str, Any]:
    """Reads an optimizer's state from a checkpoint whose contents need not be known: ``{optimizer_key: {"state": ..., ...}}``.

    A tensor of the size of its parameter is divided like the parameter's value in the model's state dict, a DTensor or a part
    of a sharded one; other tensors are read completely by each rank. All ranks must call it.

    Args:
        model_state_dict: the values of the model by name.
        optimizer_key: the first key of the optimizer's state in the checkpoint.
        planner: None: values that are read replace those of the same name.

    Raises:
        KeyError: the checkpoint has nothing under this key.
    """
    metadata = storage_reader.read_metadata()
    paths = {name: tuple(path) for name, path in (metadata.planner_data or {}).items() if path[0] == optimizer_key}
    if not paths:
        raise KeyError(f"[load_sharded_optimizer_state_dict] expected a checkpoint with values under '{optimizer_key}', got none")
    read = {name: _place(metadata.state_dict_metadata[name], path, model_state_dict) for name, path in paths.items()}
    load(read, storage_reader=storage_reader, planner=planner or DefaultLoadPlanner(flatten_state_dict=False))
    result: dict[str, Any] = {}
    for name, path in paths.items():
        insert_element(result, path, read[name])
    return result


def _place(entry: Any, path: tuple, model_state_dict: Mapping[str, Any]) -> Any:
    """What load() reads a value into: a tensor like the parameter of the path's third key if it has the stored shape."""
    if not isinstance(entry, TensorStorageMetadata):
        return None
    parameter = model_state_dict.get(path[2]) if len(path) > 2 else None
    if parameter is None or tuple(boxes_of(parameter)[0]) != tuple(entry.size):
        return _C.torch.empty(list(entry.size), dtype=entry.properties.dtype)
    return parameter.detach().clone().to(dtype=entry.properties.dtype)
