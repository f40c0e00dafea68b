"""Checkpoints that the engine reads and writes itself, in safetensors files: the tensors' bytes do not cross the
connection. See docs/checkpoints.md.

``save`` and ``load`` of `teletensor` itself write files where this process runs.
"""

from __future__ import annotations

import itertools
import json
import os
import threading
import time
from collections.abc import Iterable, Mapping, Sequence

from . import _C
from ._C import Tensor
from ._checkpoint import archives, files, tree
from .serialization._composed import check_fits, copy_composed, described, is_composed, require_storable

__all__ = ["PendingSave", "load", "load_into", "names", "save", "save_async"]

_SUFFIX = ".safetensors"
_INDEX = "model.safetensors.index.json"
_SINGLE = "model.safetensors"
_STRUCTURE = "teletensor.structure"  # metadata key of the values that are not tensors
_MAX_TENSORS = 16_384  # per file
_UNITS = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}
_POLL = 0.01  # seconds between two polls of a file's status


def _byte_count(size: int | str) -> int:
    if isinstance(size, str):
        text = size.strip().upper()
        for unit, factor in _UNITS.items():
            if text.endswith(unit) and text[: -len(unit)].strip().replace(".", "", 1).isdigit():
                size = int(float(text[: -len(unit)]) * factor)
                break
    if not isinstance(size, int) or isinstance(size, bool) or size <= 0:
        raise ValueError(
            f"[checkpoint] expected max_shard_size as a positive number of bytes, or like '5GB', got {size!r}"
        )
    return size


def _flatten(state) -> tuple[dict[str, Tensor], str | None]:
    """Returns the tensors by name, and the JSON text of everything else; None for a dict of tensors by name."""
    named: dict[str, Tensor] = {}
    by_id: dict[int, str] = {}
    if isinstance(state, Mapping) and all(isinstance(k, str) and isinstance(v, Tensor) for k, v in state.items()):
        for tensor in state.values():
            require_storable(tensor)
        if "__metadata__" not in state:
            named = {key: tensor for key, tensor in state.items() if not is_composed(tensor)}
            by_id = {id(tensor): key for key, tensor in named.items()}
            if len(named) == len(state):
                return named, None
            state = dict(state)

    def name_of(tensor: Tensor) -> str:
        if id(tensor) not in by_id:
            names = (f"tensor.{number}" for number in itertools.count(len(named)))
            by_id[id(tensor)] = next(name for name in names if name not in named)
            named[by_id[id(tensor)]] = tensor
        return by_id[id(tensor)]

    return named, json.dumps(tree.encode(state, name_of), separators=(",", ":"))


def _shards(tensors: dict[str, Tensor], limit: int) -> list[dict[str, Tensor]]:
    shards: list[dict[str, Tensor]] = [{}]
    size = 0
    for name, tensor in tensors.items():
        bytes_ = files.byte_size(tensor)
        if shards[-1] and (size + bytes_ > limit or len(shards[-1]) == _MAX_TENSORS):
            shards.append({})
            size = 0
        shards[-1][name] = tensor
        size += bytes_
    return shards


