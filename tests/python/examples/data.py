"""Random data in the formats of the examples' data sets."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np


def write_text(folder: Path, size: int = 400) -> Path:
    """Writes a text of 13 different characters; returns its path."""
    path = folder / "text.txt"
    path.write_bytes(np.random.default_rng(0).integers(97, 110, size).astype(np.uint8).tobytes())
    return path


def write_images(folder: Path) -> Path:
    """Writes 24 images and labels for training and for testing in the format of Fashion-MNIST; returns the folder."""
    generator = np.random.default_rng(0)
    for split in ("train", "t10k"):
        for name, shape in (("images-idx3", (24, 28, 28)), ("labels-idx1", (24,))):
            data = generator.integers(0, 256 if len(shape) > 1 else 10, shape).astype(np.uint8)
            header = bytes([0, 0, 8, len(shape)]) + np.array(shape, ">i4").tobytes()
            with gzip.open(folder / f"{split}-{name}-ubyte.gz", "wb") as file:
                file.write(header + data.tobytes())
    return folder
