"""Attention over sequences that are divided among ranks, beside attention on one engine. Each function runs on all ranks."""

from __future__ import annotations

import numpy as np

import teletensor as torch
import teletensor.distributed as dist
from teletensor import nn
from teletensor._connection import connection
from teletensor.distributed.device_mesh import init_device_mesh
from teletensor.distributed.tensor.experimental import _attention, context_parallel
from teletensor.distributed.tensor.experimental._attention import context_parallel_unshard, set_rotate_method
from teletensor.nn import functional as F  # noqa: N812

SEQUENCE = 2


def tensors(length: int, dtype: str, count: int = 4, heads: int = 3, seed: int = 1) -> list[torch.Tensor]:
    generator = np.random.default_rng(seed)
    return [torch.tensor(generator.standard_normal((2, heads, length, 8)), dtype=getattr(torch, dtype))
            for _ in range(count)]  # fmt: skip


def configure(balanced: bool = True, method: str = "allgather") -> None:
    _attention._cp_options.enable_load_balance = balanced
    set_rotate_method(method)


def compares(
    rank: int, size: int, dtype: str = "float32", is_causal: bool = True, balanced: bool = True, method: str = "allgather",
    chunk: int = 5, scale: float | None = None, device: str = "cpu",
) -> list[float]:  # fmt: skip
    """The largest differences of the result and of the three gradients to those of one engine, relative to the largest value."""
    configure(balanced, method)
    mesh = init_device_mesh(device, (size,))
    *qkv, weight = (t.to(device) for t in tensors(2 * size * chunk, dtype))
    alone = [t.clone().requires_grad_() for t in qkv]
    expected = F.scaled_dot_product_attention(*alone, is_causal=is_causal, scale=scale)
    (expected * weight).sum().backward()
    mine = [t.clone() for t in (*qkv, weight)]
    with context_parallel(mesh, buffers=mine, buffer_seq_dims=[SEQUENCE] * 4):
        assert mine[0].shape[SEQUENCE] == 2 * chunk
        leaves = [t.detach().requires_grad_() for t in mine[:3]]
        result = F.scaled_dot_product_attention(*leaves, is_causal=is_causal, scale=scale)
        (result * mine[3]).sum().backward()
    assert all(torch.equal(a, b) for a, b in zip(mine, (*qkv, weight), strict=True))
    parts = [result, *(t.grad for t in leaves)]
    assert all(t.dtype == getattr(torch, dtype) for t in parts)
    whole = context_parallel_unshard(mesh, parts, [SEQUENCE] * 4)
    references = [expected, *(t.grad for t in alone)]
    return [((a - b).abs().max() / b.abs().max()).item() for a, b in zip(whole, references, strict=True)]


def other_lengths(rank: int, size: int, method: str) -> list[float]:
    """Keys of another length than the queries, and fewer heads of keys than of queries."""
    configure(method=method)
    mesh = init_device_mesh("cpu", (size,))
    query = tensors(4 * size, "float64", 1, heads=4)[0]
    key, value = tensors(6 * size, "float64", 2, heads=2, seed=2)
    alone = [t.clone().requires_grad_() for t in (query, key, value)]
    expected = F.scaled_dot_product_attention(*alone, enable_gqa=True)
    expected.sin().sum().backward()
    mine = [query.clone(), key.clone(), value.clone()]
    with context_parallel(mesh, buffers=mine, buffer_seq_dims=[SEQUENCE] * 3):
        leaves = [t.detach().requires_grad_() for t in mine]
        result = F.scaled_dot_product_attention(*leaves, enable_gqa=True)
        result.sin().sum().backward()
    whole = context_parallel_unshard(mesh, [result, *(t.grad for t in leaves)], [SEQUENCE] * 4)
    references = [expected, *(t.grad for t in alone)]
    return [(a - b).abs().max().item() for a, b in zip(whole, references, strict=True)]


