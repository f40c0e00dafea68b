"""What a DataLoader sets in the pipes of a graph: whether they shuffle, their seeds, and the shard of a worker."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from ..sampler import Sampler
from .datapipe import IterDataPipe, MapDataPipe

_DEPTH = 4  # of containers and objects in a pipe's attributes


def pipes_of(pipe: Any) -> list:
    """The pipe and all pipes from which it reads: those in its attributes, and in lists, dicts and objects of this package there."""
    found: list = []
    seen: set[int] = set()

    def visit(value: Any, depth: int) -> None:
        if id(value) in seen:
            return
        if isinstance(value, (IterDataPipe, MapDataPipe)):
            found.append(value)
            depth = 0
        elif depth == _DEPTH:
            return
        seen.add(id(value))
        for inner in _parts(value):
            visit(inner, depth + 1)

    visit(pipe, 0)
    return found


def _parts(value: Any) -> Iterator:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, (list, tuple, set)):
        yield from value if len(value) <= 1024 else ()  # a pipe's items, not its sources
    elif isinstance(value, (IterDataPipe, MapDataPipe, Sampler)) or type(value).__module__.startswith(__package__):
        yield from vars(value).values()


def with_shuffle(pipe: IterDataPipe, shuffle: bool | None) -> IterDataPipe:
    """The pipe after its shufflers were switched on or off; None leaves them. Appends a shuffler if there is none to switch on."""
    if shuffle is None:
        return pipe
    shufflers = [p for p in pipes_of(pipe) if hasattr(p, "set_shuffle") and hasattr(p, "set_seed")]
    if shuffle and not shufflers:
        warnings.warn(
            "`shuffle=True` was set, but the datapipe does not contain a `Shuffler`. Adding one at the end. Be aware that the default "
            "buffer size might not be sufficient for your task.", stacklevel=4,
        )  # fmt: skip
        pipe = pipe.shuffle()
        shufflers = [pipe]
    for shuffler in shufflers:
        shuffler.set_shuffle(shuffle)
    return pipe


def seed(pipe: Any, number: int) -> None:
    """Lets the random pipes take the seeds of all further iterations from one sequence, which the number begins."""
    for i, each in enumerate(p for p in pipes_of(pipe) if hasattr(p, "set_seed")):
        source = random.Random(number + i)  # noqa: S311 - no secrets
        if hasattr(each, "seeds"):
            each.seeds = source
        else:  # a user's class
            each.set_seed(source.getrandbits(62))


def shard(pipe: Any, count: int, number: int) -> None:
    """Selects one of `count` parts of what pipes with apply_sharding() yield; divides the shard that was selected before.

    Raises:
        RuntimeError: one of the pipes reads from another one.
    """
    for each in pipes_of(pipe):
        if not hasattr(each, "apply_sharding"):
            continue
        if any(hasattr(inner, "apply_sharding") for inner in pipes_of(each)[1:]):
            raise RuntimeError(
                "Sharding twice on a single pipeline is likely unintended and will cause data loss. Sharding already applied to "
                f"{each!r}"
            )
        before, place = getattr(each, "num_of_instances", 1), getattr(each, "instance_id", 0)
        each.apply_sharding(before * count, number * before + place)


class WorkerSetting:
    """The worker_init_fn of a loader of pipes: selects the worker's shard, and the order that all workers have."""

    def __init__(self, function: Callable | None, base_seed: int, count: int) -> None:
        self._function, self._base_seed, self._count = function, base_seed, count

    def __call__(self, number: int, pipe: Any) -> None:
        """Called in the worker, with its copy of the pipe."""
        shard(pipe, self._count, number)
        seed(pipe, self._base_seed)
        if self._function is not None:
            self._function(number)
