"""Training steps: microseconds per step, as JSON. BENCH_TORCH is the measured package."""

import importlib
import json
import os
import time

torch = importlib.import_module(os.environ.get("BENCH_TORCH", "teletensor"))
nn, F = torch.nn, torch.nn.functional


def step_time(model, x, y, optimizer, steps: int = 60, rounds: int = 4) -> float:
    """Returns the best time per step of several runs of `steps` steps, each of which waits only at its end."""
    results = []
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(steps):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
        loss.item()
        results.append((time.perf_counter() - start) / steps)
    return min(results) * 1e6


def mlp():
    return nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 10))


def cnn():
    return nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64 * 64, 10),
    )  # fmt: skip


x, y = torch.randn(128, 784), torch.randint(0, 10, (128,))
images, labels = torch.randn(64, 3, 32, 32), torch.randint(0, 10, (64,))
rows = {}
for name, make in (("SGD", lambda p: torch.optim.SGD(p, 0.01)), ("Adam", lambda p: torch.optim.Adam(p, 1e-3))):
    model = mlp()
    rows[f"MLP 784-512-256-10, batch 128, {name} step"] = step_time(model, x, y, make(model.parameters()))
model = cnn()
rows["two convolutions 32x32, batch 64, SGD step"] = step_time(
    model, images, labels, torch.optim.SGD(model.parameters(), 0.01), steps=15
)
print(json.dumps(rows))
