"""Converts the arguments of SummaryWriter to arrays, and arranges images in grids."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import _C


def make_np(x: Any) -> np.ndarray:
    """Returns the values of a tensor, an array or a number; bfloat16 as float32. Waits for the engine.

    Raises:
        NotImplementedError: another type.
    """
    if isinstance(x, np.ndarray):
        return x
    if np.isscalar(x):
        return np.array([x])
    if isinstance(x, _C.Tensor):
        x = x.detach()
        return (x.float() if x.dtype == _C.bfloat16 else x).numpy(force=True)
    raise NotImplementedError(f"Got {type(x)}, but numpy array or torch tensor are expected.")


def make_grid(images: np.ndarray, columns: int = 8) -> np.ndarray:
    """Returns images of shape (n, 1 or 3, height, width) as one image (3, rows * height, columns * width)."""
    if images.ndim == 4 and images.shape[1] == 1:
        images = images.repeat(3, axis=1)
    if images.ndim != 4 or images.shape[1] != 3:
        raise AssertionError(f"[add_images] expected images of shape (n, 1 or 3, height, width), got {images.shape}")
    count, _, height, width = images.shape
    columns = min(count, columns)
    rows = math.ceil(count / columns)
    blank = np.zeros((rows * columns - count, 3, height, width), images.dtype)
    cells = np.concatenate([images, blank]).reshape(rows, columns, 3, height, width)
    return cells.transpose(2, 0, 3, 1, 4).reshape(3, rows * height, columns * width)


def convert_to_hwc(image: np.ndarray, dataformats: str) -> np.ndarray:
    """Returns an image, or several in a grid, as one image of shape (height, width, channels).

    Args:
        dataformats: the meaning of the dimensions: an order of "NCHW", "CHW" or "HW".

    Raises:
        AssertionError: `dataformats` repeats a letter or does not match the array's dimensions.
    """
    if len(set(dataformats)) != len(dataformats):
        raise AssertionError(f"You can not use the same dimension shorthand twice. input_format: {dataformats}")
    if image.ndim != len(dataformats):
        raise AssertionError(
            f"size of input tensor and input format are different. tensor shape: {image.shape}, input_format: {dataformats}"
        )
    order = {2: "HW", 3: "HWC", 4: "NCHW"}.get(image.ndim, "")
    if set(order) != set(dataformats.upper()):
        raise AssertionError(f"[add_image] expected an order of NCHW, CHW or HW, got dataformats={dataformats!r}")
    image = image.transpose([dataformats.upper().index(letter) for letter in order])
    if image.ndim == 4:
        return make_grid(image).transpose(1, 2, 0)
    if image.ndim == 2:
        image = image[:, :, None]
    return image.repeat(3, axis=2) if image.shape[2] == 1 else image


def to_bytes(image: np.ndarray) -> np.ndarray:
    """Returns uint8 values: those of uint8 as they are, others scaled from [0, 1] to [0, 255]."""
    scale = 1 if image.dtype == np.uint8 else 255
    return (image.astype(np.float32) * scale).clip(0, 255).astype(np.uint8)


def tile_videos(videos: np.ndarray) -> np.ndarray:
    """Returns videos (n, time, channels, height, width) side by side, as (time, height, width, channels)."""
    if videos.ndim != 5:
        raise AssertionError(f"[add_video] expected shape (n, time, channels, height, width), got {videos.shape}")
    count = videos.shape[0]
    padded = 1 << (count - 1).bit_length()
    videos = np.concatenate([videos, np.zeros((padded - count, *videos.shape[1:]), videos.dtype)])
    _, frames, channels, height, width = videos.shape
    rows = 1 << ((count.bit_length() - 1) // 2)
    cells = videos.reshape(rows, padded // rows, frames, channels, height, width)
    return cells.transpose(2, 0, 4, 1, 5, 3).reshape(frames, rows * height, padded // rows * width, channels)


def figure_to_image(figures, close: bool = True) -> np.ndarray:
    """Returns matplotlib's figure as (3, height, width), a list of figures as (n, 3, height, width)."""
    from matplotlib import pyplot
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    def render(figure) -> np.ndarray:
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        pixels = np.asarray(canvas.buffer_rgba())[:, :, :3].transpose(2, 0, 1)
        if close:
            pyplot.close(figure)
        return pixels

    return np.stack([render(figure) for figure in figures]) if isinstance(figures, list) else render(figures)
