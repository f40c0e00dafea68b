"""Files in PyTorch's format on the engine's host, as torch.save writes them. The tensors' bytes do not cross the connection.

The client writes and reads the pickle and the archive's directory, with the code of torch.save and torch.load; the engine
writes and reads the storages, and computes their checksums.
"""

from __future__ import annotations

import struct
import zlib
from typing import Any

from .. import _C
from .._C import Tensor
from .._quantized_names import QuantizedDType
from .._storage import UntypedStorage
from ..serialization._archive import Archive
from ..serialization._archive_writer import Layout
from ..serialization._errors import as_load_errors, damaged, require
from ..serialization._load import byte_order, load_archive
from ..serialization._save import archive_entries, archive_name
from ..storage import TypedStorage
from ..utils.serialization import config
from . import files

SUFFIXES = (".pt", ".pth", ".ckpt", ".bin")
_SINGLE, _INDEX = "pytorch_model.bin", "pytorch_model.bin.index.json"
_TAIL = 1 << 20  # bytes read first, from the end of a file: the directory of a few thousand storages
_MAX_READS = 4096  # outputs of one instruction
# Functions that compute tensors from storages while a pickle is read.
_COMPUTED = (
    b"_rebuild_sparse_tensor", b"_rebuild_nested_tensor", b"_rebuild_njt", b"_rebuild_qtensor", b"_rebuild_device_tensor_from_cpu_tensor",
)  # fmt: skip


def _parts(state, folder: str) -> tuple[bytes, list[UntypedStorage], list[int], list[int]]:
    """The archive without its storages' bytes, the storages, how many bytes precede each, and the places of checksums."""
    entries, records = archive_entries(state, 2)
    layout = Layout(folder, config.save.storage_alignment)
    data, checksums = bytearray(), []
    storages: list[UntypedStorage] = []
    positions: list[int] = []
    stored: dict[int, int] = {}  # index of an entry: index of its storage
    places: list[int] = []

    def add(name: str, content: bytes) -> None:
        data.extend(layout.add(name, len(content)))
        data.extend(content)
        checksums.append(zlib.crc32(content))
        data.extend(layout.descriptor(checksums[-1]))

    for name, content in entries:
        add(name, content)
    for record in records:
        if record.storage.device.type == "meta":
            raise NotImplementedError("[checkpoint] a storage on the meta device has no bytes to save")
        data.extend(layout.add(f"data/{record.key}", record.storage.nbytes()))
        if record.storage.nbytes():
            stored[len(checksums)] = len(storages)
            storages.append(record.storage)
            positions.append(len(data))
            places += [len(storages) - 1, len(data) + 4]
        data.extend(layout.descriptor(0))
        checksums.append(0)
    add("version", b"3\n")
    directory = len(data)
    data.extend(layout.directory(checksums))
    for index, (_, at) in enumerate(layout.checksum_places()):
        if index in stored:
            places += [stored[index], directory + at]
    return bytes(data), storages, positions, places


def write_archive(path: str, state, in_background: bool = False) -> files.Write:
    """Writes an object as torch.save does and replaces the file at the path, atomically. Does not wait."""
    data, storages, positions, places = _parts(state, archive_name(path))
    tensors = [storage._view() for storage in storages]
    return files.write_parts(path, data, tensors, positions, places, False, in_background)


class _EngineSource:
    """The bytes of a file on the engine's host. Keeps the end of the file, and what prefetch() requested."""

    def __init__(self, path: str) -> None:
        self._path = path
        size, self._tail = files.read_range(path, -_TAIL, _TAIL)
        self.size = size
        self._fetched: dict[tuple[int, int], bytes] = {}

    def prefetch(self, ranges: list[tuple[int, int]]) -> None:
        """Reads ranges without a round trip for each."""
        start = self.size - len(self._tail)
        wanted = [r for r in ranges if r[0] < start]
        for (offset, size), data in zip(wanted, files.read_ranges(self._path, wanted), strict=True):
            self._fetched[offset, size] = data

    def read(self, offset: int, size: int) -> bytes:
        """The bytes of a range."""
        start = self.size - len(self._tail)
        if offset >= start:
            data = self._tail[offset - start : offset - start + size]
        elif (offset, size) in self._fetched:
            data = self._fetched[offset, size]
        else:
            data = files.read_range(self._path, offset, size)[1]
        if len(data) != size:
            raise damaged(f"expected {size} bytes at {offset}, got {len(data)}")
        return data


