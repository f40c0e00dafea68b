"""torch.onnx.operators: functions that a tracer for ONNX would record."""

from __future__ import annotations

from .._C import Tensor

__all__ = []


def shape_as_tensor(x: Tensor) -> Tensor:
    """The sizes of a tensor as an int64 tensor."""
    from .._functions import tensor

    return tensor(list(x.shape))


def reshape_from_tensor_shape(x: Tensor, shape: Tensor) -> Tensor:
    """A tensor with the sizes in another tensor. Waits for the engine."""
    return x.reshape(shape.tolist())
