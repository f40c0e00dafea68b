"""Functions that use what classes define: cached properties, descriptors, patterns, dispatch; and that write to classes."""

# ruff: noqa: B007, B012, B015, B018, B019, B904, F524, F841, UP006, UP028, UP031

from __future__ import annotations

import collections
import enum
import functools
import types
import typing

import pytest

import teletensor as torch
from teletensor import nn

from ._scenarios import Scenarios, Thing, ones, outcome

SCENARIOS = Scenarios()
scenario, captured = SCENARIOS.scenario, SCENARIOS.captured


class CP:
    def __init__(self, n):
        self.n = n
        self.calls = 0

    @functools.cached_property
    def scale(self):
        self.calls += 1
        return self.n * 2.0

    @functools.cached_property
    def t(self):
        return torch.full((2,), float(self.n))

    @functools.cached_property
    def items(self):
        return [self.n]


class Mod(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(2, 2, bias=False)
        nn.init.ones_(self.lin.weight)
        self.k = 2

    @functools.cached_property
    def factor(self):
        return self.k * 3

    def forward(self, x):
        return self.lin(x) * self.factor


class Typed:
    def __init__(self, k):
        self.k = k

    def __set_name__(self, owner, name):
        self.name = "_" + name

    def __get__(self, o, cls):
        if o is None:
            return self
        return getattr(o, self.name, 0) * self.k

    def __set__(self, o, v):
        setattr(o, self.name, v)

    def __delete__(self, o):
        delattr(o, self.name)


class HasD:
    v = Typed(2)


class NonData:
    def __get__(self, o, cls):
        return (cls.__name__, o is None)


class HasN:
    n = NonData()


class SDM:
    @functools.singledispatchmethod
    def m(self, v, x):
        return x

    @m.register
    def _(self, v: int, x):
        return x * v

    @m.register
    def _(self, v: str, x):
        return x * 10


class Pt:
    __match_args__ = ("x", "y")

    def __init__(self, x, y):
        self.x, self.y = x, y


@captured
def cp_basic(compiled):
    o = CP(3)
    f = compiled(lambda o, x: x * o.scale)
    r = [f(o, ones()), f(o, ones()), o.calls, dict(vars(o))]
    p = CP(4)
    r += [f(p, ones()), p.calls, f(p, ones())]
    o.n = 9
    r.append(f(o, ones()))
    del o.scale
    r.append(f(o, ones()))
    return r + [o.calls]


@captured
def cp_tensor(compiled):
    o = CP(3)
    f = compiled(lambda x: x * o.t)
    r = [f(ones()), f(ones())]
    o.t.add_(1)
    r.append(f(ones()))
    o.t = ones() * 5
    r.append(f(ones()))
    del o.t
    o.n = 7
    r.append(f(ones()))
    return r


@captured
def cp_list(compiled):
    o = CP(3)

    def f(x):
        o.items.append(1)
        return x * len(o.items)

    g = compiled(f)
    return [g(ones()), g(ones()), list(o.items)]


@captured
def cp_made_inside(compiled):
    def f(x):
        o = CP(5)
        return x * o.scale + o.scale, o.calls, o

    a, b, o = compiled(f)(ones())
    return [a, b, o.calls, o.scale, list(vars(o))]


@captured
def cp_prefilled(compiled):
    o = CP(3)
    o.__dict__["scale"] = 100.0
    f = compiled(lambda x: x * o.scale)
    return [f(ones()), o.calls]


@captured
def cp_module(compiled):
    m = Mod()
    f = compiled(m)
    r = [f(ones()), f(ones())]
    m.k = 5
    r.append(f(ones()))
    del m.factor
    r.append(f(ones()))
    return r


@scenario
def cp_raises(compiled):
    class R:
        @functools.cached_property
        def v(self):
            raise AttributeError("nope")

    o = R()
    f = compiled(lambda x: x * o.v)
    return [outcome(f, ones()), outcome(f, ones()), dict(vars(o))]


@captured
def cp_class_access(compiled):
    f = compiled(lambda x: (x, CP.scale is CP.__dict__["scale"] if False else type(CP.scale).__name__))
    return outcome(f, ones())


@captured
def cp_subclass_super(compiled):
    class D(CP):
        @functools.cached_property
        def scale(self):
            return super().scale + 1

    o = D(2)
    f = compiled(lambda x: x * o.scale)
    return [outcome(f, ones()), outcome(f, ones()), dict(vars(o))]


@captured
def cp_with_setattr(compiled):
    class A:
        def __init__(self):
            object.__setattr__(self, "log", [])

        def __setattr__(self, n, v):
            self.log.append(n)
            object.__setattr__(self, n, v)

        @functools.cached_property
        def v(self):
            return 4

    a = A()
    f = compiled(lambda x: x * a.v)
    return [f(ones()), f(ones()), a.log, sorted(vars(a))]


@captured
def cp_reads_state(compiled):
    class A:
        def __init__(self):
            self.k = 1

        @functools.cached_property
        def v(self):
            self.k += 1
            return self.k

    a = A()

    def f(x):
        a.k = 10
        return x * a.v + a.k

    g = compiled(f)
    return [g(ones()), g(ones()), a.k]


@scenario
def cp_break_in(compiled):
    class A:
        @functools.cached_property
        def v(self):
            torch._dynamo.graph_break()
            return 3

    a = A()
    f = compiled(lambda x: x * a.v)
    return [outcome(f, ones()), outcome(f, ones()), vars(a)]


@captured
def cp_dict_read(compiled):
    o = CP(2)

    def f(x):
        a = list(o.__dict__)
        o.scale
        return x, a, list(o.__dict__), vars(o)["scale"]

    g = compiled(f)
    return [g(ones()), g(ones())]


@captured
def cp_alias(compiled):
    f = compiled(lambda x, a, b: x * a.scale + b.n)
    p, q = CP(1), CP(2)
    return [f(ones(), p, q), f(ones(), p, p), f(ones(), q, p), p.calls, q.calls]


@captured
def class_attr_mut(compiled):
    class A:
        n = 0
        reg = []

        @classmethod
        def inc(cls):
            cls.n += 1
            cls.reg.append(cls.n)
            return cls.n

        @staticmethod
        def st(x):
            return x * 2

    def f(x):
        return A.st(x) * A.inc()

    g = compiled(f)
    return [outcome(g, ones()), outcome(g, ones()), A.n, A.reg]


@captured
def singleton_new(compiled):
    class Si:
        inst = None

        def __new__(cls):
            if cls.inst is None:
                cls.inst = super().__new__(cls)
                cls.inst.n = 0
            return cls.inst

    def f(x):
        o = Si()
        o.n += 1
        return x * o.n

    g = compiled(f)
    return [outcome(g, ones()), outcome(g, ones()), Si.inst and Si.inst.n]


@scenario
def class_write_mixed(compiled):
    class A:
        n = 0

    class B(A):
        pass

    a, b = A(), B()

    def f(x):
        A.n += 1
        p = (a.n, b.n, B.n)
        b.n = 50
        B.n = 7
        q = (a.n, b.n, B.n, B().n)
        A.n = q[0] + 1
        return x * A.n, p, q

    g = compiled(f)
    return [g(ones()), g(ones()), A.n, B.n, b.n]


@captured
def class_write_tensor(compiled):
    class A:
        t = torch.zeros(2)

    def f(x):
        A.t = A.t + x
        return A.t * 2

    g = compiled(f)
    return [g(ones()), g(ones()), A.t]


@captured
def class_write_list(compiled):
    class A:
        items = []

    def f(x):
        A.items = A.items + [len(A.items)]
        A.items.append(9)
        return x * len(A.items)

    g = compiled(f)
    return [g(ones()), g(ones()), A.items]


@scenario
def class_write_method(compiled):
    class A:
        def m(self):
            return 1

    def f(x):
        A.m = lambda self: 5
        return x * A().m()

    g = compiled(f)
    return [g(ones()), g(ones())]


@captured
def class_write_property_target(compiled):
    class A:
        @property
        def v(self):
            return 1

    a = A()

    def f(x):
        A.v = 7
        return x * a.v

    g = compiled(f)
    return [outcome(g, ones()), outcome(g, ones())]


@scenario
def class_write_break(compiled):
    class A:
        n = 0

    @torch._dynamo.disable
    def peek():
        return A.n

    def f(x):
        A.n += 1
        p = peek()
        A.n += 10
        torch._dynamo.graph_break()
        A.n += 100
        return x * A.n, p

    g = compiled(f)
    return [g(ones()), g(ones()), A.n]


@captured
def class_write_hasattr(compiled):
    class A:
        pass

    def f(x):
        h = hasattr(A, "q"), hasattr(A(), "q")
        A.q = 1
        h2 = hasattr(A, "q"), hasattr(A(), "q"), getattr(A, "q", 5)
        return x, h, h2

    g = compiled(f)
    return [g(ones()), g(ones())]


@scenario
def class_write_exception(compiled):
    class A:
        n = 0

    def f(x, k):
        try:
            A.n += 1
            if k:
                raise ValueError("a")
        finally:
            A.n += 10
        return x * A.n

    g = compiled(f)
    return [outcome(g, ones(), 0), outcome(g, ones(), 1), A.n, outcome(g, ones(), 0), A.n]


@scenario
def class_meta_setattr(compiled):
    class M(type):
        def __setattr__(cls, n, v):
            type.__setattr__(cls, n, v * 2)

    class A(metaclass=M):
        n = 1

    def f(x):
        A.n = 3
        return x * A.n

    g = compiled(f)
    return [outcome(g, ones()), A.n]


@captured
def class_in_write_init_subclass(compiled):
    class A:
        inst = []
        count = 0

        def __init__(self):
            type(self).count += 1
            self.inst.append(self)

    def f(x):
        A()
        a = A()
        return x * a.count

    g = compiled(f)
    return [g(ones()), g(ones()), A.count, len(A.inst)]


@captured
def class_with_call_counter_module(compiled):
    class M(nn.Module):
        total = 0

        def forward(self, x):
            type(self).total += 1
            return x * type(self).total

    m = M()
    f = compiled(m)
    return [outcome(f, ones()), outcome(f, ones()), M.total]


@captured
def desc_data(compiled):
    o = HasD()

    def f(x):
        o.v = o.v + 1
        return x * o.v

    g = compiled(f)
    r = [g(ones()), g(ones()), o.v]
    HasD.__dict__["v"].k = 3
    r += [g(ones()), o.v]
    HasD.__dict__["v"].k = 2
    return r


@scenario
def desc_delete(compiled):
    o = HasD()
    o.v = 4

    def f(x):
        del o.v
        return x + o.v

    g = compiled(f)
    return [outcome(g, ones()), outcome(g, ones())]


@captured
def desc_nondata(compiled):
    o = HasN()
    f = compiled(lambda x: (x, o.n, HasN.n))
    r = [outcome(f, ones())]
    o.__dict__["n"] = 5
    return r + [outcome(f, ones())]


@captured
def property_raises_with_getattr(compiled):
    class A:
        ok = False

        @property
        def v(self):
            if self.ok:
                return 3
            raise AttributeError("hidden")

        def __getattr__(self, name):
            return 7

    a = A()
    f = compiled(lambda x: x * a.v)
    r = [outcome(f, ones())]
    a.ok = True
    return r + [outcome(f, ones())]


@scenario
def prop_attr_error_module(compiled):
    class M(nn.Module):
        @property
        def v(self):
            return self.missing

        def forward(self, x):
            return x * self.v

    m = M()
    f = compiled(m)
    return [outcome(f, ones())[:3], outcome(f, ones())[:3], setattr(m, "missing", 3), outcome(f, ones())]


@captured
def partialmethod(compiled):
    class A:
        def m(self, k, x):
            return x * k

        twice = functools.partialmethod(m, 2)

    a = A()
    f = compiled(lambda x: a.twice(x))
    return [outcome(f, ones()), outcome(f, ones())]


@captured
def single_dispatch_method(compiled):
    o = SDM()
    f = compiled(lambda v, x: o.m(v, x))
    return [outcome(f, v, ones()) for v in (3, "a", 2.5, 4)]


@captured
def single_dispatch_tensor(compiled):
    @functools.singledispatch
    def k(v):
        return v

    @k.register(torch.Tensor)
    def _(v):
        return v * 2

    @k.register(tuple)
    def _(v):
        return tuple(map(k, v))

    f = compiled(lambda x: k((x, 3, (x,))))
    return [f(ones())]


@captured
def singledisp_state(compiled):
    @functools.singledispatch
    def k(v, x):
        return x

    class A:
        pass

    class B(A):
        pass

    f = compiled(lambda v, x: k(v, x))
    r = [f(B(), ones()), f(A(), ones())]
    k.register(A, lambda v, x: x * 2)
    r += [f(B(), ones()), f(A(), ones())]
    k.register(B, lambda v, x: x * 3)
    return r + [f(B(), ones()), f(A(), ones())]


@captured
def singledisp_closure(compiled):
    def mk(n):
        @functools.singledispatch
        def k(v):
            return v * n

        return k

    f = compiled(lambda x, k: k(x))
    a, b = mk(2), mk(3)
    return [f(ones(), a), f(ones(), b), f(ones(), a)]


@scenario
def match_all(compiled):
    def f(t, v):
        match v:
            case 0:
                return t
            case int(n) if n > 5:
                return t * n
            case int():
                return t + 1
            case [a, b, *rest]:
                return t * a + b + len(rest)
            case {"k": k, **more}:
                return t * k + len(more)
            case Pt(x=0, y=yy):
                return t * yy
            case Pt(a, b):
                return t * (a + b)
            case str() | bytes():
                return t * len(v)
            case None:
                return t - 1
            case _:
                return t - 100

    g = compiled(f)
    vals = [0, 7, 3, [1, 2, 3], (4, 5), {"k": 2, "z": 1}, Pt(0, 3), Pt(1, 2), "abc", b"xy", None, 2.5, {"q": 1}, [1], 7, 8]
    return [outcome(g, ones(), v) for v in vals]


@scenario
def match_sequence_types(compiled):
    def f(t, v):
        match v:
            case [a]:
                return t * 1
            case [a, b]:
                return t * 2
            case _:
                return t * 3

    g = compiled(f)
    return [
        outcome(g, ones(), v)
        for v in ([1], (1, 2), collections.deque([1]), range(2), "ab", b"a", {1, 2}, collections.UserList([1]), {"a": 1}, bytearray(b"ab"))
    ]


@scenario
def match_mapping_types(compiled):
    def f(t, v):
        match v:
            case {"a": a}:
                return t * a
            case _:
                return t * 3

    g = compiled(f)
    return [
        outcome(g, ones(), v)
        for v in (
            {"a": 2},
            collections.OrderedDict(a=3),
            collections.defaultdict(int, a=4),
            collections.Counter("a"),
            types.MappingProxyType({"a": 6}),
            [1],
            collections.ChainMap({"a": 7}),
        )
    ]


@captured
def match_obj_types(compiled):
    class Sq(collections.abc.Sequence):
        def __init__(self, items):
            self.items = items

        def __len__(self):
            return len(self.items)

        def __getitem__(self, i):
            return self.items[i]

    class Mp(collections.abc.Mapping):
        def __init__(self, d):
            self.d = d

        def __len__(self):
            return len(self.d)

        def __getitem__(self, i):
            return self.d[i]

        def __iter__(self):
            return iter(self.d)

    def f(t, v):
        match v:
            case [a, *r]:
                return t * a + len(r)
            case {"k": k, **rest}:
                return t * k - len(rest)
            case _:
                return t

    g = compiled(f)
    return [outcome(g, ones(), v) for v in (Sq([1, 2]), Mp({"k": 2, "z": 1}), Mp({}), Thing(), Sq([]), torch.Size([2, 3]))]


@captured
def match_registered(compiled):
    class A:
        def __len__(self):
            return 1

        def __getitem__(self, i):
            if i:
                raise IndexError
            return 4

    a = A()

    def f(t, v):
        match v:
            case [q]:
                return t * q
            case _:
                return t - 1

    g = compiled(f)
    r = [outcome(g, ones(), a)]
    collections.abc.Sequence.register(A)
    return r + [outcome(g, ones(), a), outcome(g, ones(), A())]


@captured
def enum_in(compiled):
    class E(enum.Enum):
        A = 1
        B = 2

    class F(enum.Enum):
        A = 1

    f = compiled(lambda x, e: (x, e in E, e in F))
    return [outcome(f, ones(), e) for e in (E.A, F.A, E.B)]


@scenario
def typing_isinstance(compiled):
    f = compiled(lambda x, v: (x, isinstance(v, typing.Mapping), isinstance(v, (typing.Sequence, int)), isinstance(v, typing.Callable)))
    return [outcome(f, ones(), v) for v in ({}, [1], 3, len, "a")] + [outcome(compiled(lambda x: isinstance(x, typing.List[int])), ones())]


@scenario
def len_neg(compiled):
    class A:
        def __len__(s):
            return -1

    f = compiled(lambda x: x * len(A()))
    return [outcome(f, ones())]


@scenario
def bool_nonbool(compiled):
    class A:
        def __bool__(s):
            return 3

    f = compiled(lambda x: x if A() else x + 1)
    return [outcome(f, ones())]


@scenario
def str_returns_nonstr(compiled):
    class A:
        def __str__(s):
            return 5

    f = compiled(lambda x: (x, str(A())))
    return [outcome(f, ones())]


@scenario
def init_returns(compiled):
    class A:
        def __init__(s):
            return 5

    f = compiled(lambda x: (x, A()))
    return [outcome(f, ones())]


@scenario
def index_bad(compiled):
    class A:
        def __index__(s):
            return "a"

    f = compiled(lambda x: (x, [1, 2][A()]))
    return [outcome(f, ones())]


@captured
def dictsub_state(compiled):
    class D(dict):
        def __setitem__(self, k, v):
            super().__setitem__(k, v * 2)

    d = D(a=1)

    def f(x):
        d["a"] = d["a"] + 1
        d["b"] = 5
        dict.__setitem__(d, "c", 7)
        d.pop("b")
        return x * d["a"] + len(d)

    g = compiled(f)
    return [outcome(g, ones()), outcome(g, ones()), list(d.items())]


@scenario
def ordsub_state(compiled):
    class D(collections.OrderedDict):
        pass

    d = D(a=1, b=2)

    def f(x):
        d["c"] = d.pop("a")
        d.move_to_end("b")
        d["a"] = 0
        return x * d["c"], list(d)

    g = compiled(f)
    return [outcome(g, ones()), outcome(g, ones()), list(d.items())]


@captured
def counter2(compiled):
    d = collections.Counter("aab")

    def f(x, k):
        d.update(k)
        d.subtract(a=1)
        d["q"] += 2
        del d["q"]
        return x * d["a"], d.most_common(1), sum(d.values()), dict(d + collections.Counter(a=1))

    g = compiled(f)
    return [outcome(g, ones(), k) for k in ("ab", "c", "ab")] + [list(d.items())]


@captured
def dictsub_attr(compiled):
    class D(dict):
        def __getattr__(self, n):
            try:
                return self[n]
            except KeyError:
                raise AttributeError(n)

        def __setattr__(self, n, v):
            self[n] = v

    d = D(a=1)

    def f(x):
        d.a += 1
        d.b = x
        return x * d.a + len(d), hasattr(d, "zz")

    g = compiled(f)
    return [outcome(g, ones()), outcome(g, ones()), list(d)]


@captured
def dictsub_clear(compiled):
    class D(dict):
        pass

    d = D(a=1)
    e = {"a": 1}

    def f(x, p):
        p.clear()
        p["z"] = 1
        p.setdefault("y", 2)
        p.update(a=5)
        return x * len(p)

    g = compiled(f)
    return [outcome(g, ones(), d), outcome(g, ones(), e), list(d), list(e)]


@captured
def counter_state(compiled):
    d = collections.Counter()

    def f(x, k):
        d[k] += 1
        return x * d[k] + d.total()

    g = compiled(f)
    return [outcome(g, ones(), k) for k in ("a", "a", "b")] + [dict(d)]


@captured
def dict_sub(compiled):
    class D(dict):
        def __missing__(self, k):
            self[k] = len(k)
            return self[k]

    d = D(a=5)
    f = compiled(lambda x, k: x * d[k] + len(d))
    return [outcome(f, ones(), k) for k in ("a", "bb", "bb", "ccc")] + [dict(d)]


@pytest.mark.parametrize("name", SCENARIOS.functions)
def test_scenario(name):
    SCENARIOS.check(name)
