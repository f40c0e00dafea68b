# ruff: noqa
"""Functions as users write them: classes, generators, context managers, exceptions, containers and the standard library.

make() returns them by name. They receive a tensor of three elements, and return values of any kind or raise.
"""

import collections, contextlib, dataclasses, enum, functools, typing, operator, itertools, types, abc, weakref, inspect
from collections import namedtuple

Pt = namedtuple("Pt", "a b")


class Pn(typing.NamedTuple):
    a: object
    b: int = 3

    def total(self):
        return self.a.sum() * self.b


@dataclasses.dataclass
class DC:
    w: object
    k: int = 2
    items: list = dataclasses.field(default_factory=list)

    def __post_init__(self):
        self.items.append(self.k)

    @property
    def both(self):
        return self.w * self.k


@dataclasses.dataclass(frozen=True, order=True)
class FD:
    n: int
    name: str = "x"


@dataclasses.dataclass(slots=True)
class SD:
    x: object
    y: int = 1


class Color(enum.Enum):
    RED = 1
    BLUE = 2

    def f(self):
        return self.value * 2


class Flag(enum.IntFlag):
    A = 1
    B = 2


class Desc:
    def __set_name__(s, o, n):
        s.n = "_" + n

    def __get__(s, i, o=None):
        return getattr(i, s.n) * 2 if i is not None else s

    def __set__(s, i, v):
        setattr(i, s.n, v + 1)


class WithDesc:
    d = Desc()

    def __init__(s, v):
        s.d = v

    def __getattr__(s, name):
        if name.startswith("dyn_"):
            return len(name)
        raise AttributeError(f"no {name}")


class CM:
    def __init__(s, log, swallow=False):
        s.log = log
        s.sw = swallow

    def __enter__(s):
        s.log.append("in")
        return s

    def __exit__(s, t, v, tb):
        s.log.append(("out", t and t.__name__, str(v)))
        return s.sw


# `match` is no syntax of the oldest Python that the linter reads.
MATCH = '''
def matchs(x):
    r = []
    for v in (1, "a", Pt(x, 3), [1, 2, 3], {"k": x, "z": 1}, DC(x), None, (1, 2)):
        match v:
            case 1:
                r.append("one")
            case str(s):
                r.append(s)
            case Pt(a=a, b=3):
                r.append(a * 2)
            case [1, *rest] if len(rest) == 2:
                r.append(rest)
            case {"k": t, **o}:
                r.append((t + 1, o))
            case DC(w=w):
                r.append(w * 3)
            case None | ():
                r.append("none")
            case _:
                r.append("other")
    return r
'''


