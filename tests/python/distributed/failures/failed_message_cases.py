"""Messages whose tensor is an error on the sender. Each function runs on all ranks."""

from __future__ import annotations

import time

import teletensor as torch
import teletensor.distributed as dist
from teletensor import nn
from teletensor.distributed.pipelining import PipelineStage, Schedule1F1B


def failed_tensor() -> torch.Tensor:
    """A tensor whose computation fails in the engine."""
    return torch.ones(3)[torch.tensor([7])].expand(3).clone()


def sends(rank: int, size: int, asynchronous: bool) -> list:
    """Rank 0 sends a failed tensor, and then a good one."""
    begin = time.monotonic()
    received = torch.zeros(3)
    if rank == 0:
        for tensor in (failed_tensor(), torch.ones(3)):
            if asynchronous:
                dist.isend(tensor, 1).wait()
            else:
                dist.send(tensor, 1)
        return ["", [1.0] * 3, time.monotonic() - begin]
    try:
        if asynchronous:
            dist.irecv(received, 0).wait()
        else:
            dist.recv(received, 0)
        message = str(received.tolist())
    except (IndexError, RuntimeError) as error:
        message = str(error)
    received = torch.zeros(3)
    dist.recv(received, 0)
    return [message, received.tolist(), time.monotonic() - begin]


def pipeline(rank: int, size: int) -> list:
    """The first stage fails for the last microbatch of the first step; the second step succeeds."""
    torch.manual_seed(0)
    module = nn.Embedding(5, 4) if rank == 0 else nn.Linear(4, 4)
    schedule = Schedule1F1B(PipelineStage(module, rank, size, "cpu"), 4, nn.functional.cross_entropy)
    messages = []
    begin = time.monotonic()
    for step in range(2):
        x, losses = torch.arange(8) % 5 + (10 if step == 0 else 0) * (torch.arange(8) == 7), []
        schedule.step(*([x] if rank == 0 else []), target=torch.arange(8) % 4, losses=losses)
        try:
            value = losses[-1] if rank == size - 1 else next(module.parameters()).grad
            messages.append(f"finite: {bool(value.isfinite().all())}")
        except (IndexError, RuntimeError) as error:
            messages.append(str(error))
        module.zero_grad()
    return [messages, time.monotonic() - begin]
