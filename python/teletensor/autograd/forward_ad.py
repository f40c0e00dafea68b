"""torch.autograd.forward_ad: derivatives along a direction (tangents), computed with each result.

A dual tensor has a value and a tangent; its operators compute both (func/_dual.py), also within no_grad(), which concerns
backward mode only.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from .. import _grad_mode, _transforms
from .._C import Tensor
from ..func._dual import ForwardLevel
from ..func._dual import make_dual as _make_dual

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]


class UnpackedDualTensor(NamedTuple):
    """A value and its derivative, None if it does not depend on a dual tensor."""

    primal: Tensor
    tangent: Tensor | None


_level: ForwardLevel | None = None


def enter_dual_level() -> int:
    """Starts a level, in which dual tensors can be made. Raises RuntimeError if there is one."""
    global _level
    if _level is not None:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    _level = ForwardLevel()
    _level.is_running = True
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """Ends the level: its tensors have no tangents any more."""
    global _level
    if _level is None or level not in (None, 0):
        raise RuntimeError("Trying to exit a forward AD level that was not the last one that was created. This is not supported.")
    _level.is_running = False
    _level = None


class dual_level(_grad_mode._ModeContext):  # noqa: N801 - PyTorch's name
    """A level as a context manager or decorator."""

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *exc: object) -> None:
        exit_dual_level()


class set_fwd_grad_enabled(_grad_mode._ModeContext):  # noqa: N801 - PyTorch's name
    """Enables or disables tangents, at once and until the end of the block. Disabled, results of dual tensors have none, and
    make_dual() returns its argument."""

    def __init__(self, mode: bool):
        running = _transforms.running
        self.mode, self.before, running.forward_enabled = bool(mode), running.forward_enabled, bool(mode)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        _transforms.running.forward_enabled = self.before

    def clone(self) -> set_fwd_grad_enabled:
        return set_fwd_grad_enabled(self.mode)


_set_fwd_grad_enabled = set_fwd_grad_enabled


def _is_fwd_grad_enabled() -> bool:
    """Whether operators compute tangents in this thread."""
    return _transforms.running.forward_enabled


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """Returns a tensor with the value of ``tensor`` and the derivative ``tangent``, which its operations propagate.

    The result shares the memory of ``tensor``. It requires gradients if ``tensor`` does; backward() through tangents and
    torch.autograd.grad() of dual tensors are supported.

    Raises:
        RuntimeError: there is no level, one of the tensors has a tangent already, or sizes, dtypes or devices differ.
        ValueError: one of the tensors is neither floating point nor complex.
    """
    if level not in (None, 0) or _level is None:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
        )
    if _level.unpack(tensor)[1] is not None:
        raise RuntimeError(
            "Making a dual Tensor based on a Tensor that already has a forward gradient at the same level 0 is not supported."
        )
    if _level.unpack(tangent)[1] is not None:
        raise RuntimeError("Setting a forward grad that itself has a forward gradient at the same level 0 is not supported.")
    dual = _make_dual(_level, tensor, tangent)
    return dual if _transforms.running.forward_enabled else tensor


def unpack_dual(tensor: Any, *, level: int | None = None) -> UnpackedDualTensor:
    """Returns the value of a tensor and its derivative, None if it does not depend on a dual tensor."""
    if _level is None or level not in (None, 0):
        return UnpackedDualTensor(tensor, None)
    return UnpackedDualTensor(*_level.unpack_result(tensor))
