"""Join: training loops that have different numbers of iterations on the ranks."""

from __future__ import annotations

import abc
import warnings
from typing import Any, NamedTuple

from ... import _C

__all__ = ["Join", "JoinHook", "Joinable"]

_WARN_AFTER = 1000  # iterations that this rank has repeated for other ranks


class JoinHook:
    """What a rank that has no more inputs does in each iteration of the other ranks, and at the end."""

    def main_hook(self) -> None:
        """Takes part in the collectives of one iteration."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """Called once all ranks have joined. ``is_last_joiner``: whether this rank was among the last."""


class _JoinConfig(NamedTuple):
    enable: bool
    throw_on_early_termination: bool
    is_first_joinable: bool

    @staticmethod
    def construct_disabled_join_config() -> _JoinConfig:
        """The configuration outside of a Join context."""
        return _JoinConfig(enable=False, throw_on_early_termination=False, is_first_joinable=False)


class Joinable(abc.ABC):
    """A class whose objects run collectives in each iteration, such as DistributedDataParallel."""

    @abc.abstractmethod
    def __init__(self) -> None:
        super().__init__()
        self._join_config = _JoinConfig.construct_disabled_join_config()

    @abc.abstractmethod
    def join_hook(self, **kwargs) -> JoinHook:
        """Returns the hook. ``kwargs``: options of the Join context."""

    @property
    @abc.abstractmethod
    def join_device(self) -> _C.device:
        """The device of the context's own collectives."""

    @property
    @abc.abstractmethod
    def join_process_group(self) -> Any:
        """The group of the ranks."""


class Join:
    """A context for a training loop that may end earlier on some ranks.

    A rank that leaves the loop repeats the collectives of the other ranks' iterations until all have left it.

    Args:
        joinables: the objects that run collectives, in the order in which an iteration uses them; one group.
        enable: whether the context has an effect.
        throw_on_early_termination: whether all ranks raise a RuntimeError as soon as one leaves the loop.
        kwargs: options of the joinables' hooks.
    """

    def __init__(
        self, joinables: list[Joinable], enable: bool = True, throw_on_early_termination: bool = False, **kwargs
    ):
        if not joinables:
            raise ValueError("The join context manager requires at least one joinable")
        self._joinables = joinables
        self._join_hooks = [joinable.join_hook(**kwargs) for joinable in joinables]
        self._enable, self._throw_on_early_termination = enable, throw_on_early_termination
        for i, joinable in enumerate(joinables):
            joinable._join_config = _JoinConfig(enable, throw_on_early_termination, is_first_joinable=i == 0)
        self._process_group, self._device = joinables[0].join_process_group, joinables[0].join_device
        if any(joinable.join_process_group is not self._process_group for joinable in joinables):
            raise ValueError("Using join context manager with multiple process groups")
        self._rank = self._process_group.rank()

    def __enter__(self) -> Join:
        return self

    def __exit__(self, kind, value, traceback) -> None:
        """Repeats the collectives of the other ranks' iterations until all ranks have left the loop."""
        if not self._enable or kind:
            return
        iterations, is_last_joiner = 0, True
        while self._count_active():
            if self._throw_on_early_termination:
                self._reduce(1).wait()
                raise RuntimeError(f"Rank {self._rank} exhausted all inputs.")
            for hook in self._join_hooks:
                hook.main_hook()
            is_last_joiner = False
            iterations += 1
            if iterations == _WARN_AFTER:
                warnings.warn(
                    f"Detected uneven input skew of greater than {_WARN_AFTER}. This means that rank {self._rank} has at "
                    f"least {_WARN_AFTER} fewer inputs than other currently-active ranks. This level of skew could lead to "
                    "performance degradation during training.",
                    stacklevel=2,
                )
        for hook in self._join_hooks:
            hook.post_hook(is_last_joiner)

    def _reduce(self, value: int):
        return self._process_group.allreduce([_C.torch.full((1,), float(value), device=self._device)])

    def _count_active(self) -> int:
        count = _C.torch.zeros(1, device=self._device)
        self._process_group.allreduce([count]).wait()
        return int(count.item())

    @staticmethod
    def notify_join_context(joinable: Joinable):
        """Reports that this rank is in an iteration. A joinable calls it before the iteration's collectives.

        Returns the Work of an all_reduce for the context's first joinable, else None.

        Raises:
            RuntimeError: a rank left the loop, and the context has ``throw_on_early_termination``. Checking it waits.
        """
        if not hasattr(joinable, "_join_config"):
            raise AssertionError(f"Check that the {type(joinable)} constructor calls the ``Joinable`` constructor")
        config = joinable._join_config
        if not config.is_first_joinable or not config.enable:
            return None
        group, device = joinable.join_process_group, joinable.join_device
        work = group.allreduce([_C.torch.ones(1, device=device)])
        if config.throw_on_early_termination:
            ended = _C.torch.zeros(1, device=device)
            group.allreduce([ended]).wait()
            if ended.item():
                raise RuntimeError("Detected at least one rank that exhausted inputs. Throwing across all ranks.")
        return work
