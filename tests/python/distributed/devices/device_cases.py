"""Collectives and training with tensors on a GPU. Each function runs on all ranks."""

from __future__ import annotations

import teletensor as torch
import teletensor.distributed as dist
from teletensor import nn
from teletensor.distributed.algorithms.ddp_comm_hooks import default_hooks
from teletensor.distributed.device_mesh import init_device_mesh
from teletensor.distributed.fsdp import fully_shard
from teletensor.nn.parallel import DistributedDataParallel

from ..data_parallel.data_parallel_cases import batch, difference, loss_of, model, part


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


INTEGERS = ("int8", "uint8", "int32", "int64")
FLOATS = ("float16", "bfloat16", "float32", "float64")
COMPLEX = ("complex64", "complex128")


def reductions_of_nccl() -> int:
    """The number of calls of all_reduce in reductions() that NCCL executes."""
    return 4 * len(INTEGERS) + 5 * len(FLOATS) + 2 * len(COMPLEX)


def reductions(rank: int, size: int) -> list[str]:
    """Returns the names of reductions with wrong results, of small integers, which all dtypes represent exactly."""
    wrong = []

    def check(name: str, actual: torch.Tensor, expected: torch.Tensor) -> None:
        if not torch.equal(actual.cpu(), expected.to(actual.dtype)) or actual.device.type != "cuda":
            wrong.append(name)

    def of(r: int, dtype: str = "float64") -> torch.Tensor:
        return ((torch.arange(70) + r) % 3 + 1).to(getattr(torch, dtype))

    every = torch.stack([of(r) for r in range(size)])
    expected = {"SUM": every.sum(0), "PRODUCT": every.prod(0), "MIN": every.amin(0), "MAX": every.amax(0)}
    for dtype in (*INTEGERS, *FLOATS, *COMPLEX, "int16", "bool"):
        ops = {"bool": ("MAX",)}.get(dtype, ("SUM",) if dtype in COMPLEX else ("SUM", "PRODUCT", "MIN", "MAX"))
        for op in ops:
            dist.all_reduce(t := of(rank, dtype).to("cuda"), getattr(dist.ReduceOp, op))
            check(f"{op} of {dtype}", t, torch.ones(70) if dtype == "bool" else expected[op])
        if dtype in FLOATS or dtype in COMPLEX:
            same = (every[0] * 4).to(getattr(torch, dtype))
            dist.all_reduce(t := same.to("cuda"), dist.ReduceOp.AVG)
            check(f"AVG of {dtype}", t, same)
    bits = torch.full((70,), 1 << rank, device="cuda")
    dist.all_reduce(bits, dist.ReduceOp.BOR)
    check("BOR", bits, torch.full((70,), 2**size - 1))
    scaled = of(rank).to("cuda")
    dist.all_reduce(scaled, dist._make_nccl_premul_sum(2.0))
    check("PREMUL_SUM", scaled, expected["SUM"] * 2)
    root = size - 1
    dist.reduce(t := of(rank).to("cuda"), root)
    check("reduce", t, expected["SUM"] if rank == root else of(rank))
    whole = torch.cat([of(r) for r in range(size)])
    dist.reduce_scatter_tensor(t := torch.empty(70, device="cuda", dtype=torch.float64), whole.to("cuda"))
    check("reduce_scatter", t, of(rank) * size)
    return wrong


def pieces(rank: int, size: int) -> list[str]:
    """Returns the names of gather, scatter and all_to_all with wrong results."""
    wrong, root = [], size - 1

    def of(r: int, numel: int = 50) -> torch.Tensor:
        return torch.arange(numel, dtype=torch.int16) + 100 * r

    parts = [torch.zeros(50, dtype=torch.int16, device="cuda") for _ in range(size)] if rank == root else None
    dist.gather(of(rank).to("cuda"), parts, root)
    if rank == root and not all(torch.equal(p.cpu(), of(r)) for r, p in enumerate(parts)):
        wrong.append("gather")
    sent = [of(r + 3).to("cuda") for r in range(size)] if rank == root else None
    dist.scatter(t := torch.zeros(50, dtype=torch.int16, device="cuda"), sent, root)
    if not torch.equal(t.cpu(), of(rank + 3)):
        wrong.append("scatter")
    outputs = [torch.zeros(r + 1, dtype=torch.int16, device="cuda") for r in range(size)]
    work = dist.all_to_all(outputs, [of(rank + r, rank + 1).to("cuda") for r in range(size)], async_op=True)
    work.wait()
    if not all(torch.equal(t.cpu(), of(rank + r, r + 1)) for r, t in enumerate(outputs)):
        wrong.append("all_to_all")
    flags = torch.zeros(2 * size, dtype=torch.bool, device="cuda")
    dist.all_to_all_single(flags, torch.tensor([True, False] * size, device="cuda"))
    if flags.tolist() != [True, False] * size:
        wrong.append("all_to_all_single")
    return wrong


