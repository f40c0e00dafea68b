"""Every collective over dtypes, reductions and sizes, compared with NumPy. Each function runs on all ranks."""

from __future__ import annotations

import numpy as np

import teletensor as torch
import teletensor.distributed as dist

from ..values import DTYPES, SIZES, array, check, operations, reduced, tensor

LARGE = 1 << 18  # items; 1 MiB of float32


def _inputs(size: int, shape, dtype: str, seed: int = 0) -> list[np.ndarray]:
    return [array(r, shape, dtype, seed) for r in range(size)]


def all_reduce(rank: int, size: int) -> None:
    cases = [(n, dtype, op) for dtype in DTYPES for op in operations(dtype) for n in SIZES]
    cases += [(LARGE, dtype, op) for dtype, op in (("float32", "SUM"), ("bfloat16", "AVG"), ("int64", "MAX"))]
    results = []
    for n, dtype, op in cases:
        t = tensor(rank, (n,), dtype)
        dist.all_reduce(t, getattr(dist.ReduceOp, op))
        results.append(t)
    for t, (n, dtype, op) in zip(results, cases, strict=True):
        check(t, reduced(op, _inputs(size, (n,), dtype)), f"all_reduce of {n} {dtype} with {op}")


def premul_sum(rank: int, size: int) -> None:
    for n in (1, 7, LARGE):
        t = tensor(rank, (n,), "float32")
        kept = t * 1
        dist.all_reduce(t, dist._make_nccl_premul_sum(rank + 2.0))
        check(t, sum((r + 2.0) * x for r, x in enumerate(_inputs(size, (n,), "float32"))), "premul_sum")
        check(kept, array(rank, (n,), "float32"), "a copy of the input")


def reduce(rank: int, size: int) -> None:
    for root in range(size):
        for dtype in DTYPES:
            for op in operations(dtype):
                for n in (0, 7, 300):
                    t = tensor(rank, (n,), dtype)
                    dist.reduce(t, root, getattr(dist.ReduceOp, op))
                    inputs = _inputs(size, (n,), dtype)
                    check(t, reduced(op, inputs) if rank == root else inputs[rank], f"reduce of {n} {dtype} with {op}")


def broadcast(rank: int, size: int) -> None:
    for root in range(size):
        for dtype in (*DTYPES, "float8_e5m2"):
            for n in (*SIZES, LARGE if dtype == "float32" else 3):
                made = "float32" if dtype.startswith("float8") else dtype
                t = tensor(rank, (n,), made).to(getattr(torch, dtype))
                dist.broadcast(t, root)
                check(t.to(getattr(torch, made)), array(root, (n,), made), f"broadcast of {n} {dtype} from {root}")


def all_gather(rank: int, size: int) -> None:
    for dtype in DTYPES:
        for n in (*SIZES, LARGE if dtype == "float32" else 3):
            t = tensor(rank, (n,), dtype)
            inputs = _inputs(size, (n,), dtype)
            gathered = [torch.empty_like(t) for _ in range(size)]
            dist.all_gather(gathered, t)
            joined = torch.empty(size * n, dtype=t.dtype)
            dist.all_gather_into_tensor(joined, t)
            stacked = torch.empty(size, n, dtype=t.dtype)
            dist.all_gather_single(stacked, t)
            for r in range(size):
                check(gathered[r], inputs[r], f"all_gather of {n} {dtype}")
            check(joined, np.concatenate(inputs), f"all_gather_into_tensor of {n} {dtype}")
            check(stacked, np.stack(inputs), f"all_gather_single of {n} {dtype}")


def gather_and_scatter(rank: int, size: int) -> None:
    for root in range(size):
        for dtype in ("float32", "bfloat16", "complex64", "bool", "uint8"):
            for shape in ((0,), (1,), (5, 3), (LARGE if dtype == "float32" else 300,)):
                t = tensor(rank, shape, dtype)
                inputs = _inputs(size, shape, dtype)
                gathered = [torch.empty_like(t) for _ in range(size)] if rank == root else None
                dist.gather(t, gathered, root)
                joined = torch.empty(size, *shape, dtype=t.dtype) if rank == root else None
                dist.gather_into_tensor(t, joined, root)
                sent = [tensor(r, shape, dtype, seed=1) for r in range(size)] if rank == root else None
                received = torch.zeros_like(t)
                dist.scatter(received, sent, root)
                check(received, array(rank, shape, dtype, seed=1), f"scatter of {shape} {dtype}")
                if rank == root:
                    check(torch.stack(gathered), np.stack(inputs), f"gather of {shape} {dtype}")
                    check(joined, np.stack(inputs), f"gather_into_tensor of {shape} {dtype}")


