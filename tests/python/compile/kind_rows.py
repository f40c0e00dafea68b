# ruff: noqa: E501
"""Further rows (rows.py), by kind of value and of statement: text, numbers, containers, iterators, classes, functions, exceptions."""

from __future__ import annotations

import abc
import collections
import contextlib
import copy  # noqa: F401 - of the expressions below, as are others
import dataclasses
import enum
import functools
import itertools  # noqa: F401
import math  # noqa: F401
import operator  # noqa: F401
import types
import warnings
from typing import Any, Generic, NamedTuple, TypeVar

import teletensor as torch

from .rows import LINEAR, MODEL, SCOPES, Manager, Point, add_expressions, row  # noqa: F401

T = TypeVar("T")


class Priced(NamedTuple):
    x: Any
    price: float = 2.5

    def total(self):
        return self.x * self.price


@dataclasses.dataclass(order=True)
class Ranked:
    rank: int
    tags: list = dataclasses.field(default_factory=list)
    double: int = dataclasses.field(init=False, default=0)

    def __post_init__(self):
        self.double = self.rank * 2


@dataclasses.dataclass(frozen=True, eq=True)
class Key:
    a: int
    b: str = "k"


class Weekday(enum.IntEnum):
    MONDAY = 1
    FRIDAY = 5


class Mode(enum.Flag):
    READ = enum.auto()
    WRITE = enum.auto()


class Celsius:
    """A descriptor."""

    def __get__(self, obj, owner=None):
        return self if obj is None else obj.kelvin - 273

    def __set__(self, obj, value):
        obj.kelvin = value + 273


class Weather:
    celsius = Celsius()

    def __init__(self, kelvin):
        self.kelvin = kelvin


class Vector:
    def __init__(self, a, b):
        self.a, self.b = a, b

    def __add__(self, o):
        return Vector(self.a + o.a, self.b + o.b)

    def __iadd__(self, o):
        self.a = self.a + o.a
        return self

    def __mul__(self, k):
        return Vector(self.a * k, self.b * k)

    __rmul__ = __mul__

    def __matmul__(self, o):
        return self.a * o.a + self.b * o.b

    def __neg__(self):
        return Vector(-self.a, -self.b)

    def __abs__(self):
        return self.a + self.b

    def __lt__(self, o):
        return self.a < o.a

    def __eq__(self, o):
        return isinstance(o, Vector) and self.a == o.a

    def __hash__(self):
        return hash(self.a)

    def __getitem__(self, i):
        return (self.a, self.b)[i]

    def __setitem__(self, i, v):
        if i == 0:
            self.a = v
        else:
            self.b = v

    def __delitem__(self, i):
        self.a = 0

    def __len__(self):
        return 2

    def __iter__(self):
        return iter((self.a, self.b))

    def __contains__(self, v):
        return v == self.a or v == self.b

    def __repr__(self):
        return f"Vector({self.a}, {self.b})"

    def __format__(self, spec):
        return f"<{spec}>"

    def __int__(self):
        return int(self.a)

    def __index__(self):
        return 1

    def __reversed__(self):
        return iter((self.b, self.a))


class Countdown:
    """An iterator."""

    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return self

    def __next__(self):
        if self.n == 0:
            raise StopIteration
        self.n -= 1
        return self.n


class Indexed:
    """Iterated by __getitem__."""

    def __getitem__(self, i):
        if i > 2:
            raise IndexError
        return i + 1


class Recorded:
    """Overrides __setattr__ and __getattr__."""

    def __init__(self):
        object.__setattr__(self, "names", [])

    def __setattr__(self, name, value):
        self.names.append(name)
        object.__setattr__(self, name, value)

    def __getattr__(self, name):
        if name.startswith("no_"):
            return 7
        raise AttributeError(name)


class Shape(abc.ABC):
    @property
    @abc.abstractmethod
    def area(self): ...

    def described(self):
        return self.area + 1


class Square(Shape):
    def __init__(self, side):
        self.side = side

    @property
    def area(self):
        return self.side * self.side


class Left:
    def who(self):
        return ["left"]


class Right:
    def who(self):
        return ["right"]


class Both(Left, Right):
    def who(self):
        return ["both", *super().who(), *super(Left, self).who()]


