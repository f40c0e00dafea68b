"""Python state that changes between calls of compiled functions, by kind: each call sees it as plain Python does."""

from __future__ import annotations

import functools
import os
import sys
import types
from collections import OrderedDict

import pytest

import teletensor as torch
from teletensor import nn

SCALE = 2.0
CONFIG = {"scale": 2.0, "deep": {"bias": 1.0}}


class Settings:
    """A class with __getattribute__, as configurations of libraries have."""

    names = {"alias": "scale"}
    factor = 1.0

    def __init__(self):
        self.scale = 2.0

    def __getattribute__(self, name):
        if name != "names" and name in super().__getattribute__("names"):
            name = super().__getattribute__("names")[name]
        return super().__getattribute__(name)


class Registry(dict):
    def get(self, key):
        return super().get(str(key)) or 1.0


class Output(OrderedDict):
    pass


SETTINGS, REGISTRY, OUTPUT = Settings(), Registry(a=2.0), Output(a=2.0)
MODULE = types.ModuleType("settings_of_a_test")
MODULE.scale = 2.0


def helper(x):
    return x * 2


@functools.lru_cache
def cached(name):
    return CONFIG[name]


class Square(torch.autograd.Function):
    factor = 2.0

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * Square.factor

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0] * 2 * Square.factor


class Net(nn.Module):
    factor = 1.0

    def __init__(self):
        super().__init__()
        self.register_buffer("shift", torch.ones(3))
        self.layers = nn.ModuleList([nn.ReLU(), nn.Tanh(), nn.Sigmoid()])
        self.count = 2

    def forward(self, x):
        for layer in self.layers[: self.count]:
            x = layer(x)
        return x * self.factor + self.shift


def of_global(x):
    return x * SCALE


def of_dict(x):
    return x * CONFIG["scale"] + CONFIG["deep"]["bias"]


def of_getattribute(x):
    return x * SETTINGS.alias * SETTINGS.factor


def of_instance_dict(x):
    return x * SETTINGS.__dict__["scale"] + len(SETTINGS.__dict__)


def of_subclass_of_dict(x):
    return x * REGISTRY.get("a") + len(OUTPUT) + OUTPUT["a"]


def of_environment(x):
    return x * float(os.environ.get("TELETENSOR_TEST_SCALE", "2")) + (os.getenv("TELETENSOR_TEST_SHIFT") is None)


def of_function(x):
    return helper(x)


def of_module(x):
    return x * MODULE.scale


def of_cache(x):
    return x * cached("scale")


def of_cond(x):
    return torch.cond(x.sum() > 0, lambda a: a * SCALE, lambda a: a - SCALE, (x,))


def of_vmap(x):
    return torch.vmap(lambda a: a * SCALE + CONFIG["scale"])(x)


def of_grad(x):
    return torch.func.grad(lambda a: (a * a * SCALE).sum())(x)


def of_autograd_function(x):
    return Square.apply(x)


def default(x, k=2.0, *, shift=1.0):
    return x * k + shift


def of_defaults(x):
    return default(x)


def make_closure():
    value = 2.0

    def function(x):
        return x * value

    def change():
        nonlocal value
        value += 1

    return function, change


def changes():
    """(function, function that changes what it reads)"""
    this = sys.modules[__name__]

    def set_global():
        this.SCALE += 1

    def set_entry():
        CONFIG["scale"] += 1

    def set_deep():
        CONFIG["deep"] = {"bias": CONFIG["deep"]["bias"] + 1}

    def set_alias():
        SETTINGS.scale += 1

    def set_names():
        Settings.names = {**Settings.names, "factor": "scale"}

    def set_class_attribute():
        Settings.factor += 1

    def set_getattribute():
        Settings.__getattribute__ = lambda self, name: object.__getattribute__(self, "scale")

    def add_attribute():
        SETTINGS.other = 3

    def set_item_of_subclass():
        REGISTRY["a"] += 1

    def add_item_of_subclass():
        OUTPUT["b"] = 1

    def patch_method():
        Registry.get = lambda self, key: 7.0

    def set_environment():
        os.environ["TELETENSOR_TEST_SCALE"] = "5"

    def add_environment():
        os.environ["TELETENSOR_TEST_SHIFT"] = "1"

    def patch_function():
        this.helper = lambda x: x * 9

    def patch_code():
        helper.__code__ = (lambda x: x - 4).__code__

    def set_module():
        MODULE.scale += 1

    def clear_cache():
        CONFIG["scale"] += 1
        cached.cache_clear()

    def set_defaults():
        default.__defaults__ = (3.0,)

    def set_keyword_defaults():
        default.__kwdefaults__ = {"shift": 4.0}

    def set_factor():
        Square.factor += 1

    return [
        (of_global, set_global), (of_dict, set_entry), (of_dict, set_deep), (of_getattribute, set_alias), (of_getattribute, set_names),
        (of_getattribute, set_class_attribute), (of_getattribute, set_getattribute), (of_instance_dict, set_alias),
        (of_instance_dict, add_attribute), (of_subclass_of_dict, set_item_of_subclass), (of_subclass_of_dict, add_item_of_subclass),
        (of_subclass_of_dict, patch_method), (of_environment, set_environment), (of_environment, add_environment),
        (of_function, patch_code), (of_function, patch_function), (of_module, set_module), (of_cache, clear_cache), (of_cond, set_global),
        (of_vmap, set_global), (of_vmap, set_entry), (of_grad, set_global), (of_autograd_function, set_factor), (of_defaults, set_defaults),
        (of_defaults, set_keyword_defaults), make_closure(),
    ]  # fmt: skip


