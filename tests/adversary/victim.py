"""The victim: trains a small network from a fixed seed and prints, as JSON, a digest of its weights and its step
times.

Usage: ``python -m tests.adversary.victim STEPS``, with TELETENSOR_ADDRESS and TELETENSOR_TOKEN set.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time

import teletensor as torch
import teletensor.nn as nn
import teletensor.nn.functional as F


def main(steps: int) -> None:
    """Trains, and prints the report."""
    torch.manual_seed(1)
    torch.set_num_threads(1) if hasattr(torch, "set_num_threads") else None
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Dropout(0.1), nn.Linear(128, 10))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    images, labels = torch.randn(512, 64), torch.randint(0, 10, (512,))
    seconds = []
    for step in range(steps):
        began = time.perf_counter()
        batch = slice(step * 64 % 512, step * 64 % 512 + 64)
        loss = F.cross_entropy(model(images[batch]), labels[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss.item()
        seconds.append(time.perf_counter() - began)
        time.sleep(0.005)
    digest = hashlib.sha256(b"".join(p.detach().numpy().tobytes() for p in model.parameters())).hexdigest()
    print(json.dumps({"digest": digest, "seconds": seconds}))


if __name__ == "__main__":
    main(int(sys.argv[1]))
