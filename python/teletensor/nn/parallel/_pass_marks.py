"""Marks on a module's output, which show whether a backward pass belongs to the module."""

from __future__ import annotations

from typing import Any

from ..._C import Tensor
from ...autograd import Function
from ...autograd.function import once_differentiable


class PassMarks:
    """Whether a backward pass has reached a module's output.

    Attributes:
        is_reached: None: not known, because the output has no tensors to mark.
    """

    def __init__(self) -> None:
        self.is_reached: bool | None = False

    def mark(self, output: Any) -> Any:
        """The output, whose gradients show that a pass has reached it. Only tensors in tuples, lists and dicts are found."""
        from ...distributed.fsdp._nested import tensors_in, with_tensors

        tensors = tensors_in(output)
        floating = [t for t in tensors if t.requires_grad]
        if not floating:
            self.is_reached = None
            return output
        self.is_reached = False
        marked = iter(_Reached.apply(self, *floating))
        return with_tensors(output, iter([next(marked) if t.requires_grad else t for t in tensors]))


class _Reached(Function):
    """Returns tensors unchanged, and records in backward that the pass has reached them."""

    @staticmethod
    def forward(ctx, marks: PassMarks, *tensors: Tensor):
        ctx.marks = marks
        return tuple(t.view_as(t) for t in tensors)

    @staticmethod
    @once_differentiable
    def backward(ctx, *grads):
        ctx.marks.is_reached = True
        return None, *grads
