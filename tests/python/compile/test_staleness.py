"""Compiled functions follow every change of the Python state that they have read."""

from __future__ import annotations

import collections
import functools

import pytest

import teletensor as torch
from teletensor import nn

VALUE = 2.0
BOX = [1.0, 2.0]
TABLE = {"k": 2.0}


def scale(x):
    return x * 2


class Holder:
    factor = 2.0

    def __init__(self):
        self.k = 3.0
        self.items = [1.0]
        self.inner = None

    def method(self, x):
        return x * self.k * self.factor


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)
        self.register_buffer("count", torch.zeros(4))
        self.k = 2.0
        self.drop = nn.Dropout(0.0)

    def forward(self, x):
        x = self.b(torch.relu(self.a(x))) * self.k + self.count
        return self.drop(x) * (2.0 if self.training else 3.0)


def both(function):
    """Compiles the function with the engine and with eager."""
    return [torch.compile(function, backend=b) for b in ("eager", "inductor")]


def make_tensors():
    global X
    X = torch.ones(4)


def check(function, change, *args):
    """Calls compiled forms before and after a change; `change` returns how to undo it, or None."""
    args = args or (X,)
    for compiled in both(function):
        torch.testing.assert_close(compiled(*args), function(*args))
        torch.testing.assert_close(compiled(*args), function(*args))
        before = function(*args)
        undo = change()
        after = function(*args)
        assert after.shape != before.shape or after.dtype != before.dtype or not torch.equal(before, after), "the change has no effect"
        torch.testing.assert_close(compiled(*args), after)
        if undo:
            undo()
            torch.testing.assert_close(compiled(*args), function(*args))


def set_global(name, value):
    def change():
        old = globals()[name]
        globals()[name] = value
        return lambda: globals().__setitem__(name, old)

    return change


def set_attribute(obj, name, value):
    def change():
        old = getattr(obj, name)
        setattr(obj, name, value)
        return lambda: setattr(obj, name, old)

    return change


def set_entry(container, key, value):
    def change():
        old = container[key]
        container[key] = value
        return lambda: container.__setitem__(key, old)

    return change


def test_globals():
    check(lambda x: x * VALUE, set_global("VALUE", 5.0))
    check(lambda x: x * BOX[1], set_global("BOX", [1.0, 7.0]))
    check(lambda x: scale(x), set_global("scale", lambda x: x * 11))


def test_elements_and_entries():
    check(lambda x: x * BOX[1], set_entry(BOX, 1, 9.0))
    check(lambda x: x * TABLE["k"], set_entry(TABLE, "k", 9.0))
    check(lambda x: x * len(BOX), lambda: BOX.append(1.0) or BOX.pop)
    check(lambda x: x * ("z" in TABLE), lambda: TABLE.update(z=1) or (lambda: TABLE.pop("z")))
    check(lambda x: x * len(list(TABLE)), lambda: TABLE.update(z=1) or (lambda: TABLE.pop("z")))
    ordered = collections.OrderedDict(a=1.0, b=2.0)
    check(lambda x: x * next(iter(ordered.values())), lambda: ordered.move_to_end("a") or (lambda: ordered.move_to_end("b")))
    numbers = {1, 2}
    check(lambda x: x * len(numbers), lambda: numbers.add(3) or (lambda: numbers.discard(3)))


def test_closures():
    k = 2.0

    def read(x):
        return x * k

    def change():
        nonlocal k
        k += 2.0

    check(read, change)
    check(read, lambda: read.__closure__[0].__setattr__("cell_contents", k + 1))


def test_defaults_and_code():
    def f(x, k=2.0, *, j=3.0):
        return x * k + j

    def g(x):
        return f(x)

    check(g, lambda: setattr(f, "__defaults__", (5.0 + f.__defaults__[0],)))
    check(g, lambda: setattr(f, "__kwdefaults__", {"j": 8.0 + f.__kwdefaults__["j"]}))
    original = f.__code__
    check(g, lambda: setattr(f, "__code__", (lambda x, k=2, *, j=3: x - k).__code__) or (lambda: setattr(f, "__code__", original)))


