"""Fake quantization with tensors as parameters: learnable ones, and those of an observer in the engine."""

from __future__ import annotations

from .. import _C
from .._C import Tensor


def _along(parameter: Tensor, axis: int, dims: int) -> Tensor:
    return parameter.reshape([-1 if d == axis else 1 for d in range(dims)])


def _one(parameter: Tensor) -> Tensor:
    return parameter.reshape([]) if isinstance(parameter, Tensor) else parameter


def _check_limits(quant_min: int, quant_max: int) -> None:
    if quant_min > quant_max:
        raise RuntimeError("`quant_min` should be less than or equal to `quant_max`.")


def _fake_quantize_per_tensor_affine_cachemask_tensor_qparams(
    self: Tensor, scale: Tensor, zero_point: Tensor, fake_quant_enabled: Tensor, quant_min: int, quant_max: int
) -> tuple[Tensor, Tensor]:
    """fake_quantize_per_tensor_affine() if ``fake_quant_enabled`` is not 0, and whether each element was in the range."""
    _check_limits(quant_min, quant_max)
    arguments = (_one(fake_quant_enabled), _one(scale), _one(zero_point), quant_min, quant_max)
    return _C.ops.fake_quantize_if(self, *arguments), _C.ops.fake_quantize_mask_if(self, *arguments)


def _fake_quantize_learnable_per_tensor_affine(
    self: Tensor, scale: Tensor, zero_point: Tensor, quant_min: int, quant_max: int, grad_factor: float = 1.0
) -> Tensor:
    """fake_quantize_per_tensor_affine() that is differentiable with respect to scale and zero point, times ``grad_factor``."""
    _check_limits(quant_min, quant_max)
    return _C.ops.fake_quantize_learnable(self, _one(scale), _one(zero_point), quant_min, quant_max, grad_factor)


def _fake_quantize_learnable_per_channel_affine(
    self: Tensor, scale: Tensor, zero_point: Tensor, axis: int, quant_min: int, quant_max: int, grad_factor: float = 1.0
) -> Tensor:
    """The same with a scale and zero point per entry of ``axis``."""
    _check_limits(quant_min, quant_max)
    if scale.shape != zero_point.shape or scale.dim() != 1 or scale.shape[0] != self.shape[axis]:
        raise RuntimeError(
            f"[_fake_quantize_learnable_per_channel_affine] expected {self.shape[axis]} scales and zero points, got "
            f"{tuple(scale.shape)} and {tuple(zero_point.shape)}"
        )
    axis %= self.dim()
    scales, points = _along(scale, axis, self.dim()), _along(zero_point, axis, self.dim())
    return _C.ops.fake_quantize_learnable(self, scales, points, quant_min, quant_max, grad_factor)


def _observe(
    input: Tensor, observer_on: Tensor, fake_quant_on: Tensor, running_min: Tensor, running_max: Tensor, scale: Tensor,
    zero_point: Tensor, averaging_const: float, limits: tuple[int, int], ch_axis: int, per_row: bool, symmetric: bool,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Updates the observer; returns copies of its scale and zero point in shapes that broadcast to the input.

    Copies, because the next call may change the observer before the backward pass uses them.
    """
    if per_row:
        if not -input.dim() <= ch_axis < input.dim():
            raise RuntimeError("Error in fused_moving_avg_obs_fake_quant_cpu: ch_axis must be < self.dim()")
        ch_axis %= input.dim()
        _resize([running_min, running_max, scale, zero_point], input.shape[ch_axis])
    switches = _C.torch.cat([observer_on.reshape([1]), fake_quant_on.reshape([1])])
    _C.ops.observe_moving_average(
        input.detach(), switches, running_min, running_max, scale, zero_point, averaging_const, *limits, ch_axis, per_row, symmetric
    )
    if per_row:
        return _along(scale.clone(), ch_axis, input.dim()), _along(zero_point.clone(), ch_axis, input.dim())
    return _one(scale.clone()), _one(zero_point.clone())


def _resize(states: list[Tensor], count: int) -> None:
    """Gives the state of an observer that was not used yet an entry per channel, as PyTorch does."""
    if states[0].numel() == count and states[2].numel() == count:
        return
    if any(t.numel() > 1 for t in states):
        raise RuntimeError(f"[fused_moving_avg_obs_fake_quant] expected observer states of {count} channels, got {states[0].numel()}")
    for tensor, value in zip(states, (float("inf"), float("-inf"), 1.0, 0)):
        tensor.resize_(count)
        tensor.fill_(value)


def _fused_moving_avg_obs_fq_helper(
    self: Tensor, observer_on: Tensor, fake_quant_on: Tensor, running_min: Tensor, running_max: Tensor, scale: Tensor,
    zero_point: Tensor, averaging_const: float, quant_min: int, quant_max: int, ch_axis: int, per_row_fake_quant: bool = False,
    symmetric_quant: bool = False,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """fused_moving_avg_obs_fake_quant(), and whether each element was in the range."""
    parameters = _observe(
        self, observer_on, fake_quant_on, running_min, running_max, scale, zero_point, averaging_const, (quant_min, quant_max),
        ch_axis, per_row_fake_quant, symmetric_quant,
    )  # fmt: skip
    arguments = (_one(fake_quant_on), *parameters, quant_min, quant_max)
    return _C.ops.fake_quantize_if(self, *arguments), _C.ops.fake_quantize_mask_if(self, *arguments)


def fused_moving_avg_obs_fake_quant(
    input: Tensor, observer_on: Tensor, fake_quant_on: Tensor, running_min: Tensor, running_max: Tensor, scale: Tensor,
    zero_point: Tensor, averaging_const: float, quant_min: int, quant_max: int, ch_axis: int, per_row_fake_quant: bool = False,
    symmetric_quant: bool = False,
) -> Tensor:  # fmt: skip
    """Updates an observer with the tensor's range, and quantizes and dequantizes the tensor; never waits.

    Args:
        observer_on, fake_quant_on: tensors of one number; 0 skips the first or the second step.
        running_min, running_max: moving averages of the range, which are changed.
        scale, zero_point: the parameters for the averages, which are changed.
        averaging_const: the weight of the tensor's range in the averages.
        ch_axis, per_row_fake_quant: whether there is a range per entry of a dimension, and which.
        symmetric_quant: whether the zero point is the middle of the integers.
    """
    parameters = _observe(
        input, observer_on, fake_quant_on, running_min, running_max, scale, zero_point, averaging_const, (quant_min, quant_max),
        ch_axis, per_row_fake_quant, symmetric_quant,
    )  # fmt: skip
    return _C.ops.fake_quantize_if(input, _one(fake_quant_on), *parameters, quant_min, quant_max)
