"""The header of a GGUF file: its metadata, and the place, type and shape of each tensor. Files are untrusted."""

from __future__ import annotations

import dataclasses
import math
import os
import struct
from typing import Any, BinaryIO

from ._types import FORMATS, Format

_MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
_STRING, _ARRAY = 8, 9
_MAX_ENTRIES = 1 << 16  # of metadata, and tensors
_MAX_TEXT = 1 << 24
_MAX_ELEMENTS = 1 << 24  # of all arrays together
_MAX_HEADER = 1 << 29
_MAX_DEPTH = 4
_MAX_DIMS = 8


class GGUFError(ValueError):
    """The file is not a GGUF file, is damaged, or exceeds a limit."""


@dataclasses.dataclass(frozen=True)
class TensorInfo:
    """A tensor in a file: its format, its shape (the last dimension is contiguous), and its bytes."""

    name: str
    format: Format
    shape: tuple[int, ...]
    offset: int  # from the start of the file
    nbytes: int


class _Reader:
    """Reads numbers and texts, each checked against the remaining bytes of the file and the limits."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file, self._size, self.position, self._elements = file, size, 0, 0

    def bytes(self, count: int) -> bytes:
        """The next bytes."""
        if count > min(self._size, _MAX_HEADER) - self.position:
            raise GGUFError(f"[gguf] expected {count} more bytes at {self.position}, got a file of {self._size} bytes")
        found = self._file.read(count)
        if len(found) != count:
            raise GGUFError(f"[gguf] expected {count} bytes at {self.position}, got {len(found)}")
        self.position += count
        return found

    def number(self, form: str) -> Any:
        """The next number of a struct format."""
        return struct.unpack(form, self.bytes(struct.calcsize(form)))[0]

    def count(self, what: str, most: int) -> int:
        """The next 64-bit count, at most `most`."""
        found = self.number("<Q")
        if found > most:
            raise GGUFError(f"[gguf] expected at most {most} {what}, got {found}")
        return found

    def text(self) -> str:
        """The next text."""
        found = self.bytes(self.count("bytes of text", _MAX_TEXT))
        try:
            return found.decode("utf-8")
        except UnicodeDecodeError:
            return found.decode("utf-8", "replace")

    def value(self, kind: int, depth: int = 0) -> Any:
        """The next value of a metadata type."""
        if kind in _SCALARS:
            return self.number(_SCALARS[kind])
        if kind == _STRING:
            return self.text()
        if kind != _ARRAY or depth >= _MAX_DEPTH:
            raise GGUFError(f"[gguf] expected a type of metadata, at most {_MAX_DEPTH} arrays in each other, got type {kind}")
        inner, count = self.number("<I"), self.count("elements of arrays", _MAX_ELEMENTS)
        self._elements += count
        if self._elements > _MAX_ELEMENTS:
            raise GGUFError(f"[gguf] expected at most {_MAX_ELEMENTS} elements of all arrays")
        if inner in _SCALARS:
            form = _SCALARS[inner]
            data = self.bytes(count * struct.calcsize(form))
            return list(struct.unpack(f"<{count}{form[1]}", data))
        return [self.value(inner, depth + 1) for _ in range(count)]


class GGUFFile:
    """The header of a GGUF file.

    Attributes:
        metadata: numbers, texts and lists by name, such as "general.architecture".
        tensors: TensorInfo by name.

    Raises:
        GGUFError: the file is damaged, exceeds a limit, or has tensors of unknown types.
    """

    def __init__(self, path: str | os.PathLike) -> None:
        self.path = os.fspath(path)
        self.size = os.path.getsize(self.path)
        with open(self.path, "rb") as file:
            self._read(_Reader(file, self.size))

    def _read(self, reader: _Reader) -> None:
        if reader.bytes(4) != _MAGIC:
            raise GGUFError(f"[gguf] expected a file that starts with GGUF: {self.path}")
        version = reader.number("<I")
        if version not in _VERSIONS:
            raise GGUFError(f"[gguf] expected version 2 or 3, little-endian, got {version}")
        count = reader.count("tensors", _MAX_ENTRIES)
        entries = reader.count("entries of metadata", _MAX_ENTRIES)
        self.metadata: dict[str, Any] = {}
        for _ in range(entries):
            name = reader.text()
            if name in self.metadata:
                raise GGUFError(f"[gguf] the file contains the metadata {name[:100]!r} twice")
            self.metadata[name] = reader.value(reader.number("<I"))
        listed = [self._listed(reader) for _ in range(count)]
        alignment = self.metadata.get("general.alignment", 32)
        if type(alignment) is not int or not 1 <= alignment <= 1 << 16 or alignment & (alignment - 1):
            raise GGUFError(f"[gguf] expected general.alignment to be a power of two up to 65536, got {alignment!r:.50}")
        start = -(-reader.position // alignment) * alignment
        self.tensors: dict[str, TensorInfo] = {}
        for name, kind, shape, offset in listed:
            if name in self.tensors:
                raise GGUFError(f"[gguf] the file contains the tensor {name[:100]!r} twice")
            self.tensors[name] = self._placed(name, kind, shape, start + offset, offset % alignment)
        end = 0
        for info in sorted((i for i in self.tensors.values() if i.nbytes), key=lambda i: i.offset):
            if info.offset < end:  # else a small file could describe any amount of memory
                raise GGUFError(f"[gguf] the tensor {info.name[:100]!r} overlaps another one")
            end = info.offset + info.nbytes

    @staticmethod
    def _listed(reader: _Reader) -> tuple[str, int, tuple[int, ...], int]:
        name, dims = reader.text(), reader.number("<I")
        if dims > _MAX_DIMS:
            raise GGUFError(f"[gguf] expected at most {_MAX_DIMS} dimensions of {name[:100]!r}, got {dims}")
        shape = tuple(reader.number("<Q") for _ in range(dims))
        return name, reader.number("<I"), shape[::-1], reader.number("<Q")

    def _placed(self, name: str, kind: int, shape: tuple[int, ...], offset: int, unaligned: int) -> TensorInfo:
        form = FORMATS.get(kind)
        if form is None:
            raise GGUFError(f"[gguf] the tensor {name[:100]!r} has type {kind}, which is not implemented")
        elements = math.prod(shape)
        if elements >= 1 << 48 or any(n >= 1 << 48 for n in shape):
            raise GGUFError(f"[gguf] the tensor {name[:100]!r} has too many elements")
        row = shape[-1] if shape else 1
        if row % form.block:
            raise GGUFError(f"[gguf] expected rows of {name[:100]!r} of a multiple of {form.block} elements, got {row}")
        nbytes = elements // form.block * form.nbytes
        if unaligned or offset + nbytes > self.size:
            raise GGUFError(f"[gguf] the tensor {name[:100]!r} is not aligned, or ends at {offset + nbytes} of {self.size} bytes")
        return TensorInfo(name, form, shape, offset, nbytes)
