"""Sparse and nested tensors in checkpoints of several ranks. Each function runs on all ranks."""

from __future__ import annotations

import teletensor as torch
import teletensor.distributed as dist
import teletensor.distributed.checkpoint as dcp
from teletensor.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict, set_model_state_dict
from teletensor.distributed.tensor import Shard, distribute_tensor
from teletensor.nn.parallel import DistributedDataParallel


def values(scale: float) -> dict:
    m = torch.tensor([[0, 1.0, 0, 2], [2, 0, 3, 0]]) * scale
    rows = [torch.arange(6.0).reshape(3, 2) * scale, torch.ones(1, 2) * scale]
    return {
        "coo": m.to_sparse(), "csr": m.to_sparse_csr(), "bsc": m.to_sparse_bsc((1, 2)),
        "jagged": torch.nested.nested_tensor(rows, layout=torch.jagged), "nested": torch.nested.nested_tensor(rows),
    }  # fmt: skip


def equal(a: dict, b: dict) -> list[bool]:
    def parts(t):
        return t.unbind() if t.is_nested else [t.to_dense()]

    return [x.layout == y.layout and all(map(torch.equal, parts(x), parts(y))) for x, y in zip(a.values(), b.values(), strict=True)]


def saves(rank: int, size: int, path: str, asynchronous: bool) -> None:
    mesh = dist.init_device_mesh("cpu", (size,))
    state = {"model": values(1.0), "divided": distribute_tensor(torch.arange(12.0), mesh, [Shard(0)]), "step": 3}
    if asynchronous:
        dcp.async_save(state, checkpoint_id=path).result(30)
    else:
        dcp.save(state, checkpoint_id=path)


def loads(rank: int, size: int, path: str) -> list[bool]:
    mesh = dist.init_device_mesh("cpu", (size,))
    state = {"model": values(2.0), "divided": distribute_tensor(torch.zeros(12), mesh, [Shard(0)]), "step": 0}
    state["model"]["coo"] = torch.sparse_coo_tensor(size=(2, 4))
    dcp.load(state, checkpoint_id=path)
    whole = state["divided"].full_tensor()
    return [*equal(state["model"], values(1.0)), torch.equal(whole, torch.arange(12.0)), state["step"] == 3]


def differs(rank: int, size: int, path: str) -> list:
    """Ranks with different numbers of elements, and a load with another layout on one rank."""
    found = []
    own = torch.eye(3)[: 2 + rank].to_sparse() if rank < 2 else torch.eye(3).to_sparse()
    for call in (
        lambda: dcp.save({"a": own}, checkpoint_id=path),
        lambda: dcp.load({"model": {"csr": values(1.0)["coo" if rank == 1 else "csr"]}}, checkpoint_id=path),
    ):
        try:
            call()
        except dcp.CheckpointException as error:
            found.append([[failed, str(e)] for failed, (e, _) in error.failures.items()])
    return found


class Graph(torch.nn.Module):
    def __init__(self, scale: float):
        super().__init__()
        for name, value in values(scale).items():
            self.register_buffer(name, value)
        self.layer = torch.nn.Linear(2, 2)


def broadcasts(rank: int, size: int) -> list[bool]:
    """A full state dict of rank 0."""
    own = get_model_state_dict(Graph(1.0)) if rank == 0 else {}
    model = Graph(2.0)
    set_model_state_dict(model, own, options=StateDictOptions(full_state_dict=True, broadcast_from_rank0=True))
    first = model.layer.weight.detach().clone()
    dist.broadcast(first, 0)
    return [*equal(dict(model.named_buffers()), values(1.0)), torch.equal(first, model.layer.weight)]


def trains_embeddings(rank: int, size: int, path: str) -> bool:
    """The state of an optimizer of sparse gradients."""
    def build() -> tuple:
        torch.manual_seed(0)
        model = DistributedDataParallel(torch.nn.Embedding(8, 2, sparse=True))
        return model, torch.optim.SparseAdam(model.parameters(), lr=0.1)

    def step(model, optimizer, number: int) -> None:
        optimizer.zero_grad()
        model(torch.tensor([rank, number, 3])).square().sum().backward()
        optimizer.step()

    model, optimizer = build()
    step(model, optimizer, 0)
    dcp.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, checkpoint_id=path)
    step(model, optimizer, 1)
    other, others = build()
    step(other, others, 5)
    state = {"model": other.state_dict(), "optimizer": others.state_dict()}
    dcp.load(state, checkpoint_id=path)
    other.load_state_dict(state["model"])
    others.load_state_dict(state["optimizer"])
    step(other, others, 1)
    return torch.equal(model.module.weight, other.module.weight)


def collides(rank: int, size: int, path: str) -> list:
    """Ranks that save different values under one name, which is that of a component on rank 0."""
    sparse = torch.eye(3).to_sparse()
    cases = [
        ({"w": sparse}, {"w/1": torch.ones(3)}),
        ({"w": sparse}, {"w/1": 5}),
        ({"w": sparse}, {"w": 5}),
        ({"w": sparse}, {"w": torch.ones(3, 3)}),
        ({"w/0": torch.ones(2, 3, dtype=torch.int64)}, {"w": sparse}),
    ]
    found = []
    for i, states in enumerate(cases):
        try:
            dcp.save(states[rank], checkpoint_id=f"{path}{i}")
            found.append("")
        except dcp.CheckpointException as error:
            found.append(" ".join(str(e) for e, _ in error.failures.values()))
    return found


def similar_names(rank: int, size: int, path: str) -> list[bool]:
    """Values whose names only begin like those of components."""
    names = {
        "w": torch.eye(3).to_sparse(), "w/bias": torch.ones(2), "w/2": torch.ones(3), "w/0/1": 4,
        f"rank{rank}/w": torch.full((1,), rank + 1.0),
    }  # fmt: skip
    dcp.save(names, checkpoint_id=path)
    into = {"w": torch.sparse_coo_tensor(size=(3, 3)), "w/bias": torch.zeros(2), "w/2": torch.zeros(3), "w/0/1": 0,
            f"rank{rank}/w": torch.zeros(1)}  # fmt: skip
    dcp.load(into, checkpoint_id=path)
    return [a == b if isinstance(a, int) else torch.equal(a.to_dense(), b.to_dense()) for a, b in zip(into.values(), names.values())]
