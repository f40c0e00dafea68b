"""Reads safetensors files: a header in JSON, then the tensors' bytes. Files are untrusted."""

from __future__ import annotations

import json
import math
import struct

from .. import _C
from .._checkpoint.files import _DTYPES, is_shape
from ._archive import FileSource
from ._errors import require

_MAX_HEADER = 100_000_000  # the limit of the format's own library


def load_file(source: FileSource, device: _C.device) -> dict:
    """The tensors of a file by name, on a device."""
    require(source.size >= 8, "the length of the header", f"{source.size} bytes")
    length = struct.unpack("<Q", source.read(0, 8))[0]
    require(length <= min(_MAX_HEADER, source.size - 8), "a header within the file", length)
    header = json.loads(source.read(8, length))
    require(isinstance(header, dict), "an object as the header", header)
    header.pop("__metadata__", None)
    start, left = 8 + length, source.size - 8 - length
    tensors, ranges = {}, []
    for name, entry in header.items():
        require(isinstance(entry, dict) and {"dtype", "shape", "data_offsets"} <= set(entry), "a tensor", entry)
        shape, offsets = entry["shape"], entry["data_offsets"]
        require(
            isinstance(entry["dtype"], str) and entry["dtype"] in _DTYPES, "a dtype that teletensor has", entry["dtype"]
        )
        require(is_shape(shape), "a shape", shape)
        require(
            isinstance(offsets, list) and len(offsets) == 2 and all(type(n) is int for n in offsets),
            "two offsets",
            offsets,
        )
        dtype = _DTYPES[entry["dtype"]]
        begin, end = offsets
        size = math.prod(shape) * dtype.itemsize
        require(0 <= begin <= end <= left and end - begin == size, f"{size} bytes within the file", f"{begin} to {end}")
        ranges.append((begin, end))
        tensors[name] = (dtype, shape, begin, size)
    end = 0
    for begin, after in sorted(ranges):
        require(begin == end, "tensors that follow each other", begin)
        end = after
    require(end == left, "no bytes after the last tensor", left - end)
    result = {}
    for name, (dtype, shape, begin, size) in tensors.items():
        data = source.read(start + begin, size)
        require(dtype is not _C.bool or not data.translate(None, b"\0\1"), "0 and 1 for booleans", "other bytes")
        result[name] = _C.from_bytes(data, dtype, shape, device)
    return result
