"""Differentiable collectives, SyncBatchNorm and DistributedSampler. Each function runs on all ranks."""

from __future__ import annotations

import numpy as np

import teletensor as torch
import teletensor.distributed as dist
from teletensor.distributed.nn import functional


def gradients(rank: int, size: int) -> None:
    """Each collective's derivative. The loss is the sum over all ranks of a weighted sum of their results."""
    weights = [torch.arange(3.0) + 10 * r for r in range(size)]
    total = sum(weights[1:], weights[0])

    def leaf(r: int = rank) -> torch.Tensor:
        return (torch.arange(3.0) + r).requires_grad_()

    x = leaf()
    y = functional.all_reduce(x * 2)
    assert y.tolist() == (2 * sum(np.arange(3.0) + r for r in range(size))).tolist()
    (y * weights[rank]).sum().backward()
    assert x.grad.tolist() == (total * 2).tolist()

    x = leaf()
    for r, part in enumerate(functional.all_gather(x)):
        assert part.tolist() == leaf(r).tolist()
        (part * weights[rank] * (r + 1)).sum().backward(retain_graph=True)
    x.grad = None
    parts = functional.all_gather(x)
    sum((p * weights[rank] * (r + 1)).sum() for r, p in enumerate(parts)).backward()
    assert x.grad.tolist() == (total * (rank + 1)).tolist()

    x = leaf()
    y = functional.broadcast(x, 0)
    assert y.tolist() == leaf(0).tolist()
    (y * weights[rank]).sum().backward()
    assert x.grad.tolist() == (total.tolist() if rank == 0 else [0.0] * 3)

    x = leaf()
    y = functional.reduce(x, 0)
    (y * weights[rank]).sum().backward()
    assert x.grad.tolist() == weights[0].tolist()

    x = leaf()
    parts = functional.gather(x, 0)
    sum((p * weights[rank] * (r + 1)).sum() for r, p in enumerate(parts)).backward()
    assert x.grad.tolist() == (weights[0] * (rank + 1)).tolist()

    inputs = [leaf(rank + r) for r in range(size)]
    y = functional.scatter(inputs, 0)
    assert y.tolist() == leaf(rank).tolist()
    (y * weights[rank]).sum().backward()
    if rank == 0:
        assert [t.grad.tolist() for t in inputs] == [w.tolist() for w in weights]

    inputs = [leaf(rank + r) for r in range(size)]
    y = functional.reduce_scatter(torch.empty(3), inputs)
    assert y.tolist() == sum(np.arange(3.0) + r + rank for r in range(size)).tolist()
    (y * weights[rank]).sum().backward()
    assert [t.grad.tolist() for t in inputs] == [w.tolist() for w in weights]

    inputs = [leaf(rank + r) for r in range(size)]
    parts = functional.all_to_all([torch.empty(3) for _ in range(size)], inputs)
    sum((p * weights[rank]).sum() for p in parts).backward()
    assert [t.grad.tolist() for t in inputs] == [w.tolist() for w in weights]

    x = torch.arange(2.0 * size).requires_grad_()
    y = functional.all_to_all_single(torch.empty(2 * size), x * 1)
    (y * (rank + 1)).sum().backward()
    assert x.grad.tolist() == np.repeat(np.arange(size) + 1.0, 2).tolist()


def sync_batch_norm(rank: int, size: int, dims: int, empty: bool) -> dict:
    """Compares the module with a batch norm of all ranks' batches."""
    generator = np.random.default_rng(3)
    lengths = [0 if empty and r == 0 else 2 + r for r in range(size)]
    shape = (sum(lengths), 4, 3, 3)[:dims]
    batch = generator.standard_normal(shape).astype("float32")
    upstream = generator.standard_normal(shape).astype("float32")
    begin = sum(lengths[:rank])
    own = slice(begin, begin + lengths[rank])

    reference = (torch.nn.BatchNorm2d if dims == 4 else torch.nn.BatchNorm1d)(4)
    with torch.no_grad():
        reference.weight.copy_(torch.tensor([1.0, 2.0, -1.0, 0.5]))
        reference.bias.copy_(torch.tensor([0.0, 1.0, 2.0, 3.0]))
    model = torch.nn.SyncBatchNorm.convert_sync_batchnorm(torch.nn.Sequential(torch.nn.Sequential(type(reference)(4))))
    assert isinstance(model[0][0], torch.nn.SyncBatchNorm)
    model[0][0].load_state_dict(reference.state_dict())

    whole = torch.tensor(batch, requires_grad=True)
    expected = reference(whole)
    expected.backward(torch.tensor(upstream))
    part = torch.tensor(batch[own], requires_grad=True)
    actual = model(part)
    actual.backward(torch.tensor(upstream[own]))

    def close(a, b) -> None:
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=2e-4, atol=2e-5)

    close(actual, expected[own])
    close(part.grad, whole.grad[own])
    module = model[0][0]
    for parameter in ("weight", "bias"):
        total = getattr(module, parameter).grad
        dist.all_reduce(total)
        close(total, getattr(reference, parameter).grad)
    close(module.running_mean, reference.running_mean)
    close(module.running_var, reference.running_var)
    assert module.num_batches_tracked.item() == 1
    model.eval()
    reference.eval()
    close(model(part), reference(whole)[own])
    return {}


def sampler(rank: int, size: int) -> list:
    return list(torch.utils.data.DistributedSampler(range(10), shuffle=False))
