"""Small operations: microseconds per operation, as JSON. BENCH_TORCH is the measured package."""

import importlib
import json
import os
import time

torch = importlib.import_module(os.environ.get("BENCH_TORCH", "teletensor"))
N = 100_000


def best(function, rounds: int = 5) -> float:
    return min(function() for _ in range(rounds))


def issue() -> float:
    """Returns the time on the caller's thread until a call of an 8x8 a + b returns. The result is dropped."""
    seconds = []
    for _ in range(200):
        start = time.perf_counter()
        for _ in range(100):
            a + b
        seconds.append(time.perf_counter() - start)
        torch.ones(1).item()
    return sorted(seconds)[len(seconds) // 2] / 100


def chain(x) -> float:
    start = time.perf_counter()
    for _ in range(N):
        x = x + b
    x.sum().item()
    return (time.perf_counter() - start) / N


def chain_with_gradients() -> float:
    leaf = a.clone().requires_grad_()
    x, start = leaf, time.perf_counter()
    for _ in range(N):
        x = x + b
    x.sum().backward()
    leaf.grad.sum().item()
    return (time.perf_counter() - start) / N


def item() -> float:
    seconds = []
    for _ in range(2000):
        y = a.sum()
        start = time.perf_counter()
        y.item()
        seconds.append(time.perf_counter() - start)
    return sorted(seconds)[len(seconds) // 2]


def large() -> float:
    start = time.perf_counter()
    for _ in range(10):
        c = p + q
    c[0].item()
    return (time.perf_counter() - start) / 10


def fused() -> float:
    start = time.perf_counter()
    for _ in range(10):
        c = torch.relu((p + q) * 2)
    c[0].item()
    return (time.perf_counter() - start) / 10


a, b = torch.ones(8, 8), torch.ones(8, 8)
p, q = torch.rand(10_000_000), torch.rand(10_000_000)
rows = {
    "8x8 a + b, issued": issue,
    "chain of 100,000 a + b until the result is read, time per add": lambda: chain(a),
    "chain of a + b with gradients, forward and backward, time per add": chain_with_gradients,
    "item() of a sum, p50": item,
    "a + b on 10 million floats": large,
    "relu((a + b) * 2) on 10 million floats": fused,
}
with_rounds = {name: best(f, 2 if "gradients" in name or "p50" in name else 4) * 1e6 for name, f in rows.items()}
print(json.dumps(with_rounds))
