"""torch.ao.pruning: masks of weights that are trained, and schedules of their sparsity."""

from __future__ import annotations

from ..._lazy import lazy_attributes

# Imported at their first use: a thread that imports the package does not wait for one that imports a module of it.
_NAMES = {
    "_mappings": "get_dynamic_sparse_quantized_mapping get_static_sparse_quantized_mapping",
    "scheduler.base_scheduler": "BaseScheduler",
    "scheduler.cubic_scheduler": "CubicSL",
    "scheduler.lambda_scheduler": "LambdaSL",
    "sparsifier.base_sparsifier": "BaseSparsifier",
    "sparsifier.nearly_diagonal_sparsifier": "NearlyDiagonalSparsifier",
    "sparsifier.utils": "FakeSparsity fqn_to_module get_arg_info_from_tensor_fqn module_to_fqn",
    "sparsifier.weight_norm_sparsifier": "WeightNormSparsifier",
}
__getattr__, __dir__ = lazy_attributes(globals(), ("scheduler", "sparsifier"), _NAMES)

__all__ = [
    "BaseScheduler", "BaseSparsifier", "CubicSL", "FakeSparsity", "LambdaSL", "NearlyDiagonalSparsifier",
    "WeightNormSparsifier", "fqn_to_module", "get_arg_info_from_tensor_fqn", "get_dynamic_sparse_quantized_mapping",
    "get_static_sparse_quantized_mapping", "module_to_fqn", "scheduler", "sparsifier",
]  # fmt: skip
