"""torch.ao.nn.sparse.quantized: quantized linear layers whose weights have blocks of zeros."""

from ....._lazy import lazy_attributes

# Imported at their first use: a thread that imports the package does not wait for one that imports a module of it.
_NAMES = {
    "linear": "Linear LinearPackedParams",
    "utils": "LinearBlockSparsePattern",
}

__all__ = ["Linear", "LinearBlockSparsePattern", "LinearPackedParams", "dynamic"]  # noqa: F822 - imported at their first use

__getattr__, __dir__ = lazy_attributes(globals(), None, _NAMES)
