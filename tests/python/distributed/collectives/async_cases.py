"""Work objects and messages between two ranks. Each function runs on all ranks."""

from __future__ import annotations

import time
from datetime import timedelta

import numpy as np

import teletensor as torch
import teletensor.distributed as dist

from ..values import DTYPES, array, check, reduced, tensor


def works(rank: int, size: int) -> dict:
    t = torch.full((1000,), float(rank))
    work = dist.all_reduce(t, async_op=True)
    assert work.wait() is True and work.wait() is True
    total = sum(range(size))
    check(t, np.full(1000, total), "all_reduce")
    assert work.is_completed() and work.is_success() and work.exception() is None
    assert work.result()[0] is t
    # Waits in a different order than the starts, with computation between start and wait.
    a, b, c = torch.ones(5), torch.full((5,), 2.0), torch.full((5,), 3.0)
    started = [dist.all_reduce(x, async_op=True) for x in (a, b)]
    c = c * 2
    started[1].wait()
    assert b.tolist() == [2.0 * size] * 5
    started[0].wait()
    assert a.tolist() == [size] * 5 and c.tolist() == [6.0] * 5
    work = dist.barrier(async_op=True)
    work.wait(timedelta(seconds=60))
    work = dist.all_reduce(a, async_op=True)
    while not work.is_completed():
        pass
    work.wait()
    return {"a": a.tolist()[0]}


def futures(rank: int, size: int) -> list:
    t = torch.full((4,), rank + 1.0)
    seen = []
    future = dist.all_reduce(t, async_op=True).get_future()
    doubled = future.then(lambda f: f.value()[0] * 2)
    future.add_done_callback(lambda f: seen.append(f.done()))
    assert doubled.wait().tolist() == [size * (size + 1.0)] * 4 and future.done() and doubled.done()
    assert future.value()[0] is t and seen == [True]
    failed = future.then(lambda f: 1 / 0)
    try:
        failed.wait()
    except RuntimeError as error:
        assert "ZeroDivisionError" in str(error)
        seen.append("raised")
    coalesced = dist.all_reduce_coalesced([t, t.clone()], async_op=True)
    coalesced.wait()
    return seen + t.tolist()


def dropped(rank: int, size: int) -> float:
    """Works that nobody waits for are complete when the group is destroyed."""
    tensors = []
    for i in range(200):
        t = torch.full((3,), float(i))
        dist.all_reduce(t, async_op=True)
        tensors.append(t)
    dist.barrier()
    return sum(t.sum().item() for t in tensors[:100])


def strided_output(rank: int, size: int) -> None:
    base = torch.zeros(4, 6)
    work = dist.all_gather([base[:, i] for i in range(size)], torch.full((4,), rank + 1.0), async_op=True)
    work.wait()
    check(base[:, :size], np.tile(np.arange(1.0, size + 1), (4, 1)), "columns")


def ring(rank: int, size: int) -> None:
    """Each rank sends to the next, in every dtype."""
    for dtype in DTYPES:
        for n in (0, 1, 7, 1 << 18 if dtype == "float32" else 300):
            sent, received = tensor(rank, (n,), dtype), torch.empty(n, dtype=getattr(torch, dtype))
            work = dist.isend(sent, (rank + 1) % size)
            before = (rank - 1) % size
            assert dist.recv(received, before) == before
            work.wait()
            check(received, array(before, (n,), dtype), f"{n} {dtype}")


def both_directions(rank: int, size: int) -> None:
    """Messages of several tags, sent in one order and received in another."""
    peer = 1 - rank
    sent = [torch.full((50_000,), float(10 * rank + tag)) for tag in range(4)]
    received = [torch.empty(50_000) for _ in range(4)]
    ops = [dist.P2POp(dist.irecv, received[tag], peer, tag=tag) for tag in range(4)]
    ops += [dist.P2POp(dist.isend, sent[tag], peer, tag=tag) for tag in range(4)]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    for tag in range(4):
        assert received[tag][[0, -1]].tolist() == [10.0 * peer + tag] * 2
    if rank == 0:
        for _ in range(20):
            dist.send(sent[0], 1)
            dist.recv(received[0], 1)
    else:
        for _ in range(20):
            dist.recv(received[0], 0)
            received[0] += 1
            dist.send(received[0], 0)
    assert received[0][0].item() == 1.0


def within_group(rank: int, size: int) -> list:
    """Ranks of messages and of a barrier in a sub-group."""
    group = dist.new_group([1, 3])
    t = torch.tensor([rank])
    if rank == 1:
        dist.send(t, 3, group=group)
    elif rank == 3:
        assert dist.recv(t, group_src=0, group=group) is not None
        assert dist.recv(torch.tensor([0]), 1, group=dist.group.WORLD) == 1
    if rank == 1:
        dist.send(t, 3)
    if rank in (1, 3):
        dist.barrier(group)
        dist.monitored_barrier(group)
    return t.tolist()


