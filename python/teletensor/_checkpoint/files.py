"""Files on the engine's host: safetensors files, whole files, folders. The engine checks paths and contents.

A path is relative to the engine's checkpoint root, or absolute below it. A private engine, which runs as this process's
user, accepts all paths; relative ones start at the working folder in which it was started.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import weakref
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
_MAX_READ_BYTES = 256 << 20  # the engine may need memory for the outputs of one instruction
_MAX_NAMES_BYTES = 1 << 20  # a frame is limited

_numbers = itertools.count(1)  # of writes in the background


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


def _header(tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None) -> bytes:
    entries: dict = {"__metadata__": dict(metadata)} if metadata else {}
    end = 0
    for name, tensor in tensors.items():
        if name == "__metadata__" or name in entries:
            raise ValueError(f"[checkpoint] '{name}' cannot be the name of a tensor")
        begin, end = end, end + byte_size(tensor)
        entries[name] = {"dtype": _NAMES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [begin, end]}
    text = json.dumps(entries, separators=(",", ":")).encode()
    return text.ljust(-(-(len(text) + 8) // 8) * 8 - 8)  # so that the tensors' bytes are aligned


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
    """Writes a safetensors file and replaces the file at the path, atomically. Does not wait.

    Args:
        in_background: whether the session's next calls need not wait for the file: the tensors are copied in the engine.
    """
    while _abandoned:
        _C.ops.checkpoint_wait(_abandoned.pop())
    listed = [t.detach() if t.requires_grad else t for t in tensors.values()]
    header = _bytes_tensor(_header(tensors, metadata))
    work = next(_numbers) if in_background else 0
    status = _C.ops.checkpoint_write(header, listed, path=path, work=work)
    return Write(status, sum(map(byte_size, listed)), in_background)


def write_bytes(path: str, data: bytes) -> Tensor:
    """Writes a file; returns the status. Does not wait."""
    return _C.ops.checkpoint_write_bytes(_bytes_tensor(data), path=path)


def read_bytes(path: str) -> bytes:
    return _bytes_of(_C.ops.checkpoint_read_bytes(path))


def read_json(path: str):
    """Reads a file with JSON text.

    Raises:
        ValueError: the text is not JSON.
    """
    data = read_bytes(path)
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"[checkpoint] '{path}' is damaged: {error}") from None


def read_header(path: str) -> tuple[dict[str, tuple[_C.dtype, list[int]]], dict[str, str]]:
    """Returns dtype and shape of each tensor of a safetensors file, and the file's metadata."""
    header = json.loads(_bytes_of(_C.ops.checkpoint_header(path)))
    metadata = header.pop("__metadata__", {})
    return {name: (_DTYPES[entry["dtype"]], entry["shape"]) for name, entry in header.items()}, metadata


def read_boxes(path: str, boxes: Iterable[tuple[Tensor, str, Sequence[int]]]) -> list[Tensor]:
    """Reads (output, name, offsets): the box of the stored tensor that begins at the offsets and has the output's shape.

    Returns statuses: tensors that hold an error if reading failed. Does not wait.
    """
    statuses, batch, size, length = [], [], 0, 0
    for box in boxes:
        if batch and (
            len(batch) == _MAX_READS or size + byte_size(box[0]) > _MAX_READ_BYTES or length > _MAX_NAMES_BYTES
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
