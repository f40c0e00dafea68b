"""Functions that create masked tensors."""

from __future__ import annotations

from .. import _C
from ._calls import MaskedTensor  # with the operators on masked tensors
from ._tensor import checked, values_of, with_values, wrapped


def masked_tensor(data: object, mask: object, requires_grad: bool = False) -> MaskedTensor:
    """A masked tensor with copies of the data and of the mask: a leaf, without the data's gradient history."""
    return MaskedTensor(data, mask, requires_grad)


def as_masked_tensor(data: object, mask: object) -> MaskedTensor:
    """A masked tensor of the data, differentiable with respect to it: the gradient of masked-out elements is zero."""
    tensor, selected = checked(data, mask)
    selected = selected.clone()
    if tensor.requires_grad:
        values = values_of(tensor)
        tensor = with_values(tensor, _C.torch.where(values_of(selected), values, values.detach()))
    else:
        tensor = tensor.clone()
    return wrapped(tensor, selected)
