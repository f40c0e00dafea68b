"""Averages of the ranks' parameters, for training in which gradients are not averaged in every step."""

from ...._lazy import lazy_attributes

# Imported at their first use: a thread that imports the package does not wait for one that imports a module of it.
_NAMES = {
    "averagers": "ModelAverager PeriodicModelAverager",
    "hierarchical_model_averager": "HierarchicalModelAverager",
}

__all__ = ["HierarchicalModelAverager", "ModelAverager", "PeriodicModelAverager"]  # noqa: F822 - imported at their first use

__getattr__, __dir__ = lazy_attributes(globals(), None, _NAMES)
