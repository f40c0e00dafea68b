"""Mixed precision: autocast to a lower precision, and gradient scaling against underflow."""

from .._lazy import lazy_attributes

# Imported at their first use: a thread that imports the package does not wait for one that imports a module of it.
_NAMES = {
    "autocast_mode": "_UnmanagedAutocast _enter_autocast _exit_autocast autocast custom_bwd custom_fwd is_autocast_available",
    "grad_scaler": "GradScaler",
}

__all__ = [  # noqa: F822 - imported at their first use
    "GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available",
]  # fmt: skip

__getattr__, __dir__ = lazy_attributes(globals(), None, _NAMES)
