"""Reads the members of a tar file in order, in one pass, from untrusted files.

Formats: ustar, GNU (long names, base-256 sizes) and pax (path, size). Only regular files are returned; links, devices and
folders are skipped, and nothing is written. Sizes are checked before memory is allocated.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

_BLOCK = 512
_MAX_EXTENSION = 1 << 20  # bytes of a pax header or a long name
_CHUNK = 1 << 20
_REGULAR = (b"0", b"\0", b"7")


class TarError(ValueError):
    """A tar file is truncated or damaged, or a member exceeds the limit."""


def _read(file: BinaryIO, size: int, what: str) -> bytes:
    """Exactly `size` bytes, read in chunks so that a wrong size does not allocate them."""
    parts, missing = [], size
    while missing > 0:
        part = file.read(min(missing, _CHUNK))
        if not part:
            raise TarError(f"truncated: expected {size} bytes of {what}, got {size - missing}")
        parts.append(part)
        missing -= len(part)
    return b"".join(parts)


def _skip(file: BinaryIO, size: int, what: str) -> None:
    missing = size
    while missing > 0:
        part = file.read(min(missing, _CHUNK))
        if not part:
            raise TarError(f"truncated: expected {size} bytes of {what}, got {size - missing}")
        missing -= len(part)


def _number(field: bytes, what: str) -> int:
    """A number in octal digits, or in base 256 with the first bit set."""
    if field[0] & 0x80:
        if field[0] != 0x80:
            raise TarError(f"damaged: expected a {what} that is not negative, got {field!r}")
        return int.from_bytes(field[1:], "big")
    text = field.split(b"\0", 1)[0].strip()
    if text and not all(c in b"01234567" for c in text):
        raise TarError(f"damaged: expected octal digits as the {what}, got {field!r}")
    return int(text or b"0", 8)


def _check_sum(header: bytes) -> None:
    unsigned = sum(header[:148]) + 8 * 32 + sum(header[156:])
    signed = unsigned - 256 * sum(byte > 127 for byte in header[:148] + header[156:])
    if _number(header[148:156], "checksum") not in (unsigned, signed):
        raise TarError("damaged: a header's checksum does not match its bytes")


def _records(data: bytes) -> dict[bytes, bytes]:
    """The keywords of a pax header."""
    found, at = {}, 0
    while at < len(data):
        space = data.find(b" ", at, at + 20)
        digits = data[at:space] if space > at else b""
        if not digits.isdigit() or int(digits) <= space - at or at + int(digits) > len(data):
            raise TarError("damaged: a pax header has an invalid record")
        record = data[space + 1 : at + int(digits) - 1]
        keyword, equals, value = record.partition(b"=")
        if not equals:
            raise TarError("damaged: a pax header has a record without '='")
        found[keyword] = value
        at += int(digits)
    return found


def _name(header: bytes) -> bytes:
    name = header[:100].split(b"\0", 1)[0]
    prefix = header[345:500].split(b"\0", 1)[0] if header[257:262] == b"ustar" and header[262:263] == b"\0" else b""
    return prefix + b"/" + name if prefix else name


def members(file: BinaryIO, max_bytes: int) -> Iterator[tuple[str, bytes]]:
    """Yields (name, content) of the regular files.

    Raises:
        TarError: the file is damaged. A file that ends after a complete member, without the two blocks of zeros, is
        accepted.
    """
    long_name: bytes | None = None
    extended: dict[bytes, bytes] = {}
    while header := file.read(_BLOCK):
        header += _read(file, _BLOCK - len(header), "a header") if len(header) < _BLOCK else b""
        if not any(header):
            return
        _check_sum(header)
        kind, size = header[156:157], _number(header[124:136], "size")
        if kind in (b"x", b"g", b"L", b"K"):
            if size > _MAX_EXTENSION:
                raise TarError(f"expected an extended header of at most {_MAX_EXTENSION} bytes, got {size}")
            data = _read(file, size, "an extended header")
            _skip(file, -size % _BLOCK, "padding")
            if kind == b"x":
                extended = _records(data)
            elif kind == b"L":
                long_name = data.rstrip(b"\0")
            continue
        if b"size" in extended:
            if not extended[b"size"].isdigit():
                raise TarError(f"damaged: expected digits as a pax header's size, got {extended[b'size'][:40]!r}")
            size = int(extended[b"size"][:30])
        name = (extended.get(b"path") or long_name or _name(header)).decode("utf-8", "replace")
        sparse = any(keyword.startswith(b"GNU.sparse") for keyword in extended)
        long_name, extended = None, {}
        if kind not in _REGULAR or sparse or name.endswith("/"):
            _skip(file, size + -size % _BLOCK if kind in (*_REGULAR, b"S") else 0, f"member {name!r}")
            continue
        if size > max_bytes:
            raise TarError(f"member {name!r} has {size} bytes, which exceeds the limit of {max_bytes} (max_member_bytes)")
        content = _read(file, size, f"member {name!r}")
        _skip(file, -size % _BLOCK, f"padding after {name!r}")
        yield name, content