class Transformer(nn.Module):
    """Two causal attention layers with learned positions."""

    def __init__(self, length: int, width: int = 16):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(11, width), nn.Embedding(length, width)
        self.layers = nn.ModuleList(nn.Linear(width, 3 * width) for _ in range(2))
        self.head = nn.Linear(width, 11)

    def forward(self, x: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        h = self.tokens(x) + self.positions(positions)
        for layer in self.layers:
            parts = layer(F.layer_norm(h, h.shape[-1:])).chunk(3, -1)
            q, k, v = (t.unflatten(-1, (4, -1)).transpose(1, 2) for t in parts)
            h = h + F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
        return self.head(h)


def trains(rank: int, size: int, method: str) -> list[float]:
    """Parameters and losses after training a model on sequences that are divided among the ranks."""
    configure(method=method)
    mesh = init_device_mesh("cpu", (size,))
    length = 8 * size
    models = []
    for _ in range(2):
        torch.manual_seed(4)
        models.append(Transformer(length))
    divided, alone = models
    optimizers = [torch.optim.SGD(m.parameters(), lr=0.5) for m in models]
    differences = []
    for step in range(3):
        generator = np.random.default_rng(step)
        x, y = (torch.tensor(generator.integers(0, 11, (3, length))) for _ in range(2))
        positions = torch.arange(length).unsqueeze(0)
        expected = F.cross_entropy(alone(x, positions).flatten(0, 1), y.flatten())
        expected.backward()
        with context_parallel(mesh, buffers=[x, y, positions], buffer_seq_dims=[1, 1, 1], no_restore_buffers={x}):
            loss = F.cross_entropy(divided(x, positions).flatten(0, 1), y.flatten())
            loss.backward()
        assert (x.shape, y.shape) == ((3, 8), (3, length))
        for p in divided.parameters():
            dist.all_reduce(p.grad, dist.ReduceOp.AVG)
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
        dist.all_reduce(total := loss.detach().clone(), dist.ReduceOp.AVG)
        differences.append((total - expected).abs().item())
    pairs = zip(divided.parameters(), alone.parameters(), strict=True)
    return [*differences, *((p - q).abs().max().item() for p, q in pairs)]


def within_a_mesh(rank: int, size: int) -> list[float]:
    """A mesh with another dimension: two independent groups of two ranks."""
    configure()
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "cp"))
    q, k, v = tensors(8, "float32", 3, seed=mesh.get_coordinate()[0])
    expected = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    with context_parallel(mesh["cp"], buffers=[q, k, v], buffer_seq_dims=[SEQUENCE] * 3):
        result = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    (whole,) = context_parallel_unshard(mesh["cp"], [result], [SEQUENCE])
    return [(whole - expected).abs().max().item()]


def does_not_wait(rank: int, size: int) -> int:
    """The number of reads by this process in a forward and a backward pass."""
    configure(method="alltoall")
    mesh = init_device_mesh("cpu", (size,))
    q, k, v = tensors(8 * size, "float32", 3)
    before = sum(row[2] for row in connection().wait_report() if row[1] == "read")
    with context_parallel(mesh, buffers=[q, k, v], buffer_seq_dims=[SEQUENCE] * 3):
        leaves = [t.detach().requires_grad_() for t in (q, k, v)]
        F.scaled_dot_product_attention(*leaves, is_causal=True).sum().backward()
    count = sum(row[2] for row in connection().wait_report() if row[1] == "read") - before
    assert leaves[0].grad.shape == leaves[0].shape
    return count


def rejected(rank: int, size: int) -> list[str]:
    """Calls that are errors on each rank alone; the context is left properly after each."""
    configure()
    mesh = init_device_mesh("cpu", (size,))
    q, k, v = tensors(8 * size, "float32", 3)
    attention = F.scaled_dot_product_attention

    def inside(call, buffers=(), dims=(), **options):
        with context_parallel(mesh, buffers=buffers, buffer_seq_dims=dims, **options):
            call()

    calls = (
        lambda: set_rotate_method("ring"),
        lambda: inside(lambda: None, [q], []),
        lambda: inside(lambda: None, [q], [2], no_restore_buffers={k}),
        lambda: inside(lambda: None, [q[:, :, 1:]], [2]),
        lambda: inside(lambda: None, [q.clone().requires_grad_()], [2]),
        lambda: inside(lambda: attention(q, k, v, torch.ones(1, dtype=torch.bool))),
        lambda: inside(lambda: attention(q, k, v, dropout_p=0.5)),
        lambda: inside(lambda: attention(q[0], k[0], v[0])),
        lambda: inside(lambda: attention(q, k[:, :, :4], v[:, :, :4], is_causal=True)),
        lambda: inside(lambda: attention(*(t[:, :, :3] for t in (q, k, v)), is_causal=True)),
        lambda: context_parallel_unshard(mesh, [q], [2], load_balancer=print),
        lambda: context_parallel_unshard(mesh, [q[:, :, :3]], [2]),
    )
    kinds = []
    for call in calls:
        try:
            call()
            kinds.append("no error")
        except (NotImplementedError, ValueError, RuntimeError) as error:
            kinds.append(type(error).__name__)
    buffer = q.clone()
    try:
        inside(lambda: buffer.requires_grad_(), [buffer], [2])
    except RuntimeError as error:
        kinds.append(str(error))
    try:
        inside(lambda: int("x"), [q], [2])
    except ValueError as error:
        kinds.append(str(error)[:7])
    restored = q.shape[2] == 8 * size
    expected = torch.softmax(q @ k.transpose(-1, -2) / 8**0.5, -1) @ v
    return [*kinds, str(restored and (attention(q, k, v) - expected).abs().max().item() < 1e-5)]
