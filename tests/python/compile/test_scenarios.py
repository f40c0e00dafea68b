"""Functions that are called several times with objects of the standard library, and with effects whose order shows.

Each scenario makes its objects, calls a function that `compiled` returns, changes the objects, and returns what it has seen.
"""

from __future__ import annotations

import collections
import dataclasses
import enum
import functools
import operator
import types

import pytest

import teletensor as torch

SCENARIOS = []


def scenario(function):
    SCENARIOS.append(function)
    return function


def ones():
    return torch.ones(2)


class Thing:
    def __init__(self, v=1.0):
        self.v = v


class Key:
    """A key that equals others; counts the calls of its methods."""

    calls = 0

    def __init__(self, a):
        self.a = a

    def __hash__(self):
        Key.calls += 1
        return hash(self.a)

    def __eq__(self, other):
        Key.calls += 10
        return isinstance(other, Key) and self.a == other.a


@dataclasses.dataclass(frozen=True)
class Frozen:
    a: int


class Access(enum.Flag):
    READ = 1
    WRITE = 2
    RUN = 4


class Planet(enum.Enum):
    EARTH = (1.0, 2.0)
    MARS = (3.0, 4.0)

    def __init__(self, mass, radius):
        self.mass, self.radius = mass, radius

    @property
    def total(self):
        return self.mass + self.radius


class Odd(enum.IntEnum):
    A = 1
    B = 2

    def __add__(self, other):
        return 10

    def __bool__(self):
        return self is Odd.B


class Indexed:
    def __init__(self, n):
        self.n, self.log = n, []

    def __getitem__(self, i):
        self.log.append(i)
        if i >= self.n:
            raise IndexError
        return i * 2


@scenario
def deque_with_a_maximum(compiled):
    q = collections.deque([1, 2], maxlen=3)

    def f(x):
        q.append(len(q) + 1)
        q.rotate(1)
        return x * q[0]

    g = compiled(f)
    seen = [g(ones()), g(ones())]
    q.clear()
    return [*seen, g(ones()), list(q)]


@scenario
def deque_replaced(compiled):
    o = Thing()
    o.q = collections.deque([1])
    f = compiled(lambda x: x * len(o.q) + sum(o.q))
    seen = [f(ones())]
    for q in (collections.deque([1]), collections.deque([1, 5]), collections.deque([7, 5]), [1]):
        o.q = q
        seen.append(f(ones()))
        if len(q) > 1:
            q[0] = 9
            seen.append(f(ones()))
    return seen


@scenario
def deque_of_tensors(compiled):
    q = collections.deque(maxlen=2)

    def f(x):
        q.append(x)
        return sum(q)

    g = compiled(f)
    return [g(ones()), g(ones() * 2), g(ones() * 3), list(q)]


@scenario
def deque_methods(compiled):
    def f(x):
        q = collections.deque([1, 2, 3, 4], 3)
        q.appendleft(0)
        q.extendleft([7, 8])
        seen = list(q)
        q.remove(7)
        q.insert(1, 5)
        seen += [q.index(5), q.count(5), *reversed(q)]
        q.reverse()
        del q[0]
        q += [6]
        return x, seen, q, q.copy() == q, q == collections.deque([1]), bool(q), 6 in q, q.maxlen

    return compiled(f)(ones())


@scenario
def deque_errors(compiled):
    def f(x):
        messages = []
        calls = (
            lambda q: q.pop(), lambda q: q.popleft(), lambda q: q[3], lambda q: collections.deque([1], 1).insert(0, 2),
        )  # fmt: skip
        for call in calls:
            try:
                call(collections.deque())
            except IndexError as e:
                messages.append(str(e))
        return x, messages

    return compiled(f)(ones())


@scenario
def deque_changed_in_a_loop(compiled):
    def f(x):
        q = collections.deque([1, 2])
        try:
            for v in q:
                q.append(v)
        except RuntimeError as e:
            return x * len(q), str(e)
        return None

    return compiled(f)(ones())


@scenario
def namespaces(compiled):
    s = types.SimpleNamespace(a=1, log=[1])

    def f(x):
        s.a += 1
        s.log.append(s.a)
        s.t = x
        del s.t
        s.u = x + 1
        return x * s.a + len(s.log), types.SimpleNamespace(t=x, k=3).t

    g = compiled(f)
    seen = [g(ones()), g(ones())]
    s.a, s.z = 2.5, 1
    return [*seen, g(ones()), list(vars(s).items())]


@scenario
def enum_flags(compiled):
    def f(m, x):
        return (x * (m | Access.WRITE).value, Access.READ in m, bool(m & Access.RUN), (~m).value, len(m), [k.name for k in m])

    g = compiled(f)
    return [g(m, ones()) for m in (Access.READ, Access.READ | Access.RUN, Access(0))]


