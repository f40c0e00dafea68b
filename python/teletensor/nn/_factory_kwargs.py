"""Keyword arguments of modules that are for factory functions."""

from __future__ import annotations

_FACTORY_KEYS = ("device", "dtype", "memory_format")


def factory_kwargs(kwargs: dict | None) -> dict:
    """Returns the keyword arguments of a module that are for factory functions: device, dtype and memory_format.

    They are given directly or in a dict ``factory_kwargs``; other arguments raise TypeError.
    """
    kwargs = kwargs or {}
    unexpected = kwargs.keys() - {*_FACTORY_KEYS, "factory_kwargs"}
    if unexpected:
        raise TypeError(f"unexpected kwargs {unexpected}")
    result = dict(kwargs.get("factory_kwargs", {}))
    for key in _FACTORY_KEYS:
        if key in kwargs:
            if key in result:
                raise TypeError(f"{key} specified twice, in **kwargs and in factory_kwargs")
            result[key] = kwargs[key]
    return result
