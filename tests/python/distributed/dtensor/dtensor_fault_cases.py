"""Single calls on DTensors for which a plausible implementation gives a wrong number. In a process that controls engines."""

from __future__ import annotations

import math

import teletensor as torch
import teletensor.nn as nn
import teletensor.nn.functional as F
from teletensor import _connection
from teletensor.distributed.device_mesh import init_device_mesh
from teletensor.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor


def _mesh():
    torch.connect_all(3)
    return init_device_mesh("cpu", (3,))


def _error(function) -> str:
    try:
        result = function()
        return f"no error: {result}"
    except Exception as error:  # noqa: BLE001 - the test compares the texts
        return f"{type(error).__name__}: {error}"


def _locals(values) -> list:
    """A tensor on each engine."""
    tensors = []
    for k, value in enumerate(values):
        with _connection.engines().use(k):
            tensors.append(torch.tensor(value))
    return tensors


def indices_out_of_range(rank: int, size: int) -> list[str]:
    """An index that no rank has is an error where rows or classes are divided."""
    mesh = _mesh()
    table = distribute_tensor(torch.ones(6, 2), mesh, [Shard(0)])
    scores = distribute_tensor(torch.zeros(2, 6), mesh, [Shard(1)])
    vector = distribute_tensor(torch.ones(6), mesh, [Shard(0)])
    messages = []
    for bad in (99, -7):
        index = distribute_tensor(torch.tensor([1, bad]), mesh)
        messages += [
            _error(lambda index=index: F.embedding(index, table).tolist()),
            _error(lambda index=index: torch.gather(vector, 0, index).tolist()),
            _error(lambda index=index: F.cross_entropy(scores, index).item()),
        ]
    return messages


def infinities(rank: int, size: int) -> dict:
    """Entries that a rank masks must not reach the result, whatever their values are."""
    mesh = _mesh()
    inf = math.inf
    table = torch.tensor([[math.nan], [1.0], [inf], [3.0], [4.0], [inf]])
    scores, target = torch.zeros(2, 6), torch.tensor([-100, 2])
    scores[0, 0] = -inf
    x, w, b = torch.ones(2, 6), torch.ones(3, 6), torch.tensor([inf, 1.0, 2.0])
    dropped = F.dropout(distribute_tensor(torch.full((20,), inf), mesh, [Shard(0)]), 0.5)
    split = [distribute_tensor(t, mesh, [Shard(1)]) for t in (x, w)]
    index = distribute_tensor(torch.tensor([1, 3, 4]), mesh)
    return {
        "embedding": F.embedding(index, distribute_tensor(table, mesh, [Shard(0)])).tolist(),
        "cross_entropy": F.cross_entropy(distribute_tensor(scores, mesh, [Shard(1)]), distribute_tensor(target, mesh)).item()
        - F.cross_entropy(scores, target).item(),
        "linear": F.linear(*split, distribute_tensor(b, mesh)).tolist() == F.linear(x, w, b).tolist(),
        "dropout": sorted(set(dropped.tolist())) == [0.0, inf],
    }  # fmt: skip


def half_precision(rank: int, size: int) -> list[list[float]]:
    """Sums that do not fit in half precision, of results that do."""
    mesh = _mesh()
    one = torch.zeros(60, dtype=torch.float16)
    one[3] = 300
    scores = (torch.arange(3000.0).reshape(1, -1).repeat(2, 1) / 200).to(torch.bfloat16)
    target = torch.tensor([5, 2900])
    pairs = []
    for function, tensor in (
        (lambda t: t.mean(), torch.full((60,), 30000, dtype=torch.float16)),
        (lambda t: F.mse_loss(t, t * 0), torch.full((600,), 20, dtype=torch.float16)),
        (torch.linalg.vector_norm, one),
        (lambda t: t.mean(), torch.zeros(0, 3)),
    ):
        pairs.append([function(distribute_tensor(tensor, mesh, [Shard(0)])).item(), function(tensor).item()])
    divided = F.cross_entropy(distribute_tensor(scores, mesh, [Shard(1)]), distribute_tensor(target, mesh))
    pairs.append([divided.item(), F.cross_entropy(scores.float(), target).to(torch.bfloat16).item()])
    return pairs


def gradients(rank: int, size: int) -> dict:
    mesh = _mesh()
    results = {}
    for order in (1, 2, 3):
        x = distribute_tensor(torch.zeros(4), mesh, [Shard(0)]).requires_grad_()
        torch.linalg.vector_norm(x, order).backward()
        results[f"norm {order}"] = x.grad.tolist()
    averaged = [t.requires_grad_() for t in _locals([1.0, 2.0, 3.0])]
    DTensor.from_local(averaged, mesh, [Partial("avg")]).backward()
    results["avg"] = [t.grad.item() for t in averaged]
    results["avg leaf"] = _error(lambda: DTensor.from_local(_locals([1.0] * 3), mesh, [Partial("avg")]).requires_grad_())
    scale = torch.tensor(2.0, requires_grad=True)
    results["plain"] = _error(lambda: distribute_tensor(torch.ones(3), mesh) * scale)
    x = distribute_tensor(torch.ones(4), mesh, [Shard(0)]).requires_grad_()
    (x * 2).sum().backward()
    y = (x * 3).sum()
    x.data = x.data - 1
    y.backward()
    results["data"] = x.grad.tolist()
    return results


