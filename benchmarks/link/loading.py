"""`python -m benchmarks.link.loading ADDRESS`: milliseconds per training step of each way to load data, over a link.

Every step reads its loss, so that a step includes a round trip and all other waits. Run it with an engine
behind a relay (build/bin/link_relay) and TELETENSOR_SHARED_MEMORY=0.
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np

import teletensor as torch

data = torch.utils.data


class Images(data.Dataset):
    """Images and labels that are made in the client: 3 MB per batch of 16."""

    def __len__(self) -> int:
        return 480

    def __getitem__(self, i: int) -> tuple[np.ndarray, int]:
        return np.full((3, 128, 128), i, np.float32), i % 10


def milliseconds_per_step(loader) -> float:
    """The median over an epoch, excluding its first steps."""
    model = torch.nn.Linear(3 * 128 * 128, 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    times, start = [], time.perf_counter()
    for x, y in loader:
        loss = torch.nn.functional.cross_entropy(model(x.flatten(1)), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss.item()
        now = time.perf_counter()
        times.append(now - start)
        start = now
    return statistics.median(times[4:]) * 1e3


def main() -> None:
    """Connects, measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("address")
    torch.connect(parser.parse_args().address)
    torch.manual_seed(0)
    images = Images()
    ways = {"num_workers=0": data.DataLoader(images, 16), "num_workers=2": data.DataLoader(images, 16, num_workers=2)}
    ways["prefetch"] = data.prefetch(data.DataLoader(images, 16))
    ways["PinnedDataset"] = data.DataLoader(data.PinnedDataset(images), 16)
    for name, loader in ways.items():
        print(f"{name:16} {milliseconds_per_step(loader):8.1f} ms per step", flush=True)


if __name__ == "__main__":
    main()
