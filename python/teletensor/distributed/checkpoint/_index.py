"""The index of a checkpoint: a Metadata as JSON, in a file that is not trusted.

::

    {"format": "teletensor.distributed.checkpoint", "version": 1,
     "tensors": {name: {"dtype": "float32", "shape": [4, 2], "boxes": [
         {"offsets": [0, 0], "sizes": [2, 2], "file": "__0_0.safetensors", "tensor": name in the file}, ...]}},
     "values": {name: value as of teletensor._checkpoint.tree; of a sparse, nested or quantized tensor, with names of `tensors`},
     "paths": {name: [keys of the nested state dict]}}
"""

from __future__ import annotations

import json
import math
from typing import NamedTuple

from ... import _C
from ..._checkpoint import files, tree
from .metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    ComposedStorageMetadata,
    Metadata,
    MetadataIndex,
    TensorProperties,
    TensorStorageMetadata,
)  # fmt: skip

FILE = "index.json"
_FORMAT = "teletensor.distributed.checkpoint"


class StoredBox(NamedTuple):
    """The location of a box: the file, and the name in it."""

    file: str
    tensor: str


class StoredValue(NamedTuple):
    """A value that is not a tensor, as JSON text."""

    text: str


def to_json(metadata: Metadata) -> bytes:
    """Returns the index. ``metadata.storage_data`` maps each MetadataIndex to a StoredBox or StoredValue."""
    tensors, values = {}, {}
    for fqn, entry in metadata.state_dict_metadata.items():
        if isinstance(entry, BytesStorageMetadata):
            values[fqn] = json.loads(metadata.storage_data[MetadataIndex(fqn)].text)
            continue
        boxes = []
        for chunk in entry.chunks:
            stored = metadata.storage_data[MetadataIndex(fqn, chunk.offsets)]
            boxes.append({"offsets": list(chunk.offsets), "sizes": list(chunk.sizes), **stored._asdict()})
        dtype = str(entry.properties.dtype).removeprefix("torch.")
        tensors[fqn] = {"dtype": dtype, "shape": list(entry.size), "boxes": boxes}
    paths = {name: list(path) for name, path in (metadata.planner_data or {}).items()}
    index = {"format": _FORMAT, "version": 1, "tensors": tensors, "values": values, "paths": paths}
    return json.dumps(index, separators=(",", ":")).encode()


def _require(condition: bool, what: str) -> None:
    if not condition:
        raise ValueError(f"[checkpoint] the index is damaged: expected {what}")


def _dtype(name) -> _C.dtype:
    dtype = getattr(_C, name, None) if isinstance(name, str) else None
    _require(type(dtype) is _C.dtype, "the name of a dtype")
    return dtype


def _box(box, shape: list[int]) -> tuple[ChunkStorageMetadata, StoredBox]:
    _require(isinstance(box, dict), "a box")
    offsets, sizes = box.get("offsets"), box.get("sizes")
    _require(files.is_shape(offsets) and files.is_shape(sizes), "offsets and sizes of a box")
    _require(len(offsets) == len(sizes) == len(shape), "as many offsets and sizes as dimensions")
    _require(all(o + n <= whole for o, n, whole in zip(offsets, sizes, shape, strict=True)), "boxes within the tensor")
    _require(files.is_plain_name(box.get("file")) and isinstance(box.get("tensor"), str), "a file and a name of a box")
    return ChunkStorageMetadata(_C.Size(offsets), _C.Size(sizes)), StoredBox(box["file"], box["tensor"])


def from_json(index) -> Metadata:
    """The inverse of to_json(), for parsed JSON.

    Raises:
        ValueError: it is not an index, or is damaged.
    """
    _require(isinstance(index, dict) and index.get("format") == _FORMAT, f"the format '{_FORMAT}'")
    _require(index.get("version") == 1, "version 1")
    tensors, values, paths = (index.get(key) for key in ("tensors", "values", "paths"))
    _require(
        isinstance(tensors, dict) and isinstance(values, dict) and isinstance(paths, dict), "tensors, values and paths"
    )
    _require(not tensors.keys() & values.keys(), "different names of tensors and values")
    contents: dict = {}
    storage: dict = {}
    for fqn, entry in tensors.items():
        _require(isinstance(entry, dict) and files.is_shape(entry.get("shape")), "the shape of a tensor")
        _require(isinstance(entry.get("boxes"), list), "the boxes of a tensor")
        boxes = [_box(box, entry["shape"]) for box in entry["boxes"]]
        covered = sum(math.prod(chunk.sizes) for chunk, _ in boxes)
        _require(covered == math.prod(entry["shape"]), f"boxes with all elements of '{fqn[:100]}'")
        properties = TensorProperties(_dtype(entry.get("dtype")))
        contents[fqn] = TensorStorageMetadata(properties, _C.Size(entry["shape"]), [chunk for chunk, _ in boxes])
        for chunk, stored in boxes:
            storage[MetadataIndex(fqn, chunk.offsets)] = stored
    for fqn, value in values.items():
        contents[fqn] = BytesStorageMetadata()
        try:
            if isinstance(value, dict) and "composed" in value:
                components: set[str] = set()
                tree.add_tensors_of(value, components)
                contents[fqn] = ComposedStorageMetadata(sorted(components))
                _require(tensors.keys() >= components, f"the components of '{fqn[:100]}'")
            storage[MetadataIndex(fqn)] = StoredValue(json.dumps(value))
        except RecursionError:
            _require(False, f"a value '{fqn[:100]}' of fewer levels")
    for path in paths.values():
        _require(isinstance(path, list) and all(type(key) in (str, int) for key in path), "paths of keys")
    return Metadata(contents, {name: tuple(path) for name, path in paths.items()}, storage)
