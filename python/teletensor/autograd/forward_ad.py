"""torch.autograd.forward_ad: derivatives along a direction (tangents), computed with the result.

The engine's operators declare gradients, not forward derivatives, so a tangent is computed by differentiating twice when
unpack_dual() is called: J t is the derivative of J^T v with respect to v. Operations on dual tensors are therefore recorded,
cost about three times their forward pass, and must have second derivatives.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from .. import _C, _grad_mode
from .._C import Tensor

__all__ = [
    "UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "set_fwd_grad_enabled", "unpack_dual",
]  # fmt: skip


class UnpackedDualTensor(NamedTuple):
    """A value and its derivative, None if it does not depend on a dual tensor."""

    primal: Tensor
    tangent: Tensor | None


class _Level:
    """The dual tensors that were made since enter_dual_level()."""

    def __init__(self) -> None:
        self.duals: list[Tensor] = []
        self.tangents: list[Tensor] = []
        self.unrecorded = _grad_mode.times_disabled  # blocks without recording hide the dependence on dual tensors


_level: _Level | None = None
_enabled = True


def enter_dual_level() -> int:
    """Starts a level, in which dual tensors can be made. Raises RuntimeError if there is one."""
    global _level
    if _level is not None:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    _level = _Level()
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """Ends the level: its tensors have no tangents any more."""
    global _level
    if _level is None or level not in (None, 0):
        raise RuntimeError("Trying to exit a forward AD level that was not the last one that was created. This is not supported.")
    _level = None


class dual_level(_grad_mode._ModeContext):  # noqa: N801 - PyTorch's name
    """A level as a context manager or decorator."""

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *exc: object) -> None:
        exit_dual_level()


class set_fwd_grad_enabled(_grad_mode._ModeContext):  # noqa: N801 - PyTorch's name
    """Enables or disables tangents, at once and until the end of the block. Disabled, make_dual() returns its argument."""

    def __init__(self, mode: bool):
        global _enabled
        self.mode, self.before, _enabled = bool(mode), _enabled, bool(mode)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        global _enabled
        _enabled = self.before

    def clone(self) -> set_fwd_grad_enabled:
        return set_fwd_grad_enabled(self.mode)


def _check_dual(tensor: Any, tangent: Any, level: Any) -> None:
    if level not in (None, 0) or _level is None:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
        )
    for name, value in (("primal", tensor), ("tangent", tangent)):
        if not (value.is_floating_point() or value.is_complex()):
            raise ValueError(f"Expected {name} to be floating point or complex, but got: {value.dtype}")
    if tensor.shape != tangent.shape:
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not supported. "
            f"Tensor is of size {list(tensor.shape)} while the given forward gradient is of size {list(tangent.shape)}."
        )
    if tensor.dtype != tangent.dtype or tensor.device != tangent.device:
        raise RuntimeError(
            f"[make_dual] expected a tangent of dtype {tensor.dtype} on {tensor.device}, got {tangent.dtype} on {tangent.device}"
        )
    if not _C.is_grad_enabled():
        raise NotImplementedError("[make_dual] tangents are computed from the recorded operations: call it outside of no_grad()")


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """Returns a tensor with the value of ``tensor`` and the derivative ``tangent``, which its operations propagate.

    Unlike in PyTorch, the dual tensor requires grad, and so do results computed from it; it cannot be changed in place.
    """
    _check_dual(tensor, tangent, level)
    if not _enabled:
        return tensor
    dual = tensor.view_as(tensor) if tensor.requires_grad else tensor.detach().requires_grad_()
    _level.duals.append(dual)
    _level.tangents.append(tangent)
    return dual


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """Returns the value of a tensor and its derivative along the tangents of the dual tensors that it was computed from.

    Raises:
        NotImplementedError: an operation has no second derivative, or recording was disabled in this level and the tensor
            may depend on dual tensors.
    """
    if _level is None or level not in (None, 0) or not _level.duals or not _enabled:
        return UnpackedDualTensor(tensor, None)
    if not tensor.requires_grad:
        if _grad_mode.times_disabled != _level.unrecorded:
            raise NotImplementedError(
                "[unpack_dual] expected operations on dual tensors to be recorded, got a tensor that may have been computed while "
                "no_grad() or inference_mode() disabled it: leave them out"
            )
        return UnpackedDualTensor(tensor, None)
    with _grad_mode.enable_grad():
        return _derivative(tensor, _level.duals, _level.tangents)


def _derivative(tensor: Tensor, duals: list[Tensor], tangents: list[Tensor]) -> UnpackedDualTensor:
    from .gradients import grad

    vector = _C.torch.zeros_like(tensor, requires_grad=True)
    products = grad([tensor], duals, [vector], create_graph=True, allow_unused=True)
    used = [(p, t) for p, t in zip(products, tangents) if p is not None]
    if not used:
        return UnpackedDualTensor(tensor, None)
    further = any(d._base is not None or t.requires_grad for d, t in zip(duals, tangents))  # to be differentiated backward
    found = grad(
        [p for p, _ in used], [vector], [t for _, t in used], create_graph=further, retain_graph=True, materialize_grads=True
    )[0]
    return UnpackedDualTensor(tensor if further else tensor.detach(), found)
