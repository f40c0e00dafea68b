"""Files on the engine's host: safetensors files, whole files, folders. The engine checks paths and contents.

A path is relative to the engine's checkpoint root, or absolute below it. A private engine, which runs as this process's
user, accepts all paths; relative ones start at the working folder in which it was started.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import os
import re
import struct
import weakref
import zlib
from collections.abc import Iterable, Mapping, Sequence

from .. import _C
from .._C import Tensor

_DTYPES = {
    "BOOL": _C.bool, "U8": _C.uint8, "I8": _C.int8, "I16": _C.int16, "I32": _C.int32, "I64": _C.int64, "U16": _C.uint16,
    "U32": _C.uint32, "U64": _C.uint64, "F16": _C.float16, "BF16": _C.bfloat16, "F32": _C.float32, "F64": _C.float64,
    "C64": _C.complex64, "C128": _C.complex128, "F8_E4M3": _C.float8_e4m3fn, "F8_E5M2": _C.float8_e5m2,
}  # fmt: skip
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}
_MAX_READS = 4096  # outputs of one instruction
_MAX_COPIED_BYTES = 256 << 20  # outputs of one instruction that the engine reads into other memory first
_MAX_NAMES_BYTES = 1 << 20  # the size of a frame is limited

CHECKSUMS = "teletensor.crc32"  # metadata key: the CRC-32 of each tensor, in the order of the tensors' bytes

# Metadata key: the CRC-32 of the header, in which the digits of all checksums are zeros.
HEADER_CHECKSUM = "teletensor.header_crc32"
_ZEROS = "0" * 8

_numbers = itertools.count(1)  # numbers of the background writes


def path_text(path: str | os.PathLike) -> str:
    """Returns the path as text.

    Raises:
        TypeError: it is neither str nor os.PathLike of str.
    """
    text = os.fspath(path)
    if not isinstance(text, str):
        raise TypeError(f"expected a path of type str or os.PathLike, got {type(path).__name__}")
    return text


def join(folder: str, name: str) -> str:
    return f"{folder.rstrip('/')}/{name}" if folder else name


def split(path: str) -> tuple[str, str]:
    """The folder that contains a path, which may be empty, and the last component."""
    path = path.rstrip("/")
    folder, slash, name = path.rpartition("/")
    return folder or slash, name


def byte_size(tensor: Tensor) -> int:
    return tensor.numel() * tensor.dtype.itemsize


def _bytes_tensor(data: bytes) -> Tensor:
    return _C.from_bytes(data, _C.uint8, [len(data)], _C.device("cpu"))


def _bytes_of(tensor: Tensor) -> bytes:
    data = bytearray(tensor.numel())
    if data:
        _C.read_into(tensor, data)
    return bytes(data)


def _header(tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None) -> tuple[bytes, list[int]]:
    """The header of a safetensors file, and the places of the checksums in it: pairs of a tensor's number and an index."""
    checksums = " ".join([_ZEROS] * len(tensors))
    # The keys of this file's checksums are also in metadata that was read from another file.
    own = {HEADER_CHECKSUM: _ZEROS, CHECKSUMS: checksums}
    entries: dict = {"__metadata__": {**own, **{k: v for k, v in (metadata or {}).items() if k not in own}}}
    end = 0
    for name, tensor in tensors.items():
        if name == "__metadata__" or name in entries:
            raise ValueError(f"[checkpoint] '{name}' cannot be the name of a tensor")
        begin, end = end, end + byte_size(tensor)
        entries[name] = {"dtype": _NAMES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [begin, end]}
    text = json.dumps(entries, separators=(",", ":")).encode()
    text = text.ljust(-(-(len(text) + 8) // 8) * 8 - 8)  # so that the tensors' bytes are aligned
    first = _value_of(text, CHECKSUMS)
    places = [number for i in range(len(tensors)) for number in (i, first + 9 * i)]
    own = _value_of(text, HEADER_CHECKSUM)
    return text[:own] + f"{zlib.crc32(text):08x}".encode() + text[own + 8 :], places


def _value_of(header: bytes, key: str) -> int:
    """The index of the first character of a string of the metadata; -1 if there is none."""
    start = f'"{key}":"'.encode()
    at = header.find(start)
    return at if at < 0 else at + len(start)


def _check_header(path: str, header: bytes, count: int) -> None:
    """Raises ValueError unless the header, which has `count` tensors, has its checksum. Older files have none."""
    own, first = _value_of(header, HEADER_CHECKSUM), _value_of(header, CHECKSUMS)
    if own < 0:
        return
    plain = bytearray(header)
    plain[own : own + 8] = _ZEROS.encode()
    if first >= 0:
        plain[first : first + 9 * count - 1] = " ".join([_ZEROS] * count).encode()
    if len(plain) != len(header) or header[own : own + 8] != f"{zlib.crc32(plain):08x}".encode():
        raise ValueError(f"[checkpoint] '{path}' is damaged: wrong checksum of the header")


class Write:
    """A file that the engine writes."""

    def __init__(self, status: Tensor, total: int, in_background: bool):
        self._started, self.total = status, total
        self.status = None if in_background else status  # a tensor with the number of bytes, or the error
        self._done = total
        if in_background:
            self._finalizer = weakref.finalize(self, _abandoned.append, status)

    def wait(self) -> Tensor:
        """Makes the engine wait for the file before the session's next calls; returns the status."""
        if self.status is None:
            self._finalizer.detach()
            self.status = _C.ops.checkpoint_wait(self._started)
        return self.status

    def progress(self) -> tuple[int, bool]:
        """The number of bytes written, and whether wait() would not wait. Makes a round trip.

        Raises:
            RuntimeError: the tensors could not be computed.
        """
        if self.status is not None:
            return self.total, True
        done, _, ready = _C.ops.checkpoint_progress(self._started).tolist()
        return done, bool(ready)


# Writes that were dropped without wait(). The engine keeps them until they are waited for, which a finalizer must not
# do: the session may be in use.
_abandoned: list[Tensor] = []


def write_tensors(
    path: str, tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None, in_background: bool = False
) -> Write:
    """Writes a safetensors file with checksums and replaces the file at the path, atomically. Does not wait.

    Args:
        in_background: whether the session's next calls need not wait for the file: the tensors are copied in the engine.
    """
    listed = [t.detach() if t.requires_grad else t for t in tensors.values()]
    header, places = _header(tensors, metadata)
    data = struct.pack("<Q", len(header)) + header
    places = [8 + number if i % 2 else number for i, number in enumerate(places)]
    return write_parts(path, data, listed, [len(data)] * len(listed), places, True, in_background)


def write_parts(
    path: str, data: bytes, tensors: Sequence[Tensor], positions: Sequence[int], places: Sequence[int], hexadecimal: bool,
    in_background: bool,
) -> Write:  # fmt: skip
    """Writes a file of any format and replaces the file at the path, atomically. Does not wait.

    Args:
        data: the bytes of the file without those of the tensors.
        positions: how many of these bytes precede each tensor.
        places: pairs of a tensor's number and the index in `data` of its CRC-32.
        hexadecimal: whether checksums are 8 hexadecimal digits instead of 4 bytes.
        in_background: whether the session's next calls need not wait for the file: the tensors are copied in the engine.
    """
    while _abandoned:
        with contextlib.suppress(ConnectionError):  # of a session that has ended, and its saves with it
            _C.ops.checkpoint_wait(_abandoned.pop())
    work = next(_numbers) if in_background else 0
    status = _C.ops.checkpoint_write_parts(
        _bytes_tensor(data), list(tensors), path=path, positions=list(positions), places=list(places), hexadecimal=hexadecimal,
        work=work,
    )  # fmt: skip
    return Write(status, sum(map(byte_size, tensors)), in_background)


def write_bytes(path: str, data: bytes) -> Tensor:
    """Writes a file; returns the status. Does not wait."""
    return _C.ops.checkpoint_write_bytes(_bytes_tensor(data), path=path)


def read_bytes(path: str) -> bytes:
    return _bytes_of(_C.ops.checkpoint_read_bytes(path))


def read_range(path: str, offset: int, size: int) -> tuple[int, bytes]:
    """The file's size, and up to `size` bytes of it, fewer at its end. A negative offset is relative to the end."""
    data = _bytes_of(_C.ops.checkpoint_read_range(path, offset=offset, size=size))
    return int.from_bytes(data[:8], "little"), data[8:]


def read_ranges(path: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
    """The bytes of several small ranges, with few round trips."""
    found = []
    for at in range(0, len(ranges), _MAX_READS):
        part = [_C.ops.checkpoint_read_range(path, offset=offset, size=size) for offset, size in ranges[at : at + _MAX_READS]]
        reads = [_C.PendingRead(tensor) for tensor in part]
        for read in reads:
            read.wait()
            found.append(bytes(memoryview(read).cast("B"))[8:])
    return found


def write_json(path: str, text: bytes) -> Tensor:
    """Writes a file with the JSON text of a dict, and its checksum; returns the status. Does not wait."""
    return write_bytes(path, text[:-1] + f',"crc32":"{zlib.crc32(text):08x}"}}'.encode())


_CHECKSUM_AT_END = re.compile(rb',"crc32":"([0-9a-f]{8})"}\Z')


def read_json(path: str):
    """Reads a file that write_json() wrote, or one with other JSON text, which has no checksum.

    Raises:
        ValueError: the text is not JSON, or its checksum is wrong.
    """
    data = read_bytes(path)
    if match := _CHECKSUM_AT_END.search(data):
        data = data[: match.start()] + b"}"
        if match[1] != f"{zlib.crc32(data):08x}".encode():
            raise ValueError(f"[checkpoint] '{path}' is damaged: wrong checksum")
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"[checkpoint] '{path}' is damaged: {error}") from None


def read_header(path: str) -> tuple[dict[str, tuple[_C.dtype, list[int]]], dict[str, str]]:
    """Returns dtype and shape of each tensor of a safetensors file, and the file's metadata."""
    return read_header_with_checksums(path)[:2]


def read_header_with_checksums(path: str) -> tuple[dict[str, tuple[_C.dtype, list[int]]], dict[str, str], dict[str, tuple[int, int]]]:
    """Like read_header(); also returns for each tensor the offset of its bytes and their CRC-32, if the file has checksums."""
    text = _bytes_of(_C.ops.checkpoint_header(path))
    header = json.loads(text)
    metadata = header.pop("__metadata__", {})
    _check_header(path, text, len(header))
    tensors = {name: (_DTYPES[entry["dtype"]], entry["shape"]) for name, entry in header.items()}
    checksums = metadata.get(CHECKSUMS, "").split() if isinstance(metadata, dict) else []
    if not checksums:
        return tensors, metadata, {}
    # Empty tensors have the offsets of the tensors after them; names in the header are in the order of their bytes.
    names = sorted(header, key=lambda name: header[name]["data_offsets"])
    if len(checksums) != len(names) or not all(len(c) == 8 and set(c) <= set("0123456789abcdef") for c in checksums):
        raise ValueError(f"[checkpoint] '{path}' is damaged: expected {len(names)} checksums")
    start = 8 + len(text)
    places = {name: (start + header[name]["data_offsets"][0], int(c, 16)) for name, c in zip(names, checksums, strict=True)}
    return tensors, metadata, places


def read_checked(path: str, outputs: Mapping[str, Tensor], places: Mapping[str, tuple[int, int]]) -> None:
    """Reads whole tensors into outputs of their dtypes and shapes, and compares the checksums. Waits.

    Raises:
        ValueError: a checksum is wrong.
    """
    results, batch, size = [], [], 0
    for name, output in outputs.items():
        copied = _copied_bytes(output)
        if batch and (len(batch) == _MAX_READS or size + copied > _MAX_COPIED_BYTES):
            results.append(_read_parts(path, batch, outputs, places))
            batch, size = [], 0
        batch.append(name)
        size += copied
    results.append(_read_parts(path, batch, outputs, places))
    wrong = [name for names, result in results for name, crc in zip(names, result.tolist(), strict=True) if crc != places[name][1]]
    if wrong:
        raise ValueError(f"[checkpoint] '{path}' is damaged: wrong checksums of {', '.join(map(repr, wrong[:8]))}")


def _copied_bytes(output: Tensor) -> int:
    """Memory that the engine needs to read into a tensor of the stored dtype, besides the tensor's own."""
    is_direct = output.is_contiguous() and (output.device.type == "cpu" or output.dtype is not _C.bool)
    return 0 if is_direct else byte_size(output)


def _read_parts(path: str, names: list[str], outputs, places) -> tuple[list[str], Tensor]:
    tensors = [output.detach() if output.requires_grad else output for output in map(outputs.__getitem__, names)]
    return names, _C.ops.checkpoint_read_parts(tensors, path=path, offsets=[places[name][0] for name in names])


def read_boxes(path: str, boxes: Iterable[tuple[Tensor, str, Sequence[int]]]) -> list[Tensor]:
    """Reads (output, name, offsets): the box of the stored tensor that begins at the offsets and has the output's shape.

    Returns statuses: tensors that hold an error if reading failed. Does not wait.
    """
    statuses, batch, size, length = [], [], 0, 0
    for box in boxes:
        if batch and (
            len(batch) == _MAX_READS or size + byte_size(box[0]) > _MAX_COPIED_BYTES or length > _MAX_NAMES_BYTES
        ):
            statuses.append(_read(path, batch))
            batch, size, length = [], 0, 0
        batch.append(box)
        size += byte_size(box[0])
        length += 6 * len(box[1])
    if batch:
        statuses.append(_read(path, batch))
    return statuses


def _read(path: str, boxes: list) -> Tensor:
    outputs = [output.detach() if output.requires_grad else output for output, _, _ in boxes]
    offsets = [int(offset) for _, _, at in boxes for offset in at]
    return _C.ops.checkpoint_read(outputs, path=path, names=json.dumps([name for _, name, _ in boxes]), offsets=offsets)


def commit(written: Sequence[Tensor], source: str, target: str) -> Tensor:
    """Renames a file or folder, and removes what was at the target, unless a status in `written` is an error. Does not
    wait."""
    return _C.ops.checkpoint_commit(list(written), source=source, target=target)


def remove(path: str) -> Tensor:
    """Removes a file, or a folder that contains only the files of a checkpoint. Does not wait."""
    return _C.ops.checkpoint_remove(path)


def list_folder(path: str) -> dict[str, tuple[str, int]]:
    """The entries of a folder: 'file', 'folder' or 'other', and the size in bytes."""
    entries = json.loads(_bytes_of(_C.ops.checkpoint_list(path)))
    return {name: (kind, size) for name, kind, size in entries}


def is_plain_name(name) -> bool:
    """Whether a name from a file can be that of a file in the same folder."""
    return isinstance(name, str) and name not in ("", ".", "..") and "/" not in name and "\0" not in name


def is_shape(shape) -> bool:
    """Whether a value from a file can be a shape."""
    return (
        isinstance(shape, list)
        and len(shape) <= 64
        and all(type(n) is int and 0 <= n < 2**63 for n in shape)
        and math.prod(n or 1 for n in shape) < 2**59
    )
