"""save and load: a file format without pickles, so that loading a file runs no code.

A file is a zip archive whose entries are stored without compression. ``structure.json`` contains the object (dicts,
lists, tuples, numbers, strings, None), with ``{"tensor": n}`` in place of a tensor. ``tensor/n`` contains the tensor's
bytes in row-major order.

A file may come from an untrusted source. All of its content is checked before use, and sizes are checked before memory
is allocated. Loading needs memory for about thirty times the size of the archive's directory and of structure.json,
plus the largest tensor.
"""

from __future__ import annotations

import errno
import io
import json
import math
import os
import struct
import zipfile
import zlib
from collections import OrderedDict

from . import _C
from ._C import Tensor
from ._options import check_optional_flags, reject_values

_MAX_DIMS = 64
_LEGACY_MAGIC = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19."  # start of files written by PyTorch before 1.6


class LoadError(RuntimeError):
    """The file is damaged or was not written by teletensor.save."""


class _Encoder:
    def __init__(self) -> None:
        self.tensors: list[Tensor] = []

    def encode(self, value):
        if isinstance(value, Tensor):
            self.tensors.append(value)
            meta = {"dtype": repr(value.dtype).removeprefix("torch."), "shape": list(value.shape)}
            kind = type(value).__name__ if type(value).__name__ == "Parameter" else "Tensor"
            if value.is_cuda:
                meta["device"] = str(value.device)
            return {"tensor": len(self.tensors) - 1, "requires_grad": value.requires_grad, "type": kind, **meta}
        if isinstance(value, dict):
            pairs = [[self.encode(k), self.encode(v)] for k, v in value.items()]
            more = {"metadata": self.encode(value._metadata)} if hasattr(value, "_metadata") else {}  # for state_dicts
            return {"dict": pairs, "ordered": isinstance(value, OrderedDict), **more}
        if isinstance(value, tuple):
            return {"tuple": [self.encode(v) for v in value]}
        if isinstance(value, (list, set)):
            return {"set" if isinstance(value, set) else "list": [self.encode(v) for v in value]}
        if isinstance(value, (_C.dtype, _C.device)):
            return {type(value).__name__: str(value).removeprefix("torch.")}
        if isinstance(value, float) and not math.isfinite(value):
            return {"float": str(value)}
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        raise TypeError(f"[save] expected tensors, dicts, lists, tuples, numbers and strings, got {type(value).__name__}")


