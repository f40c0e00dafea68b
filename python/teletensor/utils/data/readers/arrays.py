"""Data sets of arrays in .npy, .npz and safetensors files, memory-mapped where the format allows it."""

from __future__ import annotations

import io
import json
import math
import os
import struct
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO

import numpy as np

from ..dataset import Dataset

_LOCAL_HEADER = struct.Struct("<4s5H3I2H")
_MAX_HEADER = 100 << 20  # bytes of a safetensors header, the format's limit
_DTYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1", "U64": "<u8", "U32": "<u4",
    "U16": "<u2", "U8": "u1", "BOOL": "?", "BF16": "<u2", "C64": "<c8",
}  # fmt: skip


class ArrayDataset(Dataset):
    """Entries of arrays of equal length: tuples of a sequence's arrays, or dicts of a mapping's.

    Samples are NumPy arrays and scalars, so that DataLoader's workers can load them as processes. Memory-mapped arrays are
    opened again by each worker that is not forked, and are read from the disk where they are used.

    Raises:
        ValueError: there is no array, an array has no dimension, or their lengths differ.
    """

    def __init__(self, arrays: Sequence[Any] | Mapping[str, Any]):
        self.arrays = dict(arrays) if isinstance(arrays, Mapping) else tuple(arrays)
        each = list(self.arrays.values()) if isinstance(self.arrays, dict) else list(self.arrays)
        shapes = [tuple(np.shape(array)) for array in each]
        if not shapes or () in shapes or len({shape[0] for shape in shapes}) != 1:
            raise ValueError(f"[{type(self).__name__}] expected arrays of equal length, got the shapes {shapes}")
        self._length = shapes[0][0]

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int) -> Any:
        if isinstance(self.arrays, dict):
            return {name: self._entry(array[index]) for name, array in self.arrays.items()}
        return tuple(self._entry(array[index]) for array in self.arrays)

    @staticmethod
    def _entry(value: Any) -> Any:
        return np.asarray(value)[()]


class _Bfloat16(np.ndarray):
    """The bits of bfloat16 numbers, as uint16."""


def widen_bfloat16(bits: Any) -> Any:
    """float32 numbers of the bits of bfloat16 numbers."""
    return (np.asarray(bits).astype(np.uint32) << 16).view(np.float32)[()]


def _map_npy(path: str) -> np.ndarray:
    try:
        with open(path, "rb") as file:
            shape, fortran, dtype, begin = _npy_header(file, os.path.getsize(path))
        if 0 in shape or dtype.itemsize == 0:
            return np.empty(shape, dtype)
        return np.memmap(path, dtype, "r", begin, shape, "F" if fortran else "C")
    except ValueError as error:
        raise ValueError(f"[NpyDataset] {path}: {error}") from None


class NpyDataset(ArrayDataset):
    """Entries of the arrays in .npy files, which are memory-mapped: tuples in the order of the paths.

    Raises:
        ValueError: a file is damaged or contains objects, or the lengths differ.
    """

    def __init__(self, *paths: str | os.PathLike):
        self.paths = [os.fspath(path) for path in paths]
        super().__init__([_map_npy(path) for path in self.paths])

    def __getstate__(self) -> dict:
        return {"paths": self.paths}

    def __setstate__(self, state: dict) -> None:
        self.__init__(*state["paths"])  # type: ignore[misc]


def _npy_header(file: BinaryIO, size: int) -> tuple[tuple[int, ...], bool, np.dtype, int]:
    """Shape, whether columns are contiguous, dtype and offset of the data of an .npy file of `size` bytes.

    Raises:
        ValueError: the file is not an .npy file, contains objects, or is smaller than its header says.
    """
    version = np.lib.format.read_magic(file)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"expected version 1.0 or 2.0 of the .npy format, got {version}")
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, fortran, dtype = read(file)
    if dtype.hasobject:
        raise ValueError("the array contains objects, which are pickles and are not read")
    begin = file.tell()
    if any(n < 0 for n in shape) or math.prod(shape) * dtype.itemsize > size - begin:
        raise ValueError(f"the header declares shape {shape} of {dtype}, but only {size - begin} bytes follow it")
    return shape, fortran, dtype, begin


def array_of_npy(data: bytes) -> np.ndarray:
    """The array of an .npy file's bytes, which it shares."""
    shape, fortran, dtype, begin = _npy_header(io.BytesIO(data), len(data))
    return np.frombuffer(data, dtype, math.prod(shape), begin).reshape(shape, order="F" if fortran else "C")