class Registered:
    known: dict = {}

    def __init_subclass__(cls, **kwargs):
        cls.known[cls.__name__] = kwargs.get("k", 0)


class Child(Registered, k=4):
    pass


class Typed(Generic[T]):
    def __init__(self, v: T):
        self.v = v


class Once:
    """Overrides __new__."""

    def __new__(cls, v):
        made = super().__new__(cls)
        made.v = v
        return made


class Cached:
    def __init__(self, v):
        self.v = v

    @functools.cached_property
    def twice(self):
        return self.v * 2

    half = functools.partialmethod(lambda self, by: self.v / by, 2)


@functools.total_ordering
class Ordered:
    def __init__(self, n):
        self.n = n

    def __eq__(self, o):
        return self.n == o.n

    def __lt__(self, o):
        return self.n < o.n


def spread(a, /, b, *, c=3, **rest):
    return a * b + c + len(rest)


def twice(function):
    @functools.wraps(function)
    def called(*args, **kwargs):
        return function(function(*args, **kwargs))

    return called


def by(k):
    def decorate(function):
        return lambda v: function(v) * k

    return decorate


@twice
def plus_one(v):
    return v + 1


@by(3)
def minus_one(v):
    return v - 1


@functools.lru_cache
def cached_number(n):
    return n * 3


POINT, WEATHER, QUEUE, NAMES, NESTED = Point(2.0, 3.0), Weather(300.0), collections.deque([1, 2]), {"k"}, {"a": [1, {"b": 2}]}
SPACE = types.SimpleNamespace(a=2, b=3)

