"""FileSystemWriter and FileSystemReader: a checkpoint is a folder with one safetensors file per rank and an index. Each
rank's engine writes and reads its boxes itself; the folder must be the same for all engines, e.g. on a shared disk."""

from __future__ import annotations

import dataclasses
import io
import os
from collections.abc import Iterable
from typing import Any, TypeVar

from ... import _C
from ..._checkpoint import files
from . import _index
from ._index import StoredBox, StoredValue
from .metadata import Metadata, StorageMeta
from .planner import LoadItemType, LoadPlan, LoadPlanner, SavePlan, SavePlanner, WriteItem, WriteItemType
from .storage import StorageReader, StorageWriter, WriteResult

__all__ = ["FileSystemReader", "FileSystemWriter"]

_Storage = TypeVar("_Storage", StorageReader, StorageWriter)
_MAX_TENSORS = 16_384  # per file
_MAX_DEVICE_BYTES = 2 << 30  # limit per file for tensors on GPUs, which the engine copies to host memory


class _Writes:
    """The files that a rank writes, and where each item is."""

    def __init__(self, writes: list[files.Write], results: list[WriteResult]):
        self.writes, self.results = writes, results

    def is_done(self) -> bool:
        """Whether wait() returns at once. Makes round trips."""
        return all(write.progress()[1] for write in self.writes)

    def progress(self) -> int:
        """The number of bytes written. Makes round trips."""
        return sum(write.progress()[0] for write in self.writes)

    def wait(self) -> list[WriteResult]:
        """Waits for the files.

        Raises:
            OSError, RuntimeError: the engine cannot write them.
        """
        for status in [write.wait() for write in self.writes]:
            status.item()
        return self.results

    value = wait


class _Reads:
    """Reads in progress."""

    def __init__(self, statuses: list[_C.Tensor]):
        self.statuses = statuses

    def wait(self) -> None:
        """Waits until everything was read.

        Raises:
            OSError, RuntimeError: the engine cannot read a file.
        """
        for status in self.statuses:
            status.item()

    value = wait


def _name(item: WriteItem, used: dict) -> str:
    """A name for the box in its file: that of the tensor, with ranges of indices if it is a part."""
    data = item.tensor_data
    name = item.index.fqn
    if data.chunk.sizes != data.size or name == "__metadata__":
        ranges = (f"{low}:{low + n}" for low, n in zip(data.chunk.offsets, data.chunk.sizes, strict=True))
        name = f"{name}[{','.join(ranges)}]"
    while name in used:
        name += "'"
    return name


