"""torch.ao.nn.sparse.quantized.dynamic: layers that quantize their input themselves."""

from ......_lazy import lazy_attributes

# Imported at their first use: a thread that imports the package does not wait for one that imports a module of it.
_NAMES = {
    "linear": "Linear",
}

__all__ = ["Linear"]  # noqa: F822 - imported at their first use

__getattr__, __dir__ = lazy_attributes(globals(), None, _NAMES)