@scenario
def enums(compiled):
    def f(p, x):
        return x * p.mass + p.total, len(Planet), Planet["MARS"] is p, p in (Planet.EARTH,)

    g = compiled(f)
    seen = [g(Planet.EARTH, ones()), g(Planet.MARS, ones())]
    Planet.EARTH.mass = 9.0
    seen.append(g(Planet.EARTH, ones()))
    Planet.EARTH.mass = 1.0
    return seen


@scenario
def enum_with_operators(compiled):
    f = compiled(lambda e, x: x * (e + 1) + (1 if e else 0))
    return [f(Odd.A, ones()), f(Odd.B, ones()), f(Odd.A, ones())]


@scenario
def keys_with_methods(compiled):
    def f(a, b, x):
        d = {a: 1}
        d[b] = 2
        return x * len(d) + d[Key(1)] + len({a, b}) + (Key(2) in d) + d.get(Key(3), 7) + d.pop(Key(1))

    g = compiled(f)
    return [g(Key(1), Key(2), ones()), g(Key(1), Key(1), ones())]


@scenario
def calls_of_methods_of_keys(compiled):
    Key.calls = 0
    f = compiled(lambda x: x * len({Key(1): 1, Key(1): 2, Key(2): 3}))
    return [f(ones()), f(ones()), Key.calls]


@scenario
def keys_that_change(compiled):
    p, q = Key(1), Key(1)
    q.a = 2
    f = compiled(lambda x: x * len({p, q}))
    seen = [f(ones())]
    q.a = 1
    return [*seen, f(ones())]


@scenario
def frozen_keys_leave(compiled):
    d = compiled(lambda x: {Frozen(1): x, Frozen(2): x + 1, Frozen(1): x + 2})(ones())
    return [d[Frozen(1)], d[Frozen(2)], [k.a for k in d]]


@scenario
def getters(compiled):
    get, attributes, call = operator.itemgetter("a"), operator.attrgetter("v", "w.v"), operator.methodcaller("get", "a")
    o, d = Thing(), {"a": 2}
    o.w = Thing(4.0)

    def f(x):
        return x * get(d) + sum(attributes(o)) + call(d), operator.itemgetter(1, 0), operator.methodcaller("pop", 0)

    g = compiled(f)
    seen = [g(ones())[0]]
    d["a"], o.w.v = 3, 7.0
    found, items, pop = g(ones())
    seen += [found, items([5, 6]), pop([1, 2])]
    get = operator.itemgetter("b")
    d["b"] = 11
    return [*seen, g(ones())[0]]


@scenario
def sorting_by_functions(compiled):
    calls = []

    def order(a, b):
        calls.append((a, b))
        return b - a

    f = compiled(lambda x, values: (x, sorted(values, key=functools.cmp_to_key(order))))
    return [f(ones(), [3, 1, 2]), f(ones(), [1, 2, 3]), calls]


@scenario
def sorting_of_a_list_that_is_read(compiled):
    values = [3, 1, 2]

    def f(x):
        values.sort(key=lambda v: (len(values), -v))
        return x * values[0]

    g = compiled(f)
    return [g(ones()), values]


@scenario
def failed_sorting(compiled):
    values = [3, "a", 1]

    def f(x):
        try:
            values.sort()
        except TypeError:
            return x * len(values)
        return x

    return [compiled(f)(ones()), values]


@scenario
def iteration_by_index(compiled):
    s = Indexed(3)
    f = compiled(lambda x: (x * sum(s), 4 in s, list(s), [a for a, _ in zip(s, "ab")]))
    seen = [f(ones())]
    s.n = 1
    return [*seen, f(ones()), s.log]


@scenario
def ordered_dicts(compiled):
    d = collections.OrderedDict(a=1, b=2, c=3)

    def f(x):
        d.move_to_end("a")
        d.move_to_end("c", last=False)
        k, v = d.popitem(last=False)
        d[k] = v + 1
        return x * v, list(d)

    g = compiled(f)
    return [g(ones()), g(ones()), list(d.items())]


@scenario
def sets_of_one(compiled):
    s = {5}

    def f(x):
        try:
            return x * s.pop()
        except KeyError as e:
            return str(e)

    g = compiled(f)
    return [g(ones()), g(ones()), len(s)]


@scenario
def counters(compiled):
    c = collections.Counter("ab")

    def f(x):
        c["a"] += 1
        c.update("zz")
        return x * c["a"] + c["nope"] + len(c), collections.Counter("aab").most_common(1)

    g = compiled(f)
    seen = [g(ones()), g(ones())]
    c.clear()
    return [*seen, g(ones()), dict(c)]


@scenario
def defaults_of_functions(compiled):
    def h(x, a=2.0, *, b=3.0):
        return x * a * b

    def f(x):
        return h(x) + h.__defaults__[0] + h.__kwdefaults__["b"]

    g = compiled(f)
    seen = [g(ones())]
    h.__kwdefaults__["b"] = 5.0
    seen.append(g(ones()))
    h.__defaults__ = (7.0,)
    return [*seen, g(ones())]


