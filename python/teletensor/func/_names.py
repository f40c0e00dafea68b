"""Functions of torch.func that have no effect here, and replace_all_batch_norm_modules_."""

from __future__ import annotations

from typing import Any, Callable

from .._C import Tensor
from ..nn import Module
from ..nn.modules.normalization import BatchNorm1d, BatchNorm2d, BatchNorm3d, SyncBatchNorm


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """Returns the function: its results do not depend on whether its operators change intermediate tensors in place."""
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(
            f"functionalize(f, remove='mutations'): received invalid argument for remove={remove}. Valid options are: "
            "'mutations' and 'mutations_and_views'"
        )
    return func


def debug_unwrap(tensor: Tensor, *, recurse: bool = True) -> Tensor:
    """Returns the tensor: vmap and grad call functions with ordinary tensors."""
    if not isinstance(recurse, bool):
        raise TypeError(f"debug_unwrap: expected recurse to be a bool, got {type(recurse).__name__}")
    return tensor


def replace_all_batch_norm_modules_(root: Module) -> Module:
    """Makes all batch norms use the statistics of the batch, in place: they keep no running statistics."""
    for module in root.modules():
        if isinstance(module, (BatchNorm1d, BatchNorm2d, BatchNorm3d, SyncBatchNorm)) and module.track_running_stats:
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root
