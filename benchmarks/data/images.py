"""Prints the seconds per epoch of a DataLoader that decodes images, as JSON. BENCH_TORCH is the measured package.

Arguments: the folder of images, number of workers, epochs. The loop reads one number of each batch, so that an epoch ends when
the last batch has arrived.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from pathlib import Path

sys.path.append(os.environ.get("BENCH_PILLOW", ""))  # the folder of Pillow, if the environment lacks it
torch = importlib.import_module(os.environ.get("BENCH_TORCH", "teletensor"))
data = importlib.import_module(torch.__name__ + ".utils.data")


class Images(data.Dataset):
    """Decoded images of shape (3, 224, 224), uint8, and labels."""

    def __init__(self, folder: str):
        self.paths = sorted(map(str, Path(folder).iterdir()))

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, i: int):
        import numpy as np
        from PIL import Image

        with Image.open(self.paths[i]) as image:
            pixels = np.asarray(image.convert("RGB").resize((224, 224)))
        return np.ascontiguousarray(pixels.transpose(2, 0, 1)), i


def main() -> None:
    """Measures and prints."""
    folder, workers, epochs = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    loader = data.DataLoader(Images(folder), 32, num_workers=workers, persistent_workers=workers > 0)
    seconds = []
    for _ in range(epochs + 1):
        start, total = time.perf_counter(), None
        for images, labels in loader:
            part = images[:, 0, 0, 0].float().sum() + labels.sum()
            total = part if total is None else total + part
        total.item()
        seconds.append(time.perf_counter() - start)
    print(json.dumps(seconds[1:]))  # the first epoch starts the workers and fills the page cache


if __name__ == "__main__":
    main()