def any_source(rank: int, size: int, count: int) -> list:
    """Rank 0 receives `count` large messages from each other rank; returns the senders."""
    numel = 300_000
    if rank != 0:
        for i in range(count):
            dist.send(torch.full((numel,), 10.0 * rank + i), 0)
        return []
    received: list[int] = []
    for _ in range(count * (size - 1)):
        t = torch.zeros(numel)
        sender = dist.recv(t)
        assert t.min().item() == t.max().item() == 10 * sender + received.count(sender)
        received.append(sender)
    return sorted(received)


def any_source_one_size(rank: int, size: int, count: int) -> list:
    """Each rank sends `count` numbers to each other rank, and receives all with irecv() from any rank."""
    works = []
    t = [torch.zeros(1) for _ in range(count * (size - 1))]
    for i in range(len(t)):
        works.append(dist.irecv(t[i]))
    for i in range(count):
        for peer in range(size):
            if peer != rank:
                dist.isend(torch.tensor([100.0 * rank + i]), peer)
    values: dict[int, list] = {}
    for work, value in zip(works, t, strict=True):
        work.wait()
        values.setdefault(work.source_rank(), []).append(value.item())
    expected = {r: [100.0 * r + i for i in range(count)] for r in range(size) if r != rank}
    assert values == expected, (values, expected)
    return sorted(values)


def any_source_between(rank: int, size: int) -> list:
    """A receive from any rank between receives from a certain rank, and with another tag."""
    if rank == 0:
        first, any_, last, tagged = (torch.zeros(1) for _ in range(4))
        work_first = dist.irecv(first, 1)
        work_any = dist.irecv(any_)
        work_last = dist.irecv(last, 1)
        for work in (work_any, work_first, work_last):  # in another order than they were started
            work.wait()
        sender = dist.recv(tagged, tag=5)
        return [first.item(), any_.item(), work_any.source_rank(), last.item(), tagged.item(), sender]
    if rank == 2:
        dist.send(torch.tensor([2.0]), 0)
        dist.recv(torch.zeros(1), 1, tag=9)
        dist.send(torch.tensor([5.0]), 0, tag=5)
    else:
        time.sleep(0.3)  # rank 0 receives from rank 2 although its receive from rank 1 was started before
        dist.send(torch.tensor([1.0]), 0)
        dist.send(torch.tensor([3.0]), 0)
        dist.send(torch.zeros(1), 2, tag=9)
    return []


def any_source_in_group(rank: int, size: int) -> list:
    """The sender's rank is the one in the default group; the Work's is the one in the group."""
    dist.barrier()  # all ranks are connected before the ranks outside of the group leave
    group = dist.new_group([1, 3])
    t = torch.tensor([float(rank)])
    if rank == 3:
        dist.send(t, 1, group=group)
        dist.send(t, 1, group=group)
    elif rank == 1:
        work = dist.irecv(t, group=group)
        assert work.source_rank() == 1
        work.wait()
        return [dist.recv(t, group=group), t.item()]
    return []


def any_source_errors(rank: int, size: int) -> list[str]:
    """A failed tensor, another dtype, and no message before the group's timeout."""
    messages = []
    if rank == 1:
        dist.send(torch.ones(3)[torch.tensor([7])], 0)
        time.sleep(0.5)
        dist.send(torch.ones(2, dtype=torch.int64), 0)
    else:
        for _ in range(2):
            try:
                dist.recv(torch.zeros(2))
            except RuntimeError as error:
                messages.append(str(error))
    return messages


def any_source_timeout(rank: int, size: int) -> str:
    from datetime import timedelta

    group = dist.new_group(timeout=timedelta(seconds=1))
    if rank != 0:
        time.sleep(2.5)
        return ""
    try:
        dist.recv(torch.zeros(2), group=group)
    except RuntimeError as error:
        return str(error)
    return "no error"


def barrier_waits(rank: int, size: int, path: str) -> bool:
    """What rank 0 does before a barrier is visible to the others after it."""
    if rank == 0:
        time.sleep(0.3)
        open(path, "w").close()
    dist.barrier()
    import os

    return os.path.exists(path)


def late_rank(rank: int, size: int) -> None:
    """A rank that is later than the intervals in which backends check connections."""
    t = torch.ones(3)
    for _ in range(2):
        if rank == 1:
            time.sleep(0.4)
        dist.all_reduce(t)
        assert t.tolist()[0] >= size


def collectives_return_at_once(rank: int, size: int) -> bool:
    """Rank 0 calls collectives of which it reads the results only after rank 1 has called them too."""
    t = torch.ones(3)
    if rank == 1:
        time.sleep(0.5)
    begin = time.monotonic()
    for _ in range(20):
        dist.all_reduce(t, dist.ReduceOp.AVG)
    issued = time.monotonic()
    t.tolist()
    read = time.monotonic()
    return rank == 1 or issued - begin < read - begin


def products(rank: int, size: int) -> None:
    """Collectives of results that are not computed yet."""
    t = torch.ones(200, 200)
    for _ in range(5):
        t = t @ t / 200
        dist.all_reduce(t, dist.ReduceOp.AVG)
    check(t, reduced("MAX", [np.ones((200, 200), np.float32)] * size), "products")
