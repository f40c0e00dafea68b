"""GGUF files: weights of llama.cpp's formats, dequantized in the engine or kept packed.

>>> file = teletensor.ao.gguf.GGUFFile("model.gguf")
>>> file.metadata["general.architecture"], list(file.tensors)[:2]
>>> state = teletensor.ao.gguf.load("model.gguf")  # {name: tensor}, float32 where the file is quantized
>>> state = teletensor.ao.gguf.load("model.gguf", packed=True)  # quantized weights stay packed
"""

from __future__ import annotations

import os
from collections.abc import Callable

from ... import _C
from ..._C import Tensor
from ..._toplevel.buffers import frombuffer
from ...serialization._constructor import allow_classes
from ._file import GGUFError, GGUFFile, TensorInfo
from ._types import FORMATS, Format
from ._weights import GGUFTensor, packed, plain

__all__ = ["FORMATS", "Format", "GGUFError", "GGUFFile", "GGUFTensor", "TensorInfo", "load", "load_tensor"]

allow_classes([GGUFTensor])


def load_tensor(file: GGUFFile, name: str, *, packed: bool = False, dtype: _C.dtype = _C.float32, device: object = None) -> Tensor:
    """One tensor of a file. The bytes are uploaded as they are, and computed with in the engine.

    Args:
        packed: quantized weights stay packed; F.linear and F.embedding compute with them.
        dtype: of quantized weights.
        device: where the tensor is created.

    Raises:
        KeyError: the file has no tensor of this name.
        GGUFError: the file became shorter.
    """
    info = file.tensors[name]
    with open(file.path, "rb") as source:
        source.seek(info.offset)
        data = source.read(info.nbytes)
    if len(data) != info.nbytes:
        raise GGUFError(f"[gguf] expected {info.nbytes} bytes of {name!r}, got {len(data)}")
    content = frombuffer(bytearray(data), dtype=_C.uint8) if data else _C.torch.empty(0, dtype=_C.uint8)
    content = content if device is None else content.to(device)
    if packed:
        return _packed(content, info.format, info.shape, dtype)
    values = plain(content, info.format, info.shape)
    return values if info.format.block == 1 else values.to(dtype)


_packed = packed


def load(
    path: str | os.PathLike, *, packed: bool = False, dtype: _C.dtype = _C.float32, device: object = None,
    names: Callable[[str], str | None] | None = None,
) -> dict[str, Tensor]:  # fmt: skip
    """The tensors of a GGUF file by name.

    Args:
        packed: quantized weights stay packed: Q8_0 as Int8Tensor, Q4_0 as Int4Tensor, others as GGUFTensor.
        dtype: of quantized weights, when dequantized.
        names: returns the name of a tensor in the result, or None to leave it out.

    Raises:
        GGUFError: the file is damaged, exceeds a limit, or has tensors of unknown types.
    """
    file = GGUFFile(path)
    found = {}
    for name in file.tensors:
        title = name if names is None else names(name)
        if title is not None:
            found[title] = load_tensor(file, name, packed=packed, dtype=dtype, device=device)
    return found