SCOPES.append(globals())
add_expressions(globals(), r"""
"a b".title() == "A B" and x + 1|"abc".upper().isupper() and x + 1|" a ".strip() == "a" and x + 1|"a-b-c".rsplit("-", 1) == ["a-b", "c"] and x + 1|"7".zfill(3) == "007" and x + 1
"a=b".partition("=")[2] == "b" and x + 1|"aab".count("a") * x|"abc".find("c") * x|"abc".replace("b", "") == "ac" and x + 1|"ab".center(4, "*") == "*ab*" and x + 1|"12".isdigit() and x + 1
"x".join(str(i) for i in range(3)) == "0x1x2" and x + 1|"abc"[::-1] == "cba" and x + 1|"a" * 3 == "aaa" and x + 1|"b" in "abc" and x + 1|"a" < "b" and x + 1|"abc".removeprefix("a") == "bc" and x + 1
f"{x.shape[0]:>3d}" == "  3" and x + 1|f"{SPACE.a!r:>4}" == "   2" and x + 1|f"{'a':{'>'}{3}}" == "  a" and x + 1|f"{POINT.x:.2f}" == "2.00" and x + 1|"{a}-{b[0]}".format(a=1, b=[2]) == "1-2" and x + 1|"%(a)d" % {"a": 3} == "3" and x + 1
ord("a") * x|chr(98) == "b" and x + 1|repr("a") == "'a'" and x + 1|str([1, "a"]) == "[1, 'a']" and x + 1|"a\nb".splitlines() == ["a", "b"] and x + 1|"ab".encode() == b"ab" and x + 1|b"ab"[0] * x|"a,b".split(",", maxsplit=1)[0] == "a" and x + 1
(2 + 3j).real * x|(7).bit_length() * x|(2.0).is_integer() and x + 1|hex(255) == "0xff" and x + 1|bin(5) == "0b101" and x + 1|round(2.567, 1) * x|divmod(7.5, 2)[1] * x|int("ff", 16) * x|float("inf") > 1 and x + 1|int(2.9) * x|-7 // 2 * x|-7 % 3 * x
math.floor(2.7) * x|math.gcd(12, 8) * x|math.log2(8) * x|math.prod([2, 3]) * x|math.isclose(0.1 + 0.2, 0.3) and x + 1|math.isinf(math.inf) and x + 1|math.sin(1.0) * x|math.hypot(3, 4) * x|math.comb(5, 2) * x|math.isqrt(17) * x|math.copysign(2, -1) * x|math.trunc(-2.5) * x
list(collections.deque([1, 2], maxlen=1)) == [2] and x + 1|collections.deque([x, y])[1] + 1|collections.Counter("aab")["a"] * x|collections.Counter("aab").most_common(1)[0][1] * x|collections.ChainMap({"a": 1}, {"b": 2})["b"] * x|len(QUEUE) * x|QUEUE[0] * x
Priced(x).total()|Priced(x)._replace(price=3.0).total()|Priced(x, 4.0)._asdict()["price"] * x|Priced._fields == ("x", "price") and x + 1|Priced(x) == (x, 2.5) or x + 1|[*Priced(x)][1] * x|Priced._make([x, 3.0]).total()|len(Priced(x)) * x
sorted([3, 1, 2], reverse=True)[0] * x|sorted("ba") == ["a", "b"] and x + 1|sorted([(1, "b"), (0, "c")], key=lambda p: p[1])[0][0] * x + y|list(reversed(range(3)))[0] * x|[1, 2, 3].index(2) * x|[1, 1].count(1) * x|(1, 2, 1).count(1) * x|[0] + [x, y][0:1] == [] or x + 1
[1, 2] == [1, 2] and x + 1|[1, 2] < [1, 3] and x + 1|(1, (2, 3))[1][0] * x|[[1, 2], [3]][1][0] * x|list({"a": 1} \| {"b": 2}) == ["a", "b"] and x + 1|{"a": 1} == {"a": 1} and x + 1|list(reversed({"a": 1, "b": 2}))[0] == "b" and x + 1|{"a": 1}.items() == {"a": 1}.items() and x + 1
{1, 2} ^ {2, 3} == {1, 3} and x + 1|{1} <= {1, 2} and x + 1|{1, 2}.issuperset({1}) and x + 1|{1, 2} - {1} == {2} and x + 1|{1}.isdisjoint({2}) and x + 1|set("aab") == {"a", "b"} and x + 1|frozenset([1]) \| {2} == {1, 2} and x + 1|len({*[1, 2], 2}) * x|{"a": 1}.keys() & {"a"} == {"a"} and x + 1
NESTED["a"][1]["b"] * x|[*NESTED][0] == "a" and x + 1|"k" in NAMES and x + 1|len(NAMES) * x|SPACE.a * x|vars(SPACE)["b"] * x|POINT.total() * x|getattr(SPACE, "zz", 4) * x|NESTED.get("q", [5])[0] * x|isinstance(NESTED["a"], list) and x + 1
list(itertools.accumulate([1, 2, 3]))[2] * x|len(list(itertools.product([1, 2], "ab"))) * x|list(itertools.permutations([1, 2]))[1][0] * x|len(list(itertools.combinations(range(4), 2))) * x|list(itertools.islice(itertools.count(2), 2))[1] * x|list(itertools.islice(itertools.cycle([1, 2]), 3))[2] * x
list(itertools.repeat(x, 2))[1] + 1|list(itertools.zip_longest([1], [2, 3], fillvalue=0))[1][0] + x|list(itertools.starmap(pow, [(2, 3)]))[0] * x|[k for k, g in itertools.groupby("aab")] == ["a", "b"] and x + 1|list(itertools.takewhile(lambda a: a < 3, [1, 2, 5]))[1] * x|list(itertools.dropwhile(lambda a: a < 3, [1, 5]))[0] * x
list(itertools.pairwise([1, 2, 3]))[1][1] * x|list(itertools.chain.from_iterable([[x], [y + 1]]))[1]|list(itertools.compress([1, 2], [0, 1]))[0] * x|list(itertools.filterfalse(lambda a: a > 1, [1, 2]))[0] * x|list(itertools.combinations_with_replacement([1, 2], 2))[1][1] * x|sum(itertools.repeat(2, 3)) * x
list(zip([1, 2], [3, 4], strict=True))[1][1] * x|list(enumerate("ab", start=5))[1][0] * x|list(map(operator.add, [1, 2], [3, 4]))[1] * x|next(iter([]), 3) * x|list(filter(None, [0, 2]))[0] * x|sum([[1], [2]], [])[1] * x|min([], default=2) * x|max([1, -3], key=abs) * x|list(iter([4, 5]))[1] * x|max("ab", "b") == "b" and x + 1
any(i > 1 for i in range(3)) and x + 1|all(i > 1 for i in range(3)) or x + 1|dict(zip("ab", [1, 2]))["b"] * x|[i for i in range(10) if i % 2 if i > 4][0] * x|{i: j for i, j in enumerate("ab")}[1] == "b" and x + 1|[(a, b) for a in (1, 2) for b in (3, 4)][2][0] * x|sum(i * j for i, j in zip((1, 2), (3, 4))) * x|[y2 := x + 1, y2 * 2][1]
list(range(5, 0, -2))[1] * x|range(10)[3] * x|range(1, 9, 2).index(5) * x|len(range(3, 9)) * x|3 in range(5) and x + 1|range(3) == range(0, 3) and x + 1|range(10)[2:5][1] * x|tuple(range(2)) == (0, 1) and x + 1|slice(1, 3).start * x|list("ab")[slice(1, None)] == ["b"] and x + 1
operator.itemgetter(1)([1, 2]) * x|operator.attrgetter("a")(SPACE) * x|operator.methodcaller("upper")("a") == "A" and x + 1|operator.itemgetter(0, 1)([1, 2])[1] * x|operator.mul(x, y)|operator.getitem([1, x], 1) + 1|operator.contains([1], 1) and x + 1|operator.truediv(3, 2) * x|operator.not_(False) and x + 1|operator.index(3) * x
functools.reduce(lambda a, b: a * b, [2, 3], 1) * x|functools.partial(spread, 2, b=3)() * x|functools.partial(functools.partial(spread, 2), 3)(c=1) * x|cached_number(4) * x|sorted([3, 1], key=functools.cmp_to_key(lambda a, b: b - a))[0] * x|Cached(x).twice|Cached(x).half()|Ordered(1) >= Ordered(0) and x + 1|functools.partial(spread, 2).args[0] * x
spread(x, 2)|spread(x, b=2, c=1)|spread(x, 2, k=1, l=2)|plus_one(x)|minus_one(x)|(lambda *a, **k: a[0] + len(k))(x, z=1)|(lambda a, /, b=2, *, c=1: a * b + c)(x)|plus_one.__name__ == "plus_one" and x + 1|spread.__kwdefaults__["c"] * x|(lambda f: f(f, 3))(lambda f, n: 1 if n < 2 else n * f(f, n - 1)) * x
Vector(x, y)[1] + 1|(Vector(x, y) + Vector(y, x)).a|(2 * Vector(x, y)).b|(Vector(1, 2) @ Vector(3, 4)) * x|(-Vector(x, y)).a|abs(Vector(x, y))|Vector(1, 2) < Vector(2, 0) and x + 1|Vector(1, 2) == Vector(1, 5) and x + 1|len({Vector(1, 2): 1, Vector(1, 3): 2}) * x|[*Vector(x, y)][1] + 1|3 in Vector(3, 4) and x + 1
repr(Vector(1, 2)) == "Vector(1, 2)" and x + 1|f"{Vector(1, 2):q}" == "<q>" and x + 1|int(Vector(3, 2)) * x|[5, 6][Vector(0, 0)] * x|list(reversed(Vector(1, 2)))[0] * x|len(Vector(1, 2)) * x|max(Vector(1, 9)) * x|list(Countdown(3))[0] * x|sum(Indexed()) * x|[a for a in Indexed()][2] * x|Weather(280.0).celsius * x|WEATHER.celsius * x
Recorded().no_name * x|Square(3).area * x|Square(x).described()|isinstance(Square(1), Shape) and x + 1|Both().who() == ["both", "left", "right"] and x + 1|Both.__mro__[1] is Left and x + 1|Registered.known["Child"] * x|Typed(x).v + 1|Once(x).v + 1|type(Square(2)).__name__ == "Square" and x + 1|issubclass(Child, (int, Registered)) and x + 1
Ranked(2).double * x|Ranked(1) < Ranked(2) and x + 1|dataclasses.asdict(Ranked(1))["rank"] * x|dataclasses.astuple(Key(1))[1] == "k" and x + 1|Key(1) == Key(1) and x + 1|{Key(1): 3}[Key(1)] * x|[f.name for f in dataclasses.fields(Key)][1] == "b" and x + 1|dataclasses.is_dataclass(POINT) and x + 1|Ranked(1, [4]).tags[0] * x|dataclasses.replace(Key(1), a=5).a * x
Weekday.FRIDAY * x|Weekday(1).name == "MONDAY" and x + 1|Weekday["FRIDAY"].value * x|len(Weekday) * x|[d.value for d in Weekday][1] * x|Weekday.MONDAY < Weekday.FRIDAY and x + 1|Mode.READ in (Mode.READ \| Mode.WRITE) and x + 1|(Mode.READ \| Mode.WRITE).value * x|isinstance(Weekday.MONDAY, int) and x + 1|Mode.READ is Mode(1) and x + 1
torch.tensor([1.0, 2.0]) + x[0, :2]|torch.tensor(x.shape[0]) + x|x.new_zeros(2) + x[0, :2]|torch.zeros_like(x, dtype=torch.float64) + x|x.shape == (3, 4) and x + 1|tuple(x.shape)[1] * x|x.shape[:1] + (2,) == (3, 2) and x + 1|x.stride()[0] * x|x.is_floating_point() and x + 1|torch.finfo(x.dtype).eps * x|x.shape.numel() * x|x.dtype == torch.float32 and x + 1
[r.sum() for r in x][2]|(lambda a, b, c: a + c)(*x)|x.size()[0] * x|x[x.shape[0] - 1]|x[(0, 1)]|x[1, None, ..., 2:]|x[torch.arange(2), :2]|x[:, [True, False, True, False]]|x[-1][-1] + 1|x.T[0:2]|torch.cat([*x.split(1)], 1)|torch.stack([x[i] for i in range(x.shape[0])])|x.expand_as(y) + 1|torch.broadcast_tensors(x, y[0])[1]
x.detach() + 1|x.clone().requires_grad_(False)|x.type(torch.float64)|x.to("cpu") + 1|x.to(y) + 1|x.double().dtype == torch.float64 and x + 1|torch.get_default_dtype() is torch.float32 and x + 1|torch.promote_types(torch.int32, torch.float32) == torch.float32 and x + 1|torch.Size([1, 2])[1] * x|torch.device("cpu") == x.device and x + 1|getattr(torch, "relu")(x)|torch.nn.functional.__dict__["relu"](x)
[p.sum() for p in MODEL.parameters()][0]|sum(p.numel() for p in MODEL.parameters()) * x|dict(MODEL.named_parameters())["0.bias"].sum() + x|[n for n, _ in MODEL.named_children()][1] == "1" and x + 1|[m for m in MODEL.modules()][1](x)|isinstance(MODEL[1], torch.nn.ReLU) and x + 1|MODEL[0].in_features * x|LINEAR.bias.shape[0] * x|MODEL[:1](x)|getattr(MODEL, "0")(x)|LINEAR.forward(x)|LINEAR.__call__(x)|type(MODEL[0]).__name__ == "Linear" and x + 1
copy.copy([x, 1])[0] + 1|copy.deepcopy({"a": [1]})["a"][0] * x|id(SPACE) == id(SPACE) and x + 1|callable(x.sum) and x + 1|isinstance(x, (int, torch.Tensor)) and x + 1|type(x) is torch.Tensor and x + 1|hash("a") == hash("a") and x + 1|bool([]) or x + 1|bool(SPACE) and x + 1|None or x + 1|(x if x is not None else y) + 1|x is x and x + 1|x is y or x + 1
""")  # fmt: skip