def arrays_of_npz(data: bytes, limit: int) -> dict[str, np.ndarray]:
    """The arrays of an .npz file's bytes. Raises ValueError if they take more than `limit` bytes."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        if sum(info.file_size for info in archive.infolist()) > limit:
            raise ValueError(f"the arrays exceed the limit of {limit} bytes")
        return {info.filename.removesuffix(".npy"): array_of_npy(archive.read(info)) for info in archive.infolist()}


def _map_member(path: str, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> np.ndarray:
    """The array of a member of an .npz file: memory-mapped if it is stored without compression."""
    with archive.open(info) as file:
        shape, fortran, dtype, begin = _npy_header(file, info.file_size)
    if info.compress_type != zipfile.ZIP_STORED or 0 in shape or dtype.itemsize == 0:
        return array_of_npy(archive.read(info))
    with open(path, "rb") as raw:
        raw.seek(info.header_offset)
        fields = _LOCAL_HEADER.unpack(raw.read(_LOCAL_HEADER.size))
    offset = info.header_offset + _LOCAL_HEADER.size + fields[-2] + fields[-1] + begin
    return np.memmap(path, dtype, "r", offset, shape, "F" if fortran else "C")


class NpzDataset(ArrayDataset):
    """Entries of the arrays in an .npz file, as dicts by name. Members without compression are memory-mapped.

    Args:
        path: the file.
        names: the arrays to read; by default all.

    Raises:
        ValueError: the file is damaged, lacks a name or contains objects, or the lengths differ.
    """

    def __init__(self, path: str | os.PathLike, names: Sequence[str] | None = None):
        self.path, self.names = os.fspath(path), None if names is None else list(names)
        arrays = {}
        try:
            with zipfile.ZipFile(self.path) as archive:
                members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
                for name in members if self.names is None else self.names:
                    if name not in members:
                        raise ValueError(f"no array {name!r}, expected one of {sorted(members)}")
                    arrays[name] = _map_member(self.path, archive, members[name])
        except (ValueError, zipfile.BadZipFile, struct.error, EOFError, NotImplementedError) as error:
            raise ValueError(f"[NpzDataset] {self.path}: {error}") from None
        super().__init__(arrays)

    def __getstate__(self) -> dict:
        return {"path": self.path, "names": self.names}

    def __setstate__(self, state: dict) -> None:
        self.__init__(state["path"], state["names"])  # type: ignore[misc]


def _read_header(path: str) -> tuple[dict[str, Any], int]:
    """The header of a safetensors file, and the offset of its data."""
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        prefix = file.read(8)
        length = int.from_bytes(prefix, "little")
        if len(prefix) < 8 or length > min(size - 8, _MAX_HEADER):
            raise ValueError(f"expected a header of at most {size - 8} bytes, got a length of {length}")
        header = json.loads(file.read(length))
    if not isinstance(header, dict):
        raise ValueError("expected a JSON object as the header")
    header.pop("__metadata__", None)
    return header, 8 + length


def _map_tensor(path: str, name: str, entry: Any, data: int, size: int) -> np.ndarray:
    if not isinstance(entry, dict) or entry.get("dtype") not in _DTYPES:
        dtype = entry.get("dtype") if isinstance(entry, dict) else entry
        raise ValueError(f"tensor {name!r} has the dtype {dtype}, expected one of {sorted(_DTYPES)}")
    dtype, shape, (begin, end) = np.dtype(_DTYPES[entry["dtype"]]), tuple(entry["shape"]), entry["data_offsets"]
    if not all(isinstance(n, int) and n >= 0 for n in (*shape, begin, end)):
        raise ValueError(f"tensor {name!r} has an invalid shape or offset: {entry}")
    if end - begin != math.prod(shape) * dtype.itemsize or data + end > size:
        raise ValueError(f"tensor {name!r} of shape {list(shape)} does not match its offsets [{begin}, {end}) in {size - data} bytes")
    if begin == end:
        array = np.empty(shape, dtype)
    else:
        array = np.memmap(path, dtype, "r", data + begin, shape)
    return array.view(_Bfloat16) if entry["dtype"] == "BF16" else array


class SafetensorsDataset(ArrayDataset):
    """Entries of the tensors in a safetensors file, which is memory-mapped, as dicts by name. bfloat16 becomes float32.

    Args:
        path: the file.
        names: the tensors to read; by default all.

    Raises:
        ValueError: the file is damaged, lacks a name or has a tensor of another dtype, or the lengths differ.
    """

    def __init__(self, path: str | os.PathLike, names: Sequence[str] | None = None):
        self.path, self.names = os.fspath(path), None if names is None else list(names)
        try:
            header, data = _read_header(self.path)
            for name in self.names or ():
                if name not in header:
                    raise ValueError(f"no tensor {name!r}, expected one of {sorted(header)}")
            size = os.path.getsize(self.path)
            chosen = header if self.names is None else self.names
            arrays = {name: _map_tensor(self.path, name, header[name], data, size) for name in chosen}
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"[SafetensorsDataset] {self.path}: {error}") from None
        super().__init__(arrays)

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {
            name: widen_bfloat16(array[index]) if isinstance(array, _Bfloat16) else np.asarray(array[index])[()]
            for name, array in self.arrays.items()  # type: ignore[union-attr]
        }

    def __getstate__(self) -> dict:
        return {"path": self.path, "names": self.names}

    def __setstate__(self, state: dict) -> None:
        self.__init__(state["path"], state["names"])  # type: ignore[misc]
