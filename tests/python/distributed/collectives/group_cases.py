"""Groups within the default group. Each function runs on all ranks."""

from __future__ import annotations

import functools
import random
import warnings

import teletensor as torch
import teletensor.distributed as dist
from teletensor.distributed import distributed_c10d

from ..values import array, check, reduced, tensor


def _sum_of(group) -> list[float]:
    t = torch.full((3,), float(dist.get_rank()) + 1)
    dist.all_reduce(t, group=group)
    return t.tolist()


def subgroups_of_subgroups(rank: int, size: int) -> list:
    """Only the members of a subgroup divide it; other ranks divide theirs at the same time."""
    half, _ = dist.new_subgroups_by_enumeration([[0, 2], [1, 3]])
    own, parts = dist.new_subgroups(1, group=half)
    config = distributed_c10d._get_pg_config(half)
    assert config["ranks"] == dist.get_process_group_ranks(half) and config["pg_size"] == 2
    assert config["backend_config"] == dist.get_backend_config(half) and config["pg_name"] == half.group_name
    quarter = dist.new_subgroups(2)[0]
    result = [dist.get_process_group_ranks(own), len(parts), _sum_of(own)[0], _sum_of(quarter)[0]]
    for part in parts:
        dist.destroy_process_group(part)
    return result


def subgroups(rank: int, size: int) -> dict:
    """Pairs and a group in reverse order."""
    low, high = dist.new_group([0, 1]), dist.new_group([2, 3])
    mine = low if rank < 2 else high
    reverse = dist.new_group([3, 1, 0], sort_ranks=False)
    result = {"sum": _sum_of(mine), "ranks": dist.get_process_group_ranks(mine), "in_group": dist.get_rank(mine)}
    if rank != 2:
        t = torch.tensor([rank])
        gathered = [torch.zeros_like(t) for _ in range(3)]
        dist.all_gather(gathered, t, group=reverse)
        result["reverse"] = [g.item() for g in gathered]
        assert dist.get_global_rank(reverse, 0) == 3 and dist.get_group_rank(reverse, 0) == 2
        dist.broadcast(t, 3, group=reverse)
        result["from_3"] = t.item()
        dist.broadcast(t, group_src=1, group=reverse)
        result["from_1"] = t.item()
    else:
        assert reverse == dist.GroupMember.NON_GROUP_MEMBER and dist.get_rank(reverse) == -1
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert dist.all_reduce(torch.ones(1), group=reverse) is None
        result["warning"] = str(caught[0].message)
        try:
            dist.get_backend(reverse)
        except ValueError as error:
            result["error"] = str(error)
    return result


def enumerated(rank: int, size: int) -> dict:
    mine, groups = dist.new_subgroups(2)
    assert len(groups) == size // 2 and dist.get_world_size(mine) == 2
    odd_even, _ = dist.new_subgroups_by_enumeration([[0, 2], [1, 3]])
    split = dist.split_group(split_ranks=[[0, 3], [1]])
    local = dist.new_group([0, 1], use_local_synchronization=True) if rank < 2 else None
    return {
        "halves": _sum_of(mine),
        "odd_even": _sum_of(odd_even),
        "split": _sum_of(split) if rank != 2 else split,
        "local": _sum_of(local) if local else None,
        "count": dist.get_pg_count(),
    }


def interleaved(rank: int, size: int, seed: int) -> None:
    """A random sequence of collectives over overlapping groups, in the same order on all ranks."""
    choose, choose_waits = random.Random(seed), random.Random(rank)
    members = [list(range(size)), [0, 1], [1, 2, 3], [0, 3], [0, 2, 3]]
    groups = [dist.new_group(m) for m in members]
    pending, results = [], []
    for step in range(150):
        which, n, kind, root = (
            choose.randrange(len(groups)),
            choose.choice([0, 1, 9, 5000]),
            choose.randrange(3),
            choose.random(),
        )
        is_async = choose.random() < 0.5
        if rank not in members[which]:
            continue
        group, ranks = groups[which], members[which]
        t = tensor(rank, (n,), "float32", seed=step)
        inputs = [array(r, (n,), "float32", seed=step) for r in ranks]
        source = ranks[int(root * len(ranks))]
        if kind == 0:
            work = dist.all_reduce(t, group=group, async_op=is_async)
            expected = reduced("SUM", inputs)
        elif kind == 1:
            work = dist.broadcast(t, source, group=group, async_op=is_async)
            expected = inputs[ranks.index(source)]
        else:
            work = dist.reduce(t, source, dist.ReduceOp.MAX, group=group, async_op=is_async)
            expected = reduced("MAX", inputs) if rank == source else inputs[ranks.index(rank)]
        results.append((t, expected, f"step {step}"))
        if work is not None:
            pending.append(work)
        if choose_waits.random() < 0.2:
            while pending:
                pending.pop(choose_waits.randrange(len(pending))).wait()
    for work in pending:
        work.wait()
    for t, expected, what in results:
        check(t, expected, what)