@row()
def loops_nested(x, y):
    for i in range(3):
        for j in range(3):
            if j == i:
                continue
            if i + j > 3:
                break
            x = x + i * j
        else:
            x = x * 2
    return x


@row()
def loop_true(x, y):
    n = 0
    while True:
        n += 1
        x = x + n
        if n == 4:
            return x


@row()
def augmented(x, y):
    a, b, c = 7, 2.0, [1]
    a //= 2
    a **= 2
    a %= 5
    a <<= 2
    a |= 1
    a &= 7
    a ^= 2
    a >>= 1
    b /= 4
    b -= 1
    c += [2]
    c *= 2
    x = x * 1
    x /= 2
    x **= 2
    return x * a + b + len(c)


@row()
def slices_of_lists(x, y):
    a = list(range(8))
    a[1:3] = [9]
    a[::3] = [0, 0, 0]
    del a[-2:]
    del a[0]
    return x * a[0] + len(a)


@row()
def sorts(x, y):
    a = [3, 1, 2]
    a.sort()
    b = [("b", 1), ("a", 2)]
    b.sort(key=lambda p: p[0], reverse=True)
    return x * a[0] + b[0][1]


@row()
def deques(x, y):
    q = collections.deque()
    q.append(x)
    q.appendleft(y)
    q.extend([x + 1])
    q.rotate(1)
    return q.pop() + q.popleft() + len(q)


