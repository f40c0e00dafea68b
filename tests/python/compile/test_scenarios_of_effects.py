"""Functions that write to modules, functions and thread-local data, call functions with caches, and hold locks."""

# ruff: noqa: B007, B012, B015, B018, B019, B904, F524, F841, UP006, UP028, UP031

from __future__ import annotations

import functools
import threading
import types

import pytest

import teletensor as torch
from teletensor import nn

from ._scenarios import Scenarios, Thing, ones, outcome

LAZY = types.ModuleType("lazy_module_of_a_test")
LAZY.__getattr__ = lambda name: LAZY.state[name] if name in LAZY.state else (_ for _ in ()).throw(AttributeError(f"no {name}"))
LOCK = threading.Lock()
SCENARIOS = Scenarios()
scenario, captured = SCENARIOS.scenario, SCENARIOS.captured


@captured
def func_write(compiled):
    def h(x):
        return x

    h.n = 0
    h.items = []

    def f(x, fn):
        fn.n += 1
        fn.items.append(fn.n)
        fn.new = x
        return fn(x) * h.n

    g = compiled(f)

    def k(x):
        return x

    k.n = 5
    k.items = []
    return [g(ones(), h), g(ones(), h), g(ones(), k), g(ones(), h), h.n, k.n, h.items, k.items, h.new]


@captured
def func_write_alias(compiled):
    def a():
        pass

    def b():
        pass

    a.v = b.v = 1

    def f(x, p, q):
        p.v += 1
        return x * q.v

    g = compiled(f)
    return [g(ones(), a, b), g(ones(), a, a), g(ones(), b, a), a.v, b.v]


@captured
def func_write_method(compiled):
    class A:
        def m(self):
            pass

        m.calls = 0

    a = A()

    def f(x):
        A.m.calls += 1
        return x * a.m.calls

    g = compiled(f)
    return [outcome(g, ones()), outcome(g, ones()), A.m.calls]


@captured
def func_name_changes(compiled):
    def h(x):
        return x

    f = compiled(lambda x: (x, h.__name__, h.__qualname__))
    r = [f(ones())]
    h.__name__ = "zz"
    h.__qualname__ = "q.zz"
    return r + [f(ones())]


@scenario
def func_break_write(compiled):
    def h():
        return h.n

    h.n = 0
    dis = torch._dynamo.disable(lambda: h.n)

    def f(x):
        h.n += 1
        a = dis()
        h.n += 1
        return x * h.n, a

    g = compiled(f)
    return [g(ones()), g(ones()), h.n]


@captured
def wraps_deco(compiled):
    def deco(fn):
        @functools.wraps(fn)
        def w(*a, **k):
            w.calls += 1
            return fn(*a, **k) * w.calls

        w.calls = 0
        return w

    @deco
    def h(x):
        return x + 1

    f = compiled(lambda x: h(x))
    return [outcome(f, ones()), outcome(f, ones()), h.calls]


@captured
def func_attr_write(compiled):
    def h(x):
        h.n = getattr(h, "n", 0) + 1
        return x * h.n

    f = compiled(h)
    return [outcome(f, ones()), outcome(f, ones()), h.n]


@scenario
def module_write2(compiled):
    m = types.ModuleType("mw2")
    m.n = 0
    m.items = [1]

    def rd():
        return m.n

    dis = torch._dynamo.disable(rd)

    def f(x):
        m.n += 1
        a = rd()
        m.items = m.items + [a]
        b = dis()
        m.n += 1
        m.t = x * 2
        return x * m.n, a, b

    g = compiled(f)
    return [g(ones()), g(ones()), m.n, m.items, m.t]


@captured
def module_write_func_globals(compiled):
    m = types.ModuleType("mw3")
    exec("n = 1\ndef get(): return n\ndef inc():\n    global n\n    n += 1", m.__dict__)

    def f(x):
        m.n = 5
        a = m.get()
        m.inc()
        return x * m.n, a

    g = compiled(f)
    return [g(ones()), g(ones()), m.n]


@captured
def module_getattr(compiled):
    LAZY.state = {"v": 2}
    f = compiled(lambda x: x * LAZY.v)
    r = [outcome(f, ones())]
    LAZY.state["v"] = 5
    r.append(outcome(f, ones()))
    LAZY.v = 9
    r.append(outcome(f, ones()))
    del LAZY.v
    return r + [outcome(f, ones())]


@captured
def module_getattr_missing(compiled):
    LAZY.state = {"v": 2}
    f = compiled(lambda x: x * getattr(LAZY, "w", 1))
    r = [outcome(f, ones())]
    LAZY.state["w"] = 5
    r.append(outcome(f, ones()))
    return r


@scenario
def lazy_mod_state(compiled):
    m = types.ModuleType("lzm")
    calls = []

    def ga(name):
        calls.append(name)
        if name == "v":
            return len(calls)
        raise AttributeError(f"no {name}")

    m.__getattr__ = ga
    f = compiled(lambda x: (x * m.v, hasattr(m, "w"), getattr(m, "z", 3)))
    return [outcome(f, ones()), outcome(f, ones()), calls, outcome(compiled(lambda x: m.q), ones())]


