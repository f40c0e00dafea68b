"""Collectives and training with tensors on a GPU. Each function runs on all ranks."""

from __future__ import annotations

import teletensor as torch
import teletensor.distributed as dist
from teletensor import nn
from teletensor.distributed.device_mesh import init_device_mesh
from teletensor.distributed.fsdp import fully_shard
from teletensor.nn.parallel import DistributedDataParallel

from .data_parallel_cases import batch, difference, loss_of, model, part


def collectives(rank: int, size: int, length: int) -> list[str]:
    """Returns the names of collectives with wrong results."""

    def mine(r: int = rank) -> torch.Tensor:
        return torch.arange(length * 1.0) + r

    own = mine().to("cuda")
    every = torch.stack([mine(r) for r in range(size)])
    results = {}
    dist.all_reduce(total := own.clone())
    results["all_reduce"] = total, every.sum(0)
    dist.broadcast(copied := own.clone(), 1)
    results["broadcast"] = copied, every[1]
    dist.all_gather_into_tensor(gathered := torch.empty(size * length, device="cuda"), own)
    results["all_gather"] = gathered, every.flatten()
    parts = [torch.empty(length, device="cuda") for _ in range(size)]
    dist.all_gather(parts, own)
    results["all_gather of a list"] = torch.cat(parts), every.flatten()
    source = torch.arange(size * length * 1.0, device="cuda")
    dist.reduce_scatter_tensor(reduced := torch.empty(length, device="cuda"), source)
    results["reduce_scatter"] = reduced, size * source.cpu()[rank * length : (rank + 1) * length]
    dist.all_to_all_single(exchanged := torch.empty(size * length, device="cuda"), source)
    results["all_to_all"] = exchanged, source.cpu()[rank * length : (rank + 1) * length].repeat(size)
    transposed = torch.zeros(3, length, device="cuda").T  # not contiguous
    work = dist.irecv(transposed, (rank - 1) % size)
    dist.isend((own[:, None] * torch.ones(3, device="cuda")), (rank + 1) % size).wait()
    work.wait()
    results["messages"] = transposed, mine((rank - 1) % size)[:, None].expand(length, 3)
    assert all(actual.device.type == "cuda" for actual, _ in results.values())
    return [name for name, (actual, expected) in results.items() if not torch.equal(actual.cpu(), expected)]


def trains(rank: int, size: int, kind: str) -> float:
    """A step of data-parallel or sharded training beside the same step on one engine, on the CPU."""
    module, alone = model().to("cuda"), model()
    module = fully_shard(module) if kind == "fully_shard" else DistributedDataParallel(module, bucket_cap_mb=0.002)
    for m in (module, alone):
        optimizer = torch.optim.SGD(m.parameters(), lr=0.5)
        for step in range(2):
            x, y = batch(step)
            if m is module:
                x, y = (part(t, rank, size).to("cuda") for t in (x, y))
            optimizer.zero_grad()
            loss_of(m, x, y).backward()
            optimizer.step()
    if kind == "fully_shard":
        pairs = zip(module.parameters(), alone.parameters(), strict=True)
        return max((p.full_tensor().cpu() - q).abs().max().item() for p, q in pairs)
    return difference(nn.ParameterList([p.detach().cpu() for p in module.parameters()]), alone)


def moved_inputs(rank: int, size: int) -> list[str]:
    """The devices of a module's arguments, which are on the CPU."""
    seen = []

    class Sees(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(2, 2, device="cuda")

        def forward(self, x, pair, *, options):
            seen.extend(t.device.type for t in (x, *pair, options["scale"]))
            return self.layer(x + pair[0] + pair[1]) * options["scale"]

    mesh = init_device_mesh("cuda", (size,))
    module = DistributedDataParallel(Sees(), device_ids=[0], device_mesh=mesh)
    x = torch.ones(3, 2)
    module(x, (x, x), options={"scale": torch.ones(2), "name": "a"}).sum().backward()
    assert module.module.layer.weight.grad.cpu().tolist() == [[9.0, 9.0]] * 2
    return seen