@row()
def ordered_dicts(x, y):
    d = collections.OrderedDict(a=x, b=y)
    d.move_to_end("a")
    k, v = d.popitem()
    return v + len(k)


@row()
def default_dicts(x, y):
    d = collections.defaultdict(list)
    d["a"].append(x)
    d["a"].append(y)
    n = collections.defaultdict(int)
    n["z"] += 2
    return d["a"][1] + len(d["a"]) + n["z"]


@row()
def dict_views(x, y):
    d = {"a": x, "b": y}
    total = x * 0
    for k in d:
        total = total + d[k]
    for k, v in d.items():
        total = total + v * len(k)
    return total, list(d.keys()), len(d.values())


@row()
def dict_of_tuples(x, y):
    d = {(1, "a"): x, (2, "b"): y}
    return d[1, "a"] + d[(2, "b")]


@row()
def tuples_as_keys(x, y):
    d = {(1, "a"): x, (2, "b"): y}
    a = x + 1 if (1, "a") in d else y
    b = a * 2 if (1, "a") in {(1, "a"), (2, "b")} else y
    return b * 3 if (9, "a") in d or (1, "b") in {(1, "a"), (2, "b")} else b


@row()
def sets(x, y):
    s = {1, 2}
    s |= {3}
    s &= {2, 3}
    s -= {3}
    s ^= {5}
    s.remove(5)
    return x * s.pop()


