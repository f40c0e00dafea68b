"""ShardedGradScaler: a GradScaler for gradients that are divided among ranks."""

from __future__ import annotations

from ...amp.grad_scaler import GradScaler
from .. import distributed_c10d

__all__ = ["ShardedGradScaler"]


class ShardedGradScaler(GradScaler):
    """A GradScaler that skips a step on all ranks if a gradient of any rank is not finite.

    GradScaler does the same for optimizers of sharded parameters; this class does it for all optimizers.
    """

    def __init__(
        self, device: str = "cuda", init_scale: float = 2.0**16, backoff_factor: float = 0.5, growth_factor: float = 2.0,
        growth_interval: int = 2000, enabled: bool = True, process_group=None,
    ):  # fmt: skip
        super().__init__(device, init_scale, growth_factor, backoff_factor, growth_interval, enabled)
        self.process_group = process_group or distributed_c10d._get_default_group()

    def _groups_of(self, optimizer) -> list:
        return [self.process_group]
