"""`shorten_data.py FROM TO`: writes Fashion-MNIST with a fifth of its images, for the GPU bundle."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

KEPT = {"train": 12_000, "t10k": 2_000}


def shorten(source: Path, target: Path, kept: int) -> None:
    """Writes the first `kept` items of an IDX file. Its sizes are big-endian; the first is the count."""
    raw = gzip.decompress(source.read_bytes())
    header = 4 + 4 * raw[3]
    count = int.from_bytes(raw[4:8], "big")
    item = (len(raw) - header) // count
    short = raw[:4] + kept.to_bytes(4, "big") + raw[8:header] + raw[header : header + kept * item]
    target.write_bytes(gzip.compress(short))


if __name__ == "__main__":
    folder, out = map(Path, sys.argv[1:])
    for split, kept in KEPT.items():
        for kind in ("images-idx3", "labels-idx1"):
            shorten(folder / f"{split}-{kind}-ubyte.gz", out / f"{split}-{kind}-ubyte.gz", kept)