def destroyed_subgroup(rank: int, size: int) -> list:
    group = dist.new_group([0, 1])
    before = _sum_of(group)
    dist.destroy_process_group(group)
    try:
        dist.all_reduce(torch.ones(1), group=group)
        message = ""
    except RuntimeError as error:
        message = str(error)
    return [before, _sum_of(None), message]


def rejected_ranks(rank: int, size: int) -> dict[str, str]:
    """Errors of calls with a rank that does not exist: raised at the call, on every rank, before any is involved."""
    x, sub = torch.ones(2), dist.new_group([0, 1])
    calls = {f"{name} {wrong}": functools.partial(call, wrong) for wrong in (size, 99, -1) for name, call in {
        "send": lambda r: dist.send(x, r), "isend": lambda r: dist.isend(x, r), "recv": lambda r: dist.recv(x, r),
        "irecv": lambda r: dist.irecv(x, r), "send in group": lambda r: dist.send(x, group_dst=r, group=sub),
        "broadcast": lambda r: dist.broadcast(x, r), "broadcast in group": lambda r: dist.broadcast(x, group_src=r, group=sub),
        "reduce": lambda r: dist.reduce(x, r), "gather": lambda r: dist.gather(x, dst=r), "scatter": lambda r: dist.scatter(x, src=r),
        "message": lambda r: dist.P2POp(dist.isend, x, r), "gather_object": lambda r: dist.gather_object(1, dst=r),
        "broadcast_object": lambda r: dist.broadcast_object_list([1], r), "send_object": lambda r: dist.send_object_list([1], r),
        "recv_object": lambda r: dist.recv_object_list([1], r), "scatter_object": lambda r: dist.scatter_object_list([None], None, r),
    }.items()}  # fmt: skip
    messages = {}
    for name, call in calls.items():
        messages[name] = "no error"
        try:
            call()
        except Exception as error:  # noqa: BLE001 - compared by the test
            messages[name] = f"{type(error).__name__}: {error}"
    dist.barrier()
    return messages


def rejected_arguments(rank: int, size: int) -> dict[str, str]:
    """Errors that are found before any rank is involved."""
    one, two = torch.ones(2), torch.ones(2, dtype=torch.float64)
    sub = dist.new_group([0])
    calls = {
        "type": lambda: dist.all_reduce([one]),
        "list": lambda: dist.all_gather(one, one),
        "elements": lambda: dist.all_gather([1], one),
        "dtypes": lambda: dist.all_gather([two, two], one),
        "length": lambda: dist.all_gather([one], one),
        "shape": lambda: dist.all_gather([one, torch.ones(3)], one),
        "output": lambda: dist.all_gather_into_tensor(torch.ones(3), one),
        "input": lambda: dist.reduce_scatter_tensor(torch.ones(3), one),
        "splits": lambda: dist.all_to_all_single(one, torch.ones(3), [1, 1], [1, 1]),
        "uneven": lambda: dist.all_to_all_single(torch.ones(3), torch.ones(3)),
        "no list": lambda: dist.gather(one) if rank == 0 else dist.gather(one, [one, one]),
        "both": lambda: dist.broadcast(one, 0, group_src=0),
        "neither": lambda: dist.broadcast(one),
        "self": lambda: dist.send(one, rank),
        "member": lambda: dist.broadcast(one, 1, group=sub),
        "op": lambda: dist.P2POp(dist.send, one, 0),
        "reduction": lambda: dist.all_reduce(one, "sum"),
        "factor": lambda: dist.all_reduce(one, dist.ReduceOp.PREMUL_SUM),
        "twice": lambda: dist.new_group([0, 0]),
        "range": lambda: dist.new_group([0, 7]),
        "again": lambda: dist.init_process_group("gloo"),
    }
    messages = {}
    for name, call in calls.items():
        try:
            call()
        except Exception as error:  # noqa: BLE001 - compared by the test
            messages[name] = f"{type(error).__name__}: {error}"
    assert one.tolist() == [1, 1]
    dist.barrier()
    return messages
