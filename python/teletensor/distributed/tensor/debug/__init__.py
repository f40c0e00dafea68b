"""torch.distributed.tensor.debug: counts of collectives, and pictures of placements."""

from ...._lazy import lazy_attributes

# Imported at their first use: a thread that imports the package does not wait for one that imports a module of it.
_NAMES = {
    "_comm_mode": "CommDebugMode",
    "_visualize_sharding": "visualize_sharding",
}

__all__ = ["CommDebugMode", "visualize_sharding"]  # noqa: F822 - imported at their first use

__getattr__, __dir__ = lazy_attributes(globals(), None, _NAMES)