@row()
def cells(x, y):
    functions = []
    for i in range(3):
        functions.append(lambda a, i=i: a * i)
    late = [lambda a: a + i for _ in range(2)]
    return functions[1](x) + functions[2](y) + late[0](x)


@row()
def nonlocal_twice(x, y):
    n = 0

    def outer():
        nonlocal n
        n += 1

        def inner():
            nonlocal n
            n += 10
            return n

        return inner

    return x * outer()() + n


@row()
def mutual_recursion(x, y):
    def even(n):
        return True if n == 0 else odd(n - 1)

    def odd(n):
        return False if n == 0 else even(n - 1)

    return x + 1 if even(6) else y


@row()
def default_is_shared(x, y):
    def keep(v, kept=[]):  # noqa: B006
        kept.append(v)
        return kept

    keep(1)
    return x * len(keep(2))


@row()
def argument_forms(x, y):
    def f(a, b=2, /, c=3, *rest, d=4, **more):
        return a * b + c + len(rest) + d + more.get("e", 0)

    return f(x) + f(x, 1) + f(x, 1, 2, 3, d=0, e=5) + f(*[x, 1], **{"c": 9})


@row()
def decorated(x, y):
    def scale(k):
        def decorate(function):
            @functools.wraps(function)
            def called(*args):
                return function(*args) * k

            return called

        return decorate

    @scale(3)
    @scale(2)
    def f(a):
        return a + 1

    return f(x)


@row()
def generator_of_pairs(x, y):
    def pairs():
        for i, v in enumerate((x, y)):  # noqa: UP028
            yield i, v

    return sum(i * v for i, v in pairs())


@row()
def generator_left_early(x, y):
    def numbers():
        n = 0
        while True:
            yield n
            n += 1

    total = 0
    for n in numbers():
        if n > 3:
            break
        total += n
    return x * total


@row()
def generators_in_turn(x, y):
    def g(k):
        for i in range(3):
            yield k * i

    a, b = g(x), g(y)
    return next(a) + next(b) + next(a) + next(b)


@row()
def generator_thrown(x, y):
    def g():
        try:
            yield 1
        except ValueError:
            yield 5

    it = g()
    next(it)
    return x * it.throw(ValueError("v"))


@row()
def generator_closed(x, y):
    log = []

    def g():
        try:
            yield 1
            yield 2
        finally:
            log.append(3)

    it = g()
    next(it)
    it.close()
    return x * log[0]


@row()
def generator_delegates(x, y):
    def inner():
        got = yield x
        return got * 2

    def outer():
        result = yield from inner()
        yield result + 1

    it = outer()
    next(it)
    return it.send(y)