def second_derivatives(rank: int, size: int) -> list[list[float]]:
    """Of a sum over divided entries, and with respect to a Partial tensor."""
    mesh = _mesh()
    results = []
    for placement in (Shard(0), Replicate(), Partial()):
        if isinstance(placement, Partial):
            x = DTensor.from_local(_locals([[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]]), mesh, [placement])
        else:
            x = distribute_tensor(torch.tensor([1.0, 2.0]), mesh, [placement])
        x = x.detach().requires_grad_()
        (grad,) = torch.autograd.grad((x * x).sum() ** 2, x, create_graph=True)
        (second,) = torch.autograd.grad((grad * grad).sum(), x)
        results.append(grad.tolist() + second.tolist())
    return results


def meshes(rank: int, size: int) -> list:
    """Tensors of two meshes in one update, which is allowed, and in one backward pass."""
    three = _mesh()
    two = init_device_mesh("cpu", (2,))
    p, q = (nn.Parameter(distribute_tensor(torch.ones(4), m)) for m in (two, three))
    p.sum().backward()
    q.sum().backward()
    torch.optim.SGD([p, q], lr=0.5).step()
    return [
        [t.full_tensor().tolist() for t in (p, q)],
        _error(lambda: torch.autograd.backward([p.sum(), q.sum()])),
        _error(lambda: torch.autograd.grad([p.sum()], [q])),
    ]


def views_and_storage(rank: int, size: int) -> dict:
    mesh = _mesh()
    x = distribute_tensor(torch.arange(4.0), mesh, [Shard(0)])
    x[x > 2] = 0
    version, view = x._version, x.view_as(x)
    x.add_(0)
    table = distribute_tensor(torch.arange(8.0).reshape(4, 2), mesh, [Shard(0)])
    return {
        "masked": x.tolist(), "narrow": table.narrow(0, 0, 4).tolist(), "split": table.split([4])[0].tolist(),
        "uneven": F.embedding(distribute_tensor(torch.tensor([3]), mesh), table).tolist(),
        "same": [x.is_set_to(view), x.is_set_to(x.clone())], "version": x._version > version,
        "storage": _error(x.untyped_storage), "norm": list(F.batch_norm(table, None, None, training=True).shape),
    }  # fmt: skip


def meshes_are_left(rank: int, size: int) -> list[int]:
    """The files that this process's engines have open after some meshes and after more."""
    import gc
    import os
    import subprocess

    _mesh()
    children = subprocess.run(["pgrep", "-P", str(os.getpid()), "teletensord"], capture_output=True, text=True, check=True)
    counts = []
    for number in (10, 30):
        for _ in range(number):
            x = distribute_tensor(torch.ones(6), init_device_mesh("cpu", (3,)), [Shard(0)])
            assert x.sum().item() == 6
            del x
        gc.collect()
        _connection.engines().synchronize()
        counts.append(sum(len(os.listdir(f"/proc/{pid}/fd")) for pid in children.stdout.split()))
    return counts


def hooks(rank: int, size: int) -> dict:
    """Hooks and accumulated gradients, with one process per rank."""
    mesh = init_device_mesh("cpu", (size,))
    x = distribute_tensor(torch.arange(5.0), mesh, [Shard(0)]).requires_grad_()
    seen = []
    x.register_hook(lambda g: (seen.append(g.full_tensor().tolist()), g * 2)[1])
    for _ in range(2):
        (x * x).sum().backward()
    summands = DTensor.from_local(torch.ones(2), mesh, [Partial()]).requires_grad_()
    (summands * summands).sum().backward()
    return {"seen": seen, "grad": x.grad.full_tensor().tolist(), "partial": summands.grad.full_tensor().tolist()}


def one_bad_index(rank: int, size: int) -> list[str]:
    """An index out of range in the part of one rank is an error on all ranks, after which the group continues."""
    mesh = init_device_mesh("cpu", (size,))
    rows = distribute_tensor(torch.arange(size * 2.0).reshape(size, 2), mesh, [Shard(0)])
    index = torch.zeros(size, 1, dtype=torch.int64)
    index[size - 1] = 9
    found = torch.gather(rows, 1, distribute_tensor(index, mesh, [Shard(0)]))
    return [_error(lambda: found.sum().item()), str(rows.sum().item())]
