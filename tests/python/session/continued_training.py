"""A training run with views, hooks, random numbers and reads, for clients whose engine is replaced meanwhile.

Prints a line per step, so that a test knows how far it is, and at the end the bits of its weights.
"""

from __future__ import annotations

import hashlib
import sys
import time

import teletensor as torch
from teletensor import nn


def train(steps: int, pause: float = 0.0) -> str:
    torch.manual_seed(11)
    model = nn.Sequential(nn.Linear(12, 24), nn.Tanh(), nn.Dropout(0.3), nn.Linear(24, 4))
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    scale = torch.ones(4, requires_grad=True)
    seen = []
    total = torch.zeros(8)
    window = total[2:6]  # a view: writes to it are writes to its base
    trace = hashlib.sha256()
    for step in range(steps):
        x = torch.randn(16, 12)
        hidden = model(x)
        handle = hidden.register_hook(lambda gradient: gradient * 0.5)
        written = hidden.clone()
        written[:, 1:3].mul_(2.0)
        loss = (written * scale).pow(2).mean()
        if step % 3 != 0:
            optimizer.zero_grad()
        loss.backward()
        handle.remove()
        optimizer.step()
        window.add_(hidden.detach().mean(0))
        seen.append(loss)
        if step % 5 == 4:
            trace.update(" ".join(each.item().hex() for each in seen).encode())
            seen.clear()
            print("step", step, flush=True)
            time.sleep(pause)
    for each in [*model.parameters(), scale.grad, total, torch.rand(3)]:
        trace.update(each.detach().numpy().tobytes())
    return trace.hexdigest()


if __name__ == "__main__":
    torch.connect(sys.argv[1])
    if len(sys.argv) > 4:
        torch.persist(float(sys.argv[4]))
    print("digest", train(int(sys.argv[2]), *map(float, sys.argv[3:4])), flush=True)
