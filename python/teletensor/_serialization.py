"""save and load: a safe container. No pickle: loading runs no code.

A file is a zip archive: ``structure.json`` holds the object (dicts, lists, tuples, numbers,
strings, None), with ``{"tensor": n}`` in a tensor's place; ``tensor/n`` holds its row-major bytes.
"""

from __future__ import annotations

import json
import math
import zipfile
from collections import OrderedDict

from . import _C
from ._C import Tensor


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
            more = {"metadata": self.encode(value._metadata)} if hasattr(value, "_metadata") else {}  # of a state_dict
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
        raise TypeError(f"save takes tensors, dicts, lists, tuples, numbers and strings, got {type(value).__name__}")


def save(obj, f, **ignored) -> None:
    """Writes the object (a state_dict, usually) to a path or a binary file. Waits for the values."""
    encoder = _Encoder()
    structure = encoder.encode(obj)
    with zipfile.ZipFile(f, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("structure.json", json.dumps({"format": "teletensor", "version": 1, "value": structure}))
        for i, tensor in enumerate(encoder.tensors):
            data = bytearray(tensor.numel() * tensor.dtype.itemsize)
            if data:
                _C.read_into(tensor.detach(), data)
            archive.writestr(f"tensor/{i}", bytes(data))


class _Decoder:
    def __init__(self, archive: zipfile.ZipFile, device) -> None:
        self.archive, self.device = archive, device
        self.kinds = {
            "tensor": self.tensor, "dict": self.dict, "tuple": lambda v: tuple(map(self.decode, v["tuple"])),
            "list": lambda v: [self.decode(x) for x in v["list"]], "set": lambda v: {self.decode(x) for x in v["set"]},
            "dtype": lambda v: _dtype(v["dtype"]), "device": lambda v: _C.device(v["device"]),
            "float": lambda v: float(v["float"]),
        }  # fmt: skip

    def decode(self, value):
        if isinstance(value, dict):
            return self.kinds[next(iter(value))](value)
        return value

    def tensor(self, value) -> Tensor:
        data = self.archive.read(f"tensor/{int(value['tensor'])}")
        device = self.device or _present(value.get("device", "cpu"))
        tensor = _C.from_bytes(data, _dtype(value["dtype"]), [int(n) for n in value["shape"]], device)
        if value["type"] == "Parameter":
            from .nn import Parameter

            return Parameter(tensor, value["requires_grad"])
        tensor.requires_grad = value["requires_grad"]
        return tensor

    def dict(self, value) -> dict:
        pairs = [(self.decode(k), self.decode(v)) for k, v in value["dict"]]
        result = OrderedDict(pairs) if value["ordered"] else dict(pairs)
        if "metadata" in value and value["ordered"]:
            result._metadata = self.decode(value["metadata"])
        return result


def _present(name: str) -> _C.device:
    """The device that a tensor was saved from."""
    from . import cuda

    device = _C.device(name)
    if device.type == "cuda" and device.index >= cuda.device_count():
        raise RuntimeError(f"[load] the tensor was on {name}, which this engine has not: load(..., map_location='cpu') helps")
    return device


def _dtype(name: str) -> _C.dtype:
    dtype = getattr(_C, str(name), None)
    if not isinstance(dtype, _C.dtype):
        raise RuntimeError(f"[load] unknown dtype, got {name!r}")
    return dtype


def load(f, map_location=None, weights_only: bool = True, **ignored):
    """Reads what save wrote. Runs no code from the file. Tensors go where they were, or to the device ``map_location``.

    Raises:
        RuntimeError: the file is none of ours (PyTorch's own files hold pickles, which are not read).
    """
    device = None if map_location is None or callable(map_location) else _C.device(map_location)
    try:
        with zipfile.ZipFile(f) as archive:
            structure = json.loads(archive.read("structure.json"))
            if structure.get("format") != "teletensor" or structure.get("version") != 1:
                raise RuntimeError(f"[load] not a teletensor file of version 1, got {structure.get('format')!r}")
            return _Decoder(archive, device).decode(structure["value"])
    except (zipfile.BadZipFile, KeyError) as e:
        raise RuntimeError(f"[load] not a file that teletensor.save wrote: {e}") from None
