"""Context managers, exceptions and generators."""

# ruff: noqa: B007, B012, B015, B018, B019, B904, F524, F841, UP006, UP028, UP031

from __future__ import annotations

import collections
import contextlib
import dataclasses
import functools
import math
import operator
import sys

import pytest

import teletensor as torch
from teletensor import nn

from ._scenarios import Scenarios, Thing, ones, outcome

SCENARIOS = Scenarios()
scenario, captured = SCENARIOS.scenario, SCENARIOS.captured


@contextlib.contextmanager
def cm(log, name, swallow=False):
    log.append("enter " + name)
    try:
        yield name
    except ValueError as e:
        log.append("caught " + str(e))
        if not swallow:
            raise
    finally:
        log.append("exit " + name)


@dataclasses.dataclass(frozen=True)
class FDC:
    a: int
    b: float = 2.0


@dataclasses.dataclass(order=True)
class ODC:
    a: int
    b: int = 0


@captured
def es_basic(compiled):
    log = []

    def f(x):
        with contextlib.ExitStack() as st:
            st.enter_context(cm(log, "a"))
            st.enter_context(cm(log, "b"))
            x = x + len(log)
        return x * 2

    g = compiled(f)
    return [g(ones()), g(ones()), log]


@captured
def es_nograd(compiled):
    def f(x, flag):
        with contextlib.ExitStack() as st:
            if flag:
                st.enter_context(torch.no_grad())
            y = x * 2
        return y + x, y.requires_grad

    g = compiled(f)
    x = torch.ones(2, requires_grad=True)
    return [(a.detach(), a.requires_grad, b) for a, b in (g(x, True), g(x, False), g(x, True))] + [torch.is_grad_enabled()]


@captured
def es_callback(compiled):
    log = []

    def f(x):
        with contextlib.ExitStack() as st:
            st.callback(log.append, 1)
            st.callback(lambda *a, **k: log.append((a, k)), 2, z=3)
            y = x + 1
            log.append("body")
        return y + len(log)

    g = compiled(f)
    return [g(ones()), g(ones()), log]


@captured
def es_push_exit(compiled):
    log = []

    def f(x, fail):
        with contextlib.ExitStack() as st:
            st.push(lambda t, v, tb: log.append(None if t is None else t.__name__) or True)
            if fail:
                raise ValueError("x")
        return x + len(log)

    g = compiled(f)
    return [outcome(g, ones(), False), outcome(g, ones(), True), log]


@captured
def es_swallow(compiled):
    log = []

    def f(x):
        with contextlib.ExitStack() as st:
            st.enter_context(cm(log, "a", True))
            st.enter_context(cm(log, "b"))
            raise ValueError("oops")
        return x + len(log)

    g = compiled(f)
    return [outcome(g, ones()), outcome(g, ones()), log]


@captured
def es_pop_all(compiled):
    log = []

    def f(x):
        with contextlib.ExitStack() as st:
            st.enter_context(cm(log, "a"))
            keep = st.pop_all()
        log.append("after")
        keep.close()
        return x + len(log)

    g = compiled(f)
    return [outcome(g, ones()), log]


@scenario
def es_break_inside(compiled):
    log = []

    def f(x):
        with contextlib.ExitStack() as st:
            st.enter_context(cm(log, "a"))
            torch._dynamo.graph_break()
            x = x + len(log)
        return x

    g = compiled(f)
    return [g(ones()), g(ones()), log]


@scenario
def es_nograd_break(compiled):
    def f(x):
        with contextlib.ExitStack() as st:
            st.enter_context(torch.no_grad())
            y = x * 2
            torch._dynamo.graph_break()
            z = y * x
        return z.requires_grad, (x * 1).requires_grad

    g = compiled(f)
    x = torch.ones(2, requires_grad=True)
    return [g(x), g(x), torch.is_grad_enabled()]


@scenario
def es_global_stack(compiled):
    log = []
    st = contextlib.ExitStack()

    def f(x):
        st.enter_context(cm(log, "a"))
        return x + len(log)

    g = compiled(f)
    r = [outcome(g, ones()), outcome(g, ones())]
    st.close()
    return r + [log]


