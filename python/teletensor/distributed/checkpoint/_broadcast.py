"""Copies a state dict of rank 0 to all ranks."""

from __future__ import annotations

import json
from typing import Any

from ... import _C
from ..._C import Tensor
from ..._checkpoint import tree
from .._collectives import broadcast
from .._objects import broadcast_object_list
from .._world import get_rank
from ._composed import divided, is_composed

_TENSOR = b"tensor"  # a tensor is described by (_TENSOR, its shape, its dtype)
_COMPOSED = b"composed"  # a sparse, nested or quantized tensor by (_COMPOSED, what divided() returns for it, with described components)


def _described(value) -> Any:
    if is_composed(value):
        text, components = divided("", value)
        return (_COMPOSED, text, [_described(part) for part in components.values()])
    if isinstance(value, Tensor):
        return (_TENSOR, tuple(value.shape), value.dtype)
    if isinstance(value, dict):
        return {key: _described(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_described(item) for item in value]
    return value


def _copied(value, described, device: _C.device) -> Any:
    if isinstance(described, tuple) and described[:1] == (_TENSOR,):
        if get_rank() == 0:
            tensor = value.detach().to(device).contiguous()
        else:
            tensor = _C.torch.empty(described[1], dtype=described[2], device=device)
        broadcast(tensor, 0)
        return tensor
    if isinstance(described, tuple) and described[:1] == (_COMPOSED,):
        _, text, parts = described
        own = list(divided("", value)[1].values()) if get_rank() == 0 else [None] * len(parts)
        copies = {f"/{i}": _copied(v, part, device) for i, (v, part) in enumerate(zip(own, parts, strict=True))}
        return tree.decode(json.loads(text), copies.__getitem__)
    if isinstance(described, dict):
        own = value if get_rank() == 0 else dict.fromkeys(described)
        return {key: _copied(own[key], item, device) for key, item in described.items()}
    if isinstance(described, list):
        own = value if get_rank() == 0 else [None] * len(described)
        return [_copied(v, item, device) for v, item in zip(own, described, strict=True)]
    return described


def broadcast_values(value, device: _C.device) -> Any:
    """Returns the value of rank 0: nested dicts and lists with tensors, whose copies are on the device. All ranks must call
    it; the other ranks' values are not read.
    """
    described = [_described(value) if get_rank() == 0 else None]
    broadcast_object_list(described, 0)
    return _copied(value, described[0], device)