def reduce_scatter(rank: int, size: int) -> None:
    for dtype in DTYPES:
        for op in operations(dtype):
            for n in (0, 1, 7, LARGE if (dtype, op) == ("float32", "SUM") else 300):
                t = tensor(rank, (size, n), dtype)
                expected = reduced(op, _inputs(size, (size, n), dtype))[rank]
                output = torch.empty(n, dtype=t.dtype)
                dist.reduce_scatter(output, list(t.unbind(0)), getattr(dist.ReduceOp, op))
                check(output, expected, f"reduce_scatter of {n} {dtype} with {op}")
                joined = torch.empty(n, dtype=t.dtype)
                dist.reduce_scatter_tensor(joined, t, getattr(dist.ReduceOp, op))
                check(joined, expected, f"reduce_scatter_tensor of {n} {dtype} with {op}")


def all_to_all(rank: int, size: int) -> None:
    for dtype in DTYPES:
        for n in (0, 1, 7, LARGE // size if dtype == "float32" else 300):
            sent = [tensor(rank, (n,), dtype, seed=r) for r in range(size)]
            received = [torch.empty(n, dtype=sent[0].dtype) for _ in range(size)]
            dist.all_to_all(received, sent)
            for r in range(size):
                check(received[r], array(r, (n,), dtype, seed=rank), f"all_to_all of {n} {dtype}")
            output = torch.empty(size * n, 2, dtype=sent[0].dtype)
            dist.all_to_all_single(output, tensor(rank, (size * n, 2), dtype))
            expected = [array(r, (size * n, 2), dtype)[rank * n : (rank + 1) * n] for r in range(size)]
            check(output, np.concatenate(expected), f"all_to_all_single of {n} {dtype}")


def all_to_all_with_splits(rank: int, size: int) -> None:
    """Rank a sends a + 2 * b items to rank b."""
    for dtype in ("float32", "int16"):
        sends = [rank + 2 * r for r in range(size)]
        receives = [r + 2 * rank for r in range(size)]
        output = torch.empty(sum(receives), 3, dtype=getattr(torch, dtype))
        dist.all_to_all_single(output, tensor(rank, (sum(sends), 3), dtype), receives, sends)
        expected = []
        for r in range(size):
            theirs = [r + 2 * to for to in range(size)]
            begin = sum(theirs[:rank])
            expected.append(array(r, (sum(theirs), 3), dtype)[begin : begin + theirs[rank]])
        check(output, np.concatenate(expected), "all_to_all_single with splits")


def coalesced(rank: int, size: int) -> None:
    shapes = [(3,), (0,), (2, 5), (300,)]
    tensors = [tensor(rank, shape, "float32", seed=i) for i, shape in enumerate(shapes)]
    lists = [[torch.empty_like(t) for t in tensors] for _ in range(size)]
    dist.all_gather_coalesced(lists, tensors)
    for r in range(size):
        for i, shape in enumerate(shapes):
            check(lists[r][i], array(r, shape, "float32", seed=i), "all_gather_coalesced")
    dist.all_reduce_coalesced(tensors)
    for i, shape in enumerate(shapes):
        check(tensors[i], reduced("SUM", _inputs(size, shape, "float32", seed=i)), "all_reduce_coalesced")


def coalesced_complex_and_real(rank: int, size: int) -> None:
    real, both = tensor(rank, (3,), "float32"), tensor(rank, (2, 5), "complex64", seed=1)
    dist.all_reduce_coalesced([real, both])
    check(real, reduced("SUM", _inputs(size, (3,), "float32")), "all_reduce_coalesced of real")
    check(both, reduced("SUM", _inputs(size, (2, 5), "complex64", seed=1)), "all_reduce_coalesced of complex")


def coalescing_blocks(rank: int, size: int) -> None:
    tensors = [tensor(rank, (5,), "float32", seed=i) for i in range(3)]
    with dist._coalescing_manager(async_ops=True) as manager:
        dist.all_reduce(tensors[0])
        manager.append(dist.all_reduce(tensors[1], async_op=True))
    manager.wait()
    with dist._coalescing_manager() as manager:
        manager.append(dist.all_reduce(tensors[2], async_op=True))
    for i in range(3):
        check(tensors[i], reduced("SUM", _inputs(size, (5,), "float32", seed=i)), "all_reduce in a block")


def messages_to_itself(rank: int, size: int) -> None:
    others = [r for r in range(size) if r != rank]
    received = [torch.empty(2) for _ in range(size)]
    second = torch.empty(3)
    ops = [dist.P2POp(dist.irecv, received[r], r) for r in range(size)]
    ops += [dist.P2POp(dist.isend, torch.full((2,), 10.0 * rank + r), r) for r in range(size)]
    ops += [dist.P2POp(dist.isend, torch.arange(3.0), rank, tag=5), dist.P2POp(dist.irecv, second, rank, tag=5)]
    works = dist.batch_isend_irecv(ops)
    assert len(works) == 2 * len(others)
    for work in works:
        work.wait()
    assert [t[0].item() for t in received] == [10.0 * r + rank for r in range(size)]
    assert second.tolist() == [0.0, 1.0, 2.0]
    for invalid in (
        [dist.P2POp(dist.isend, second, rank)],
        [dist.P2POp(dist.isend, second, rank), dist.P2POp(dist.irecv, torch.empty(4), rank)],
    ):
        try:
            dist.batch_isend_irecv(invalid)
        except ValueError as error:
            assert "from this rank to itself" in str(error)
        else:
            raise AssertionError("expected a ValueError")


def strided_and_recorded(rank: int, size: int) -> None:
    """Views, tensors that require grad, and results that depend on them."""
    base = tensor(rank, (6, 8), "float32")
    column = base[:, 3]
    dist.all_reduce(column)
    expected = array(rank, (6, 8), "float32").copy()
    expected[:, 3] = reduced("SUM", [x[:, 3] for x in _inputs(size, (6, 8), "float32")])
    check(base, expected, "all_reduce of a column")
    transposed = tensor(rank, (4, 5), "float32").t()
    dist.broadcast(transposed, size - 1)
    check(transposed, array(size - 1, (4, 5), "float32").T, "broadcast of a transposed tensor")
    leaf = torch.ones(3, requires_grad=True)
    dist.all_reduce(leaf)
    assert leaf.requires_grad and leaf.is_leaf
    check(leaf.detach(), np.full(3, size), "all_reduce of a leaf")
    product = torch.full((3,), 2.0, requires_grad=True) * 1
    gathered = [torch.empty(3) for _ in range(size)]
    dist.all_gather(gathered, product)
    assert not gathered[0].requires_grad
    check(gathered[-1], np.full(3, 2.0), "all_gather of a recorded tensor")


def many_in_a_row(rank: int, size: int) -> float:
    """Collectives that depend on each other, without reading anything in between."""
    t = torch.ones(5)
    for _ in range(200):
        dist.all_reduce(t, dist.ReduceOp.AVG)
        t += 1
        dist.broadcast(t, 0)
    return t.sum().item()


def float8_is_moved_not_reduced(rank: int, size: int) -> str:
    t = torch.ones(3).to(torch.float8_e5m2)
    gathered = [torch.empty_like(t) for _ in range(size)]
    dist.all_gather(gathered, t)
    check(gathered[0].to(torch.float32), np.ones(3), "all_gather of float8")
    dist.all_reduce(t)
    try:
        t.to(torch.float32).tolist()
    except RuntimeError as error:
        return str(error)
    raise AssertionError("expected a RuntimeError")


def undefined_reductions(rank: int, size: int) -> list[str]:
    messages = []
    for dtype, op, error in (
        ("complex64", "MAX", ValueError),
        ("float32", "BOR", RuntimeError),
        ("int64", "AVG", RuntimeError),
    ):
        t = tensor(rank, (3,), dtype)
        try:
            dist.all_reduce(t, getattr(dist.ReduceOp, op))
            t.tolist()
        except error as e:
            messages.append(str(e))
        else:
            raise AssertionError(f"{op} of {dtype} succeeded")
    return messages
