"""torch.func.replace_all_batch_norm_modules_."""

from __future__ import annotations

from ..nn import Module
from ..nn.modules.normalization import BatchNorm1d, BatchNorm2d, BatchNorm3d, SyncBatchNorm


def replace_all_batch_norm_modules_(root: Module) -> Module:
    """Makes all batch norms use the statistics of the batch, in place: they keep no running statistics."""
    for module in root.modules():
        if isinstance(module, (BatchNorm1d, BatchNorm2d, BatchNorm3d, SyncBatchNorm)) and module.track_running_stats:
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root
