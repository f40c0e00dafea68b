"""Containers that change in place between calls of compiled functions, wherever the function finds them."""

from __future__ import annotations

import collections
import functools
import types

import pytest

import teletensor as torch
from teletensor import nn

CONFIG = {"deep": {"container": None}}
MODULE = types.ModuleType("module_of_a_test")


class Holder:
    container = None


class Net(nn.Module):
    container = None


class Ordered(collections.OrderedDict):
    pass


class Entries(dict):
    pass


HOLDER, NET = Holder(), Net()
PLACES = {
    "entry": (lambda: CONFIG["deep"]["container"], lambda c: CONFIG["deep"].__setitem__("container", c)),
    "attribute": (lambda: HOLDER.container, lambda c: setattr(HOLDER, "container", c)),
    "module": (lambda: MODULE.container, lambda c: setattr(MODULE, "container", c)),
    "class": (lambda: Holder.container, lambda c: setattr(Holder, "container", c)),
    "nn.Module": (lambda: NET.container, lambda c: setattr(NET, "container", c)),
    "tuple": (lambda: HOLDER.pair[0], lambda c: setattr(HOLDER, "pair", (c,))),
}
LISTED = (lambda c: c.append(4), lambda c: c.reverse(), lambda c: c.__setitem__(0, 9), lambda c: c.clear())
MAPPED = (lambda c: c.__setitem__("a", 5), lambda c: c.update(z=3), lambda c: c.__setitem__("a", c.pop("a")), lambda c: c.clear())
ORDERED = (lambda c: c.move_to_end("a"), lambda c: c.move_to_end("c", last=False), lambda c: c.popitem(last=False), *MAPPED)
CONTAINERS = {
    "list": (lambda: [1, 2, 3], LISTED),
    "deque": (lambda: collections.deque([1, 2, 3]), (lambda c: c.rotate(1), *LISTED)),
    "set": (lambda: {1, 2}, (lambda c: c.add(7), lambda c: c.discard(1), lambda c: (c.discard(2), c.add(3)), lambda c: c.clear())),
    "dict": (lambda: {"a": 1, "b": 2}, MAPPED),
    "OrderedDict": (lambda: collections.OrderedDict(a=1, b=2, c=3), ORDERED),
    "subclass of OrderedDict": (lambda: Ordered(a=1, b=2, c=3), ORDERED),
    "subclass of dict": (lambda: Entries(a=1, b=2), MAPPED),
    "Counter": (lambda: collections.Counter("aab"), (lambda c: c.update("b"), lambda c: c.subtract("a"), *MAPPED)),
    "defaultdict": (lambda: collections.defaultdict(int, a=1), (lambda c: c["q"], *MAPPED)),
    "set in a list": (lambda: [{1}], (lambda c: c[0].add(2), lambda c: c.append(3))),
    "set in a dict": (lambda: {"a": {1}}, (lambda c: c["a"].add(2), lambda c: c["a"].clear())),
}


def seen(container):
    if isinstance(container, dict):
        return [(k, seen(v)) for k, v in container.items()]
    return [seen(v) for v in container] if isinstance(container, (list, set, collections.deque)) else container


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", CONTAINERS)
def test_changes_in_place(kind, place):
    torch._dynamo.reset()
    (make, changes), (get, put) = CONTAINERS[kind], PLACES[place]
    container, x = make(), torch.ones(1)
    put(container)

    def f(x):
        c = get()
        return x + 1, len(c), seen(c), list(c), 1 in c, "a" in c

    compiled = torch.compile(f, backend="eager")
    for change in (lambda c: None, *changes):
        change(container)
        assert compiled(x)[1:] == f(x)[1:]
        assert compiled(x)[1:] == f(x)[1:]


def test_ordered_dicts_are_compared_in_order():
    a, b = collections.OrderedDict(a=1, b=2), collections.OrderedDict(b=2, a=1)

    def f(x):
        return x + 1, a == b, a == dict(b), a != b

    compiled = torch.compile(f, backend="eager", fullgraph=True)
    for _ in range(2):
        assert compiled(torch.ones(1))[1:] == f(torch.ones(1))[1:]
        a.move_to_end("a")


def test_texts_of_guards_call_no_methods_of_users():
    calls = []

    class Loud:
        value = 2

        def __repr__(self):
            calls.append(self)
            return "Loud"

    functions = {"key": Loud()}

    @functools.lru_cache
    def cached(loud):
        return loud.value

    @torch.compile(backend="eager", fullgraph=True)
    def f(x):
        return x * cached(functions["key"])

    assert f(torch.ones(1)).item() == 2 and not calls


def test_texts_of_sets_have_their_order():
    a, b = set(), set()
    for n in (0, 8, 16):
        a.add(n)
    for n in (16, 8, 0):
        b.add(n)
    assert a == b and str(a) != str(b)

    def f(x, s):
        return x + 1, f"{s}", str([s]), repr((s,)), "%s" % (s,)  # noqa: UP031

    compiled = torch.compile(f, backend="eager")
    for s in (a, b, a):
        assert compiled(torch.ones(1), s)[1:] == f(torch.ones(1), s)[1:]


KEYS, OTHER_KEYS = {"a": 1, "b": 2}, {"b": 2, "c": 4}
VIEWS = {
    "union": lambda: sorted(KEYS.keys() | OTHER_KEYS.keys()),
    "intersection": lambda: sorted(KEYS.keys() & OTHER_KEYS),
    "difference": lambda: sorted(KEYS.keys() - ["a", "q"]),
    "symmetric difference": lambda: sorted(KEYS.keys() ^ {"a", "w"}),
    "list and keys": lambda: sorted(["k", "a"] | KEYS.keys()),
    "set and keys": lambda: sorted({"a", "w"} - KEYS.keys()),
    "items": lambda: sorted(KEYS.items() & OTHER_KEYS.items()),
    "type": lambda: type(frozenset("a") | KEYS.keys()) is set,
    "equal": lambda: (KEYS.keys() == OTHER_KEYS.keys(), KEYS.keys() == {"a", "b"}, KEYS.items() != OTHER_KEYS.items()),
    "subset": lambda: (KEYS.keys() <= {"a", "b", "c"}, OTHER_KEYS.keys() < OTHER_KEYS.keys(), {"a"} <= KEYS.keys()),
    "isdisjoint": lambda: (KEYS.keys().isdisjoint(OTHER_KEYS), KEYS.items().isdisjoint({"c": 3}.items())),
}


@pytest.mark.parametrize("name", VIEWS)
def test_sets_of_keys(name, monkeypatch):
    """Operators of sets of the views of a dict, which changes between the calls."""
    torch.compiler.reset()
    compiled = torch.compile(lambda x: (x + 1, VIEWS[name]()), backend="eager", fullgraph=True)
    for change in ({}, {"w": 5}, {"c": 3}):
        for key, number in change.items():
            monkeypatch.setitem(KEYS, key, number)
        assert compiled(torch.ones(1))[1] == VIEWS[name]()


def test_views_of_values_are_no_sets():
    with pytest.raises(TypeError):
        torch.compile(lambda x: x * len(KEYS.values() | {1}), backend="eager")(torch.ones(1))


@pytest.mark.parametrize("kind", [torch.DoubleTensor, torch.LongTensor, torch.float16, "torch.FloatTensor"])
def test_conversion_to_a_tensor_type(kind):
    compiled = torch.compile(lambda x: (x + 1).type(kind) * 2, backend="eager", fullgraph=True)
    assert compiled(torch.ones(2)).dtype == torch.ones(2).type(kind).dtype