@pytest.fixture(autouse=True)
def _restored(monkeypatch):
    monkeypatch.delenv("TELETENSOR_TEST_SCALE", raising=False)
    monkeypatch.delenv("TELETENSOR_TEST_SHIFT", raising=False)
    monkeypatch.setattr(sys.modules[__name__], "SCALE", 2.0)
    monkeypatch.setattr(sys.modules[__name__], "helper", helper)
    for cls, name in ((Settings, "names"), (Settings, "factor"), (Settings, "__getattribute__"), (Registry, "get"), (Square, "factor")):
        monkeypatch.setattr(cls, name, vars(cls)[name])
    defaults, code = (default.__defaults__, dict(default.__kwdefaults__)), helper.__code__
    yield
    default.__defaults__, default.__kwdefaults__, helper.__code__ = *defaults, code
    CONFIG.update(scale=2.0, deep={"bias": 1.0})
    cached.cache_clear()
    object.__getattribute__(SETTINGS, "__dict__").pop("other", None)
    OUTPUT.pop("b", None)
    REGISTRY["a"] = 2.0


@pytest.mark.parametrize("at", range(len(changes())), ids=[f"{f.__name__}-{c.__name__}" for f, c in changes()])
@pytest.mark.parametrize("needs_grad", [False, True])
def test_changes_are_seen(at, needs_grad):
    function, change = changes()[at]
    torch._dynamo.reset()
    compiled = torch.compile(function, backend="eager")
    x = torch.tensor([1.0, 2.0, -1.0], requires_grad=needs_grad)
    for _ in range(2):
        torch.testing.assert_close(compiled(x), function(x), rtol=0, atol=0)
    before = function(x).detach()
    change()
    assert not torch.equal(function(x), before)  # the change has an effect
    for _ in range(2):
        torch.testing.assert_close(compiled(x), function(x), rtol=0, atol=0)


def _replace_layer(net):
    net.layers[0] = nn.Softplus()


def _count(net):
    net.count = 3


def _buffer_in_place(net):
    net.shift.add_(1)


def _buffer(net):
    net.shift = torch.full((3,), 5.0)


def _class_attribute(net):
    Net.factor = 3.0


def _instance_attribute(net):
    net.factor = 4.0


def _hook(net):
    net.layers[1].register_forward_hook(lambda module, args, result: result * 2)


def _forward(net):
    net.layers[0].forward = lambda x: x + 1


@pytest.mark.parametrize(
    "change", [_replace_layer, _count, _buffer_in_place, _buffer, _class_attribute, _instance_attribute, _hook, _forward]
)
def test_changes_of_modules_are_seen(change):
    torch._dynamo.reset()
    net = Net()
    try:
        compiled = torch.compile(net, backend="eager")
        x = torch.tensor([1.0, 2.0, -1.0])
        for _ in range(2):
            torch.testing.assert_close(compiled(x), net(x), rtol=0, atol=0)
        before = net(x)
        change(net)
        assert not torch.equal(net(x), before)
        for _ in range(2):
            torch.testing.assert_close(compiled(x), net(x), rtol=0, atol=0)
    finally:
        Net.factor = 1.0


class _Finalized:
    """Adds an entry to a list when it is freed."""

    def __init__(self, log):
        self.log = log

    def __del__(self):
        self.log.append("finalized")


def _pops(x, log, holder):
    holder.pop()
    log.append("after")
    return x + 1


def _replaces(x, log, holder):
    log.append("before")
    holder[0] = None
    log.insert(0, "after")
    return x + 1


def _deletes(x, log, holder):
    log.append(holder[0].log is log)
    del holder[:]
    return x + 1


@pytest.mark.parametrize("function", [_pops, _replaces, _deletes])
def test_finalizers_run_where_the_object_is_removed(function):
    logs = []
    for call in (function, torch.compile(function)):
        logs.append([])
        call(torch.ones(1), logs[-1], [_Finalized(logs[-1])])
    assert logs[0] == logs[1] and "finalized" in logs[1]


def test_inference_tensors():
    compiled = torch.compile(lambda x: x + 1 if x.is_inference() else x - 1)
    ordinary = torch.ones(2)
    with torch.inference_mode():
        inference = torch.ones(2)
    for _ in range(2):
        assert compiled(ordinary).tolist() == [0, 0] and compiled(inference).tolist() == [2, 2]
    first = torch.compile(lambda x: x + 1 if x.is_inference() else x - 1)
    assert first(inference).tolist() == [2, 2] and first(ordinary).tolist() == [0, 0]


def test_number_of_threads():
    before = torch.get_num_threads()
    compiled = torch.compile(lambda x: x + torch.get_num_threads() if torch.get_num_threads() > 1 else x)
    try:
        for count, expected in ((before, 1 + before if before > 1 else 1), (1, 1), (before, 1 + before if before > 1 else 1)):
            torch.set_num_threads(count)
            assert compiled(torch.ones(1)).item() == expected
    finally:
        torch.set_num_threads(before)
