"""Prints the microseconds that issuing a batch takes on the caller's thread, as JSON: data sets whose samples are tensors.

BENCH_TORCH is the measured package. teletensor makes the batches in the engine; augmentations are measured there only.
"""

from __future__ import annotations

import importlib
import json
import os
import statistics
import time

torch = importlib.import_module(os.environ.get("BENCH_TORCH", "teletensor"))
data = importlib.import_module(torch.__name__ + ".utils.data")
SAMPLES = 10_000


def issue(dataset, batch: int) -> float:
    """The median time of a shuffled loader's next(), without the steps that draw an order."""
    loader, seconds = data.DataLoader(dataset, batch, shuffle=True), []
    for _ in range(3):
        iterator = iter(loader)
        next(iterator)
        for i in range(SAMPLES // batch - 1):
            start = time.perf_counter()
            drawn = next(iterator)
            seconds.append(time.perf_counter() - start)
            if i % 8 == 7:  # the queue of calls stays short, as in a loop whose steps take longer
                drawn[0].flatten()[0].item()
    return statistics.median(seconds) * 1e6


def main() -> None:
    """Measures and prints."""
    images = torch.randint(0, 256, (SAMPLES, 3, 32, 32)).to(torch.uint8)
    labels = torch.arange(SAMPLES)
    rows = {f"{batch} images": issue(data.TensorDataset(images, labels), batch) for batch in (64, 256)}
    if torch.__name__ == "teletensor":
        augment = data.augment
        steps = augment.on(
            0, augment.RandomCrop(32, 4), augment.RandomHorizontalFlip(), augment.Normalize((0.5,) * 3, (0.25,) * 3)
        )
        rows["256 images, cropped, flipped, normalised"] = issue(
            data.PinnedDataset.from_tensors(images, labels, transform=steps), 256
        )
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