class PendingSave:
    """A checkpoint that the engine writes while the session's next calls run. The tensors were copied."""

    def __init__(self, writes: list[files.Write], commit) -> None:
        self._writes, self._commit = writes, commit
        self._lock = threading.Lock()
        self._status: Tensor | None = None
        self.total = sum(write.total for write in writes)

    def progress(self) -> tuple[int, int]:
        """The number of bytes written, and the total number of bytes. Makes a round trip per file."""
        return sum(write.progress()[0] for write in self._writes), self.total

    def done(self) -> bool:
        """Whether result() does not wait for the files. Makes round trips."""
        if self._status is not None:
            return True
        try:
            return all(write.progress()[1] for write in self._writes)
        except Exception:  # noqa: BLE001 - result() raises it
            return True

    def result(self, timeout: float | None = None) -> None:
        """Waits until the checkpoint is complete. The checkpoint replaces the previous one in this call.

        Raises:
            TimeoutError: after `timeout` seconds; the files are still being written.
            OSError, RuntimeError: the error of the engine, as of save(). The previous checkpoint is unchanged.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while deadline is not None and not self.done():
            if time.monotonic() >= deadline:
                raise TimeoutError(f"[checkpoint] timed out after {timeout} s: the checkpoint is not complete")
            time.sleep(_POLL)
        with self._lock:
            if self._status is None:
                self._status = self._commit([write.wait() for write in self._writes])
        self._status.item()


def _start(state, path, metadata: Mapping[str, str] | None, max_shard_size, in_background: bool) -> PendingSave:
    path = files.path_text(path)
    limit = _byte_count(max_shard_size)
    if path.endswith(archives.SUFFIXES):
        if metadata is not None:
            raise NotImplementedError("[checkpoint] expected metadata to be None: files in PyTorch's format have none")
        return PendingSave([archives.write_archive(path, state, in_background)], lambda written: written[0])
    if metadata is not None and not all(isinstance(text, str) for item in metadata.items() for text in item):
        raise TypeError("[checkpoint] expected strings in metadata")
    tensors, structure = _flatten(state)
    described = {"format": "pt", **(metadata or {})}
    if structure is not None:
        described[_STRUCTURE] = structure
    if path.endswith(_SUFFIX):
        write = files.write_tensors(path, tensors, described, in_background)
        return PendingSave([write], lambda written: written[0])
    folder, name = files.split(path)
    temporary = files.join(folder, f".{name}.saving")
    removed = files.remove(temporary)
    shards = _shards(tensors, limit)
    count = len(shards)
    file_names = [_SINGLE] if count == 1 else [f"model-{i + 1:05}-of-{count:05}{_SUFFIX}" for i in range(count)]
    writes = [
        files.write_tensors(files.join(temporary, file), shard, described, in_background)
        for file, shard in zip(file_names, shards, strict=True)
    ]
    index = {
        "metadata": {"total_size": sum(write.total for write in writes)},
        "weight_map": {key: file for file, shard in zip(file_names, shards, strict=True) for key in shard},
    }

    def commit(written: list[Tensor]) -> Tensor:
        written = [removed, *written]
        if count > 1:
            text = json.dumps(index, indent=2, sort_keys=True).encode()
            written.append(files.write_json(files.join(temporary, _INDEX), text))
        return files.commit(written, temporary, path)

    return PendingSave(writes, commit)


def save(
    state, path: str | os.PathLike, *, metadata: Mapping[str, str] | None = None, max_shard_size: int | str = "5GB"
) -> None:
    """Writes a checkpoint in the engine, and replaces the one at the path, atomically. Waits until it is on the disk.

    Args:
        state: tensors by name, or any nesting of dicts, lists, tuples, tensors and plain values, as of state_dict().
        path: on the engine's host (`files.path_text`). ``*.safetensors``: one file. ``*.pt``, ``*.pth``, ``*.ckpt`` and
            ``*.bin``: one file in PyTorch's format, as torch.save writes it. Otherwise a folder with ``model.safetensors``,
            or with several files and ``model.safetensors.index.json`` if the tensors have more than `max_shard_size` bytes.
            A folder that exists must be empty or contain a checkpoint.
        metadata: strings to store in each file.

    Raises:
        IsADirectoryError, NotADirectoryError, PermissionError: as open(), on the engine's host.
        RuntimeError: the engine cannot write, for example because its disk is full; the previous checkpoint is unchanged.
        TypeError: a value is neither a tensor nor plain data.
    """
    _start(state, path, metadata, max_shard_size, False).result()


def save_async(
    state, path: str | os.PathLike, *, metadata: Mapping[str, str] | None = None, max_shard_size: int | str = "5GB"
) -> PendingSave:
    """Like save(), but the session's next calls run while the files are written. The engine copies the tensors first.

    Call ``result()`` before the session ends: it waits for the files, and then replaces the previous checkpoint.
    """
    return _start(state, path, metadata, max_shard_size, True)


class _Source:
    """The files of a checkpoint, and where its tensors are."""

    def __init__(self, path: str | os.PathLike):
        path = files.path_text(path)
        if path.endswith(archives.SUFFIXES):
            raise NotImplementedError("[checkpoint] files in PyTorch's format are read as a whole: use load() and load_state_dict()")
        self._path = path
        self.tensors: dict[str, tuple[str, _C.dtype, list[int]]] = {}
        self._places: dict[str, dict[str, tuple[int, int]]] = {}  # offsets and checksums of the tensors of each file
        if path.endswith(_SUFFIX):
            self._add(path, None)
            return
        entries = files.list_folder(path)
        if _INDEX not in entries:
            self._add(files.join(path, _SINGLE), None)
            return
        index = files.read_json(files.join(path, _INDEX))
        weights = index.get("weight_map") if isinstance(index, dict) else None
        if not isinstance(weights, dict) or not all(map(files.is_plain_name, weights.values())):
            raise ValueError(f"[checkpoint] '{path}/{_INDEX}' is damaged: expected file names in weight_map")
        by_file: dict[str, set[str]] = {}
        for name, file in weights.items():
            by_file.setdefault(file, set()).add(name)
        for file, wanted in by_file.items():
            self._add(files.join(path, file), wanted)

    def _add(self, file: str, wanted: set[str] | None) -> None:
        tensors, self.metadata, self._places[file] = files.read_header_with_checksums(file)
        for name in tensors if wanted is None else wanted:
            if name not in tensors:
                raise ValueError(f"[checkpoint] the index names '{name}' in '{file}', which does not contain it")
            self.tensors[name] = (file, *tensors[name])

    def structure(self):
        """The encoding of the checkpoint (`tree`); None: it is a dict of the tensors by name."""
        text = self.metadata.get(_STRUCTURE)
        try:
            return None if text is None else json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"[checkpoint] '{self._path}' is damaged: {error}") from None

    def empty(self, names: Iterable[str], device: _C.device) -> dict[str, Tensor]:
        """Tensors of the stored shapes and dtypes, whose values are undefined."""
        stored = {name: self.tensors[name] for name in names}
        return {name: _C.torch.empty(shape, dtype=dtype, device=device) for name, (_, dtype, shape) in stored.items()}

    def composed(self, encoded: Mapping[str, dict]) -> dict[str, Tensor]:
        """Reads sparse, nested and quantized tensors to the CPU, of which tree.composed_entries() returned the encodings."""
        found: set[str] = set()
        tree.add_tensors_of(list(encoded.values()), found)
        names = sorted(found)
        if wrong := [name for name in names if name not in self.tensors]:
            raise ValueError(f"[checkpoint] '{self._path}' is damaged: it has no tensor {', '.join(map(repr, wrong[:8]))}")
        components = self.empty(names, _C.device("cpu"))
        self.read(components)
        return {name: tree.decode(entry, components.__getitem__) for name, entry in encoded.items()}

    def read(self, outputs: Mapping[str, Tensor]) -> None:
        by_file: dict[str, list] = {}
        for name, output in outputs.items():
            file, _, shape = self.tensors[name]
            by_file.setdefault(file, []).append((output, name, [0] * len(shape)))
        for file, boxes in by_file.items():
            places = self._places[file]
            checked = {name: output for output, name, _ in boxes if name in places and output.dtype is self.tensors[name][1]}
            if checked:
                files.read_checked(file, checked, places)
                by_file[file] = [box for box in boxes if box[1] not in checked]
        statuses = [status for file, boxes in by_file.items() for status in files.read_boxes(file, boxes)]
        for status in statuses:
            status.item()


def names(path: str | os.PathLike) -> dict[str, tuple[_C.dtype, list[int]]]:
    """The dtype and shape of each tensor of a checkpoint."""
    return {name: (dtype, shape) for name, (_, dtype, shape) in _Source(path).tensors.items()}


def load(path: str | os.PathLike, *, device=None, only: Sequence[str] | None = None):
    """Reads a checkpoint in the engine; returns what save() was given. Also reads safetensors files and folders of
    other programs, and files and folders in PyTorch's format, as torch.load does. Checks the checksums of files that
    have them.

    Args:
        device: the device of the tensors, by default the CPU.
        only: names of the tensors to read; the result is then a dict of them.

    Raises:
        FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError: as open(), on the engine's host.
        RuntimeError: the engine cannot read the files.
        ValueError: the files are damaged.
    """
    target = _C.device("cpu") if device is None else _C.device(device)
    text = files.path_text(path)
    if text.endswith(archives.SUFFIXES) or (not text.endswith(_SUFFIX) and archives.is_folder_of_archives(text)):
        if only is not None:
            raise NotImplementedError("[checkpoint] expected only to be None: files in PyTorch's format are read as a whole")
        return archives.read_archive(text, target) if text.endswith(archives.SUFFIXES) else archives.read_folder(text, target)
    source = _Source(path)
    if only is not None and (missing := [name for name in only if name not in source.tensors]):
        raise KeyError(f"[checkpoint] the checkpoint has no tensor {', '.join(map(repr, missing[:8]))}")
    result = source.empty(source.tensors if only is None else only, target)
    source.read(result)
    structure = source.structure()
    return result if only is not None or structure is None else tree.decode(structure, result.__getitem__)


def load_into(
    state: Mapping[str, Tensor], path: str | os.PathLike, *, strict: bool = True
) -> tuple[list[str], list[str]]:
    """Reads a checkpoint into existing tensors by name, such as those of a module's state_dict(), in their dtypes and on
    their devices.

    A sparse, nested or quantized tensor receives that of the same layout and shape, as copy_() copies it: sparse_coo may receive another
    number of elements; other layouts require as many, and nested tensors the same sizes.

    Returns the names that the checkpoint lacks, and the names that `state` lacks; with `strict`, these are an error.

    Raises:
        RuntimeError: a layout or shape differs, or a tensor cannot receive the checkpoint's; the error names the tensor. No
            tensor has changed.
    """
    for tensor in state.values():
        require_storable(tensor)
    source = _Source(path)
    composed, components = tree.composed_entries(source.structure())
    available = [name for name in source.tensors if name not in components or name in state] + list(composed)
    missing = [name for name in state if name not in source.tensors and name not in composed]
    unexpected = [name for name in available if name not in state]
    if strict and (missing or unexpected):
        raise RuntimeError(f"[checkpoint] missing in the checkpoint: {missing[:8]}; unexpected in it: {unexpected[:8]}")
    outputs = {name: tensor for name, tensor in state.items() if name in source.tensors and name not in composed}
    for name, tensor in outputs.items():
        if is_composed(tensor):
            raise RuntimeError(
                f"[checkpoint] layout mismatch for {name}: the checkpoint has a tensor of layout torch.strided, the tensor is "
                f"{described(tensor)}"
            )
        if list(tensor.shape) != source.tensors[name][2]:
            raise RuntimeError(
                f"[checkpoint] size mismatch for {name}: the checkpoint has {source.tensors[name][2]}, the tensor {list(tensor.shape)}"
            )
    loaded = source.composed({name: composed[name] for name in state if name in composed})
    for name, tensor in loaded.items():
        check_fits(name, state[name], tensor)
    source.read(outputs)
    for name, tensor in loaded.items():
        copy_composed(name, state[name], tensor)
    return missing, unexpected
