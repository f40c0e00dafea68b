"""Copies between ranks. `exchange` runs on all ranks."""

from __future__ import annotations

import teletensor as torch
import teletensor.distributed as dist
from teletensor.distributed._pull import offer, pull


def exchange(rank: int, size: int) -> None:
    """Each rank pulls a tensor from each other rank; the ticket is sent as an object."""
    tensors = [torch.arange(1000.0) * rank + i for i in range(size)]
    tickets: list = [None] * size
    dist.all_gather_object(tickets, [offer(t) for t in tensors])
    for peer in range(size):
        assert torch.equal(pull(tickets[peer][rank]), torch.arange(1000.0) * peer + rank)
    dist.barrier()
