"""Zip archives in PyTorch's layout: entries without compression, whose bytes begin at multiples of the alignment.

`Layout` computes everything in an archive but the entries' bytes and checksums, which are computed later: in the client
while the entries are written, or by the engine.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field

_UTF8 = 0x0800  # names are in UTF-8
_DESCRIBED = 0x0808  # sizes and checksum also follow the bytes
_MAX32, _MAX16 = 0xFFFFFFFF, 0xFFFF


@dataclass
class _Entry:
    name: bytes
    size: int
    header: int  # offset in the file

    @property
    def flags(self) -> int:
        return _DESCRIBED if self.size else _UTF8

    @property
    def descriptor_size(self) -> int:
        return 0 if not self.size else 24 if self.is_large else 16

    @property
    def is_large(self) -> bool:
        return self.size >= _MAX32 or self.header >= _MAX32


@dataclass
class Layout:
    """The archive's parts in order: for each entry a local header, its bytes and a descriptor, then the directory.

    Args:
        folder: the folder that contains all entries.
        alignment: of the entries' bytes, a power of two.
    """

    folder: str
    alignment: int = 64
    _entries: list[_Entry] = field(default_factory=list)
    _end: int = 0

    def add(self, name: str, size: int) -> bytes:
        """Adds an entry; returns its local header, after which its bytes follow."""
        full = f"{self.folder}/{name}".encode("utf-8", "replace")
        header = self._end
        entry = _Entry(full, size, header)
        sizes = struct.pack("<HHQQ", 1, 16, size, size) if entry.is_large else b""
        fixed = 30 + len(full) + len(sizes) + 4
        padding = -(header + fixed) % self.alignment
        extra = sizes + struct.pack("<HH", 0x4246, padding) + b"Z" * padding
        written = _MAX32 if entry.is_large else 0
        local = (
            struct.pack(
                "<4s5HIIIHH", b"PK\x03\x04", 0, entry.flags, 0, 0, 0, 0, written, written, len(full), len(extra)
            )
            + full
            + extra
        )
        self._entries.append(entry)
        self._end = header + len(local) + size + entry.descriptor_size
        return local

    def descriptor(self, crc: int) -> bytes:
        """The descriptor that follows the bytes of the last entry."""
        entry = self._entries[-1]
        if not entry.size:
            return b""
        return struct.pack("<4sIQQ" if entry.is_large else "<4sIII", b"PK\x07\x08", crc, entry.size, entry.size)

    def directory(self, checksums: Iterable[int]) -> bytes:
        """The end of the archive. `checksums`: of all entries."""
        parts = [_directory_entry(entry, crc) for entry, crc in zip(self._entries, checksums)]
        size, count, start = sum(map(len, parts)), len(parts), self._end
        end = b""
        if max(start, size) >= _MAX32 or count >= _MAX16:
            end = struct.pack("<4sQHHIIQQQQ", b"PK\x06\x06", 44, 45, 45, 0, 0, count, count, size, start)
            end += struct.pack("<4sIQI", b"PK\x06\x07", 0, start + size, 1)
        few = min(count, _MAX16)
        end += struct.pack("<4sHHHHIIH", b"PK\x05\x06", 0, 0, few, few, min(size, _MAX32), min(start, _MAX32), 0)
        return b"".join([*parts, end])

    def checksum_places(self) -> list[tuple[int, int]]:
        """For each entry the offsets of its checksums: in its descriptor, and in the result of directory()."""
        places, at = [], 0
        for entry in self._entries:
            places.append((4, at + 16))
            at += len(_directory_entry(entry, 0))
        return places


def _directory_entry(entry: _Entry, crc: int) -> bytes:
    size, header, extra = entry.size, entry.header, b""
    if entry.is_large:
        extra = struct.pack("<HHQQQ", 1, 24, entry.size, entry.size, entry.header)
        size = header = _MAX32
    fixed = (
        b"PK\x01\x02",
        0,
        0,
        entry.flags,
        0,
        0,
        0,
        crc,
        size,
        size,
        len(entry.name),
        len(extra),
        0,
        0,
        0,
        0,
        header,
    )
    return struct.pack("<4s6HIIIHHHHHII", *fixed) + entry.name + extra


class ArchiveWriter:
    """Writes an archive to a binary file, from its current position, without seeking."""

    def __init__(self, file, layout: Layout, computes_checksums: bool) -> None:
        self._file, self._layout, self._computes = file, layout, computes_checksums
        self._checksums: list[int] = []

    def add(self, name: str, size: int, pieces: Iterable) -> None:
        """Writes an entry; `size` is the total number of bytes of the pieces."""
        self._file.write(self._layout.add(name, size))
        crc = 0
        for piece in pieces:
            self._file.write(piece)
            crc = zlib.crc32(piece, crc) if self._computes else 0
        self._checksums.append(crc)
        self._file.write(self._layout.descriptor(crc))

    def finish(self) -> None:
        """Writes the directory."""
        self._file.write(self._layout.directory(self._checksums))