@scenario
def es_in_except(compiled):
    log = []

    def f(x):
        with contextlib.ExitStack() as st:
            st.enter_context(cm(log, "a"))
            return x + len(log)

    g = compiled(f)
    r = [g(ones())]
    try:
        raise KeyError("z")
    except KeyError:
        r.append(g(ones()))
    return r + [g(ones()), log]


@scenario
def es_nested_exc_context(compiled):
    def f(x):
        try:
            with contextlib.ExitStack() as st:
                st.callback(lambda: 1 / 0)
                raise ValueError("a")
        except ZeroDivisionError as e:
            return x, repr(e), repr(e.__context__)

    g = compiled(f)
    return [outcome(g, ones()), outcome(g, ones())]


@captured
def es_cb_raise_order(compiled):
    log = []

    def bad(n):
        log.append(n)
        raise ValueError(n)

    def f(x):
        with contextlib.suppress(ValueError):
            with contextlib.ExitStack() as st:
                for i in range(3):
                    st.callback(bad, i)
        return x * len(log)

    g = compiled(f)
    return [outcome(g, ones()), outcome(g, ones()), log]


@captured
def es_conditional(compiled):
    def f(x, ms):
        with contextlib.ExitStack() as st:
            for m in ms:
                st.enter_context(m)
            y = x * 2
        return y.requires_grad

    g = compiled(f)
    x = torch.ones(2, requires_grad=True)
    return [g(x, []), g(x, [torch.no_grad()]), g(x, [contextlib.nullcontext()]), g(x, [torch.no_grad(), torch.enable_grad()])]


@scenario
def exc_info(compiled):
    def f(x):
        a = sys.exc_info()[0]
        try:
            raise ValueError("q")
        except ValueError:
            b = sys.exc_info()[:2]
        return x, a, repr(b[1]), b[0], sys.exc_info()[1]

    g = compiled(f)
    r = [g(ones())]
    try:
        raise KeyError("z")
    except KeyError:
        r.append([repr(v) for v in g(ones())[1:]])
    return r + [g(ones())]


@scenario
def ctx_read(compiled):
    def f(x):
        try:
            raise ValueError("q")
        except ValueError as e:
            return x, repr(e.__context__)

    g = compiled(f)
    r = [g(ones())]
    try:
        raise KeyError("z")
    except KeyError:
        r.append(g(ones()))
    return r + [g(ones())]


@scenario
def suppress(compiled):
    def f(x, k):
        with contextlib.suppress(KeyError, ValueError):
            if k == 1:
                raise KeyError("a")
            if k == 2:
                raise TypeError("b")
            x = x + 10
        return x + 1

    g = compiled(f)
    return [outcome(g, ones(), k) for k in (0, 1, 2, 1, 0)]


@captured
def decorator_cm(compiled):
    log = []

    @cm(log, "d")
    def h(x):
        return x + len(log)

    g = compiled(lambda x: h(x) * 2)
    return [outcome(g, ones()), outcome(g, ones()), log]


@captured
def ctx_decorator(compiled):
    log = []

    class D(contextlib.ContextDecorator):
        def __enter__(self):
            log.append("in")
            return self

        def __exit__(self, *a):
            log.append(a[0] and a[0].__name__)
            return False

    @D()
    def h(x):
        return x + len(log)

    g = compiled(lambda x: h(x) * 2)
    return [outcome(g, ones()), outcome(g, ones()), log]


@captured
def cm_gen_state(compiled):
    stack = []

    @contextlib.contextmanager
    def push(v):
        stack.append(v)
        try:
            yield len(stack)
        finally:
            stack.pop()

    def f(x):
        with push(1) as a:
            with push(2) as b:
                x = x * a * b
        return x + len(stack)

    g = compiled(f)
    r = [g(ones())]
    stack.append(0)
    return r + [g(ones()), stack]


@captured
def gen_returned(compiled):
    def f(x):
        def g():
            yield x
            yield x + 1

        return g()

    return [list(compiled(f)(ones())) for _ in range(2)]


@scenario
def gen_raises(compiled):
    def g():
        yield 1
        raise ValueError("inside")

    f = compiled(lambda x: x * sum(g()))
    return [outcome(f, ones()), outcome(f, ones())]


@scenario
def gen_finally(compiled):
    log = []

    def g():
        try:
            yield 1
            yield 2
        finally:
            log.append("done")

    def f(x):
        for v in g():
            if v == 1:
                break
        return x * v

    h = compiled(f)
    return [h(ones()), h(ones()), log]