@row()
def generator_expression_nested(x, y):
    return sum(sum(a * b for b in (1, 2)) for a in (x, y))


@row()
def manager_with_exception(x, y):
    @contextlib.contextmanager
    def caught():
        try:
            yield 3
        except KeyError:
            pass

    with caught() as k:
        x = x * k
        raise KeyError("k")
    return x + y


@row()
def managers(x, y):
    with Manager() as a, contextlib.nullcontext(4) as b, contextlib.suppress(KeyError):
        x = x + b + len(a.log)
        {}["k"]
    return x + len(a.log)


@row()
def exit_stack(x, y):
    log = []
    with contextlib.ExitStack() as stack:
        stack.callback(log.append, 1)
        m = stack.enter_context(Manager())
        x = x + 1
    return x + len(log) + len(m.log)


@row()
def grad_modes(x, y):
    with torch.no_grad():
        a = x * 2
        with torch.enable_grad():
            b = x * 3
        with torch.inference_mode(False):
            c = x * 4
    return a + b + c, torch.is_grad_enabled()


@row()
def return_in_finally(x, y):
    try:
        raise KeyError("k")
    finally:
        return x + 1  # noqa: B012


@row()
def return_in_try(x, y):
    log = []
    try:
        return x + len(log), log
    finally:
        log.append(1)


@row()
def raised_again(x, y):
    try:
        try:
            raise KeyError("a")
        except KeyError:
            x = x + 1
            raise
    except KeyError as e:
        return x + len(e.args[0])


@row()
def exception_in_loop(x, y):
    for v in (1, 0, 2):
        try:
            x = x + 4 / v
        except ZeroDivisionError:
            continue
        finally:
            x = x + 1
    return x


class Coded(ValueError):
    def __init__(self, code):
        super().__init__(f"code {code}")
        self.code = code


@row()
def exception_with_attributes(x, y):
    try:
        raise Coded(4)
    except ValueError as e:
        return x * e.code + len(str(e))


@row()
def exception_from(x, y):
    try:
        try:
            int("a")
        except ValueError as e:
            raise KeyError("k") from e
    except KeyError as e:
        return x + (1 if isinstance(e.__cause__, ValueError) else 2)


@row()
def exception_of_a_method(x, y):
    try:
        [].pop()
    except IndexError:
        x = x + 1
    try:
        {}.pop("a")
    except KeyError:
        x = x + 2
    try:
        None.a  # noqa: B018
    except AttributeError:
        x = x + 3
    return x


exec("""
@row()
def match_class(x, y):
    match Point(3, x):
        case Point(x=0):
            return y
        case Point(x=k, y=v) if k > 2:
            return v * k
    return y


@row()
def match_or_and_star(x, y):
    match (1, 2, 3):
        case (0, *_) | (9, *_):
            return y
        case (a, *rest) if len(rest) == 2:
            return x * a + rest[-1]
    return y


@row()
def match_types(x, y):
    total = x
    for v in (1, "s", [2], None, 2.5):
        match v:
            case int(n):
                total = total + n
            case str():
                total = total * 2
            case [n]:
                total = total + n
            case None:
                total = total - 1
            case _:
                total = total * 3
    return total


@row()
def match_nested(x, y):
    match {"k": [1, {"v": x}]}:
        case {"k": [_, {"v": v}], **rest} if not rest:
            return v + 1
    return y
""")  # noqa: S102


@row()
def attributes_by_name(x, y):
    s = types.SimpleNamespace(a=1)
    name = "b"
    setattr(s, name, x)
    delattr(s, "a")
    return getattr(s, name) + (1 if hasattr(s, "a") else 2)


@row()
def recorded_writes(x, y):
    r = Recorded()
    r.a = x
    r.b = 3
    return r.a * len(r.names)


@row()
def vectors(x, y):
    v = Vector(x, y)
    v += Vector(1, 1)
    v[1] = 4
    del v[0]
    return x * v.b + v.a


@row()
def descriptor_set(x, y):
    w = Weather(280.0)
    w.celsius = 10.0
    return x * w.kelvin


@row()
def bound_methods(x, y):
    method = Square(3).described
    functions = {"a": method, "b": Square(x).described}
    return functions["a"]() * functions["b"]()


@row()
def class_attributes(x, y):
    s = Square(2)
    s.side = 4
    return x * s.area + (1 if "side" in s.__dict__ else 2)


