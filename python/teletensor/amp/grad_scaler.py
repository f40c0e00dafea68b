"""GradScaler: scales losses so that float16 gradients do not underflow; skips steps after an overflow."""

from __future__ import annotations

import contextlib
import inspect
import warnings
from collections import defaultdict
from enum import Enum
from typing import Any

from .. import _C, _trace_runs
from .._C import Tensor
from .._grad_mode import no_grad
from .autocast_mode import has_gpus

__all__ = ["GradScaler", "OptState"]


class OptState(Enum):
    """Stage of an optimizer's step since the last GradScaler.update()."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


def _new_optimizer_state() -> dict[str, Any]:
    return {"stage": OptState.READY, "found_inf_per_device": {}}


def _stored_values(p: Tensor, grad: Tensor) -> Tensor:
    """The gradient, or the values of a sparse one, which share its storage."""
    if grad.is_sparse:
        if grad.dtype is _C.float16 and not grad.is_coalesced():
            grad = p.grad = grad.coalesce()  # sums of scaled values may overflow
        return grad._values()
    return grad.values() if str(grad.layout).startswith("torch.sparse") else grad


def _number(value: float, device: Any, dtype: Any = None) -> Tensor:
    return _C.torch.full((), value, dtype=dtype or _C.float32, device=device)


class GradScaler:
    """Usage: scale(loss).backward(), step(optimizer), update(); see torch.amp.GradScaler.

    The scale, the check for infinities and NaN, and the decision to skip a step are in the engine. None of the three
    calls waits if the optimizer is SGD, Adam or AdamW; step() waits for the check with other optimizers, as in PyTorch.
    ``device`` is "cuda" or "cpu"; "cuda" without a GPU disables the scaler with a warning.
    """

    def __init__(
        self, device: str = "cuda", init_scale: float = 2.0**16, growth_factor: float = 2.0, backoff_factor: float = 0.5,
        growth_interval: int = 2000, enabled: bool = True,
    ):  # fmt: skip
        if not isinstance(device, str):
            raise TypeError(f"[GradScaler] expected device to be a str, got {type(device).__name__}")
        self._device, self._enabled = device, enabled
        if device not in ("cuda", "cpu"):
            raise RuntimeError(f"[GradScaler] expected device to be 'cpu' or 'cuda', got {device!r}")
        if device == "cuda" and enabled and not has_gpus():
            warnings.warn("torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling.", stacklevel=2)
            self._enabled = False
        if not self._enabled:
            return
        if growth_factor <= 1.0:
            raise AssertionError("The growth factor must be > 1.0.")
        if backoff_factor >= 1.0:
            raise AssertionError("The backoff factor must be < 1.0.")
        self._init_scale, self._init_growth_tracker = init_scale, 0
        # Numbers in the engine, created when scale() determines their device.
        self._scale: Tensor | None = None
        self._growth_tracker: Tensor | None = None
        self._growth_factor, self._backoff_factor, self._growth_interval = growth_factor, backoff_factor, growth_interval
        self._per_optimizer_states: dict[int, dict] = defaultdict(_new_optimizer_state)

    def _check_scale_growth_tracker(self, funcname: str) -> tuple[Tensor, Tensor]:
        fix = "This may indicate your script did not use scaler.scale(loss or outputs) earlier in the iteration."
        if self._scale is None or self._growth_tracker is None:
            raise AssertionError(f"Attempted {funcname} but _scale is None.  " + fix)
        return self._scale, self._growth_tracker

    def _scale_on(self, device: Any) -> Tensor:
        if self._scale is None:
            with _C.TracePause() if _C.is_tracing() else contextlib.nullcontext():
                self._scale = _number(self._init_scale, device)
                self._growth_tracker = _number(self._init_growth_tracker, device, _C.int32)
        return self._scale.to(device)

    def scale(self, outputs):
        """Multiplies a loss, or each loss of an iterable, by the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            return outputs * self._scale_on(outputs.device)
        if not hasattr(outputs, "__iter__"):
            raise ValueError("outputs must be a Tensor or an iterable of Tensors")
        scaled = map(self.scale, outputs)
        return type(outputs)(scaled) if isinstance(outputs, (list, tuple)) else scaled

    @no_grad
    def _unscale_grads_(self, optimizer: Any, inv_scale: Tensor, found_inf: Tensor, allow_fp16: bool) -> dict:
        """Multiplies the optimizer's gradients by inv_scale. Returns, for each device, whether one was infinite or NaN."""
        grads: dict[Any, list[Tensor]] = defaultdict(list)
        for group in optimizer.param_groups:
            for p in group["params"]:
                if not isinstance(p, Tensor):
                    raise AssertionError(f"expected param to be torch.Tensor, got {type(p).__name__}")
                grad = p.grad
                if grad is None:
                    continue
                if grad.dtype is _C.float16 and not allow_fp16:
                    raise ValueError("Attempting to unscale FP16 gradients.")
                grads[grad.device] += grad.to_locals() if hasattr(grad, "to_locals") else [_stored_values(p, grad)]
        found = {}
        for device, members in grads.items():
            found[device] = found_inf if device == found_inf.device else found_inf.to(device)
            _C.ops.amp_unscale(members, found[device], inv_scale.to(device))
        return self._found_on_any_rank(optimizer, found, found_inf.device)

    def _groups_of(self, optimizer: Any) -> list:
        """The process groups among whose ranks the optimizer's gradients are divided."""
        groups: dict = {}
        for p in (p for group in optimizer.param_groups for p in group["params"]):
            if hasattr(p, "device_mesh"):
                groups.update(dict.fromkeys(p.device_mesh.get_all_groups()))
            elif hasattr(p, "_unit"):
                groups[p._unit.group] = None
        return list(groups)

    def _found_on_any_rank(self, optimizer: Any, found: dict, device: Any) -> dict:
        """Combines the ranks' results if gradients are divided among ranks. A rank without gradients takes part."""
        groups = self._groups_of(optimizer)
        if not groups:
            return found
        count = sum((flag.to(device) for flag in found.values()), start=_number(0.0, device)).reshape(1)
        for group in groups:
            group.allreduce([count]).wait()
        flag = (count.reshape(()) > 0).float()
        return {other: flag.to(other) for other in found or (device,)}

    def unscale_(self, optimizer) -> None:
        """Divides the gradients by the scale, so that they can be clipped. Call at most once per update()."""
        if not self._enabled:
            return
        scale, _ = self._check_scale_growth_tracker("unscale_")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        inv_scale = scale.double().reciprocal().float()
        state["found_inf_per_device"] = self._unscale_grads_(optimizer, inv_scale, _number(0.0, scale.device), False)
        state["stage"] = OptState.UNSCALED

    def _check_inf_per_device(self, optimizer) -> dict:
        """Checks the gradients of an optimizer without unscaling them."""
        scale, _ = self._check_scale_growth_tracker("_check_inf_per_device")
        one, zero = _number(1.0, scale.device), _number(0.0, scale.device)
        self._per_optimizer_states[id(optimizer)]["found_inf_per_device"] = self._unscale_grads_(optimizer, one, zero, True)
        return self._found_inf_per_device(optimizer)

    def _found_inf_per_device(self, optimizer) -> dict:
        return self._per_optimizer_states[id(optimizer)]["found_inf_per_device"]

    def _step_with_scaling(self, optimizer, state: dict, args: tuple, kwargs: dict):
        """The step of an optimizer that unscales the gradients and skips the step itself, by PyTorch's protocol."""
        if "grad_scaler" in inspect.signature(optimizer.step).parameters:
            warnings.warn(
                "GradScaler is going to stop passing itself as a keyword argument to the passed "
                "optimizer. In the near future GradScaler registers `grad_scale: Tensor` and "
                "`found_inf: Tensor` to the passed optimizer and let the optimizer use them directly.",
                FutureWarning, stacklevel=3,
            )  # fmt: skip
            return optimizer.step(*args, **kwargs, grad_scaler=self)
        if state["stage"] is OptState.READY:
            self._check_inf_per_device(optimizer)
        given = getattr(optimizer, "grad_scale", None)
        unscaled = state["stage"] is OptState.UNSCALED
        optimizer.grad_scale = given if unscaled else self._scale * (1 if given is None else given)
        optimizer.found_inf = sum(t.to(self._scale.device) for t in state["found_inf_per_device"].values())
        try:
            return optimizer.step(*args, **kwargs)
        finally:
            del optimizer.grad_scale, optimizer.found_inf

    def step(self, optimizer, *args, **kwargs):
        """Unscales the gradients unless unscale_() has, and calls optimizer.step() unless one is infinite or NaN."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._check_scale_growth_tracker("step")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if getattr(optimizer, "_step_supports_amp_scaling", False):
            result = self._step_with_scaling(optimizer, state, args, kwargs)
            state["stage"] = OptState.STEPPED
            return result
        if state["stage"] is OptState.READY:
            self.unscale_(optimizer)
        found = list(state["found_inf_per_device"].values())
        if not found:
            raise AssertionError("No inf checks were recorded for this optimizer.")
        result = None
        if len(found) == 1 and not args and not kwargs and _skips_on_device(optimizer, found[0]):
            optimizer.found_inf = found[0]
            try:
                result = optimizer.step()
            finally:
                del optimizer.found_inf
        elif _C.is_tracing():
            raise NotImplementedError(
                f"[GradScaler] step() of {type(optimizer).__name__} in a traced function: the engine decides in each run whether a "
                "step counts, and can for SGD, Adam and AdamW on one device only"
            )
        elif not sum(t.item() for t in found):
            result = optimizer.step(*args, **kwargs)
        state["stage"] = OptState.STEPPED
        return result

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Decreases the scale after an overflow, and increases it after growth_interval updates without overflow.

        If ``new_scale`` is given, sets the scale to this value instead.
        """
        if not self._enabled:
            return
        scale, growth_tracker = self._check_scale_growth_tracker("update")
        if isinstance(new_scale, Tensor):
            if new_scale.device.type != self._device or new_scale.numel() != 1 or new_scale.requires_grad:
                raise AssertionError(
                    "new_scale should be a float or a 1-element torch.cuda.FloatTensor or "
                    "torch.FloatTensor with requires_grad=False."
                )
            scale.copy_(new_scale.reshape(()))
        elif new_scale is not None:
            scale.fill_(float(new_scale))
        else:
            found = [
                t.to(scale.device)
                for state in self._per_optimizer_states.values()
                for t in state["found_inf_per_device"].values()
            ]
            if not found:
                raise AssertionError("No inf checks were recorded prior to update.")
            any_found = found[0] if len(found) == 1 else sum(found)
            if _C.is_tracing():
                _trace_runs.before_each_run(_UnchangedSettings(self))
            _C.ops.amp_update_scale(
                scale, growth_tracker, any_found, self._growth_factor, self._backoff_factor, self._growth_interval
            )
        self._per_optimizer_states = defaultdict(_new_optimizer_state)

    def is_enabled(self) -> bool:
        """Whether scaling is enabled."""
        return self._enabled

    def _get_scale_async(self) -> Tensor | None:
        return self._scale

    def get_scale(self) -> float:
        """The current scale; 1 if scaling is disabled. Waits."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else self._scale.item()

    def _get_growth_tracker(self) -> int:
        if not self._enabled:
            return 0
        return self._init_growth_tracker if self._growth_tracker is None else self._growth_tracker.item()

    def get_growth_factor(self) -> float:
        """The factor by which the scale is increased."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Sets the factor by which the scale is increased."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """The factor by which the scale is decreased."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Sets the factor by which the scale is decreased."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """The number of steps without overflow after which the scale is increased."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Sets the number of steps without overflow after which the scale is increased."""
        self._growth_interval = new_interval

    def state_dict(self) -> dict:
        """The scale, the settings and the growth counter; empty if scaling is disabled. Waits."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(), "growth_factor": self._growth_factor, "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval, "_growth_tracker": self._get_growth_tracker(),
        }  # fmt: skip

    def load_state_dict(self, state_dict: dict) -> None:
        """Restores a state returned by state_dict."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler."
            )
        self._init_scale, self._init_growth_tracker = state_dict["scale"], state_dict["_growth_tracker"]
        if self._scale is not None:
            self._scale.fill_(self._init_scale)
            self._growth_tracker.fill_(self._init_growth_tracker)
        self._growth_factor, self._backoff_factor = state_dict["growth_factor"], state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]

    def __getstate__(self) -> dict:
        state = self.__dict__.copy()
        if self._enabled:
            if self._per_optimizer_states:
                raise AssertionError(
                    "A GradScaler instance may only be pickled at the beginning "
                    "of an iteration, or at the end after scaler.update()."
                )
            state.update(_init_scale=self.get_scale(), _init_growth_tracker=self._get_growth_tracker())
            state.update(_scale=None, _growth_tracker=None)
        return state

    def __setstate__(self, state: dict) -> None:
        self.__dict__.update(state)


class _UnchangedSettings:
    """Before each run of a Program with update(): raises RuntimeError if the settings that it contains have changed."""

    def __init__(self, scaler: GradScaler) -> None:
        self.scaler, self.traced = scaler, self._settings(scaler)

    @staticmethod
    def _settings(scaler: GradScaler) -> tuple:
        return scaler._growth_factor, scaler._backoff_factor, scaler._growth_interval

    def __call__(self) -> None:
        if self._settings(self.scaler) != self.traced:
            raise RuntimeError(
                "[GradScaler] the growth factor, backoff factor or growth interval are others than when the function was traced; "
                "trace the function again"
            )


def _skips_on_device(optimizer: Any, found_inf: Tensor) -> bool:
    """Whether step() of the optimizer has no effect if its attribute found_inf is not 0, without waiting for the value."""
    skips = getattr(optimizer, "_skips_on_device", None)
    return skips is not None and skips(found_inf)
