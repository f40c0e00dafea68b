"""Mixed precision on GPUs; provides the names of torch.cuda.amp."""

from ..._lazy import lazy_attributes

# Imported at their first use: a thread that imports the package does not wait for one that imports a module of it.
_NAMES = {"autocast_mode": "autocast custom_bwd custom_fwd", "grad_scaler": "GradScaler"}

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]  # noqa: F822 - imported at their first use

__getattr__, __dir__ = lazy_attributes(globals(), None, _NAMES)
