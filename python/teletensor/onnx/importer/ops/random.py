"""Random numbers. A seed gives equal numbers in every run, but not those of other implementations."""

from __future__ import annotations

import struct
from typing import Any

import teletensor as torch
from teletensor.nn import functional as F  # noqa: N812 - PyTorch's name

from .. import _types, _values
from .._call import Call, keeps

Tensor = torch.Tensor


def _generator(call: Call) -> Any:
    """A generator with the node's seed, or None: the session's."""
    seed = call.get("seed")
    if seed is None:
        return None
    generator = torch.Generator(device=call.device)
    generator.manual_seed(struct.unpack("<I", struct.pack("<f", seed))[0])
    return generator


def _dtype(call: Call, like: Tensor | None = None) -> torch.dtype:
    if "dtype" in call.attributes:
        return _types.dtype_of(call.get("dtype"))
    return torch.float32 if like is None else like.dtype


def _uniform(call: Call, shape: Any, dtype: torch.dtype) -> Tensor:
    low, high = call.get("low", 0.0), call.get("high", 1.0)
    drawn = torch.rand(shape, generator=_generator(call), device=call.device)
    return (drawn * (high - low) + low).to(dtype)


def _normal(call: Call, shape: Any, dtype: torch.dtype) -> Tensor:
    drawn = torch.randn(shape, generator=_generator(call), device=call.device)
    return (drawn * call.get("scale", 1.0) + call.get("mean", 0.0)).to(dtype)


def _bernoulli(call: Call, x: Tensor) -> Tensor:
    drawn = torch.rand(x.shape, generator=_generator(call), device=x.device)
    return (drawn < x).to(_dtype(call, x))


def _multinomial(call: Call, x: Tensor) -> Tensor:
    dtype = _types.dtype_of(call.get("dtype", _types.INT32))
    count = call.get("sample_size", 1)
    return torch.multinomial(torch.softmax(x, -1), count, True, generator=_generator(call)).to(dtype)


@keeps(1, 2)
def _dropout(call: Call, x: Tensor, ratio: Any = None, training: Any = None) -> tuple:
    if call.version < 7:
        active, p = not call.get("is_test", 0), call.get("ratio", 0.5)
    elif call.version < 12:
        active, p = False, call.get("ratio", 0.5)
    else:
        active = training is not None and _values.truth(training)
        p = _values.numbers(ratio)[0] if ratio is not None else 0.5
    mask_dtype = x.dtype if call.version < 10 else torch.bool
    if not active or p == 0.0:
        return x, torch.ones_like(x, dtype=mask_dtype) if call.wants(1) else None
    if call.get("seed") is None and not call.wants(1):
        return F.dropout(x, p, True), None
    kept = torch.rand(x.shape, generator=_generator(call), device=x.device) >= p
    return x * kept / (1 - p), kept.to(mask_dtype)


TABLE: dict[str, tuple] = {
    "RandomUniform": ((1, lambda call: _uniform(call, call.need("shape"), _dtype(call))),),
    "RandomNormal": ((1, lambda call: _normal(call, call.need("shape"), _dtype(call))),),
    "RandomUniformLike": ((1, lambda call, x: _uniform(call, x.shape, _dtype(call, x))),),
    "RandomNormalLike": ((1, lambda call, x: _normal(call, x.shape, _dtype(call, x))),),
    "Bernoulli": ((15, _bernoulli),), "Multinomial": ((7, _multinomial),), "Dropout": ((1, _dropout),),
}  # fmt: skip
