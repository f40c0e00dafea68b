"""torch.distributed._functional_collectives: collectives that return their result, which libraries import from here."""

from __future__ import annotations

from typing import Any

from .._C import Tensor
from .nn.functional import all_reduce as _all_reduce
from .nn.functional import all_to_all_single as _all_to_all_single


def wait_tensor(tensor: Tensor) -> Tensor:
    """Returns the tensor: the engine runs what uses a collective's result after the collective."""
    return tensor


def all_to_all_single_autograd(self: Tensor, output_split_sizes: Any, input_split_sizes: Any, group: Any, tag: str = "") -> Tensor:
    """Sends a part of the first dimension to each rank; differentiable. `tag` has no effect, as in PyTorch."""
    rows = self.shape[0] if output_split_sizes is None else sum(output_split_sizes)
    output = self.new_empty((rows, *self.shape[1:]))
    return _all_to_all_single(output, self, output_split_sizes, input_split_sizes, group)


all_to_all_single = all_to_all_single_autograd


def all_reduce(self: Tensor, reduceOp: str, group: Any, tag: str = "") -> Tensor:  # noqa: N803 - PyTorch's name
    """Reduces a tensor over the ranks ("sum", "avg", ...). `tag` has no effect, as in PyTorch."""
    from ._reduce_op import ReduceOp

    return _all_reduce(self, getattr(ReduceOp, reduceOp.upper()), group)
