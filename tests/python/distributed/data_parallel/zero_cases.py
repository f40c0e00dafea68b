"""ZeroRedundancyOptimizer beside the same training on one engine. Each function runs on all ranks."""

from __future__ import annotations

import teletensor as torch
from teletensor.distributed.optim import ZeroRedundancyOptimizer
from teletensor.nn.parallel import DistributedDataParallel

from .data_parallel_cases import STEPS, batch, difference, loss_of, model, part

OPTIMIZERS = {"SGD": {"lr": 0.1, "momentum": 0.9}, "AdamW": {"lr": 1e-2, "eps": 1e-4}, "Adagrad": {"lr": 1e-2}}


def train(module, optimizer, rank: int = 0, size: int = 1, steps=range(STEPS)) -> None:
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
    for step in steps:
        x, y = batch(step)
        optimizer.zero_grad()
        loss_of(module, part(x, rank, size), part(y, rank, size)).backward()
        optimizer.step()
        scheduler.step()


def trained_alone(name: str):
    module = model()
    train(module, getattr(torch.optim, name)(module.parameters(), **OPTIMIZERS[name]))
    return module


def trains(rank: int, size: int, name: str) -> list:
    module = DistributedDataParallel(model())
    optimizer = ZeroRedundancyOptimizer(module.parameters(), getattr(torch.optim, name), **OPTIMIZERS[name])
    train(module, optimizer, rank, size)
    return [difference(module.module, trained_alone(name)), len(optimizer.optim.state)]


def groups(rank: int, size: int) -> float:
    """Two parameter groups with their own options, one of which is added later."""
    module, alone = model(), model()
    for m, make in ((module, lambda p: ZeroRedundancyOptimizer(p, torch.optim.SGD, lr=0.1)),
                    (alone, lambda p: torch.optim.SGD(p, lr=0.1))):  # fmt: skip
        optimizer = make([{"params": m[0].parameters(), "lr": 0.2}])
        optimizer.add_param_group({"params": [*m[2].parameters(), *m[4].parameters()]})
        train(m, optimizer)
    return difference(module, alone)


def state(rank: int, size: int) -> list:
    """A saved state continues the training, with the optimizer itself and with the optimizer's class."""
    options = OPTIMIZERS["AdamW"]
    module = model()
    optimizer = ZeroRedundancyOptimizer(module.parameters(), torch.optim.AdamW, **options)
    train(module, optimizer, steps=range(2))
    message = ""
    try:
        optimizer.state_dict()
    except RuntimeError as error:
        message = str(error)
    for to in range(size):
        optimizer.consolidate_state_dict(to)
        if to == rank:
            saved = optimizer.state_dict()
    results = []
    for make in (
        lambda p: ZeroRedundancyOptimizer(p, torch.optim.AdamW, **options),
        lambda p: torch.optim.AdamW(p, **options),
    ):
        copy = model()
        copy.load_state_dict(module.state_dict())
        again = make(copy.parameters())
        again.load_state_dict(saved)
        train(copy, again, steps=range(2, 4))
        results.append(copy)
    return [message, len(saved["state"]), difference(results[0], results[1])]


def rejected(rank: int, size: int) -> list[str]:
    messages = []
    for params, options in (
        (model().parameters(), {"overlap_with_ddp": True}), ([], {}),
        ([torch.zeros(1, requires_grad=True), torch.zeros(1, dtype=torch.float64, requires_grad=True)], {}),
    ):  # fmt: skip
        try:
            ZeroRedundancyOptimizer(params, torch.optim.SGD, lr=0.1, **options)
        except (NotImplementedError, ValueError) as error:
            messages.append(str(error))
    return messages
