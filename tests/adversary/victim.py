"""The victim: trains a small network from a fixed seed and prints, as JSON, digests of its weights after every DIGEST_EVERY
steps, and its step times.

Usage: ``python -m tests.adversary.victim STEPS SECONDS``, with TELETENSOR_ADDRESS and TELETENSOR_TOKEN set. Ends after STEPS
steps, or with the first digest after SECONDS seconds.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time

import teletensor as torch
import teletensor.nn as nn
import teletensor.nn.functional as F

DIGEST_EVERY = 20  # steps


def main(steps: int, limit: float) -> None:
    """Trains, and prints the report."""
    torch.manual_seed(1)
    torch.set_num_threads(1) if hasattr(torch, "set_num_threads") else None
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Dropout(0.1), nn.Linear(128, 10))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    images, labels = torch.randn(512, 64), torch.randint(0, 10, (512,))
    seconds, digests, end = [], {}, time.monotonic() + limit
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
        if (step + 1) % DIGEST_EVERY == 0 or step + 1 == steps:
            weights = b"".join(p.detach().numpy().tobytes() for p in model.parameters())
            digests[step + 1] = hashlib.sha256(weights).hexdigest()
            if time.monotonic() > end:
                break
    print(json.dumps({"digests": digests, "seconds": seconds}))


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]))