@row()
def written_objects(x, y):
    POINT.last = x + 1
    WEATHER.celsius = 20.0
    QUEUE.append(3)
    QUEUE.popleft()
    NAMES.add("q")
    NESTED["a"][1]["b"] = 2
    SPACE.c = [1]
    return x * len(QUEUE) + POINT.last


@row()
def written_in_two_places(x, y):
    shared = [x]
    pair = {"a": shared, "b": shared}
    pair["a"].append(y)
    return pair["b"][1] + len(shared), pair["a"] is pair["b"]


@row()
def tensor_writes(x, y):
    z = torch.zeros(3, 4)
    z[0] = x[0]
    z[1, 2:] += 3
    z[:, 0].fill_(7)
    z.view(-1)[5:7].mul_(2)
    z[z > 6] = 0
    torch.add(x, y, out=z)
    return z


@row()
def tensor_methods_by_name(x, y):
    total = x
    for name in ("relu", "sigmoid", "abs"):
        total = total + getattr(y, name)()
    return total


@row()
def tensor_unpacked(x, y):
    a, *rest = x
    b, c = y[0, :2]
    return a + len(rest), b + c


@row()
def chained_results(x, y):
    a = b = x + 1
    a, b = b * 2, a
    (c, d), [e] = (a, b), [y]
    return c + d + e


@row()
def module_state(x, y):
    LINEAR.calls = getattr(LINEAR, "calls", 0) * 0 + 1
    return LINEAR(x) * LINEAR.calls


@row()
def star_expressions(x, y):
    a = [1, 2]
    b = (*a, 3, *"xy")
    c = {**{"p": 1}, **dict(q=2)}
    return x * len(b) + c["q"]


@row()
def walrus_in_loop(x, y):
    values = iter([3, 2, 0, 5])
    while n := next(values):
        x = x + n
    return x


@row()
def conditional_chain(x, y):
    k = len(x.shape)
    return x if k == 1 else y if k == 3 else x * y if k == 2 and not x.requires_grad or k > 9 else None


@row()
def delete_things(x, y):
    d, a = {"k": 1, "j": x}, [1, x]
    del d["k"], a[0]
    z = 3
    del z
    return d["j"] + a[0]


@row()
def global_objects_in_turn(x, y):
    for o in (POINT, SPACE):
        x = x + getattr(o, "x", 1) + getattr(o, "a", 0)
    return x


# Graph breaks


@row(3, 2)
def break_two_kinds(x, y):
    z = x + 1
    print(end="")
    n = int((z > 1000).sum())
    return z * (n + 2)


@row(2, 1)
def break_in_nested_function(x, y):
    def inner(a):
        return a + 1

    z = inner(x)
    torch._dynamo.graph_break()
    return inner(z) * 2


@row(2, 1)
def break_with_containers(x, y):
    kept, table = [x + 1], {"a": y}
    torch._dynamo.graph_break()
    kept.append(table["a"] * 2)
    return kept[0] + kept[1]


@row(2, 1)
def break_with_object(x, y):
    p = Point(x + 1, 3)
    torch._dynamo.graph_break()
    p.y += 1
    return p.total()


@row(2, 1)
def break_in_grad_mode(x, y):
    with torch.no_grad(), torch.enable_grad():
        z = x * 2
        torch._dynamo.graph_break()
        return z * 3


@row(2, 1)
def break_at_warning(x, y):
    z = x + 1
    with warnings.catch_warnings():
        pass
    return z * 2


@row(2, 1)
def break_at_bool(x, y):
    z = x + 1
    return z * 2 if bool((z > 1000).any()) is False else y


@row(2, 1)
def break_at_float(x, y):
    k = float(x.sum())
    return y * k


@row(2, 1)
def break_at_numpy(x, y):
    a = (x + 1).detach().numpy()
    return y * float(a[0, 0])


@row(2, 1)
def break_at_list(x, y):
    sizes = (x[:2, 0] * 0 + 2).long().tolist()
    return y.split(sizes, 1)[1]


@row(2, 1)
def break_at_mask(x, y):
    z = x + 1
    return z[z > 0].sum() + 1


@row(2, 1)
def break_at_assert(x, y):
    z = x + 1
    assert z.sum() < 1e6, "too large"
    return z * 2