@captured
def gen_finally_close(compiled):
    log = []

    def g():
        try:
            yield 1
            yield 2
        finally:
            log.append("done")

    def f(x):
        it = g()
        next(it)
        it.close()
        return x * len(log)

    h = compiled(f)
    return [h(ones()), h(ones()), log]


@scenario
def gen_throw(compiled):
    def g():
        try:
            yield 1
        except ValueError as e:
            yield str(e)

    def f(x):
        it = g()
        next(it)
        return x, it.throw(ValueError("hey"))

    h = compiled(f)
    return [h(ones()), h(ones())]


@scenario
def gen_unstarted_break(compiled):
    def f(x):
        g = (i * 2 for i in range(3))
        torch._dynamo.graph_break()
        return x * sum(g)

    g = compiled(f)
    return [outcome(g, ones()), outcome(g, ones())]


@captured
def gen_function_kept(compiled):
    def mk(a, *r, k=1, **kw):
        yield a * k
        yield from r
        yield sorted(kw)

    def f(x):
        return mk(x, 1, 2, k=3, z=4), x + 1

    g = compiled(f)
    a, b = g(ones())
    return [list(a), b]


@captured
def gen_closure_kept(compiled):
    def f(x):
        n = 1

        def gen():
            nonlocal n
            while n < 4:
                n += 1
                yield x * n

        it = gen()
        n = 2
        return it

    g = compiled(f)
    return [list(g(ones()))]


@captured
def gen_stored(compiled):
    o = Thing()

    def f(x):
        o.it = (x + i for i in range(2))
        return x

    g = compiled(f)
    g(ones())
    r = list(o.it)
    g(ones() * 5)
    return r + list(o.it)


@scenario
def gen_any_item(compiled):
    def f(x):
        return x + any(v.item() > 3 for v in x), all(float(v) > 0 for v in x)

    g = compiled(f)
    return [g(ones()), g(torch.tensor([1.0, 9.0])), g(torch.tensor([-1.0, 9.0]))]


@scenario
def gen_iterates_changing(compiled):
    items = [1, 2]

    def f(x):
        g = (v for v in items)
        torch._dynamo.graph_break()
        items.append(3)
        return x * sum(g)

    g = compiled(f)
    return [outcome(g, ones()), items]


@captured
def gen_nested(compiled):
    def inner(n):
        for i in range(n):
            yield i

    def outer(n):
        for i in range(n):
            yield from inner(i)
            yield -1

    f = compiled(lambda x, n: x * sum(outer(n)) + len(list(outer(n))))
    return [f(ones(), n) for n in (2, 3, 4)]


@captured
def iter_sentinel(compiled):
    def f(x):
        items = [3, 2, 1, 0]
        return x * sum(iter(items.pop, 3))

    return [outcome(compiled(f), ones())]


@scenario
def iter_sentinel2(compiled):
    items = [3, 2, 1, 0]

    def f(x):
        r = []
        for v in iter(items.pop, 2):
            torch._dynamo.graph_break()
            r.append(v)
        return x * sum(r), list(items)

    g = compiled(f)
    return [outcome(g, ones())]


@scenario
def exc_from_none(compiled):
    def f(x):
        try:
            raise KeyError("a")
        except KeyError:
            raise ValueError("b") from None

    g = compiled(f)
    return [outcome(g, ones()), outcome(g, ones())]


@scenario
def exc_context(compiled):
    def f(x):
        try:
            try:
                raise KeyError("a")
            except KeyError:
                raise ValueError("b")
        except ValueError as e:
            return x, repr(e.__context__), e.__suppress_context__

    return [outcome(compiled(f), ones())]


@captured
def finally_return_override(compiled):
    def f(x):
        for i in range(3):
            try:
                return x + i
            finally:
                if i == 0:
                    continue
                return x * 100

    return [outcome(compiled(f), ones())]


@captured
def try_loop(compiled):
    def f(x, bad):
        log = []
        for i in range(4):
            try:
                if i in bad:
                    raise ValueError(i)
                if i == 3:
                    continue
                x = x + i
            except ValueError as e:
                log.append(e.args[0])
                x = x * 2
                if e.args[0] == 2:
                    break
            else:
                log.append("else")
            finally:
                log.append("fin")
        else:
            log.append("loop else")
        return x, log

    g = compiled(f)
    return [g(ones(), b) for b in ((), (1,), (2,), (0, 1), ())]


