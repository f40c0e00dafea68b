"""torch.PyTorchFileReader: the records of a file in PyTorch's zip format, as bytes."""

from __future__ import annotations

import os
import struct
import zipfile
from typing import Any

from .. import _C
from .._lazy import set_module

_LOCAL_HEADER = 30  # bytes, before the name and the extra field
# Of zipfile, for damaged files: ValueError for names and offsets, NotImplementedError for versions and methods.
_DAMAGED = (zipfile.BadZipFile, EOFError, ValueError, NotImplementedError, struct.error, OverflowError, OSError)


class PyTorchFileReader:
    """Reads records of a zip file whose records are in one folder and not compressed, as torch.save() writes them.

    Nothing is unpickled. The file is on this machine.

    Args:
        name_or_buffer: a path, or a file that is open in binary mode.

    Raises:
        RuntimeError: the file cannot be opened, is not a zip file, or has other records.
    """

    def __init__(self, name_or_buffer: Any) -> None:
        is_path = isinstance(name_or_buffer, (str, os.PathLike))
        try:
            self._file = open(name_or_buffer, "rb") if is_path else name_or_buffer  # noqa: SIM115 - closed with the object
        except OSError as e:
            raise RuntimeError(f"open file failed because of errno {e.errno} on fopen: {e.strerror}, file path: {name_or_buffer}") from None
        try:
            self._zip = zipfile.ZipFile(self._file)
        except _DAMAGED as e:
            raise RuntimeError(f"PytorchStreamReader failed reading zip archive: {e}") from None
        names = self._zip.namelist()
        if not names:
            raise RuntimeError("PytorchStreamReader failed reading zip archive: it has no records")
        self._folder = names[0].partition("/")[0] + "/"
        for entry in self._zip.infolist():
            if not entry.filename.startswith(self._folder) or entry.compress_type != zipfile.ZIP_STORED:
                raise RuntimeError(f"PytorchStreamReader: expected records in '{self._folder}', not compressed; got '{entry.filename}'")

    def _entry(self, name: str) -> zipfile.ZipInfo:
        try:
            return self._zip.getinfo(self._folder + name)
        except KeyError:
            raise RuntimeError(f"PytorchStreamReader failed locating file {name}: file not found") from None

    def get_all_records(self) -> list[str]:
        """The names of all records."""
        return [name.removeprefix(self._folder) for name in self._zip.namelist()]

    def has_record(self, name: str) -> bool:
        """Whether there is a record."""
        return self._folder + name in self._zip.NameToInfo

    def get_record(self, name: str) -> bytes:
        """The bytes of a record. Raises RuntimeError if there is none, or its checksum is wrong."""
        try:
            return self._zip.read(self._entry(name))
        except _DAMAGED as e:
            raise RuntimeError(f"PytorchStreamReader failed reading file {name}: {e}") from None

    def get_record_size(self, name: str) -> int:
        """The number of bytes of a record."""
        return self._entry(name).file_size

    def get_record_header_offset(self, name: str) -> int:
        """Where the record's header begins in the file."""
        return self._entry(name).header_offset

    def get_record_offset(self, name: str) -> int:
        """Where the record's bytes begin in the file."""
        start = self._entry(name).header_offset
        position = self._file.tell()
        try:
            self._file.seek(start)
            header = self._file.read(_LOCAL_HEADER)
        except _DAMAGED:
            header = b""
        finally:
            self._file.seek(position)
        if len(header) != _LOCAL_HEADER or header[:4] != b"PK\x03\x04":
            raise RuntimeError(f"PytorchStreamReader failed reading file {name}: its header is damaged")
        return start + _LOCAL_HEADER + sum(struct.unpack("<HH", header[26:30]))

    def get_storage_from_record(self, name: str, numel: int, dtype: _C.dtype) -> _C.Tensor:
        """A tensor of `numel` numbers, of the record's bytes. Raises RuntimeError if the record has another size."""
        data = self.get_record(name)
        if numel < 0 or len(data) != numel * dtype.itemsize:
            raise RuntimeError(f"expected a record of {numel} numbers of {dtype}, got {len(data)} bytes in {name}")
        return _C.from_bytes(data, dtype, [numel], _C.device("cpu"))

    def serialization_id(self) -> str:
        """The text by which torch.save() identifies the file's content; empty if it has none."""
        return self.get_record(".data/serialization_id").decode(errors="replace") if self.has_record(".data/serialization_id") else ""


set_module("teletensor", PyTorchFileReader)
