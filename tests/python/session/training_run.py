"""A short training run whose result shows every bit, for clients of tests."""

import teletensor as torch
from teletensor import nn


def train(steps: int) -> str:
    """Trains a small network from a fixed seed; returns its last loss and the sum of its weights, exactly."""
    torch.manual_seed(7)
    model = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    x, y = torch.randn(64, 16), torch.randn(64, 1)
    loss = torch.zeros(())
    for _ in range(steps):
        loss = ((model(x) - y) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return " ".join(value.item().hex() for value in (loss, sum(p.sum() for p in model.parameters())))