@scenario
def nested_func_except(compiled):
    def h(k):
        if k == 1:
            raise ValueError("h1")
        if k == 2:
            return 1 / 0
        if k == 3:
            return [][0]
        if k == 4:
            return {}["zz"]
        if k == 5:
            return None.foo
        if k == 6:
            return "a" + 1
        if k == 7:
            return int("q")
        if k == 8:
            return undefined_name  # noqa: F821
        if k == 9:
            a, b = (1,)
            return a
        if k == 10:
            return (1).real.nope
        if k == 11:
            raise RuntimeError
        if k == 12:
            raise StopIteration(3)
        if k == 13:
            return len(5)
        if k == 14:
            return next(iter([]))
        if k == 15:
            return [1].index(2)
        if k == 16:
            return {}.pop("a")
        if k == 17:
            return [].pop()
        if k == 18:
            return max([])
        if k == 19:
            return "a".index("b")
        if k == 20:
            return {1}.remove(2)
        if k == 21:
            return chr(-1)
        if k == 22:
            return float("x")
        if k == 23:
            return (1, 2).index(3)
        if k == 24:
            return sum(["a"])
        if k == 25:
            return sorted([1, "a"])
        if k == 26:
            return {[]: 1}
        if k == 27:
            return 1 < "a"
        if k == 28:
            return 5()
        if k == 29:
            return h()
        if k == 30:
            return h(1, 2)
        if k == 31:
            return h(z=1)
        if k == 32:
            return "%d" % "a"
        if k == 33:
            return "{}".format()
        if k == 34:
            return dict([1])
        if k == 35:
            return range(1, 2, 0)
        if k == 36:
            return [1, 2][1.5]
        if k == 37:
            return iter(5)
        if k == 38:
            return 2**-1 // 0
        if k == 39:
            return (3).q
        if k == 40:
            return isinstance(3, 4)
        if k == 41:
            return str.zz
        if k == 42:
            return setattr(3, "q", 1)
        if k == 43:
            return (lambda: 0)(1)
        if k == 44:
            return list(3)
        if k == 45:
            return [*3]
        if k == 46:
            return {**3}
        if k == 47:
            return int([])
        if k == 48:
            return "a".join([1])
        if k == 49:
            return "abc"[9]
        if k == 50:
            return b"a"[9]
        if k == 51:
            return range(3)[9]
        if k == 52:
            return math.sqrt(-1)
        if k == 53:
            return math.floor("a")
        if k == 54:
            return "a" * "b"
        if k == 55:
            return [1] + (1,)
        if k == 56:
            return -"a"
        if k == 57:
            return 1 in 5
        if k == 58:
            return reversed(5)
        if k == 59:
            return zip(5)
        if k == 60:
            return enumerate(5)
        if k == 61:
            return min()
        if k == 62:
            return collections.deque([1], maxlen=-1)
        if k == 63:
            return operator.itemgetter(3)([1])
        if k == 64:
            return Thing().zz
        if k == 65:
            return Thing.zz
        if k == 66:
            Thing()[1]
        if k == 67:
            Thing()()
        if k == 68:
            Thing() + 1
        if k == 69:
            Thing() < Thing()
        if k == 70:
            del Thing().q
        if k == 71:
            torch.nope
        if k == 72:
            nn.Linear(2, 2).nope
        if k == 73:
            [] < 3
        if k == 74:
            (1, 2) < (1, "a")
        if k == 75:
            divmod(1, 0)
        if k == 76:
            1 % 0
        if k == 77:
            1.0 / 0
        if k == 78:
            0**-1
        if k == 79:
            1 << -1
        if k == 80:
            int("12", 99)
        if k == 81:
            bytes([300])
        if k == 82:
            functools.reduce(operator.add, [])
        if k == 83:
            "a".encode("ascii").decode("zz")
        if k == 84:
            [].remove(3)
        if k == 85:
            [1, 2].insert("a", 1)
        if k == 86:
            {}.popitem()
        if k == 87:
            abs("a")
        if k == 88:
            round("a")
        if k == 89:
            ord("ab")
        if k == 90:
            hash([])
        if k == 91:
            {1: 2}[[]]
        if k == 92:
            {1} | [1]
        if k == 93:
            next(5)
        if k == 94:
            type.__call__(Thing, 3)
        if k == 95:
            super().foo
        if k == 96:
            FDC()
        if k == 97:
            FDC(1).a = 3
        if k == 98:
            ODC(1) < 3
        if k == 99:
            return (3).zz

    def f(x, k):
        try:
            h(k)
        except Exception as e:
            return x + 1, type(e).__name__, str(e)
        return x

    out = []
    for k in range(1, 100):
        torch._dynamo.reset()
        out.append((k, outcome(compiled(f), ones(), k)))
    for k in range(1, 100):
        torch._dynamo.reset()
        out.append((k, outcome(compiled(lambda x, k: (h(k), x)), ones(), k)[1:3]))
    return out