def test_attributes_of_objects():
    h = Holder()
    check(lambda x: h.method(x), set_attribute(h, "k", 7.0))
    check(lambda x: h.method(x), lambda: setattr(Holder, "factor", 5.0) or (lambda: setattr(Holder, "factor", 2.0)))
    check(lambda x: h.method(x), lambda: setattr(h, "factor", 9.0) or (lambda: delattr(h, "factor")))
    method = Holder.method
    check(lambda x: h.method(x), lambda: setattr(Holder, "method", lambda self, x: x - 1) or (lambda: setattr(Holder, "method", method)))
    check(lambda x: h.method(x), lambda: setattr(h, "method", lambda x: x + 100) or (lambda: delattr(h, "method")))
    check(lambda x: x * h.items[0], lambda: h.items.__setitem__(0, h.items[0] + 1))
    check(lambda x: x * 2 if h.inner is None else x, set_attribute(h, "inner", 3))
    check(lambda x: x * (5 if hasattr(h, "late") else 2), lambda: setattr(h, "late", 1) or (lambda: delattr(h, "late")))

    class Other(Holder):
        factor = 10.0

    check(lambda x: h.method(x), lambda: setattr(h, "__class__", Other) or (lambda: setattr(h, "__class__", Holder)))
    check(lambda x: h.k * x, lambda: setattr(h, "__dict__", {"k": h.k + 1}))


def test_modules():
    net, x = Net(), torch.randn(2, 4)
    check(net, lambda: net.eval() and net.train, x)
    check(net, set_attribute(net, "k", 5.0), x)
    check(net, lambda: setattr(net, "a", nn.Linear(4, 4)), x)
    check(net, lambda: setattr(net.b, "weight", nn.Parameter(torch.randn(4, 4))), x)
    check(net, lambda: setattr(net, "count", torch.randn(4)), x)
    check(net, lambda: (net.count.add_(1), None)[1], x)
    check(net, lambda: setattr(net.a.weight, "data", torch.randn(4, 4)), x)

    def sgd():
        with torch.no_grad():
            net.a.weight.add_(torch.randn(4, 4))

    check(net, sgd, x)
    handle = []
    check(net, lambda: handle.append(net.a.register_forward_hook(lambda m, a, r: r * 3)) or (lambda: handle.pop().remove()), x)
    check(net, lambda: handle.append(net.register_forward_pre_hook(lambda m, a: (a[0] * 3,))) or (lambda: handle.pop().remove()), x)
    compiled = torch.compile(net)
    compiled(x)
    net.double()
    torch.testing.assert_close(compiled(x.double()), net(x.double()))


def test_requires_grad_of_parameters_and_inputs():
    net, x = nn.Linear(4, 4), torch.randn(2, 4)
    compiled = torch.compile(net)
    assert compiled(x).requires_grad
    net.requires_grad_(False)
    assert not compiled(x).requires_grad
    assert compiled(x.clone().requires_grad_()).requires_grad
    net.requires_grad_()
    compiled(x).sum().backward()
    assert net.weight.grad is not None


def test_modes_of_the_thread():
    for f in both(lambda x: x * (2.0 if torch.is_grad_enabled() else 3.0)):
        assert f(X)[0] == 2
        with torch.no_grad():
            assert f(X)[0] == 3
        assert f(X)[0] == 2
    w = torch.ones(4, requires_grad=True)
    for f in both(lambda x: x * w):
        assert f(X).requires_grad
        with torch.no_grad():
            assert not f(X).requires_grad
        with torch.inference_mode():
            assert not f(X).requires_grad
    for f in both(lambda: torch.zeros(2)):
        assert f().dtype == torch.float32
        torch.set_default_dtype(torch.float64)
        try:
            assert f().dtype == torch.float64
        finally:
            torch.set_default_dtype(torch.float32)
    a = torch.randn(4, 4)
    for f in both(lambda x: x @ x):
        assert f(a).dtype == torch.float32
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert f(a).dtype == torch.bfloat16
        assert f(a).dtype == torch.float32


def test_metadata_of_tensors():
    def f(x):
        return x.sum() * x.shape[0] + x.stride(0) + x.dim() + (5 if x.dtype == torch.float32 else 7)

    x = torch.ones(3, 4)
    tensors = [x, torch.ones(4, 3), torch.ones(4, 3).T, torch.ones(2), x.double(), torch.ones(0, 4)]
    for compiled in both(f):
        for x in [*tensors, *tensors]:
            torch.testing.assert_close(compiled(x), f(x))


