"""Files of PyTorch before 1.6: pickles followed by the storages' bytes, and the tar archives of PyTorch before 0.1.10.

The bytes of a storage are only known after the pickle that contains the tensors. So the pickle is read twice: first
without creating its objects, to find the dtypes of the storages and the pickle's end.
"""

from __future__ import annotations

import struct
import sys
import tarfile
from functools import partial
from typing import Any

from ..storage import TypedStorage
from ._archive import FileSource
from ._errors import LoadError, damaged, require, shown
from ._globals import Globals, StorageType
from ._locations import Placement
from ._save import LEGACY_MAGIC, LEGACY_PROTOCOL
from ._storages import StorageMaker, storage_fields, text_of
from ._unpickler import Input, Keys, Scanner, Unpickler

_MAX_DIMS = 64
_MAX_TAR_ENTRIES = 64


class _Stream:
    """A file from an offset on, with the current position, for Input."""

    def __init__(self, file, source: FileSource, start: int) -> None:
        self.file, self.source, self.start = file, source, start
        file.seek(start)

    def input(self) -> Input:
        """The bytes from the current position to the end."""
        return Input(self.file, self.start + self.source.size - self.file.tell())

    def plain(self) -> Any:
        """Reads a pickle of plain data."""
        keys = Keys()
        return Unpickler(self.input(), _NoNames(), _no_storage, keys, "latin1").load()


class _NoNames:
    def find(self, module: str, name: str):
        raise damaged(f"expected plain data, got the name {shown(f'{module}.{name}')}")


def _no_storage(identity):
    raise damaged("expected plain data, got the id of a storage")


def load_legacy(file, source: FileSource, placement: Placement, encoding: str, errors: str) -> Any:
    """Reads a file that is not a zip archive."""
    start = source.start
    head = bytes(source.read(0, min(source.size, 512)))
    if head[257:262] == b"ustar" or (
        head[:1] != b"\x80" and b"\0" in head[:100] and source.size >= 1024 and _is_tar(file, start)
    ):
        file.seek(start)
        return _load_tar(file, placement, encoding, errors)
    if not head:
        raise EOFError("Ran out of input: the file is empty")
    if head[8:9] == b"{":
        raise LoadError(
            "[load] expected a file of torch.save, got a safetensors file: its name must end in .safetensors"
        )
    if head[:1] != b"\x80":
        raise LoadError(
            "[load] expected a file of torch.save, got a file that is truncated or has another format (Invalid magic number; corrupt file?)"
        )
    stream = _Stream(file, source, start)
    magic = stream.plain()
    if magic != LEGACY_MAGIC:
        raise LoadError("[load] Invalid magic number; corrupt file? Pickles that torch.save did not write are not read")
    version = stream.plain()
    require(version == LEGACY_PROTOCOL, f"the protocol version {LEGACY_PROTOCOL}", version)
    system = stream.plain()
    require(isinstance(system, dict), "a description of the system", system)
    order = "little" if system.get("little_endian", system.get(b"little_endian", True)) else "big"
    pickle_start = file.tell()
    places = _storage_ranges(stream)
    file.seek(pickle_start)
    return _load_object(stream, places, StorageMaker(placement, order), encoding, errors)


def _storage_ranges(stream: _Stream) -> dict[str, tuple[int, int]]:
    """The offset of each storage's bytes, and their number."""
    sizes: dict[str, int] = {}

    def persistent_load(identity):
        if isinstance(identity, tuple) and identity and identity[0] in ("module", b"module"):
            return None
        dtype, key, _, numel, _ = storage_fields(identity, 6)
        sizes.setdefault(key, dtype.itemsize)

    Scanner(stream.input(), persistent_load).load()
    keys = stream.plain()
    require(isinstance(keys, list), "a list of storages", keys)
    places: dict[str, tuple[int, int]] = {}
    for key in keys:
        key = text_of(key, "a storage's key")
        require(key in sizes and key not in places, "each storage once", key)
        source = stream.input()
        count = struct.unpack("<q", source.read(8))[0]
        size = count * sizes[key]
        require(0 <= count and size <= source.left, f"{count} elements of a storage in the file", source.left)
        at = stream.file.tell()
        places[key] = (at, size)
        stream.file.seek(at + size)
    return places


def _load_object(stream: _Stream, places, maker: StorageMaker, encoding: str, errors: str) -> Any:
    loaded: dict[str, TypedStorage] = {}
    views: dict[str, TypedStorage] = {}

    def persistent_load(identity):
        if isinstance(identity, tuple) and identity and identity[0] in ("module", b"module"):
            raise LoadError(
                "[load] the file contains a module, whose code is not loaded: load its state_dict into a module that the program creates"
            )
        dtype, key, location, numel, view = storage_fields(identity, 6)
        storage = loaded.get(key)
        if storage is None:
            require(key in places, "the bytes of each storage", key)
            begin, size = places[key]
            # If a storage is used by tensors and as bytes, files store its number of bytes as the number of elements.
            require(size % dtype.itemsize == 0, "a number of elements", size)

            def read():
                position = stream.file.tell()
                data = stream.source.read(begin - stream.start, size)
                stream.file.seek(position)
                return data

            storage = loaded[key] = maker.make(dtype, size, location, read)
        if storage.dtype is not dtype:
            storage = TypedStorage(wrap_storage=storage._untyped_storage, dtype=dtype)
        if view is None:
            return storage
        require(isinstance(view, tuple) and len(view) == 3, "a view of a storage", view)
        return views.setdefault(text_of(view[0], "a view's key"), _part(storage, view[1], view[2]))

    keys = Keys()
    return Unpickler(stream.input(), Globals(keys), persistent_load, keys, encoding, errors).load()


