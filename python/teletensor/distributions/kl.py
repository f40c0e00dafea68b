"""Kullback-Leibler divergences, by pairs of distribution types."""

from . import _kl_mixed, _kl_multivariate, _kl_same  # noqa: F401 - register their functions
from ._kl_registry import _KL_REGISTRY, _dispatch_kl, kl_divergence, register_kl

__all__ = ["_KL_REGISTRY", "_dispatch_kl", "kl_divergence", "register_kl"]