def test_aliases_of_inputs():
    def writes(a, b):
        a.add_(1)
        return a + b

    def appends(a, b):
        a.append(1.0)
        return torch.ones(2) * len(b)

    for compiled in both(writes):
        for _ in range(2):
            x, y = torch.zeros(2), torch.zeros(2)
            assert compiled(x, y).tolist() == [1, 1]
            assert compiled(x, x).tolist() == [4, 4]
            z = torch.zeros(4)
            assert compiled(z[:2], z[1:3]).tolist() == [2, 1]
    for compiled in both(appends):
        same = [1.0]
        assert compiled([1.0], [1.0]).tolist() == [1, 1]
        assert compiled(same, same).tolist() == [2, 2]
        assert compiled([1.0], [1.0]).tolist() == [1, 1]
    for compiled in both(lambda a, b: torch.ones(1) if a is b else torch.zeros(1)):
        x, y = torch.zeros(2), torch.zeros(2)
        assert (compiled(x, y).item(), compiled(x, x).item(), compiled(x, y).item()) == (0, 1, 0)


def test_arguments():
    def f(x, k, *rest, flag=False, **kw):
        return x * k + len(rest) + (10 if flag else 0) + sum(kw.values())

    calls = [
        ((2,), {}), ((3,), {}), ((2.0,), {}), ((True,), {}), ((2, 1, 1), {}), ((2,), {"flag": True}), ((2,), {"z": 4}), ((2,), {"w": 5}),
        ((-0.0,), {}), ((0.0,), {}), ((float("nan"),), {}),
    ]  # fmt: skip
    for compiled in both(f):
        for args, kwargs in [*calls, *calls]:
            torch.testing.assert_close(compiled(X, *args, **kwargs), f(X, *args, **kwargs), equal_nan=True)
    for compiled in both(lambda x, g: g(x)):
        for k in (1.0, 2.0, 3.0):
            assert compiled(X, functools.partial(lambda a, b: b * a, k))[0] == k
            assert compiled(X, lambda x, k=k: x * k)[0] == k
    for compiled in both(lambda x, d: x * d.get("a", 5)):
        assert [compiled(X, d)[0].item() for d in ({"a": 2}, {}, {"b": 1}, {"a": 3})] == [2, 5, 5, 3]


def test_deterministic_algorithms_are_guarded():
    for compiled in both(lambda x: torch.softmax(x, 0)):
        compiled(X)
        torch.use_deterministic_algorithms(True, warn_only=True)  # where there are GPUs, it may not be promised
        try:
            torch.testing.assert_close(compiled(X), torch.softmax(X, 0))
        finally:
            torch.use_deterministic_algorithms(False)


def test_selected_attention_is_guarded():
    from teletensor._dynamo.utils import counters
    from teletensor.nn.attention import SDPBackend, sdpa_kernel

    q = torch.randn(1, 2, 4, 8)
    f = torch.compile(nn.functional.scaled_dot_product_attention)
    f(q, q, q)
    graphs = counters["stats"]["unique_graphs"]
    with sdpa_kernel(SDPBackend.MATH):
        f(q, q, q)
    assert counters["stats"]["unique_graphs"] == graphs + 1


def test_constants_are_new_tensors_in_every_call():
    for compiled in both(lambda: torch.tensor([1.0, 2.0])):
        first = compiled()
        first.add_(5)
        assert compiled().tolist() == [1, 2]


SENTINEL = object()


def test_objects_without_attributes_are_compared_by_identity():
    def f(x, values):
        found = values.get("a", SENTINEL)
        return x + 1 if found is SENTINEL else x - 1

    compiled = torch.compile(f)
    x = torch.ones(2)
    for values in {}, {"a": object()}, {"a": SENTINEL}, {"a": object()}:
        assert torch.equal(compiled(x, values), f(x, values))


HALF = functools.partial(lambda a, b: a * b, b=0.5)


def test_attributes_of_a_partial():
    def set_label():
        HALF.label = 1
        return lambda: vars(HALF).clear()

    check(lambda x: HALF(x) if hasattr(HALF, "label") else x * 3, set_label)


@pytest.mark.parametrize("name", ["__call__", "__eq__", "__module__", "__new__", "__name__", "__code__", "args", "label"])
def test_names_of_a_partial(name):
    compiled = torch.compile(lambda x: x * (2 if hasattr(functools.partial(torch.add, x), name) else 3), fullgraph=True)
    assert compiled(X)[0] == (2 if hasattr(functools.partial(torch.add, X), name) else 3)