def save(obj, f, pickle_module=None, pickle_protocol: int | None = None, _use_new_zipfile_serialization: bool = True) -> None:
    """Writes an object, usually a state_dict, to a path or a binary file. Waits for the values.

    Raises:
        NotImplementedError: an argument requests a pickle or PyTorch's older format.
    """
    reject_values("save", "nothing is pickled", pickle_module=pickle_module, pickle_protocol=pickle_protocol)
    if not _use_new_zipfile_serialization:
        raise NotImplementedError("[save] expected _use_new_zipfile_serialization to be True, got False: only zip archives are written")
    encoder = _Encoder()
    structure = encoder.encode(obj)
    with zipfile.ZipFile(f, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("structure.json", json.dumps({"format": "teletensor", "version": 1, "value": structure}))
        for i, tensor in enumerate(encoder.tensors):
            data = bytearray(tensor.numel() * tensor.dtype.itemsize)
            if data:
                _C.read_into(tensor.detach(), data)
            archive.writestr(f"tensor/{i}", bytes(data))


def _require(condition: bool, expected: str, got) -> None:
    if not condition:
        raise LoadError(f"[load] the file is damaged: expected {expected}, got {str(got)[:100]}")


class _Archive:
    """The entries of a zip archive. Checks that they are uncompressed, unique, disjoint and within the file."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self.entries: dict[str, zipfile.ZipInfo] = {}
        end = 0
        for info in sorted(archive.infolist(), key=lambda i: i.header_offset):
            _require(info.filename not in self.entries, "each entry once", info.filename)
            stored = info.compress_type == zipfile.ZIP_STORED and info.compress_size == info.file_size
            _require(stored and not info.flag_bits & 1, "entries neither compressed nor encrypted", info.filename)
            _require(info.header_offset >= end, "entries that do not overlap", info.filename)
            end = info.header_offset + zipfile.sizeFileHeader + info.file_size
            self.entries[info.filename] = info
        _require(end <= archive.start_dir, "entries within the file", f"{end} bytes of {archive.start_dir}")

    def size(self, name: str) -> int:
        _require(name in self.entries, f"an entry {name}", "none")
        return self.entries[name].file_size

    def read(self, name: str) -> bytes:
        size = self.size(name)
        data = self._archive.read(self.entries[name])  # verifies the checksum
        _require(len(data) == size, f"{size} bytes of {name}", len(data))
        return data


class _Decoder:
    def __init__(self, archive: _Archive, map_device) -> None:
        self.archive, self.map_device = archive, map_device
        self.loaded: set[int] = set()
        self.kinds = {
            "tensor": self.tensor, "dict": self.dict, "tuple": lambda v: tuple(map(self.decode, self.items(v, "tuple"))),
            "list": lambda v: list(map(self.decode, self.items(v, "list"))),
            "set": lambda v: {self.key(x) for x in self.items(v, "set")},
            "dtype": lambda v: _dtype(v["dtype"]), "device": lambda v: _device(v["device"]), "float": self.float,
        }  # fmt: skip

    def decode(self, value):
        if isinstance(value, dict):
            kind = next(iter(value), None)
            _require(kind in self.kinds, "an object of a known kind", kind)
            return self.kinds[kind](value)
        _require(not isinstance(value, list), "a value", "a bare list")
        return value

    @staticmethod
    def items(value, kind: str) -> list:
        _require(isinstance(value[kind], list), f"the items of a {kind}", value[kind])
        return value[kind]

    def key(self, value):
        """Decodes a set's element or a dict's key.

        Rejects integers beyond 64 bits: their hashes may collide, which would make decoding take quadratic time.
        """
        key = self.decode(value)
        _require(not isinstance(key, int) or -(2**63) <= key < 2**64, "a key of at most 64 bits", key)
        return key

    def float(self, value) -> float:
        _require(value["float"] in ("nan", "inf", "-inf"), "nan, inf or -inf", value["float"])
        return float(value["float"])

    def tensor(self, value) -> Tensor:
        number, shape, grad = value["tensor"], value["shape"], value["requires_grad"]
        dtype = _dtype(value["dtype"])
        _require(type(number) is int and number not in self.loaded, "a tensor number that was not used before", number)
        self.loaded.add(number)
        valid = isinstance(shape, list) and len(shape) <= _MAX_DIMS and all(type(n) is int and 0 <= n < 2**63 for n in shape)
        _require(valid, f"at most {_MAX_DIMS} sizes", shape)
        _require(type(grad) is bool and value["type"] in ("Tensor", "Parameter"), "requires_grad and type", (grad, value["type"]))
        _require(not grad or dtype.is_floating_point or dtype.is_complex, "a dtype that has gradients", dtype)
        size, name = math.prod(shape) * dtype.itemsize, f"tensor/{number}"
        extent = math.prod(n or 1 for n in shape) * dtype.itemsize
        _require(extent < 2**63 and self.archive.size(name) == size, f"{size} bytes for a tensor of {shape}", name)
        saved = _device(value.get("device", "cpu"))
        device = self.map_device(saved) or _require_device(saved)
        data = self.archive.read(name)
        _require(dtype is not _C.bool or not data.translate(None, b"\0\1"), "0 and 1 for booleans", "other bytes")
        tensor = _C.from_bytes(data, dtype, shape, device)
        if value["type"] == "Parameter":
            from .nn import Parameter

            return Parameter(tensor, grad)
        tensor.requires_grad = grad
        return tensor

    def dict(self, value) -> dict:
        pairs = [(self.key(k), self.decode(v)) for k, v in self.items(value, "dict")]
        result = OrderedDict(pairs) if value["ordered"] else dict(pairs)
        if "metadata" in value and value["ordered"]:
            result._metadata = self.decode(value["metadata"])
        return result


def _device(name) -> _C.device:
    try:
        return _C.device(name)
    except RuntimeError as e:
        raise LoadError(f"[load] the file is damaged: {e}") from None


def _require_device(device: _C.device) -> _C.device:
    """Returns the device that a tensor was saved from, if this engine has it."""
    from . import cuda

    if device.type == "cuda" and (device.index or 0) >= cuda.device_count():
        raise RuntimeError(f"[load] the tensor was on {device}, which this engine does not have: use load(..., map_location='cpu')")
    return device


def _dtype(name) -> _C.dtype:
    dtype = getattr(_C, str(name), None)
    if not isinstance(dtype, _C.dtype):
        raise LoadError(f"[load] the file is damaged: expected the name of a dtype, got {str(name)[:100]!r}")
    return dtype


_TORCH_FILE_MESSAGE = (
    "[load] expected a file written by teletensor.save, got a file of PyTorch's torch.save. It contains pickles, which "
    "can run code and are not read. Where PyTorch is installed, convert the file: numpy.savez('weights.npz', **{k: "
    "v.numpy() for k, v in torch.load('weights.pt', weights_only=True).items()}). Then read the converted file with "
    "{k: teletensor.from_numpy(v) for k, v in numpy.load('weights.npz').items()}"
)


def _format_error(f) -> str:
    """Returns the error message for a file that is not a zip archive."""
    if hasattr(f, "read"):
        f.seek(0)
        start = f.read(16)
    else:
        with open(f, "rb") as file:
            start = file.read(16)
    if start.startswith(_LEGACY_MAGIC):
        return _TORCH_FILE_MESSAGE
    if start[8:9] == b"{":
        return "[load] expected a file written by teletensor.save, got a safetensors file: read it with safetensors.numpy.load_file"
    if start[:1] == b"\x80":
        return "[load] expected a file written by teletensor.save, got a pickle, which can run code and is not read"
    return "[load] expected a file written by teletensor.save, got a file that is truncated or not a zip archive"


def _reject_constant(name: str):
    raise ValueError(f"{name} is not JSON")


def _read(f, map_device):
    with zipfile.ZipFile(f) as zipped:
        names = zipped.namelist()
        if "structure.json" not in names and any(name.endswith("/data.pkl") for name in names):
            raise LoadError(_TORCH_FILE_MESSAGE)
        archive = _Archive(zipped)
        structure = json.loads(archive.read("structure.json"), parse_constant=_reject_constant)
        _require(isinstance(structure, dict), "an object in structure.json", structure)
        if structure.get("format") != "teletensor" or structure.get("version") != 1:
            raise LoadError(f"[load] expected a teletensor file of version 1, got {str(structure.get('format'))[:100]!r}")
        return _Decoder(archive, map_device).decode(structure["value"])


def _device_mapper(map_location):
    """Returns a function that maps a tensor's saved device to its target device, or to None if it does not change."""
    if map_location is None:
        return lambda saved: None
    if isinstance(map_location, dict):
        devices = {str(_C.device(k)): _C.device(v) for k, v in map_location.items()}
        return lambda saved: devices.get(str(saved))
    if callable(map_location):
        raise NotImplementedError("[load] expected map_location to be a device, a dict or None, got a function: files contain no storages")
    device = _C.device(map_location)
    return lambda saved: device


def load(f, map_location=None, pickle_module=None, *, weights_only: bool | None = True, mmap: bool | None = None):
    """Reads an object that save wrote. Runs no code from the file.

    Args:
        map_location: the device for all tensors, or a dict from saved devices to devices. By default tensors are
            created on the devices from which they were saved.
        weights_only: has no effect, since a file never contains code.
        mmap: has no effect, since the bytes are sent to the engine.

    Raises:
        NotImplementedError: ``pickle_module`` is given, or ``map_location`` is a function.
        teletensor.serialization.LoadError: the file is damaged or was not written by save (PyTorch's own files contain
            pickles, which are not read). LoadError is a RuntimeError.
        RuntimeError: a tensor was on a GPU that this engine does not have, or the engine has too little memory.
        OSError: the file cannot be opened or read.
    """
    if not isinstance(f, (str, os.PathLike)) and not (hasattr(f, "read") and hasattr(f, "seek")):
        raise TypeError(f"[load] expected a path or a seekable binary file, got {type(f).__name__}")
    reject_values("load", "nothing is pickled", pickle_module=pickle_module)
    check_optional_flags("load", weights_only=weights_only, mmap=mmap)
    map_device = _device_mapper(map_location)
    try:
        return _read(f, map_device)
    except io.UnsupportedOperation:
        raise
    except zipfile.BadZipFile as e:
        message = f"[load] the file is damaged: {e}" if "not a zip file" not in str(e) else _format_error(f)
        raise LoadError(message) from None
    except RecursionError:
        raise LoadError("[load] the file is damaged: structure.json is nested too deeply") from None
    except (
        ArithmeticError, AttributeError, EOFError, LookupError, NotImplementedError, TypeError, ValueError, struct.error, zlib.error,
    ) as e:  # fmt: skip
        raise LoadError(f"[load] the file is damaged: {str(e)[:200]}") from None
    except OSError as e:
        if e.errno != errno.EINVAL:
            raise
        raise LoadError("[load] the file is damaged: an offset in it is invalid") from None