def make(torch):
    P = {}

    def prog(f):
        P[f.__name__] = f
        return f

    @contextlib.contextmanager
    def gcm(log):
        log.append("g1")
        try:
            yield 5
        except ValueError as e:
            log.append(("caught", str(e)))
        finally:
            log.append("g2")

    @prog
    def class_stmt(x):
        class A:
            k = 3

            def __init__(self, v):
                self.v = v

            def __call__(self):
                return self.v * self.k

        return A(x)()

    @prog
    def class_inherit(x):
        class A:
            def f(self, v):
                return v + 1

        class B(A):
            def f(self, v):
                return super().f(v) * 2

        return B().f(x)

    @prog
    def class_closure(x):
        k = x.sum()

        class A:
            def f(self):
                return k * 2

            @staticmethod
            def g(v):
                return v - k

            @classmethod
            def h(cls, v):
                return cls.__name__, v + k

        return A().f(), A.g(x), A.h(x)

    @prog
    def class_property(x):
        class A:
            def __init__(self):
                self._w = x

            @property
            def w(self):
                return self._w * 2

            @w.setter
            def w(self, v):
                self._w = v + 1

        a = A()
        a.w = x
        return a.w

    @prog
    def class_module(x):
        class M(torch.nn.Module):
            def forward(self, v):
                return v.relu() * 2

        return M()(x)

    @prog
    def class_dataclass(x):
        @dataclasses.dataclass
        class D:
            a: object
            b: int = 2

        d = D(x)
        return d.a * d.b

    @prog
    def class_namedtuple(x):
        class N(typing.NamedTuple):
            a: object
            b: int = 2

        n = N(x)
        return n.a * n.b + n[1]

    @prog
    def class_enum(x):
        class E(enum.Enum):
            A = 1
            B = 2

        return x * E.B.value, [e.name for e in E]

    @prog
    def class_slots(x):
        class S:
            __slots__ = ("a",)

            def __init__(self, a):
                self.a = a

        return S(x).a * 2

    @prog
    def class_exc(x):
        class MyErr(ValueError):
            def __init__(self, t):
                super().__init__("my")
                self.t = t

        try:
            raise MyErr(x * 2)
        except MyErr as e:
            return e.t + 1, str(e)

    @prog
    def class_returned(x):
        class A:
            z = 1

            def f(self):
                return self.z

        a = A()
        a.t = x * 2
        return a.t, A.__name__, a.f(), A.__qualname__

    @prog
    def class_gen(x):
        class It:
            def __init__(s, n):
                s.n = n

            def __iter__(s):
                for i in range(s.n):
                    yield i * x

        return sum(It(4))

    @prog
    def class_meta(x):
        class Meta(type):
            def __new__(m, n, b, d):
                d["extra"] = 7
                return super().__new__(m, n, b, d)

        class A(metaclass=Meta):
            pass

        return x * A.extra

    @prog
    def class_op(x):
        class V:
            def __init__(s, t):
                s.t = t

            def __add__(s, o):
                return V(s.t + o.t)

            def __getitem__(s, i):
                return s.t[i]

            def __len__(s):
                return len(s.t)

            def __eq__(s, o):
                return True

            def __contains__(s, k):
                return k == 1

        v = V(x) + V(x)
        return v[0], len(v), v == 3, 1 in v, bool(v)

    @prog
    def class_in_loop(x):
        r = []
        for i in range(3):

            class A:
                k = i

                def f(self, v):
                    return v * self.k

            r.append(A().f(x))
        return sum(r)

    @prog
    def class_initsub(x):
        reg = []

        class Base:
            def __init_subclass__(cls, tag=None, **kw):
                reg.append((cls.__name__, tag))
                super().__init_subclass__(**kw)

        class C1(Base, tag="a"):
            pass

        class C2(Base):
            pass

        return x * len(reg), reg

    @prog
    def class_abc(x):
        class Base(abc.ABC):
            @abc.abstractmethod
            def f(self, v): ...

        class C(Base):
            def f(self, v):
                return v * 2

        return C().f(x)

    @prog
    def class_autograd(x):
        class Sq(torch.autograd.Function):
            @staticmethod
            def forward(ctx, v):
                ctx.save_for_backward(v)
                return v * v

            @staticmethod
            def backward(ctx, g):
                (v,) = ctx.saved_tensors
                return g * v * 3

        return Sq.apply(x)

    @prog
    def nt(x):
        p = Pt(x, 2)
        a, b = p
        q = p._replace(b=5)
        return a * b + q.b, q._asdict()["b"], p

    @prog
    def nt2(x):
        p = Pn(x)
        return p.total(), p, Pn._fields, p == p

    @prog
    def dc(x):
        d = DC(x, 4)
        e = dataclasses.replace(d, k=7)
        return d.both, e.k, e.items, dataclasses.fields(d)[1].name, dataclasses.asdict(FD(3))

    @prog
    def fd(x):
        return x * (FD(1) < FD(2)), {FD(1): x + 1}[FD(1)], hash(FD(1)) == hash(FD(1)), repr(FD(3, "q"))

    @prog
    def fd_err(x):
        f = FD(1)
        try:
            f.n = 2
        except dataclasses.FrozenInstanceError as e:
            return x + 1, str(e)

    @prog
    def sd(x):
        s = SD(x)
        s.y += 2
        return s.x * s.y, s == SD(x, 3)

    @prog
    def gens(x):
        def g(n):
            t = x
            for i in range(n):
                r = yield t
                t = t * (r or 2)
            return t

        def h():
            v = yield from g(3)
            yield v + 1

        it = h()
        a = next(it)
        b = it.send(5)
        return a, b, list(it)

    @prog
    def gen_close(x):
        log = []

        def g():
            try:
                yield x
                yield x * 2
            except GeneratorExit:
                log.append("ge")
                raise
            finally:
                log.append("fin")

        it = g()
        a = next(it)
        it.close()
        return a, log

    @prog
    def gen_throw(x):
        def g():
            while True:
                try:
                    yield x
                except ValueError as e:
                    yield x * 2, str(e)

        it = g()
        next(it)
        return it.throw(ValueError("q"))

    @prog
    def cms(x):
        log = []
        with CM(log) as c, gcm(log) as v:
            y = x * v
        with CM(log, True):
            raise ValueError("boom")
        with gcm(log):
            raise ValueError("in")
        return y, log

    @prog
    def exitstack(x):
        log = []
        with contextlib.ExitStack() as s:
            s.enter_context(CM(log))
            s.callback(log.append, "cb")
            y = x + 1
        return y, log

    @prog
    def suppress(x):
        with contextlib.suppress(KeyError):
            {}["a"]
            x = x + 100
        return x + 1

    @prog
    def nullc(x):
        with contextlib.nullcontext(4) as v, torch.no_grad():
            y = x * v
        return y + x

    @prog
    def tryf(x):
        log = []

        def f(k):
            try:
                if k == 0:
                    return "r"
                if k == 1:
                    raise KeyError("a")
                log.append("ok")
            except (KeyError, TypeError) as e:
                log.append(repr(e))
                return "ex"
            else:
                log.append("else")
            finally:
                log.append("fin")
            return "end"

        return x + 1, [f(i) for i in range(3)], log

    @prog
    def chain(x):
        try:
            try:
                raise ValueError("a")
            except ValueError as e:
                raise RuntimeError("b") from e
        except RuntimeError as e:
            return x * 2, str(e.__cause__), type(e.__context__).__name__

    @prog
    def raises(x):
        y = x + 1
        raise ValueError(f"bad {x.shape[0]}")

    @prog
    def raises_in(x):
        def inner(v):
            if v.shape[0] > 1:
                raise KeyError("deep")
            return v

        return inner(x * 2)

    @prog
    def asserts(x):
        assert x.shape[0] == 99, f"want 99 got {x.shape[0]}"
        return x

    @prog
    def nonloc(x):
        c = 0
        acc = x

        def f(k):
            nonlocal c, acc
            c += k
            acc = acc * k

        for i in (1, 2, 3):
            f(i)
        return acc, c

    @prog
    def recur(x):
        def f(v, n):
            return v if n == 0 else f(v * 2, n - 1) + n

        return f(x, 4)

    @prog
    def starargs(x):
        def f(a, /, b, *c, d=4, **e):
            return a * b + sum(c) * d, sorted(e)

        return f(x, 2, 3, 4, d=5, z=1, y=2), f(*[x, 1], **{"d": 2})

    @prog
    def fstr(x):
        n = x.shape[0]
        return x + 1, f"{n:>5}|{n!r}|{x.dtype}|{3.14159:.{2}f}|{'a'+'b'=}"

    @prog
    def compr(x):
        return (
            {i: x * i for i in range(3)},
            {i % 2 for i in range(5)},
            [y for y in (x, x + 1) if y.ndim],
            sum(i * x for i in range(3)),
        )

    @prog
    def walrus(x):
        if (n := x.shape[0]) > 1 and (y := x * n) is not None:
            return y, [z := n, z + 1]

    scope = {"Pt": Pt, "DC": DC}
    exec(MATCH, scope)
    prog(scope["matchs"])

    @prog
    def mutdef(x):
        def f(v, acc=[]):
            acc.append(1)
            return v * len(acc)

        return f(x) + f(x)

    @prog
    def descs(x):
        w = WithDesc(x)
        r = w.d
        try:
            w.nope
        except AttributeError as e:
            return r, w.dyn_abc, str(e), hasattr(w, "zz"), getattr(w, "q", 5)

    @prog
    def parts(x):
        f = functools.partial(torch.add, alpha=3)
        g = functools.partial(f, x)
        m = functools.reduce(operator.add, [x, x, x])
        return f(x, x), g(x), m, f.keywords

    @prog
    def lru(x):
        @functools.lru_cache(None)
        def f(n):
            return n * 2

        return x * f(3) + f(3)

    @functools.lru_cache
    def cached(n):
        return n + 10

    @prog
    def lru2(x):
        return x * cached(2)

    @functools.singledispatch
    def sdf(v):
        return "obj"

    @sdf.register
    def _(v: int):
        return "int"

    @sdf.register(list)
    def _(v):
        return "list"

    @prog
    def single(x):
        return x + 1, sdf(1), sdf([]), sdf("")

    @prog
    def enums(x):
        return (
            x * Color.RED.f(),
            Color(2) is Color.BLUE,
            Color["RED"].name,
            [c.name for c in Color],
            (Flag.A | Flag.B) & Flag.B,
            Color.RED in {Color.RED: 1},
        )

    @prog
    def trees(x):
        p = torch.utils._pytree
        t = {"a": [x, (x * 2, 3)], "b": None}
        l, s = p.tree_flatten(t)
        return (
            p.tree_unflatten([v * 2 if isinstance(v, torch.Tensor) else v for v in l], s),
            p.tree_map_only(torch.Tensor, lambda v: v + 1, t),
            len(l),
        )

    @prog
    def wrapsd(x):
        def deco(f):
            @functools.wraps(f)
            def w(*a, **k):
                return f(*a, **k) * 2

            return w

        @deco
        def f(v):
            "doc"
            return v + 1

        return f(x), f.__name__, f.__doc__

    @prog
    def cprop(x):
        class A:
            n = 0

            @functools.cached_property
            def v(self):
                self.n += 1
                return x * 2

        a = A()
        return a.v + a.v, a.n

    @prog
    def iters(x):
        return (
            list(zip(range(3), itertools.count(1))),
            x * sum(itertools.accumulate([1, 2, 3])),
            list(itertools.chain([1], (2,))),
            list(map(lambda a, b: a + b, [1, 2], [3, 4])),
            sorted([3, 1, 2], key=lambda v: -v),
            list(enumerate("ab", 2)),
            [*reversed([1, 2])],
            any(i > 1 for i in range(3)),
        )

    @prog
    def colls(x):
        d = collections.defaultdict(list)
        d["a"].append(x)
        c = collections.Counter("aab")
        o = collections.OrderedDict(a=1)
        o.move_to_end("a")
        q = collections.deque([1, 2], maxlen=2)
        q.append(3)
        cm = collections.ChainMap({"a": 1}, {"b": 2})
        return d["a"][0] * 2, c.most_common(1), list(o), list(q), cm["b"]

    @prog
    def ns(x):
        s = types.SimpleNamespace(a=x, b=2)
        s.c = s.a * s.b
        return s.c, s.b

    @prog
    def delattrs(x):
        class A:
            pass

        a = A()
        a.v = x
        setattr(a, "w", 3)
        del a.v
        return hasattr(a, "v"), x * a.w, vars(a)

    @prog
    def unpack(x):
        a, *b, c = [x, 1, 2, 3]
        (d, e), f = (1, 2), 3
        return a * c + d, b, e, f

    @prog
    def dicts(x):
        d = {"a": 1} | {"b": x}
        d |= {"c": 3}
        d.setdefault("q", []).append(2)
        k = d.pop("a")
        return d["b"] * k, sorted({**d, "z": 1}.keys() - {"b"}), list(d.items())[1:], "c" in d

    @prog
    def strs(x):
        return (
            x + 1,
            "a-b".split("-"),
            "%s %d" % ("q", 3),
            "{:03d}".format(7),
            "ab".upper().join(["1", "2"]),
            "abc"[::-1],
            "x".encode(),
        )

    @prog
    def globals_(x):
        return x * len([k for k in ("a", "b")]), isinstance(x, torch.Tensor), callable(len), type(x).__name__, id(x) == id(x)

    @prog
    def lambdas(x):
        fs = [lambda v, i=i: v * i for i in range(3)]
        return [f(x) for f in fs], (lambda *a: len(a))(1, 2)

    @prog
    def whiles(x):
        i = 0
        while True:
            i += 1
            if i == 2:
                continue
            if i > 4:
                break
            x = x + i
        else:
            x = x * 100
        return x, i

    @prog
    def forelse(x):
        for i in range(3):
            if i == 5:
                break
        else:
            x = x * 2
        return x

    @prog
    def inspectd(x):
        def f(a, b=2):
            return a * b

        return f(x), list(inspect.signature(f).parameters), f.__defaults__

    @prog
    def userdict(x):
        class D(dict):
            def __missing__(s, k):
                return k * 2

        d = D(a=1)
        return x * d[3], d

    @prog
    def modattr(x):
        m = torch.nn.Linear(3, 2)
        m.extra = x
        return m.extra * 2, [n for n, _ in m.named_parameters()]

    @prog
    def copyd(x):
        import copy

        a = [x, [1, 2]]
        b = copy.copy(a)
        c = copy.deepcopy([1, [2]])
        b[1].append(3)
        return a[1], c, b[0] + 1

    @prog
    def asyncless(x):
        def g():
            yield from (x * i for i in range(2))

        return [*g()]

    @prog
    def slicing(x):
        s = slice(0, 2)
        l = [1, 2, 3]
        l[s] = [9]
        del l[0]
        return x[s], l, s.stop, x[..., None].shape

    @prog
    def bytesd(x):
        return (
            x + 1,
            bytes([1, 2])[0],
            bytearray(b"ab"),
            memoryview(b"ab")[1],
            int.from_bytes(b"\x01\x02", "big"),
            (5).bit_length(),
            divmod(7, 2),
            round(2.567, 2),
            complex(1, 2).imag,
        )

    @prog
    def typing_(x):
        T = typing.TypeVar("T")

        class G(typing.Generic[T]):
            def __init__(s, v: T):
                s.v = v

        return G[int](3).v * x

    @prog
    def proto(x):
        class Pr(typing.Protocol):
            def f(self): ...

        class I:
            def f(self):
                return x * 2

        return I().f()

    @prog
    def weak(x):
        class A:
            pass

        a = A()
        r = weakref.ref(a)
        return x * 2, r() is a

    @prog
    def superinit(x):
        class A:
            def __init__(self, v):
                self.v = v

        class B(A):
            def __init__(self, v, w):
                super().__init__(v)
                self.w = w

            def __repr__(self):
                return f"B({self.w})"

        b = B(x, 3)
        return b.v * b.w, repr(b), f"{b}"

    @prog
    def getset(x):
        class A:
            def __getattribute__(s, n):
                return object.__getattribute__(s, n)

            def __setattr__(s, n, v):
                object.__setattr__(s, n + "_", v)

        a = A()
        a.q = x
        return a.q_ * 2

    @prog
    def contextdec(x):
        class C(contextlib.ContextDecorator):
            def __enter__(s):
                return s

            def __exit__(s, *a):
                return False

        @C()
        def f(v):
            return v * 2

        return f(x)

    @prog
    def print_(x):
        print("hello", x.shape[0])
        return x + 1

    @prog
    def gradmode(x):
        with torch.no_grad():
            a = x * 2
        with torch.enable_grad():
            b = x * 3
        return a.requires_grad, b.requires_grad, b

    @prog
    def globalwrite(x):
        global _COUNT
        _COUNT = _COUNT + 1
        return x * _COUNT

    globals()["_COUNT"] = 0
    return P
