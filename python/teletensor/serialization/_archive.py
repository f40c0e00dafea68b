"""Zip archives as PyTorch writes them: entries without compression below one folder. Files are untrusted.

The directory at the end of the file is read first. Entries must be distinct, must not overlap, and must be within the
file, so that reading all of them takes no more memory than the file.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from typing import Union

from ._errors import LoadError, damaged, require, shown

_END, _END64, _LOCATOR64 = b"PK\x05\x06", b"PK\x06\x06", b"PK\x06\x07"
_ENTRY = struct.Struct("<4s4xHH4xIIIHHH8xI")  # flags, method, crc, packed, size, name, extra, comment, offset
_LOCAL = struct.Struct("<4s22xHH")  # lengths of name and extra fields
_MAX32, _MAX16 = 0xFFFFFFFF, 0xFFFF
_MAX_COMMENT = 1 << 16


class BytesSource:
    """Bytes in memory, or a mapped file."""

    def __init__(self, data) -> None:
        self._data = memoryview(data)
        self.size = len(self._data)

    def read(self, offset: int, size: int) -> memoryview:
        """A view of the bytes."""
        return self._data[offset : offset + size]

    def release(self) -> None:
        """Ends the use of a mapped file."""
        self._data.release()


class FileSource:
    """An open binary file that can seek. Its contents begin at its current position."""

    def __init__(self, file) -> None:
        self._file = file
        self.start = file.tell()
        self.size = file.seek(0, 2) - self.start

    def read(self, offset: int, size: int) -> bytes:
        """Reads the bytes."""
        self._file.seek(self.start + offset)
        data = self._file.read(size)
        if len(data) != size:
            raise damaged(f"expected {size} bytes at {offset}, got {len(data)}")
        return data


Source = Union[BytesSource, FileSource]  # or another class with `size` and `read`


@dataclass
class _Entry:
    header: int  # offset of the local header
    size: int
    crc: int


def is_archive(source: Source) -> bool:
    """Whether a file begins like a zip archive."""
    return source.size >= 22 and bytes(source.read(0, 4)) == b"PK\x03\x04"


def _directory_range(source: Source) -> tuple[int, int, int]:
    """The directory's offset, size and number of entries."""
    tail_size = min(source.size, _MAX_COMMENT + 22)
    tail = bytes(source.read(source.size - tail_size, tail_size))
    place = tail.rfind(_END)
    if place < 0 or len(tail) - place < 22:
        raise LoadError(
            "[load] PytorchStreamReader failed reading zip archive: failed finding central directory; the file is truncated"
        )
    count, size, offset = struct.unpack_from("<HII", tail, place + 10)
    end = source.size - tail_size + place
    if _MAX32 in (size, offset) or count == _MAX16:
        require(end >= 76, "the end of a directory of a large archive", "a smaller file")
        locator = bytes(source.read(end - 20, 20))
        require(locator[:4] == _LOCATOR64, "the locator of a large directory", locator[:4])
        end64 = struct.unpack_from("<Q", locator, 8)[0]
        require(end64 <= end - 76, "the end of the directory within the file", end64)
        record = bytes(source.read(end64, 56))
        require(record[:4] == _END64, "the end of a large directory", record[:4])
        count, size, offset = struct.unpack_from("<QQQ", record, 32)
        end = end64
    require(offset <= end and size <= end - offset, "a directory within the file", offset)
    require(count <= size // 46, "as many entries as the directory has room for", count)
    return offset, size, count


def _large_numbers(extra: bytes, size: int, packed: int, offset: int) -> tuple[int, int, int]:
    """Replaces 32-bit fields that overflowed by the values in the zip64 extra field."""
    place = 0
    while place + 4 <= len(extra):
        kind, length = struct.unpack_from("<HH", extra, place)
        if kind == 1:
            field = extra[place + 4 : place + 4 + length]
            values = [struct.unpack_from("<Q", field, at)[0] for at in range(0, len(field) - 7, 8)]
            replaced = []
            for number in (size, packed, offset):
                if number == _MAX32:
                    require(values, "the numbers of a large entry", "fewer")
                    number = values.pop(0)
                replaced.append(number)
            return replaced[0], replaced[1], replaced[2]
        place += 4 + length
    return size, packed, offset


class Archive:
    """The entries of an archive by name, without the folder that contains them all."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._entries: dict[str, _Entry] = {}
        start, size, count = _directory_range(source)
        directory = bytes(source.read(start, size))
        place = 0
        for _ in range(count):
            place = self._add(directory, place, start)
        self._check_overlap(start)
        folders = {name.partition("/")[0] for name in self._entries}
        require(len(folders) == 1, "entries in one folder", f"{len(folders)} folders")
        self.folder = folders.pop()
        self._entries = {name.partition("/")[2]: entry for name, entry in self._entries.items()}

    def _add(self, directory: bytes, place: int, end: int) -> int:
        require(len(directory) - place >= 46, "an entry of the directory", "its end")
        signature, flags, method, crc, packed, size, name_size, extra_size, comment, offset = _ENTRY.unpack_from(
            directory, place
        )
        after = place + 46 + name_size + extra_size + comment
        require(signature == b"PK\x01\x02" and after <= len(directory), "an entry of the directory", signature)
        name = directory[place + 46 : place + 46 + name_size].decode("utf-8")
        size, packed, offset = _large_numbers(
            directory[place + 46 + name_size : place + 46 + name_size + extra_size], size, packed, offset
        )
        require(method == 0 and packed == size and not flags & 1, "entries neither compressed nor encrypted", name)
        require(name not in self._entries, "each entry once", name)
        parts = name.split("/")
        require(
            len(parts) > 1 and not {"", ".", ".."} & set(parts) and "\\" not in name and "\0" not in name,
            "names of files in a folder",
            name,
        )
        require(offset <= end and size <= end - offset, "entries within the file", name)
        self._entries[name] = _Entry(offset, size, crc)
        return after

    def _check_overlap(self, directory: int) -> None:
        end = 0
        for name, entry in sorted(self._entries.items(), key=lambda item: item[1].header):
            require(entry.header >= end, "entries that do not overlap", name)
            end = entry.header + 30 + entry.size
        require(end <= directory, "entries within the file", end)

    def __contains__(self, name: str) -> bool:
        return name in self._entries

    def names(self) -> list[str]:
        """The entries' names."""
        return list(self._entries)

    def size(self, name: str) -> int:
        """An entry's size in bytes."""
        require(name in self._entries, f"an entry {shown(name)}", "none")
        return self._entries[name].size

    def range(self, name: str) -> tuple[int, int, int]:
        """The offset of an entry's bytes in the file, their number, and their CRC-32 or 0."""
        entry = self._entries[name]
        signature, name_size, extra_size = _LOCAL.unpack(bytes(self._source.read(entry.header, 30)))
        begin = entry.header + 30 + name_size + extra_size
        require(signature == b"PK\x03\x04" and begin + entry.size <= self._source.size, "the start of an entry", name)
        return begin, entry.size, entry.crc

    def header_ranges(self) -> list[tuple[int, int]]:
        """(offset, size) of the local headers that range() reads."""
        return [(entry.header, 30) for entry in self._entries.values()]

    def read(self, name: str):
        """An entry's bytes. Checks the checksum, unless it is 0: files may be written without checksums."""
        size = self.size(name)
        begin, _, crc = self.range(name)
        data = self._source.read(begin, size)
        if crc and zlib.crc32(data) != crc:
            raise damaged(f"expected the checksum {crc:08x} of {shown(name)}")
        return data