@captured
def exc_texts(compiled):
    class E(Exception):
        pass

    class F(KeyError):
        pass

    class G(ValueError):
        def __str__(self):
            return "mine"

    class H(ValueError):
        def __repr__(self):
            return "H!"

    def f(x):
        out = []
        for e in (
            ValueError(),
            ValueError("a"),
            ValueError("a", 1),
            KeyError("k"),
            KeyError("a", "b"),
            KeyError(),
            E("q", [1]),
            F("z"),
            G("a"),
            IndexError(3),
            H("t"),
        ):
            try:
                raise e
            except Exception as q:
                out += [str(q), repr(q), f"{q}", f"{q!r}", "%s" % (str(q),)]
        return x, out

    return [outcome(compiled(f), ones())]


@scenario
def formats(compiled):
    class A:
        def __init__(s, n):
            s.n = n

        def __format__(s, spec):
            return f"<{s.n}:{spec}>"

    class B:
        def __str__(s):
            return "B"

    class C0:
        def __format__(s, spec):
            return 3

    a = A(1)

    def f(x):
        return x, f"{a} {a:>5} {a!r:.3}"[:9], f"{B()} {B()!s:>4}", format(a, "q")

    r = [outcome(compiled(f), ones())]
    a.n = 2
    return r + [
        outcome(compiled(f), ones()),
        outcome(compiled(lambda x: f"{B():>4}"), ones()),
        outcome(compiled(lambda x: f"{C0()}"), ones()),
    ]


@scenario
def del_globals(compiled):
    globals().pop("DG", None)

    def f(x, k):
        global DG
        if k == 0:
            DG = x
            y = DG * 2
            del DG
            return y
        if k == 1:
            del DG
            return x
        if k == 2:
            DG = 5
            return x
        if k == 3:
            v = DG
            del DG
            return x * v
        if k == 4:
            try:
                return x * DG
            except NameError as e:
                return x - 1, str(e)
        if k == 5:
            DG = 1
            del DG
            try:
                return DG
            except NameError:
                DG = 7
                return x * DG
        if k == 6:
            del DG
            return len([DG] if False else []) + x

    g = compiled(f)
    out = []
    for k in (0, 1, 2, 3, 4, 2, 4, 3, 3, 5, 4, 6, 4):
        out += [outcome(g, ones(), k), globals().get("DG", "none")]
    globals().pop("DG", None)
    return out


@scenario
def del_shadowing_builtin(compiled):
    def f(x):
        global len
        len = lambda v: 50  # noqa: E731
        a = len([])
        del len
        return x * a + len([1])  # noqa: F821

    return [outcome(compiled(f), ones()), "len" in globals()]


@scenario
def del_cells(compiled):
    n = 1

    def get():
        return n

    def f(x, k):
        nonlocal n
        if k == 0:
            del n
            return x
        if k == 1:
            n = 5
            return x * n
        if k == 2:
            try:
                return x * get()
            except NameError as e:
                return x, str(e)
        if k == 3:
            n = 2
            del n
            n = 3
            return x * get()
        if k == 4:
            del n
            torch._dynamo.graph_break()
            n = 8
            return x * n

    g = compiled(f)
    return [outcome(g, ones(), k) for k in (2, 0, 2, 0, 1, 2, 3, 2, 4, 2, 0, 0)]


@pytest.mark.parametrize("name", SCENARIOS.functions)
def test_scenario(name):
    SCENARIOS.check(name)