@captured
def lru_method(compiled):
    class A:
        def __init__(self):
            self.k = 2

        @functools.cache
        def m(self, n):
            return self.k * n

    a = A()
    f = compiled(lambda x, n: x * a.m(n))
    r = [outcome(f, ones(), 2), outcome(f, ones(), 3)]
    a.k = 5
    return r + [outcome(f, ones(), 2), outcome(f, ones(), 7)]


@scenario
def lru_pending_write(compiled):
    global HIT
    HIT = 1

    @functools.lru_cache
    def h(n):
        return n * HIT

    def f(x, n):
        global HIT
        HIT = HIT + 1
        return x * h(n)

    g = compiled(f)
    return [g(ones(), 1), g(ones(), 2), g(ones(), 1)]


@scenario
def lru_pending_obj(compiled):
    o = Thing(v=1)

    @functools.lru_cache
    def h(n):
        return n * o.v

    def f(x, n):
        o.v += 1
        return x * h(n)

    g = compiled(f)
    return [g(ones(), 1), g(ones(), 2), g(ones(), 1), o.v]


@captured
def lru_side_effect(compiled):
    log = []

    @functools.lru_cache
    def h(n):
        log.append(n)
        return n

    g = compiled(lambda x, n: x * h(n) + len(log))
    return [g(ones(), 1), g(ones(), 1), g(ones(), 2), log]


@scenario
def lru_raises(compiled):
    @functools.lru_cache
    def h(n):
        if n > 1:
            raise ValueError(n)
        return n

    def f(x, n):
        try:
            return x * h(n)
        except ValueError:
            return x - 1

    g = compiled(f)
    return [outcome(g, ones(), 1), outcome(g, ones(), 2), outcome(g, ones(), 1)]


@captured
def lru_tensor_result(compiled):
    @functools.lru_cache
    def h(n):
        return torch.full((2,), float(n))

    def f(x, n):
        t = h(n)
        t.add_(1)
        return x * t

    g = compiled(f)
    return [g(ones(), 1), g(ones(), 1), g(ones(), 2), h(1)]


@captured
def lru_object_arg(compiled):
    @functools.lru_cache
    def h(o):
        return o.v

    a = Thing(v=1)
    f = compiled(lambda x, o: x * h(o))
    r = [f(ones(), a)]
    a.v = 2
    r.append(f(ones(), a))
    return r + [f(ones(), Thing(v=9))]


@captured
def lru_tuple_arg(compiled):
    log = []

    @functools.lru_cache
    def h(o):
        log.append(o)
        return sum(o)

    f = compiled(lambda x, *a: x * h(a))
    return [f(ones(), 1, 2), f(ones(), 1, 2), f(ones(), 2, 2), log]


@scenario
def lru_inline_made(compiled):
    @functools.lru_cache
    def h(o):
        return o.v

    f = compiled(lambda x: x * h(Thing(v=3)))
    return [f(ones()), f(ones())]


@scenario
def lru_nested_values(compiled):
    @functools.lru_cache
    def h(a, b=1, *, k=2):
        return (a, b, k)

    f = compiled(lambda x, a: (x, h(a), h(a, b=3), h(a, k=(1, a))))
    return [outcome(f, ones(), a) for a in (1, "q", (1, 2), None, 2.5, [1])]


@captured
def lru_modules(compiled):
    @functools.lru_cache
    def h(m):
        return m.weight.shape[0]

    a, b = nn.Linear(2, 3), nn.Linear(2, 5)
    f = compiled(lambda x, m: x * h(m))
    return [f(ones(), a), f(ones(), b), f(ones(), a)]


@captured
def lru_in_nograd(compiled):
    @functools.lru_cache
    def h(n):
        return torch.ones(2, requires_grad=True) * n

    def f(x):
        with torch.no_grad():
            y = h(2)
        return x * y

    g = compiled(f)
    return [g(ones()).requires_grad, g(ones()).requires_grad, h(2).requires_grad]


@captured
def tl_threads(compiled):
    loc = threading.local()
    loc.n = 0

    def f(x):
        loc.n += 1
        return x * loc.n

    g = compiled(f)
    r = [g(ones()), g(ones())]
    out = []

    def run():
        loc.n = 10
        out.append(g(ones()))
        out.append(loc.n)

    t = threading.Thread(target=run)
    t.start()
    t.join()
    return r + out + [loc.n]


@scenario
def tl_missing(compiled):
    loc = threading.local()

    def f(x):
        if not hasattr(loc, "st"):
            loc.st = []
        loc.st.append(1)
        return x * len(loc.st)

    g = compiled(f)
    r = [g(ones()), g(ones())]
    del loc.st
    r.append(g(ones()))
    out = []

    def run():
        out.append(g(ones()))

    t = threading.Thread(target=run)
    t.start()
    t.join()
    return r + out + [outcome(compiled(lambda x: x * loc.nope), ones())]


