"""Encoded images, decoded in the client with Pillow."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from .. import _values
from .._call import Call, keeps

_MOST_PIXELS = 1 << 26


@keeps()
def _decode(call: Call, data: Any) -> Any:
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError(
            "[ImageDecoder] the package that decodes images is missing; install it with: pip install pillow"
        ) from error
    pixel_format = call.get("pixel_format", "RGB")
    modes = {"RGB": "RGB", "BGR": "RGB", "Grayscale": "L"}
    if pixel_format not in modes:
        raise ValueError(f"[ImageDecoder] expected a pixel_format of RGB, BGR or Grayscale, got {pixel_format!r}")
    image = Image.open(io.BytesIO(_values.array(data).astype(np.uint8).tobytes()))
    if image.width * image.height > _MOST_PIXELS:
        raise ValueError(f"[ImageDecoder] expected at most {_MOST_PIXELS} pixels, got {image.width} x {image.height}")
    found = np.array(image.convert(modes[pixel_format]))
    if pixel_format == "BGR":
        found = found[..., ::-1].copy()
    return call.tensor(found[..., None] if pixel_format == "Grayscale" else found)


TABLE: dict[str, tuple] = {"ImageDecoder": ((20, _decode),)}
