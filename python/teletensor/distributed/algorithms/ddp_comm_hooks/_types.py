"""The communication hooks by their names."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass

from ...._lazy import set_module
from . import default_hooks, powerSGD_hook


@dataclass(frozen=True)
class _Registration:
    """Registers a hook; `power_sgd_rank`: the rank of the PowerSGDState, if the hook needs one."""

    hook: Callable
    power_sgd_rank: int | None = None

    def __call__(self, model, state) -> None:
        if self.power_sgd_rank is not None:
            state = powerSGD_hook.PowerSGDState(state, self.power_sgd_rank)
        model.register_comm_hook(state, self.hook)


class DDPCommHookType(enum.Enum):
    """The communication hooks, for register_ddp_comm_hook()."""

    ALLREDUCE = _Registration(default_hooks.allreduce_hook)
    FP16_COMPRESS = _Registration(default_hooks.fp16_compress_hook)
    BF16_COMPRESS = _Registration(default_hooks.bf16_compress_hook)
    POWER_SGD = _Registration(powerSGD_hook.powerSGD_hook, 1)
    POWER_SGD_RANK2 = _Registration(powerSGD_hook.powerSGD_hook, 2)
    BATCHED_POWER_SGD = _Registration(powerSGD_hook.batched_powerSGD_hook, 1)
    BATCHED_POWER_SGD_RANK2 = _Registration(powerSGD_hook.batched_powerSGD_hook, 2)


def register_ddp_comm_hook(comm_hook_type: DDPCommHookType, model, state=None) -> None:
    """Registers a communication hook of this package for a DistributedDataParallel.

    Args:
        state: the process group; by default that of init_process_group().
    """
    comm_hook_type.value(model=model, state=state)


set_module(__package__, DDPCommHookType, register_ddp_comm_hook)
