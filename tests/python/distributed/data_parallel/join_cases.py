"""Join and DistributedDataParallel.join with different numbers of inputs. Each function runs on all ranks."""

from __future__ import annotations

import teletensor as torch
import teletensor.distributed as dist
from teletensor import nn
from teletensor.distributed.algorithms.join import Join, Joinable, JoinHook
from teletensor.distributed.optim import ZeroRedundancyOptimizer
from teletensor.nn.parallel import DistributedDataParallel

from .data_parallel_cases import batch, difference, loss_of, model, part


def iterations(rank: int) -> int:
    return 2 + rank


def train_alone(size: int, make) -> nn.Module:
    """Training in which the ranks that have no more inputs contribute zeros."""
    module = model()
    optimizer = make(module.parameters())
    for step in range(iterations(size - 1)):
        x, y = batch(step)
        optimizer.zero_grad()
        for rank in range(size):
            if step < iterations(rank):
                (loss_of(module, part(x, rank, size), part(y, rank, size)) / size).backward()
        optimizer.step()
    return module


def uneven(rank: int, size: int, zero: bool) -> float:
    options = {"lr": 1e-2, "eps": 1e-4}
    module = DistributedDataParallel(model())
    if zero:
        optimizer = ZeroRedundancyOptimizer(module.parameters(), torch.optim.AdamW, **options)
        context = Join([module, optimizer])
    else:
        optimizer = torch.optim.AdamW(module.parameters(), **options)
        context = module.join()
    with context:
        for step in range(iterations(rank)):
            x, y = batch(step)
            optimizer.zero_grad()
            loss_of(module, part(x, rank, size), part(y, rank, size)).backward()
            optimizer.step()
    return difference(module.module, train_alone(size, lambda p: torch.optim.AdamW(p, **options)))


def buffers(rank: int, size: int) -> list[float]:
    """With buffers and no_sync: the loop ends, and all ranks have the buffers of the last one."""
    torch.manual_seed(1)
    module = DistributedDataParallel(nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)))
    with module.join():
        for step in range(iterations(rank)):
            x = torch.arange(12.0).reshape(3, 4) * (rank + step + 1)
            if step == 0:
                with module.no_sync():
                    module(x).sum().backward()
            else:
                module(x).sum().backward()
    return module.module[1].running_mean.tolist()


def throws(rank: int, size: int) -> str:
    module = DistributedDataParallel(model())
    try:
        with module.join(throw_on_early_termination=True):
            for step in range(iterations(rank)):
                x, y = batch(step)
                loss_of(module, part(x, rank, size), part(y, rank, size)).backward()
    except RuntimeError as error:
        return str(error)
    return "no error"


class Counter(Joinable):
    """Counts the iterations of all ranks."""

    def __init__(self):
        super().__init__()
        self.count = torch.zeros(1)
        self.posted: list[bool] = []

    def add(self) -> None:
        Join.notify_join_context(self)
        self._sum(1.0)

    def _sum(self, value: float) -> None:
        total = torch.tensor([value])
        dist.all_reduce(total)
        self.count += total

    def join_hook(self, **kwargs) -> JoinHook:
        counter = self

        class Hook(JoinHook):
            def main_hook(self) -> None:
                counter._sum(0.0)

            def post_hook(self, is_last_joiner: bool) -> None:
                counter.posted.append(is_last_joiner)

        return Hook()

    @property
    def join_device(self):
        return torch.device("cpu")

    @property
    def join_process_group(self):
        return dist.group.WORLD


def custom(rank: int, size: int) -> list:
    counter = Counter()
    with Join([counter]):
        for _ in range(iterations(rank)):
            counter.add()
    return [counter.count.item(), counter.posted]


def rejected(rank: int, size: int) -> list[str]:
    messages = []
    module = DistributedDataParallel(model())
    other = DistributedDataParallel(model(), find_unused_parameters=True)
    for call in (lambda: Join([]), lambda: module.join(divide_by_initial_world_size=False), other.join):
        try:
            call()
        except (NotImplementedError, ValueError) as error:
            messages.append(str(error))
    return messages
