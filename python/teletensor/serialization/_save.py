"""Writing files."""

from __future__ import annotations

import collections
import io
import os
import pickle
import struct
import sys
from collections.abc import Iterator

from .. import _C
from .._storage import UntypedStorage
from ..utils.serialization import config
from . import _settings
from ._archive_writer import ArchiveWriter, Layout
from ._locations import location_tag
from ._pickler import Pickler, StorageRecord, Storages, dumps
from ._replacement import replacing

LEGACY_MAGIC = 0x1950A86A20F9469CFC6C
LEGACY_PROTOCOL = 1001
_PIECE = 16 << 20  # bytes per read
_AHEAD = 64 << 20  # bytes that are requested before they are needed


def check_pickle_module(op: str, module) -> None:
    """Raises NotImplementedError unless the module is pickle or None: others write and read code."""
    if module is not None and module is not pickle:
        name = getattr(module, "__name__", type(module).__name__)
        raise NotImplementedError(
            f"[{op}] expected pickle_module to be pickle, got {name}: files with code are neither written nor read"
        )


def _pieces(storages: list[UntypedStorage]) -> Iterator[tuple[int, object]]:
    """Yields (index, bytes): the storages' bytes in order, requested ahead of their use."""
    waiting: collections.deque = collections.deque()
    ahead = 0

    def wait():
        nonlocal ahead
        index, read, size = waiting.popleft()
        read.wait()
        ahead -= size
        return index, memoryview(read).cast("B")

    for index, storage in enumerate(storages):
        size = storage.nbytes()
        for start in range(0, size, _PIECE):
            piece = storage._view()[start : start + _PIECE] if size > _PIECE else storage._view()
            count = min(_PIECE, size - start)
            waiting.append((index, _C.PendingRead(piece), count))
            ahead += count
            while ahead > _AHEAD:
                yield wait()
    while waiting:
        yield wait()


class _Contents:
    """The bytes of storages, in their order, each once."""

    def __init__(self, records: list[StorageRecord]) -> None:
        self._stored = [record.storage for record in records if record.storage.device.type != "meta"]
        self._pieces = _pieces([] if _settings.state.skips_data else self._stored)
        self._index = -1

    def of(self, record: StorageRecord) -> Iterator:
        """The pieces of the next storage."""
        size = record.storage.nbytes()
        if record.storage.device.type == "meta" or _settings.state.skips_data:
            for start in range(0, size, _PIECE):
                yield bytes(min(_PIECE, size - start))
            return
        self._index += 1
        while size > 0:
            index, piece = next(self._pieces)
            assert index == self._index
            size -= len(piece)
            yield piece


def archive_name(path: str) -> str:
    """The folder in an archive: the file's name without its extension."""
    return os.path.splitext(os.path.basename(path))[0].replace("\\", "_") or "archive"


def archive_entries(
    obj, protocol: int | None, has_byte_order: bool = True
) -> tuple[list[tuple[str, bytes]], list[StorageRecord]]:
    """The small entries that precede the storages in an archive, and the storages."""
    storages = Storages(location_tag)
    data = dumps(obj, protocol, storages)
    entries = [
        ("data.pkl", data),
        (".format_version", b"1"),
        (".storage_alignment", str(config.save.storage_alignment).encode()),
    ]
    if has_byte_order:
        entries.append(("byteorder", sys.byteorder.encode()))
    return entries, storages.records()


def _write_archive(obj, file, folder: str, protocol: int | None, has_byte_order: bool) -> None:
    entries, records = archive_entries(obj, protocol, has_byte_order)
    writer = ArchiveWriter(file, Layout(folder, config.save.storage_alignment), config.save.compute_crc32)
    for name, data in entries:
        writer.add(name, len(data), [data])
    contents = _Contents(records)
    for record in records:
        writer.add(f"data/{record.key}", record.storage.nbytes(), contents.of(record))
    writer.add("version", 2, [b"3\n"])
    writer.finish()


def _write_legacy(obj, file, protocol: int | None) -> None:
    """The format of PyTorch before 1.6: pickles, then for each storage its number of elements and its bytes."""
    if _settings.state.skips_data:
        raise RuntimeError("Cannot use skip_data=True with _use_new_zipfile_serialization=False")
    sizes = {"short": 2, "int": 4, "long": 8}
    for value in (
        LEGACY_MAGIC,
        LEGACY_PROTOCOL,
        {"protocol_version": LEGACY_PROTOCOL, "little_endian": sys.byteorder == "little", "type_sizes": sizes},
    ):
        file.write(pickle.dumps(value, protocol))
    storages = Storages(location_tag, lambda number: f"{number:08}")
    buffer = io.BytesIO()
    Pickler(buffer, protocol, storages, has_views=True).dump(obj)
    file.write(buffer.getvalue())
    records = storages.records()
    file.write(pickle.dumps([record.key for record in records], protocol))
    contents = _Contents(records)
    for record in records:
        item = (record.dtype or _C.uint8).itemsize
        file.write(struct.pack("<q", record.storage.nbytes() // item))
        for piece in contents.of(record):
            file.write(piece)


def save(
    obj, f, pickle_module=pickle, pickle_protocol: int | None = 2, _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:  # fmt: skip
    """torch.save, with all arguments."""
    check_pickle_module("save", pickle_module)
    if not isinstance(f, (str, os.PathLike)) and not hasattr(f, "write"):
        raise AttributeError("expected 'f' to be string, path, or a file-like object with a 'write' attribute")
    if isinstance(f, (str, os.PathLike)):
        with replacing(f) as file:
            _write(
                obj,
                file,
                archive_name(os.fsdecode(f)),
                pickle_protocol,
                _use_new_zipfile_serialization,
                _disable_byteorder_record,
            )
        return
    _write(obj, f, "archive", pickle_protocol, _use_new_zipfile_serialization, _disable_byteorder_record)
    if hasattr(f, "flush"):
        f.flush()


def _write(obj, file, folder: str, protocol: int | None, is_archive: bool, no_byte_order: bool) -> None:
    if is_archive:
        _write_archive(obj, file, folder, protocol, not no_byte_order)
    else:
        _write_legacy(obj, file, protocol)