@scenario
def attribute_written_and_deleted(compiled):
    o = Thing()

    def f(x):
        o.t = x
        del o.t
        o.u = 1
        return x + 1

    g = compiled(f)
    seen = [g(ones()), g(ones())]
    o.t = 5
    return [*seen, g(ones()), list(vars(o))]


@scenario
def order_of_attributes(compiled):
    o = Thing()
    o.w = 2

    def f(x):
        del o.v
        o.v = 3
        made = Thing()
        made.b, made.c = 1, 2
        made.b = 3
        del made.c
        made.c = 4
        made.v = 9
        return x, made, list(vars(made))

    x, made, names = compiled(f)(ones())
    return [x, list(vars(o)), list(vars(made).items()), names]


@scenario
def object_and_its_dict(compiled):
    def f(o, d, x):
        o.v = o.v + 5
        return x * d["v"]

    def h(o, d, x):
        d["v"] = d["v"] + 5
        return x * o.v

    seen = []
    for function in (f, h):
        g, p = compiled(function), Thing()
        seen += [g(p, {"v": 1.0}, ones()), g(p, vars(p), ones()), p.v]
    g, p = compiled(f), Thing()
    return [*seen, g(p, vars(p), ones()), g(p, {"v": 1.0}, ones()), p.v]


@scenario
def dict_that_changes_in_a_loop_with_a_break(compiled):
    d = {"a": 1}

    def f(x):
        try:
            for k in d:
                torch._dynamo.graph_break()
                d[k + "x"] = 1
        except RuntimeError as e:
            return str(e)
        return x

    return [compiled(f)(ones()), d]


@scenario
def lists_that_grow_in_loops_with_a_break(compiled):
    def f(x):
        numbers, total = [1, 2], 0
        for i, v in enumerate(numbers):
            torch._dynamo.graph_break()
            total += v + i
            if len(numbers) < 6:
                numbers.append(v)
        for a, b in zip(numbers, [5] * 9):
            torch._dynamo.graph_break()
            total += a * b
            if len(numbers) < 8:
                numbers.append(a)
        shared = iter(numbers)
        for a, b in zip(shared, shared):
            torch._dynamo.graph_break()
            total += a * b
        return x * total

    return compiled(f)(ones())


@scenario
def sum_of_strings(compiled):
    def f(x):
        try:
            return x, sum(["a"], "")
        except TypeError as e:
            return str(e)

    return compiled(f)(ones())


def _loop_over(method, change, breaks):
    def f(x, d):
        seen = []
        try:
            for e in getattr(d, method)():
                change(d)
                if breaks:
                    torch._dynamo.graph_break()
                seen.append(e)
                if len(seen) > 10:
                    break
        except RuntimeError as e:
            seen.append(str(e))
        return x + 1, seen, list(d.items())

    return f


def _increase(d):
    for k in list(d):
        d[k] += 1


def _add(d):
    d[len(d) + 1] = 0


def _exchange(d):
    if 2 in d:
        del d[2]
        d[4] = 9


def _append_last(d):
    if 9 not in d:
        d[9] = d.pop(3)


@scenario
def loops_that_change_a_dict(compiled):
    seen = []
    for method in ("keys", "values", "items", "__iter__"):
        for change in (_increase, _add, _exchange, _append_last):
            for breaks in (False, True):
                torch._dynamo.reset()
                f = compiled(_loop_over(method, change, breaks))
                seen += [f(ones(), {1: 1, 2: 2, 3: 3}), f(ones(), collections.OrderedDict({1: 1, 2: 2, 3: 3}))]
    return seen


@scenario
def iterators_of_a_dict_that_changes(compiled):
    d = {1: 1, 2: 2, 3: 3}

    def f(x):
        items, values = iter(d.items()), iter(d.values())
        first = next(items), next(values)
        d[2] = 7
        torch._dynamo.graph_break()
        second = next(items), next(values)
        d[3] = 8
        return x + 1, first, second, list(items), list(values), list(items)

    return compiled(f)(ones())


class Hashed:
    def __init__(self, hash_):
        self.hash = hash_

    def __hash__(self):
        return self.hash


@scenario
def hashes_of_methods(compiled):
    numbers = [-1, 2**61 - 1, 2**61, -(2**62) - 5, -(2**63), 2**63 - 1, 2**70 + 3, hash((1.5, 2))]
    f = compiled(lambda x, o: (x + 1, hash(o), hash((o, 1))))
    return [f(ones(), Hashed(n)) for n in numbers]


def seen_by(value):
    """What a scenario has seen, to compare."""
    if isinstance(value, torch.Tensor):
        return str(value.dtype), value.tolist()
    if isinstance(value, dict):
        return [(k, seen_by(v)) for k, v in value.items()]
    if isinstance(value, (list, tuple, collections.deque)):
        return type(value).__name__, [seen_by(v) for v in value]
    return value


@pytest.mark.parametrize("function", SCENARIOS, ids=lambda f: f.__name__)
def test_scenario(function):
    want = seen_by(function(lambda f: f))
    assert seen_by(function(functools.partial(torch.compile, backend="eager"))) == want
