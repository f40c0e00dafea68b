"""GradScaler: scales losses so that float16 gradients do not underflow; skips steps after an overflow."""

from __future__ import annotations

from enum import Enum

from .. import _C
from .._C import Tensor
from .._grad_mode import no_grad
from .autocast_mode import is_autocast_available

__all__ = ["GradScaler", "OptState"]


class OptState(Enum):
    """Stage of an optimizer's step since the last GradScaler.update()."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


class GradScaler:
    """Usage: scale(loss).backward(), step(optimizer), update(); see torch.amp.GradScaler.

    step() waits for the result of the overflow check. ``device`` must be a device type that autocast supports and has
    no other effect: gradients are checked on the device that stores them.
    """

    def __init__(
        self, device: str = "cuda", init_scale: float = 2.0**16, growth_factor: float = 2.0, backoff_factor: float = 0.5,
        growth_interval: int = 2000, enabled: bool = True,
    ):  # fmt: skip
        if not isinstance(device, str):
            raise TypeError(f"[GradScaler] expected device to be a str, got {type(device).__name__}")
        if not is_autocast_available(device):
            raise RuntimeError(f"[GradScaler] expected device to be 'cpu' or 'cuda', got {device!r}")
        if growth_factor <= 1.0 or not 0 < backoff_factor < 1.0:
            raise AssertionError("The growth factor must be > 1.0 and the backoff factor in (0, 1).")
        self._enabled, self._scale, self._growth_tracker = enabled, float(init_scale), 0
        self._growth_factor, self._backoff_factor, self._growth_interval = growth_factor, backoff_factor, growth_interval
        self._stages: dict[int, OptState] = {}
        self._found_inf: dict[int, Tensor] = {}
        self._overflowed = False

    def is_enabled(self) -> bool:
        """Whether scaling is enabled."""
        return self._enabled

    def get_scale(self) -> float:
        """The current scale; 1 if scaling is disabled."""
        return self._scale if self._enabled else 1.0

    def scale(self, outputs):
        """Multiplies a loss, or each loss of a list or tuple, by the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            return outputs * self._scale
        return type(outputs)(self.scale(o) for o in outputs)

    @no_grad
    def unscale_(self, optimizer) -> None:
        """Divides the gradients by the scale, so that they can be clipped. Call at most once per update()."""
        if not self._enabled:
            return
        stage = self._stages.get(id(optimizer), OptState.READY)
        if stage is not OptState.READY:
            twice = "unscale_() has already been called on this optimizer since the last update()."
            raise RuntimeError(twice if stage is OptState.UNSCALED else "unscale_() is being called after step().")
        grads = [p.grad.detach() for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        for g in grads:
            g.mul_(1.0 / self._scale)
        finite = [g.isfinite().all() for g in grads]
        found = _C.torch.stack(finite).all().logical_not() if finite else _C.tensor(False)
        self._found_inf[id(optimizer)] = self._found_on_any_rank(optimizer, found)
        self._stages[id(optimizer)] = OptState.UNSCALED

    def _found_on_any_rank(self, optimizer, found: Tensor) -> Tensor:
        """Combines the ranks' results if the optimizer's parameters are divided among ranks."""
        params = [p for group in optimizer.param_groups for p in group["params"] if hasattr(p, "_unit")]
        if not params:
            return found
        from ..distributed.fsdp._norm import any_over_ranks

        return any_over_ranks(found, dict.fromkeys(p._unit.group for p in params))

    def step(self, optimizer, *args, **kwargs):
        """Calls optimizer.step() unless a gradient is infinite or NaN."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        stage = self._stages.get(id(optimizer), OptState.READY)
        if stage is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if stage is OptState.READY:
            self.unscale_(optimizer)
        overflowed = bool(self._found_inf[id(optimizer)])
        self._overflowed |= overflowed
        self._stages[id(optimizer)] = OptState.STEPPED
        return None if overflowed else optimizer.step(*args, **kwargs)

    def update(self, new_scale=None) -> None:
        """Decreases the scale after an overflow, and increases it after growth_interval updates without overflow.

        If ``new_scale`` is given, sets the scale to this value instead.
        """
        if not self._enabled:
            return
        if new_scale is not None:
            self._scale = float(new_scale)
        elif not self._stages:
            raise AssertionError("No inf checks were recorded prior to update.")
        elif self._overflowed:
            self._scale, self._growth_tracker = self._scale * self._backoff_factor, 0
        else:
            self._growth_tracker += 1
            if self._growth_tracker == self._growth_interval:
                self._scale, self._growth_tracker = self._scale * self._growth_factor, 0
        self._stages, self._found_inf, self._overflowed = {}, {}, False

    def get_growth_factor(self) -> float:
        """The factor by which the scale is increased."""
        return self._growth_factor

    def get_backoff_factor(self) -> float:
        """The factor by which the scale is decreased."""
        return self._backoff_factor

    def get_growth_interval(self) -> int:
        """The number of steps without overflow after which the scale is increased."""
        return self._growth_interval

    def state_dict(self) -> dict:
        """The scale, the settings and the growth counter; empty if scaling is disabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self._scale, "growth_factor": self._growth_factor, "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval, "_growth_tracker": self._growth_tracker,
        }  # fmt: skip

    def load_state_dict(self, state_dict: dict) -> None:
        """Restores a state returned by state_dict."""
        if self._enabled:
            for name, value in state_dict.items():
                setattr(self, "_" + name.lstrip("_"), value)