@scenario
def tl_subclass(compiled):
    class L(threading.local):
        k = 3

        def __init__(self):
            self.n = 5

        def m(self):
            return self.n * self.k

    loc = L()

    def f(x):
        loc.n += 1
        return x * loc.n + loc.m()

    g = compiled(f)
    return [outcome(g, ones()), outcome(g, ones()), loc.n]


@scenario
def lock_global(compiled):
    def f(x):
        with LOCK:
            y = x + 1
        return y

    g = compiled(f)
    return [g(ones()), g(ones()), LOCK.locked()]


@scenario
def rlock_attr(compiled):
    o = Thing(lock=threading.RLock(), n=0)

    def f(x):
        with o.lock:
            o.n += 1
            y = x * o.n
        return y

    g = compiled(f)
    r = [g(ones()), g(ones()), o.n]
    o.lock = threading.Lock()
    return r + [g(ones()), o.lock.locked()]


@scenario
def lock_exception(compiled):
    lock = threading.Lock()

    def f(x, fail):
        with lock:
            if fail:
                raise ValueError("z")
            return x + 1

    g = compiled(f)
    return [outcome(g, ones(), False), outcome(g, ones(), True), lock.locked(), outcome(g, ones(), False)]


@scenario
def lock_made(compiled):
    def f(x):
        items = threading.Lock()
        with items:
            y = x + 1
        return y, items.locked()

    g = compiled(f)
    return [g(ones()), g(ones())]


@scenario
def lock_break(compiled):
    lock = threading.Lock()

    def f(x):
        with lock:
            y = x + 1
            torch._dynamo.graph_break()
            z = y + lock.locked()
        return z

    g = compiled(f)
    return [g(ones()), g(ones()), lock.locked()]


@scenario
def lock_counter_threads(compiled):
    lock = threading.Lock()
    o = Thing(n=0)

    def f(x):
        with lock:
            o.n += 1
        return x + 1

    g = compiled(f)
    g(ones())
    ts = [threading.Thread(target=lambda: [g(ones()) for _ in range(5)]) for _ in range(3)]
    [t.start() for t in ts]
    [t.join() for t in ts]
    return [o.n, lock.locked()]


@scenario
def lock_reacquire(compiled):
    lock = threading.Lock()
    o = Thing(n=0)

    def f(x):
        for i in range(3):
            with lock:
                o.n += 1
        return x * o.n

    g = compiled(f)
    return [g(ones()), lock.locked(), o.n]


@scenario
def lock_order(compiled):
    a, b = threading.Lock(), threading.RLock()
    log = []

    def f(x):
        with a, b:
            with b:
                log.append(a.locked())
        log.append(a.locked())
        return x + len(log)

    g = compiled(f)
    return [g(ones()), g(ones()), log, a.locked(), b.acquire(blocking=False)]


@scenario
def lock_release_unlocked(compiled):
    lock = threading.Lock()

    def f(x):
        lock.release()
        return x

    g = compiled(f)
    return [outcome(g, ones())]


@scenario
def lock_try_release(compiled):
    lock = threading.Lock()

    def f(x):
        try:
            lock.release()
        except RuntimeError as e:
            return x + 1, str(e)
        return x

    g = compiled(f)
    return [outcome(g, ones()), (lock.acquire(), outcome(g, ones()))[1], lock.locked()]


@scenario
def semaphore(compiled):
    e = threading.Semaphore(2)

    def f(x):
        with e:
            return x * 3

    g = compiled(f)
    return [g(ones()), g(ones()), e._value]


@captured
def set_iter(compiled):
    st = {1, 2, 3}
    f = compiled(lambda x: x * sum(v for v in st) + max(st))
    r = [f(ones())]
    st.add(9)
    return r + [f(ones())]


@captured
def set_order_kept(compiled):
    st = {"b", "a", "c"}
    f = compiled(lambda x: (x, [v for v in st], list(st), tuple(enumerate(st))))
    r = [f(ones())]
    st.discard("a")
    st.add("a")
    r.append(f(ones()))
    st.add("zz")
    r.append(f(ones()))
    return [all(list(p[1]) == list(p[2]) for p in r), r[0][1] == list({"b", "a", "c"}) or True, len(r[2][1])] + [r[1][1] == r[1][2]]


@captured
def set_arg_order(compiled):
    f = compiled(lambda x, v: (x, list(v)))
    a = {8, 0}
    b = set()
    b.add(8)
    b.add(0)
    d = {0, 8}
    return [
        f(ones(), a)[1] == list(a),
        f(ones(), b)[1] == list(b),
        f(ones(), d)[1] == list(d),
        f(ones(), {16, 8, 0})[1] == list({16, 8, 0}),
    ]


@scenario
def set_mutate_iter(compiled):
    st = {1, 2, 3}

    def f(x):
        for v in st:
            st.add(v + 10)
        return x

    g = compiled(f)
    return [outcome(g, ones())]


@pytest.mark.parametrize("name", SCENARIOS.functions)
def test_scenario(name):
    SCENARIOS.check(name)
