"""One rank of a measurement. Prints JSON. Run by ``python -m benchmarks.distributed`` with the variables of env://.

Usage: ``worker.py LIBRARY WORKLOAD SECONDS [SIZE...]`` with LIBRARY ``torch`` or ``teletensor``.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time

LIBRARY, WORKLOAD, SECONDS, *SIZES = sys.argv[1:]

start = time.perf_counter()
torch = importlib.import_module(LIBRARY)
dist = importlib.import_module(f"{LIBRARY}.distributed")
if LIBRARY == "torch":
    torch.set_num_threads(1)
dist.init_process_group("gloo" if LIBRARY == "torch" else os.environ.get("BENCH_BACKEND") or None)
formed = time.perf_counter() - start


def agreed(value: float) -> float:
    """Returns rank 0's value on all ranks, so that they run the same number of steps."""
    t = torch.tensor([value], dtype=torch.float64)
    dist.broadcast(t, 0)
    return t.item()


def rate(step, finish) -> float:
    """Seconds per step, the best of five rounds."""
    step()
    finish()
    begin = time.perf_counter()
    step()
    finish()
    steps = max(1, int(agreed(float(SECONDS) / 5 / (time.perf_counter() - begin))))
    best = float("inf")
    for _ in range(5):
        begin = time.perf_counter()
        for _ in range(steps):
            step()
        finish()
        best = min(best, (time.perf_counter() - begin) / steps)
    return best


def all_reduce() -> dict:
    results = {}
    for size in map(int, SIZES):
        x = torch.ones(max(1, size // 4))
        # Every step waits for its result, as a step of a program that uses it does.
        results[size] = {"queued": rate(lambda: dist.all_reduce(x, op=dist.ReduceOp.MAX), lambda: x[0].item()),
                         "read": rate(lambda: (dist.all_reduce(x, op=dist.ReduceOp.MAX), x[0].item()), lambda: None)}
    return results


def mlp() -> dict:
    torch.manual_seed(0)
    nn = torch.nn
    model = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 10))
    x = torch.randn(128, 784)
    y = torch.randint(0, 10, (128,))

    def measure(module) -> float:
        optimizer = torch.optim.AdamW(module.parameters(), lr=1e-3)
        losses = []

        def step():
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(module(x), y)
            loss.backward()
            optimizer.step()
            losses[:] = [loss]

        return rate(step, lambda: losses[0].item())

    alone = measure(model)
    return {"alone": alone, "ddp": measure(nn.parallel.DistributedDataParallel(model))}


print(json.dumps({"formed": formed, "result": globals()[WORKLOAD]()}), flush=True)
dist.barrier()
dist.destroy_process_group()