class _Reads:
    """The storages to read: by the next instruction if they are `used_at_once`, otherwise together with others."""

    def __init__(self, path: str, used_at_once: bool) -> None:
        self._path, self._used_at_once = path, used_at_once
        self._found: list[Tensor] = []  # results of the reads: checksums of their storages
        self._outputs: list[Tensor] = []
        self._offsets: list[int] = []
        self._checksums: list[int] = []

    def add(self, output: Tensor, offset: int, checksum: int) -> None:
        self._outputs.append(output)
        self._offsets.append(offset)
        self._checksums.append(checksum)
        if self._used_at_once or len(self._outputs) == _MAX_READS:
            self._issue()

    def _issue(self) -> None:
        self._found.append(_C.ops.checkpoint_read_parts(self._outputs, path=self._path, offsets=self._offsets))
        self._outputs, self._offsets = [], []

    def finish(self) -> None:
        """Reads the rest, and compares the checksums. Waits for the engine."""
        if self._outputs:
            self._issue()
        found = _C.torch.cat(self._found).tolist() if self._found else []
        for got, wanted in zip(found, self._checksums, strict=True):
            require(not wanted or got == wanted, f"the checksum {wanted:08x} of a storage", got)


def read_archive(path: str, device: _C.device | None) -> Any:
    """Reads the object that torch.save or write_archive() wrote, to a device; None: to the devices it was saved from.

    Raises:
        LoadError: as torch.load.
        FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError: as open(), on the engine's host.
        RuntimeError: the engine cannot read the file.
    """
    from ..serialization._locations import Placement

    placement = Placement(device)
    source = _EngineSource(path)
    with as_load_errors():
        archive = Archive(source)  # type: ignore[arg-type]
        source.prefetch(archive.header_ranges())
        swaps = byte_order(archive) != "little"
        reads = _Reads(path, is_computed := _is_computed(archive))

        def make(dtype: _C.dtype, nbytes: int, location: str, name: str) -> TypedStorage:
            where = placement.device(location)
            stored = dtype.stored if isinstance(dtype, QuantizedDType) else dtype
            kind = _C.uint8 if nbytes % stored.itemsize else stored
            output = _C.torch.empty(nbytes // kind.itemsize, dtype=kind, device=where)
            untyped = UntypedStorage._of(output)
            if where.type != "meta" and nbytes:
                begin, _, crc = archive.range(name)
                reads.add(output, begin, crc)
            if swaps:
                swapped.append((untyped, dtype))
            return TypedStorage(wrap_storage=untyped, dtype=dtype)

        swapped: list[tuple[UntypedStorage, _C.dtype]] = []
        if is_computed and swaps:
            raise NotImplementedError(
                "[checkpoint] the file has another byte order, and tensors that are computed: read it with torch.load"
            )
        result = load_archive(archive, make)
        reads.finish()
        for untyped, dtype in swapped:
            untyped.byteswap(dtype)
        return result


def is_folder_of_archives(path: str) -> bool:
    """Whether a folder has Hugging Face's layout of files in PyTorch's format, and none of safetensors files."""
    entries = files.list_folder(path)
    return bool({_SINGLE, _INDEX} & set(entries)) and not any(name.startswith("model.safetensors") for name in entries)


def read_folder(path: str, device: _C.device) -> dict[str, Tensor]:
    """The tensors of such a folder by name.

    Raises:
        ValueError: the index is damaged, or names a tensor that its file does not contain.
    """
    if _INDEX not in files.list_folder(path):
        return read_archive(files.join(path, _SINGLE), device)
    index = files.read_json(files.join(path, _INDEX))
    weights = index.get("weight_map") if isinstance(index, dict) else None
    if not isinstance(weights, dict) or not all(map(files.is_plain_name, weights.values())):
        raise ValueError(f"[checkpoint] '{path}/{_INDEX}' is damaged: expected file names in weight_map")
    found = {file: read_archive(files.join(path, file), device) for file in sorted(set(weights.values()))}
    for name, file in weights.items():
        if not isinstance(found[file], dict) or name not in found[file]:
            raise ValueError(f"[checkpoint] the index names '{name}' in '{file}', which does not contain it")
    return {name: found[file][name] for name, file in weights.items()}


def _is_computed(archive: Archive) -> bool:
    """Whether tensors are computed from storages while the pickle is read: conjugates, and those of these functions."""
    data = bytes(archive.read("data.pkl"))
    sizes = ("<I", "<B")  # of strings in pickles
    computed = any(struct.pack(size, len(word)) + word in data for word in (b"conj", b"neg") for size in sizes)
    return computed or any(name in data for name in _COMPUTED)