def in_groups(rank: int, size: int) -> list[str]:
    """Returns the names of groups in which a collective gives a wrong result."""
    halves = [[0, 1], [2, 3]]
    groups = [dist.new_group(half) for half in halves]
    wrong = []
    for _ in range(2):
        t, every = (torch.full((40,), 1.0 + rank, device="cuda") for _ in range(2))
        dist.all_reduce(t, group=groups[rank // 2])
        dist.all_reduce(every)
        if t.tolist() != [3.0 if rank < 2 else 7.0] * 40:
            wrong.append("half")
        if every.tolist() != [10.0] * 40:
            wrong.append("default")
    return wrong


def mixed_devices(rank: int, size: int) -> list[str]:
    """Collectives of tensors on the CPU, on a GPU and on another GPU."""
    wrong = []
    for devices in ("cuda:0", "cpu", ("cpu", "cuda:0", "cuda:1")[rank], "cuda:1", "cuda:0"):
        for numel in (0, 3, 500):
            dist.all_reduce(t := torch.full((numel,), float(rank), device=devices), dist.ReduceOp.AVG)
            if t.tolist() != [1.0] * numel or t.device != torch.device(devices):
                wrong.append(f"{devices} {numel}")
    both = [torch.full((3,), float(rank), device=d) for d in ("cuda:0", "cuda:1")]
    dist.all_gather(parts := [torch.zeros(3, device=("cuda:0", "cuda:1")[r % 2]) for r in range(size)], both[1])
    if [p.tolist() for p in parts] != [[float(r)] * 3 for r in range(size)]:
        wrong.append("all_gather")
    return wrong


def errors(rank: int, size: int) -> list[str]:
    """Different shapes and a failed tensor are errors; the group continues."""
    wrong = []

    def check(message: str, t: torch.Tensor) -> None:
        dist.all_reduce(t)
        try:
            t.tolist()
            wrong.append(f"no error: {message}")
        except (RuntimeError, IndexError) as error:
            if message not in str(error):
                wrong.append(str(error))

    def works() -> None:
        dist.all_reduce(t := torch.ones(5, device="cuda"))
        if t.tolist() != [size] * 5:
            wrong.append("after an error")

    check("expected the same collective on all ranks", torch.ones(100 + rank, device="cuda"))
    works()
    table = torch.ones(4, device="cuda")
    check("out of bounds", table[torch.tensor([9, 9] if rank == 1 else [1, 1], device="cuda")])
    works()
    return wrong


def failed_gradients(rank: int, size: int) -> str:
    """Returns the error of a backward pass in which an index of rank 1 is out of bounds."""
    module = DistributedDataParallel(nn.Sequential(nn.Embedding(10, 4), nn.Linear(4, 2)).to("cuda"))
    try:
        module(torch.tensor([99 if rank == 1 else 1], device="cuda")).sum().backward()
        for parameter in module.parameters():
            parameter.grad.tolist()
    except (RuntimeError, IndexError) as error:
        return str(error)
    return "no error"


def different_sizes(rank: int, size: int) -> None:
    """Collectives of tensors whose sizes depend on the rank. All values are small integers."""
    for async_op in (False, True):
        inputs = [torch.full((r + 1, 2), 10.0 * rank + r, device="cuda") for r in range(size)]
        gathered = [torch.empty(r + 1, 2, device="cuda") for r in range(size)]
        reduced = torch.empty(rank + 1, 2, device="cuda")
        works = [
            dist.all_gather(gathered, inputs[rank], async_op=async_op),
            dist.reduce_scatter(reduced, inputs, dist.ReduceOp.SUM, async_op=async_op),
        ]
        if async_op:
            for work in works:
                work.wait()
        total = sum(10.0 * r + rank for r in range(size))
        assert torch.equal(reduced.cpu(), torch.full((rank + 1, 2), total))
        for r in range(size):
            assert torch.equal(gathered[r].cpu(), torch.full((r + 1, 2), 11.0 * r))
            assert torch.equal(inputs[r].cpu(), torch.full((r + 1, 2), 10.0 * rank + r))


def trains(rank: int, size: int, kind: str, compresses: bool = False) -> float:
    """A step of data-parallel or sharded training beside the same step on one engine, on the CPU."""
    module, alone = model().to("cuda"), model()
    module = fully_shard(module) if kind == "fully_shard" else DistributedDataParallel(module, bucket_cap_mb=0.002)
    if compresses:
        module.register_comm_hook(None, default_hooks.bf16_compress_hook)
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
