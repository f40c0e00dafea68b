"""torch.distributed.nn: collectives with gradients, and modules on other workers."""

from ..._lazy import lazy_attributes

__all__ = [
    "RemoteModule", "all_gather", "all_reduce", "all_to_all", "all_to_all_single", "api", "broadcast", "functional",
    "gather", "reduce", "reduce_scatter", "scatter",
]  # fmt: skip

# Imported at their first use: a thread that imports the package does not wait for one that imports a module of it.
_NAMES = {
    "api.remote_module": "RemoteModule",
    "functional": "all_gather all_reduce all_to_all all_to_all_single broadcast gather reduce reduce_scatter scatter",
}

__getattr__, __dir__ = lazy_attributes(globals(), None, _NAMES)
