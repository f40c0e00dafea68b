"""Modules that train on several devices or engines."""

import sys

from ..._lazy import keep_functions, lazy_attributes

# Imported at their first use: a thread that imports the package does not wait for one that imports a module of it.
_NAMES = {
    "data_parallel": "DataParallel data_parallel",
    "distributed": "DistributedDataParallel",
    "parallel_apply": "parallel_apply",
    "replicate": "replicate",
    "scatter_gather": "gather scatter",
}
__getattr__, __dir__ = lazy_attributes(globals(), ("distributed", "scatter_gather"), _NAMES)
keep_functions(sys.modules[__name__], "data_parallel", "parallel_apply", "replicate")

__all__ = [
    "DataParallel", "DistributedDataParallel", "data_parallel", "gather", "parallel_apply", "replicate", "scatter",
]  # fmt: skip
