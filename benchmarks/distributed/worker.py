"""One rank of a measurement. Prints JSON. Run by ``python -m benchmarks.distributed`` with the variables of env://.

Usage: ``worker.py LIBRARY WORKLOAD SECONDS [SIZE...]`` with LIBRARY ``torch`` or ``teletensor``.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2]))
from benchmarks.gpt import make_gpt  # noqa: E402

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
        # Every step waits for its result, as in a program that uses the result.
        results[size] = {"queued": rate(lambda: dist.all_reduce(x, op=dist.ReduceOp.MAX), lambda: x[0].item()),
                         "read": rate(lambda: (dist.all_reduce(x, op=dist.ReduceOp.MAX), x[0].item()), lambda: None)}
    return results


def training(model, x, y) -> dict:
    """A training step without and with DDP, and an all_reduce of the gradients alone."""
    nn = torch.nn

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
    bucket = float(os.environ.get("BENCH_BUCKET_MB") or 25)  # 25 is the default of both libraries
    parallel = nn.parallel.DistributedDataParallel(model, bucket_cap_mb=bucket)
    gradients = torch.ones(sum(p.numel() for p in model.parameters()))
    # MAX, because repeated sums would overflow.
    communication = rate(lambda: dist.all_reduce(gradients, op=dist.ReduceOp.MAX), lambda: gradients[0].item())
    return {"alone": alone, "all_reduce": communication, "ddp": measure(parallel)}


def mlp() -> dict:
    torch.manual_seed(0)
    nn = torch.nn
    model = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 10))
    return training(model, torch.randn(128, 784), torch.randint(0, 10, (128,)))


def gpt() -> dict:
    """A character GPT: two layers, four heads, width 128, 16 texts of 64 characters."""
    torch.manual_seed(0)
    symbols, length = 65, 64
    tokens = torch.randint(0, symbols, (16, length + 1))
    return training(make_gpt(torch, symbols, length, layers=2), tokens[:, :-1].contiguous(), tokens[:, 1:].reshape(-1))


def fsdp() -> dict:
    """A step of a wide MLP: alone, with its parameters divided among the ranks, and the collectives alone."""
    from teletensor.distributed.fsdp import fully_shard

    torch.manual_seed(0)
    nn, width, layers = torch.nn, 512, 4
    model = nn.Sequential(*(layer for _ in range(layers) for layer in (nn.Linear(width, width), nn.ReLU())))
    x = torch.randn(128, width)

    def measure(module) -> float:
        optimizer = torch.optim.SGD(module.parameters(), lr=1e-3)
        losses = []

        def step():
            optimizer.zero_grad()
            loss = module(x).square().mean()
            loss.backward()
            optimizer.step()
            losses[:] = [loss]

        return rate(step, lambda: losses[0].item())

    results = {"alone": measure(model)}
    ranks = dist.get_world_size()
    whole = torch.zeros(sum(p.numel() for p in model[0].parameters()) // ranks * ranks)
    part = torch.zeros(whole.numel() // ranks)
    results["all_gather"] = rate(lambda: dist.all_gather_into_tensor(whole, part), lambda: whole[0].item())
    results["reduce_scatter"] = rate(lambda: dist.reduce_scatter_tensor(part, whole), lambda: part[0].item())
    results["layers"] = layers
    for layer in model:
        if isinstance(layer, nn.Linear):
            fully_shard(layer, reshard_after_forward=False)
    results["sharded"] = measure(fully_shard(model, reshard_after_forward=False))
    return results


def pipeline() -> dict:
    """A step of a deep MLP: alone, and divided into one stage per rank, with 1, 2, 4 and 8 microbatches."""
    from teletensor.distributed import pipelining

    torch.manual_seed(0)
    nn, width, batch = torch.nn, 512, 256
    rank, ranks = dist.get_rank(), dist.get_world_size()
    layers = [nn.Sequential(nn.Linear(width, width), nn.ReLU()) for _ in range(8)]
    x, y = torch.randn(batch, width), torch.randn(batch, width)

    def alone() -> float:
        losses = []
        whole = nn.Sequential(*layers)

        def step():
            loss = nn.functional.mse_loss(whole(x), y)
            loss.backward()
            losses[:] = [loss]

        return rate(step, lambda: losses[0].item())

    # One rank at a time: the others wait.
    results: dict = {}
    for turn in range(ranks):
        value = alone_time(alone) if turn == rank else 0.0
        dist.barrier()
        if turn == rank:
            results["alone"] = value
    part = nn.Sequential(*layers[rank * 8 // ranks : (rank + 1) * 8 // ranks])
    for microbatches in (1, 2, 4, 8):
        stage = pipelining.PipelineStage(part, rank, ranks, torch.device("cpu"))
        schedule = pipelining.Schedule1F1B(stage, microbatches, nn.functional.mse_loss) if microbatches >= ranks else (
            pipelining.ScheduleGPipe(stage, microbatches, nn.functional.mse_loss)
        )  # fmt: skip

        def step(schedule=schedule):
            schedule.step(*([x] if rank == 0 else []), **({"target": y} if rank == ranks - 1 else {}))

        results[f"{microbatches} microbatches"] = rate(step, lambda: next(part.parameters()).grad.sum().item())
    return results


def alone_time(measure) -> float:
    """A measurement without agreement among the ranks on the number of steps."""
    global agreed
    shared, agreed = agreed, lambda value: value
    try:
        return measure()
    finally:
        agreed = shared


print(json.dumps({"formed": formed, "result": globals()[WORKLOAD]()}), flush=True)
dist.barrier()
dist.destroy_process_group()
