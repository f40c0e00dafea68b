"""Scenarios: functions that call a compiled function and change what it uses; they return what they have seen.

A captured one runs with `fullgraph=True`: it must have no graph break.
"""

from __future__ import annotations

import collections
import functools

import teletensor as torch


class Thing:
    def __init__(self, **attributes):
        self.__dict__.update(attributes)


def ones(n=2):
    return torch.ones(n)


def outcome(function, *args, **kwargs):
    """The result of a call, or what it raised."""
    try:
        return function(*args, **kwargs)
    except Exception as e:  # noqa: BLE001 - any is compared
        return "raised", type(e).__name__, str(e), type(e.__cause__).__name__, type(e.__context__).__name__


def seen_by(value):
    """What a scenario has seen, to compare."""
    if isinstance(value, torch.Tensor):
        return str(value.dtype), repr(value.tolist()), value.requires_grad
    if isinstance(value, dict):
        return type(value).__name__, [(seen_by(k), seen_by(v)) for k, v in value.items()]
    if isinstance(value, (list, tuple, collections.deque)):
        return type(value).__name__, [seen_by(v) for v in value]
    if isinstance(value, (int, float, str, bytes, type(None))):
        return type(value).__name__, repr(value)
    return type(value).__name__


class Scenarios:
    """The scenarios of a test module."""

    def __init__(self):
        self.functions = {}

    def scenario(self, function, fullgraph=False):
        self.functions[function.__name__] = (function, fullgraph)
        return function

    def captured(self, function):
        return self.scenario(function, True)

    def check(self, name):
        """Runs a scenario with plain functions and with compiled ones."""
        function, fullgraph = self.functions[name]
        torch._dynamo.reset()
        want = seen_by(function(lambda f: f))
        assert seen_by(function(functools.partial(torch.compile, backend="eager", fullgraph=fullgraph))) == want
