"""Algorithms for data-parallel training."""

from ..._lazy import lazy_attributes

# Imported at their first use: a thread that imports the package does not wait for one that imports a module of it.
_NAMES = {
    "join": "Join Joinable JoinHook",
}

__all__ = ["Join", "JoinHook", "Joinable", "join"]  # noqa: F822 - imported at their first use

__getattr__, __dir__ = lazy_attributes(globals(), None, _NAMES)