def _part(storage: TypedStorage, offset, count) -> TypedStorage:
    """A slice of a storage's elements."""
    valid = (
        type(offset) is int
        and type(count) is int
        and 0 <= offset <= storage.size()
        and 0 <= count <= storage.size() - offset
    )
    require(valid, "a view within the storage", offset)
    item = storage.dtype.itemsize
    part = storage._untyped_storage[offset * item : (offset + count) * item]
    return TypedStorage(wrap_storage=part, dtype=storage.dtype)


def _is_tar(file, start: int) -> bool:
    file.seek(start)
    try:
        tarfile.open(fileobj=file, mode="r:").close()
    except tarfile.TarError:
        return False
    return True


def _tar_members(file) -> dict[str, Any]:
    members: dict[str, Any] = {}
    try:
        tar = tarfile.open(fileobj=file, mode="r:")  # noqa: SIM115 - the caller owns the file
        for _ in range(_MAX_TAR_ENTRIES):
            member = tar.next()
            if member is None:
                break
            if member.name in ("storages", "tensors", "pickle"):
                require(
                    member.isreg() and not member.issparse() and member.name not in members,
                    "each entry once, as a file",
                    member.name,
                )
                members[member.name] = (tar.extractfile(member), member.size)
    except tarfile.TarError as error:
        raise damaged(str(error)) from None
    require(len(members) == 3, "the entries storages, tensors and pickle", ", ".join(members))
    return members


def _load_tar(file, placement: Placement, encoding: str, errors: str) -> Any:
    members = _tar_members(file)
    loaded: dict[Any, Any] = {}
    _load_tar_storages(
        _Stream(members["storages"][0], _sized(members["storages"]), 0), StorageMaker(placement, sys.byteorder), loaded
    )
    _load_tar_tensors(_Stream(members["tensors"][0], _sized(members["tensors"]), 0), loaded)

    def persistent_load(identity):
        if isinstance(identity, tuple):
            raise LoadError("[load] the file contains a module, whose code is not loaded")
        key = int(identity)
        require(key in loaded, "the id of a tensor", key)
        return loaded[key]

    keys = Keys()
    stream = _Stream(members["pickle"][0], _sized(members["pickle"]), 0)
    return Unpickler(stream.input(), Globals(keys), persistent_load, keys, encoding, errors).load()


def _sized(member) -> FileSource:
    return FileSource(member[0])


def _id(value) -> int:
    require(type(value) is int and -(2**63) <= value < 2**64, "the id of a tensor", value)
    return value


def _load_tar_storages(stream: _Stream, maker: StorageMaker, loaded: dict) -> None:
    count = stream.plain()
    require(type(count) is int and 0 <= count <= stream.source.size, "a number of storages", count)
    for _ in range(count):
        keys = Keys()
        entry = Unpickler(stream.input(), Globals(keys), _no_storage, keys, "latin1").load()
        require(isinstance(entry, tuple) and len(entry) == 3 and isinstance(entry[2], StorageType), "a storage", entry)
        key, location, kind = entry
        source = stream.input()
        number = struct.unpack("<q", source.read(8))[0]
        size = number * kind.dtype.itemsize
        require(0 <= number and size <= source.left, f"{number} elements of a storage in the file", source.left)
        require(_id(key) not in loaded, "each storage once", key)
        loaded[key] = maker.make(kind.dtype, size, text_of(location, "a location tag"), partial(source.read, size))
    views = stream.plain()
    require(isinstance(views, list), "a list of views", views)
    for view in views:
        require(isinstance(view, tuple) and len(view) == 4, "a view", view)
        target, root, offset, number = view
        require(isinstance(loaded.get(_id(root)), TypedStorage), "the id of a storage", root)
        loaded[_id(target)] = _part(loaded[root], offset, number)


def _load_tar_tensors(stream: _Stream, loaded: dict) -> None:
    from ._rebuild import rebuild_tensor

    count = stream.plain()
    require(type(count) is int and 0 <= count <= stream.source.size, "a number of tensors", count)
    for _ in range(count):
        keys = Keys()
        entry = Unpickler(stream.input(), Globals(keys), _no_storage, keys, "latin1").load()
        require(isinstance(entry, tuple) and len(entry) == 3, "a tensor", entry)
        key, storage, _ = entry
        source = stream.input()
        dims = struct.unpack("<i4x", source.read(8))[0]
        require(0 <= dims <= _MAX_DIMS, f"at most {_MAX_DIMS} dimensions", dims)
        numbers = struct.unpack(f"<{2 * dims + 1}q", source.read(16 * dims + 8))
        loaded[_id(key)] = rebuild_tensor(loaded.get(_id(storage)), numbers[-1], numbers[:dims], numbers[dims:-1])