class FileSystemWriter(StorageWriter):
    """Writes a checkpoint to a folder of the engines' hosts, and replaces the one that was there, atomically.

    Unlike PyTorch's, the files are safetensors and the index is JSON; nothing is pickled.

    Args:
        path: the folder; see docs/checkpoints.md for the paths that an engine accepts.
        single_file_per_rank: False writes each tensor to a file of its own.
        thread_count, per_thread_copy_ahead: have no effect: one thread of the engine writes the files.
        overwrite: False refuses to replace a checkpoint.

    Raises:
        NotImplementedError: ``sync_files=False``, ``cache_staged_state_dict=True``.
    """

    def __init__(
        self, path: str | os.PathLike, single_file_per_rank: bool = True, sync_files: bool = True, thread_count: int = 1,
        per_thread_copy_ahead: int = 10_000_000, cache_staged_state_dict: bool = False, overwrite: bool = True,
    ) -> None:  # fmt: skip
        if not sync_files:
            raise NotImplementedError(
                "[FileSystemWriter] sync_files=False is not supported: a replacement would not be atomic"
            )
        if cache_staged_state_dict:
            raise NotImplementedError("[FileSystemWriter] cache_staged_state_dict=True is not supported")
        self.single_file_per_rank, self.overwrite = single_file_per_rank, overwrite
        self.in_background = False  # whether the session's next calls need not wait for the files
        self.reset(path)

    def reset(self, checkpoint_id: str | os.PathLike | None = None) -> None:
        if checkpoint_id is not None:
            self.path = files.path_text(checkpoint_id).rstrip("/")
            folder, name = files.split(self.path)
            self._temporary = files.join(folder, f".{name}.saving")

    @property
    def checkpoint_id(self) -> str:
        return self.path

    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        self.is_coordinator = is_coordinator

    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        if self.is_coordinator:
            if not self.overwrite and _exists(self.path):
                raise RuntimeError("Checkpoint already exists and self.overwrite=False.")
            files.remove(self._temporary).item()  # left by a save that was interrupted
        return plan

    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        return [dataclasses.replace(plan, storage_data=f"__{rank}_") for rank, plan in enumerate(plans)]

    def _divided(self, tensors: list[_C.Tensor]) -> Iterable[list[int]]:
        """The indices of the items of each file."""
        limit = _MAX_TENSORS if self.single_file_per_rank else 1
        current: list[int] = []
        size = 0
        for i, tensor in enumerate(tensors):
            bytes_ = files.byte_size(tensor) if tensor.is_cuda else 0
            if current and (len(current) == limit or size + bytes_ > _MAX_DEVICE_BYTES):
                yield current
                current, size = [], 0
            current.append(i)
            size += bytes_
        if current:
            yield current

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> _Writes:
        results: list[WriteResult] = []
        items = [item for item in plan.items if item.type is not WriteItemType.BYTE_IO]
        for item in plan.items:
            if item.type is WriteItemType.BYTE_IO:
                data = planner.resolve_data(item).getvalue()
                results.append(WriteResult(item.index, len(data), [data.decode()]))
        tensors = [planner.resolve_data(item) for item in items]
        writes = []
        for number, chosen in enumerate(self._divided(tensors)):
            file = f"{plan.storage_data}{number}.safetensors"
            named: dict[str, _C.Tensor] = {}
            for i in chosen:
                name = _name(items[i], named)
                named[name] = tensors[i]
                results.append(WriteResult(items[i].index, files.byte_size(tensors[i]), [file, name]))
            path = files.join(self._temporary, file)
            writes.append(files.write_tensors(path, named, {"format": "pt"}, self.in_background))
        return _Writes(writes, results)

    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        storage: dict = {}
        expected: set[str] = set()
        for result in (result for of_rank in results for result in of_rank):
            data = result.storage_data
            storage[result.index] = StoredBox(*data) if len(data) == 2 else StoredValue(*data)
            expected.update(data[:1] if len(data) == 2 else ())
        self._check_visible(expected)
        metadata.storage_data, metadata.storage_meta = storage, self.storage_meta()
        written = files.write_json(files.join(self._temporary, _index.FILE), _index.to_json(metadata))
        files.commit([written], self._temporary, self.path).item()

    def _check_visible(self, expected: set[str]) -> None:
        """Raises RuntimeError if this rank's engine does not see a file that another rank wrote."""
        missing = expected - files.list_folder(self._temporary).keys() if expected else set()
        for file in sorted(missing):  # a network file system may list files late, but opens them
            try:
                files.read_header(files.join(self._temporary, file))
            except (OSError, RuntimeError) as error:
                raise RuntimeError(
                    f"[checkpoint] the engine of rank 0 does not see {file}, which another rank wrote: expected a path on a "
                    f"disk that all engines share, got '{self.path}' ({error})"
                ) from None

    def storage_meta(self) -> StorageMeta | None:
        return StorageMeta(checkpoint_id=self.path)

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike) -> bool:
        return isinstance(checkpoint_id, str | os.PathLike) and "://" not in str(checkpoint_id)


def _exists(path: str) -> bool:
    try:
        return _index.FILE in files.list_folder(path)
    except FileNotFoundError:
        return False


class FileSystemReader(StorageReader):
    """Reads a checkpoint that FileSystemWriter wrote."""

    def __init__(self, path: str | os.PathLike) -> None:
        self.reset(path)

    def reset(self, checkpoint_id: str | os.PathLike | None = None) -> None:
        if checkpoint_id is not None:
            self.path = files.path_text(checkpoint_id).rstrip("/")
        self._storage: dict = {}

    @property
    def checkpoint_id(self) -> str:
        return self.path

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        metadata = _index.from_json(files.read_json(files.join(self.path, _index.FILE)))
        metadata.storage_meta = StorageMeta(checkpoint_id=self.path)
        return metadata

    def set_up_storage_reader(self, metadata: Metadata, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        self._storage = metadata.storage_data

    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        return plan

    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        return plans

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> _Reads:
        by_file: dict[str, list] = {}
        tensors = []
        for item in plan.items:
            stored = self._storage[item.storage_index]
            if item.type is LoadItemType.BYTE_IO:
                planner.load_bytes(item, io.BytesIO(stored.text.encode()))
                continue
            target = planner.resolve_tensor(item)
            target = target.detach() if target.requires_grad else target
            by_file.setdefault(stored.file, []).append((target, stored.tensor, item.storage_offsets))
            tensors.append((item, target))
        reads = _Reads(
            [
                status
                for file, boxes in by_file.items()
                for status in files.read_boxes(files.join(self.path, file), boxes)
            ]
        )
        for item, target in tensors:
            planner.commit_tensor(item, target)
        return reads

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike) -> bool:
        return FileSystemWriter.validate_checkpoint_id(checkpoint_id)


def storage_for(checkpoint_id: str | os.PathLike | None, given: _Storage | None, kind: type[_Storage]) -> _Storage:
    """The given reader or writer, reset to the checkpoint, or else one of the class `kind` of the folder `checkpoint_id`."""
    if given is not None:
        given.reset(checkpoint_id)
        return given
    if checkpoint_id is None:
        raise RuntimeError("`checkpoint_id` must be specificed if storage_reader/storage_writer is None.")
    if not kind.validate_checkpoint_id(checkpoint_id):
        raise RuntimeError(f"Cannot detect which StorageReader or StorageWriter to use for {checkpoint_id}")
    return kind(checkpoint_id)
