"""The table of divergences by pairs of distribution types."""

from __future__ import annotations

import warnings

_KL_REGISTRY: dict = {}


def register_kl(type_p: type, type_q: type):
    """Registers the decorated function with kl_divergence for these types and their subclasses."""
    for name, kind in (("type_p", type_p), ("type_q", type_q)):
        if not isinstance(kind, type):  # a base class of distributions need not be a Distribution
            raise TypeError(f"Expected {name} to be a Distribution subclass but got {kind}")

    def decorator(function):
        _KL_REGISTRY[type_p, type_q] = function
        return function

    return decorator


def _find(type_p: type, type_q: type):
    """The function for the closest base classes. Warns if p's and q's closest ones belong to different functions."""
    places = [
        (i, j, _KL_REGISTRY[base_p, base_q])
        for i, base_p in enumerate(type_p.__mro__)
        for j, base_q in enumerate(type_q.__mro__)
        if (base_p, base_q) in _KL_REGISTRY
    ]
    if not places:
        return None
    left = min(places, key=lambda place: place[:2])
    right = min(places, key=lambda place: (place[1], place[0]))
    if left[2] is not right[2]:
        names = f"{type_p.__mro__[left[0]].__name__}, {type_q.__mro__[right[1]].__name__}"
        warnings.warn(
            f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). Please register_kl({names})",
            RuntimeWarning, stacklevel=3,
        )  # fmt: skip
    return left[2]


def _dispatch_kl(type_p: type, type_q: type):
    """The function that kl_divergence calls for these types, or NotImplemented if there is none."""
    function = _find(type_p, type_q)
    return NotImplemented if function is None else function


def kl_divergence(p, q):
    """KL(p || q) = E_p[log p - log q]."""
    function = _find(type(p), type(q))
    if function is None:
        raise NotImplementedError(f"No KL(p || q) is implemented for p type {type(p).__name__} and q type {type(q).__name__}")
    return function(p, q)
