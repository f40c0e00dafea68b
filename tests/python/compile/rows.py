# ruff: noqa: E501
"""Functions of two tensors, with the numbers of graphs and graph breaks that their first call makes.

Made from what the language has: instructions, kinds of values, side effects, exceptions. tests/conformance/compile_rows.py runs
the same functions with PyTorch.
"""

from __future__ import annotations

import collections  # noqa: F401 - of the expressions below, as are others
import contextlib
import dataclasses
import enum
import functools
import itertools  # noqa: F401
import math  # noqa: F401
import operator  # noqa: F401
from typing import Generic, NamedTuple, TypeVar

import teletensor as torch

ROWS: list[tuple] = []  # (function, graphs, breaks)
SCALE = 3.0
TABLE = {"a": 2.0, "b": 4.0}
LIST = [1.0, 2.0]
COUNT = 0


def row(graphs: int = 1, breaks: int = 0):
    def add(function):
        ROWS.append((function, graphs, breaks))
        return function

    return add


def helper(x, k=2, *rest, flag=False, **kw):
    return x * k + len(rest) + (1 if flag else 0) + kw.get("z", 0)


class Color(enum.Enum):
    RED = 1
    BLUE = 2


class Pair(NamedTuple):
    left: object
    right: object


T = TypeVar("T")


class GenericPair(NamedTuple, Generic[T]):
    left: T
    right: T

    def total(self):
        return self.left + self.right


class _Shaped(type):
    def __instancecheck__(cls, instance):
        return hasattr(instance, "shape")


class Shaped(metaclass=_Shaped):
    pass


@dataclasses.dataclass
class Point:
    x: object
    y: object = 2

    def total(self):
        return self.x + self.y


@dataclasses.dataclass(frozen=True)
class Frozen:
    x: float


class Base:
    factor = 2

    def __init__(self, v):
        self.v = v

    def get(self):
        return self.v * self.factor

    @property
    def twice(self):
        return self.v * 2

    @twice.setter
    def twice(self, value):
        self.v = value / 2

    @classmethod
    def make(cls, v):
        return cls(v)

    @staticmethod
    def add(a, b):
        return a + b

    def __call__(self, x):
        return x + self.v

    def __getitem__(self, i):
        return self.v * i

    def __len__(self):
        return 3

    def __add__(self, other):
        return self.v + other

    def __radd__(self, other):
        return other + self.v

    def __eq__(self, other):
        return isinstance(other, Base)

    __hash__ = None

    def __iter__(self):
        yield self.v
        yield self.v + 1

    def __contains__(self, x):
        return x == 3

    def __bool__(self):
        return True


class Derived(Base):
    def get(self):
        return super().get() + 1


class Slots:
    __slots__ = ("a",)

    def __init__(self, a):
        self.a = a


class Manager:
    def __init__(self):
        self.log = []

    def __enter__(self):
        self.log.append(1)
        return self

    def __exit__(self, kind, value, trace):
        self.log.append(2)
        return kind is not None and issubclass(kind, KeyError)


@contextlib.contextmanager
def managed(k):
    yield k * 2


class Meta:
    def __getattr__(self, name):
        if name == "scale":
            return 5.0
        raise AttributeError(name)


OBJECT = Base(3.0)


SCOPES: list[dict] = []  # the global variables of functions made from text


def make_tensors():
    global LINEAR, MODEL
    LINEAR = torch.nn.Linear(4, 4)
    MODEL = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 4))
    for scope in SCOPES:
        scope.update(LINEAR=LINEAR, MODEL=MODEL)


make_tensors()


def gen(x):
    for i in range(3):
        yield x + i


def _simple(text: str, names: dict):
    """A row of one expression of the names of a module."""
    scope = {**globals(), **names}
    SCOPES.append(scope)
    exec(f"def f(x, y):\n    return {text}", scope)  # noqa: S102
    scope["f"].__qualname__ = text
    ROWS.append((scope["f"], 0 if text in ("(x, y)", "x if Color.RED is Color.RED else y") else 1, 0))


def add_expressions(names: dict, texts: str) -> None:
    """A row for each of the expressions, separated by `|` and lines; the operator is written with a backslash."""
    for line in texts.strip().splitlines():
        for part in line.replace("\\|", "\0").split("|"):
            _simple(part.replace("\0", "|"), names)


add_expressions(globals(), """
x + y|x - y|x * y|x / y|x // (y.abs() + 1)|x % (y.abs() + 1)|x.abs() ** 2|x @ y.T|-x|+x|~(x > 0)|abs(x)|x < y|x <= y|x == y|x != y|x > y|x >= y
(x > 0) & (y > 0)|(x > 0) \\| (y > 0)|(x > 0) ^ (y > 0)|2 + x|2 - x|3 / (x.abs() + 1)|x + True
x[0]|x[1:]|x[:, 1]|x[..., 0]|x[None]|x[::2, 1:3]|x[-1, -1]|x[[0, 1]]|x[torch.tensor([0, 1])]
x.shape[0] * x|x.size(0) + x|x.dim() + x|x.ndim * x|x.numel() * x|len(x) * x|x.T|x.mT|x.dtype.is_floating_point * x
x.to(torch.float64)|x.float()|x.view(-1)|x.reshape(4, -1)|x.permute(1, 0)|x.sum()|x.sum(0, keepdim=True)|x.max(1).values|x.max(1)[1]|torch.max(x, 1).indices
torch.cat([x, y])|torch.stack((x, y))|torch.where(x > 0, x, y)|torch.zeros(3) + x[:, :3].sum()|torch.ones_like(x) * y|torch.arange(4) + x
torch.nn.functional.relu(x)|torch.nn.functional.softmax(x, dim=-1)|torch.nn.functional.layer_norm(x, (4,))|torch.nn.functional.gelu(x)
torch.einsum("ij,kj->ik", x, y)|torch.linalg.norm(x)|torch.split(x, 2)[0]|x.chunk(2, 1)[1]|x.unbind(0)[1]|torch.full((2,), 3.0) + x[0, :2]
(x, y)|[x + 1, y]|{"a": x + 1, "b": [y]}|((x + 1,), [y, {"k": x}])|(x + 1, 3, "s", None)|{1: x + 1}
[x + i for i in range(3)]|sum([x + i for i in range(3)])|[a for a in x]|{k: x * v for k, v in TABLE.items()}|[x * v for v in LIST if v > 1]|tuple(x + i for i in (1, 2))
max(1, 2) * x|min([3, 1]) * x|sorted([3, 1, 2])[0] * x|len("abc") * x|abs(-2) * x|round(2.6) * x|int("3") * x|float("1.5") * x|bool(1) * x|str(3) == "3" and x + 1
x * SCALE|x * TABLE["a"]|x * LIST[1]|x * math.pi|x * math.sqrt(4.0)|x * OBJECT.v|OBJECT.get() * x|OBJECT(x)|OBJECT[2] * x|len(OBJECT) * x|OBJECT + x|x + OBJECT.twice
x * (Color.RED.value)|x if Color.RED is Color.RED else y|x * Color(2).value|x if Color.RED == Color.BLUE else y + 1
helper(x)|helper(x, 3)|helper(x, 3, 4, 5)|helper(x, flag=True)|helper(x, z=4)|helper(*(x, 2))|helper(x, **{"k": 4})|helper(*[x], **{"flag": True, "z": 1})
(lambda a: a + y)(x)|(lambda a, b=2: a * b)(x)|functools.partial(helper, k=5)(x)|functools.partial(helper, x)(3)|functools.reduce(operator.add, [x, y, x])
list(map(lambda a: a + 1, [x, y]))[1]|list(filter(lambda a: a > 1, [1, 2, 3]))[0] * x|[a * b for a, b in zip([x, y], [2, 3])][1]|[i * a for i, a in enumerate([x, y])][1]
list(reversed([x, y + 1]))[0]|any([False, True]) * x|all([True, False]) * x + y|list(itertools.chain([x], [y + 1]))[1]|list(range(3))[2] * x|[*[x], *(y + 1,)][1]
Pair(x + 1, y).left|Pair(x, y + 1)[1]|Point(x).total()|Point(x, y).total()|dataclasses.replace(Point(1, 2), x=3).x * x|Frozen(2.0).x * x
Base(2.0).get() * x|Derived(2.0).get() * x|Base.make(3.0).v * x|Base.add(x, y)|Derived.factor * x|Base(x).twice|Slots(x + 1).a|Base(1.0) == Base(2.0) and x + 1
isinstance(x, torch.Tensor) and x + 1|isinstance(OBJECT, Base) and x + 2|isinstance(3, (int, str)) and x + 1|issubclass(Derived, Base) and x + 1|type(OBJECT) is Base and x + 1
hasattr(OBJECT, "v") and x + 1|hasattr(OBJECT, "w") or x + 1|getattr(OBJECT, "w", 2.0) * x|getattr(OBJECT, "v") * x|callable(helper) and x + 1|Meta().scale * x
x + 1 if x.shape[0] == 3 else y|x + 1 if 3 in (1, 2, 3) else y|x + 1 if "a" in TABLE else y|x + 1 if 3 not in [1] else y|x + 1 if None is None else y|not False and x + 1
LINEAR(x)|MODEL(x)|MODEL[0](x)|LINEAR.weight + x[0]|torch.nn.functional.linear(x, LINEAR.weight)|MODEL.training and x + 1|len(MODEL) * x|[m for m in MODEL][0](x)
f"{3} and {2.5:.1f} {'s'!r}" == "3 and 2.5 's'" and x + 1|"%d-%s" % (3, "a") == "3-a" and x + 1|"{} {}".format(1, 2) == "1 2" and x + 1|"-".join(["a", "b"]) == "a-b" and x + 1
"AbC".lower() == "abc" and x + 1|"a,b".split(",")[1] == "b" and x + 1|"abc"[1] == "b" and x + 1|"ab" + "c" == "abc" and x + 1|"abc".startswith("a") and x + 1
{1, 2} \\| {3} == {1, 2, 3} and x + 1|{1, 2} & {2} == {2} and x + 1|2 in {1, 2} and x + 1|len({1, 1, 2}) * x|frozenset([1]) == frozenset([1]) and x + 1
(1, 2) + (3,) == (1, 2, 3) and x + 1|[1] * 3 == [1, 1, 1] and x + 1|(1, 2) < (1, 3) and x + 1|[1, 2][-1] * x|[1, 2, 3][1:] == [2, 3] and x + 1|(x, y)[1] + 1
collections.OrderedDict(a=x)["a"] + 1|collections.defaultdict(list)["k"] == [] and x + 1|dict(a=x, b=y)["b"] + 1|dict([("a", x)])["a"] + 1|{**{"a": x}, "b": y}["a"] + 1|dict.fromkeys(["a"], 3)["a"] * x
TABLE.get("a") * x|TABLE.get("zz", 7.0) * x|list(TABLE) == ["a", "b"] and x + 1|list(TABLE.keys())[0] == "a" and x + 1|sum(TABLE.values()) * x|[k for k, v in TABLE.items()][1] == "b" and x + 1
7 // 2 * x|7 % 4 * x|2 ** 5 * x|(6 & 3) * x|(6 \\| 1) * x|(6 ^ 3) * x|(1 << 3) * x|(16 >> 2) * x|~5 * x|-3 * x|divmod(7, 2)[0] * x|pow(2, 3) * x
torch.is_grad_enabled() and x + 1|torch.get_default_dtype() == torch.float32 and x + 1|x.is_contiguous() and x + 1|x.device.type == "cpu" and x + 1|x.requires_grad or x + 1|torch.is_tensor(x) and x + 1
torch.add(x, y, alpha=2)|torch.Tensor.add(x, y)|x.add(y).mul(2)|x.masked_fill(x > 0, 0.0)|torch.clamp(x, min=0)|x.clamp(-1, 1)|x.expand(2, 3, 4)|x.flatten()|x.unsqueeze(0).squeeze(0)|torch.tril(x)
list(gen(x))[2]|next(gen(x))|sum(gen(x))|[*gen(x)][1]|list(Base(x))[1]|(3 in OBJECT) and x + 1|bool(OBJECT) and x + 1|max([x.sum(), y.sum()], key=lambda t: t.dim()) + 1
""")  # fmt: skip


@row()
def loop_for(x, y):
    for i in range(4):
        x = x + i * y
    return x


@row()
def loop_while(x, y):
    i = 0
    while i < 3:
        x = x * 2
        i += 1
        if i == 2:
            continue
    else:
        x = x + 1
    return x


@row()
def loop_break(x, y):
    for i in range(10):
        if i == 3:
            break
        x = x + y
    else:
        x = x * 100
    return x


@row()
def unpacking(x, y):
    (a, b), *c = (x, y), 1, 2
    d, *e, f = [1, 2, 3, 4]
    return a + b + c[1] + e[0] + d + f


@row()
def swap(x, y):
    x, y = y, x
    return x - y


@row()
def chained_comparison(x, y):
    return x + 1 if 1 < x.shape[0] <= 3 < 5 else y


@row()
def in_place(x, y):
    z = x.clone()
    z += y
    z.mul_(2)
    z[0] = 1.0
    z[:, 1] -= 1
    return z


@row()
def list_methods(x, y):
    a = [1, x]
    a.append(y)
    a.extend([1, 2])
    a.insert(0, 5)
    a.remove(1)
    a[0] = 5
    b = a.pop()
    a.reverse()
    c = a.copy()
    c.clear()
    del a[0]
    a[0:1] = [x + 1]
    return a, b, c, len(a), [1, 5].index(5)


@row()
def dict_methods(x, y):
    d = {}
    d["a"] = x
    d.update(b=y + 1)
    d.setdefault("c", 3)
    del d["a"]
    e = d.pop("c")
    d |= {"z": x}
    return d, e, "b" in d, len(d)


@row()
def set_methods(x, y):
    s = {1, 2}
    s.add(3)
    s.discard(1)
    s.update([7])
    return x * len(s), 3 in s, sorted(s)


@row()
def closures(x, y):
    k = 2

    def inner(a):
        nonlocal k
        k += 1
        return a * k + y

    return inner(x) + inner(y), k


@row()
def returned_function(x, y):
    z = x + 1

    def inner(a, b=3):
        return a + z * b

    return inner(y)


@row()
def global_write(x, y):
    global COUNT
    COUNT = COUNT + 1 if COUNT < 0 else 1
    return x + COUNT


@row()
def with_no_grad(x, y):
    with torch.no_grad():
        z = x * 2
    return z + y


@row()
def with_enable_grad(x, y):
    with torch.no_grad(), torch.enable_grad():
        return x * 2


@row()
def with_set_grad(x, y):
    with torch.set_grad_enabled(False):
        z = x + 1
    return z * 2


@row()
def decorated_no_grad(x, y):
    @torch.no_grad()
    def inner(a):
        return a * 2

    return inner(x) + y


@row()
def with_autocast(x, y):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        z = x @ y.T
    return z


@row()
def with_record_function(x, y):
    with torch.profiler.record_function("name"):
        return x + y


@row()
def with_manager(x, y):
    with Manager() as m:
        z = x + len(m.log)
    return z + len(m.log)


@row()
def with_suppressed(x, y):
    with Manager():
        x = x + 1
        raise KeyError("k")
    return x + y


@row()
def with_generator(x, y):
    with managed(x) as z:
        return z + y


@row()
def with_nullcontext(x, y):
    with contextlib.nullcontext():
        return x + y


@row()
def exception_caught(x, y):
    try:
        raise ValueError("no", 3)
    except (KeyError, ValueError) as e:
        return x + e.args[1]


@row()
def exception_finally(x, y):
    try:
        x = x + 1
    finally:
        x = x * 2
    return x


@row()
def exception_else(x, y):
    try:
        z = TABLE["zz"]
    except KeyError:
        z = 5
    else:
        z = 7
    finally:
        x = x + 1
    return x * z


@row()
def exception_from_callee(x, y):
    def fails(a):
        if a > 1:
            raise RuntimeError("too large")
        return a

    try:
        fails(3)
    except RuntimeError as e:
        return x + len(str(e))


@row()
def exception_nested(x, y):
    try:
        try:
            [][0]
        except IndexError:
            raise KeyError("k") from None
    except KeyError:
        return x + y


@row()
def exception_zero_division(x, y):
    try:
        return x * (1 // 0)
    except ZeroDivisionError:
        return x + 1


@row()
def exception_attribute(x, y):
    try:
        return OBJECT.nothing
    except AttributeError:
        return x + 1


class Mine(Exception):
    pass


@row()
def exception_user_class(x, y):
    try:
        raise Mine("a")
    except Exception as e:
        return x + len(e.args)


@row()
def exception_stop_iteration(x, y):
    it = iter([x])
    next(it)
    try:
        next(it)
    except StopIteration:
        return y + 1


@row()
def exception_assert(x, y):
    assert x.shape[0] == 3
    return x + y


@row()
def generator_send(x, y):
    def g():
        got = yield x
        yield got * 2

    it = g()
    next(it)
    return it.send(y)


@row()
def generator_yield_from(x, y):
    def g():
        r = yield from gen(x)
        yield r

    return sum(a for a in g() if a is not None)


@row()
def generator_return(x, y):
    def g():
        yield 1
        return 5

    def h():
        r = yield from g()
        yield r

    return list(h())[1] * x


@row()
def object_created(x, y):
    p = Point(x, 3)
    p.y = p.y + 1
    p.z = 5
    return p.total() + p.z


@row()
def object_property_set(x, y):
    b = Base(x)
    b.twice = y
    return b.v + 1


@row()
def object_returned(x, y):
    return Point(x + 1, y).total(), Pair(x, y + 2)


@row()
def object_deleted_attribute(x, y):
    p = Point(x, 1)
    p.z = 3
    del p.z
    return x + (1 if hasattr(p, "z") else 2)


@row()
def object_write(x, y):
    OBJECT.last = x + 1
    return x * 2


@row()
def list_write(x, y):
    LIST.append(3.0)
    LIST.pop()
    return x * LIST[-1]


@row()
def dict_write(x, y):
    TABLE["c"] = 9.0
    z = x * TABLE["c"]
    del TABLE["c"]
    return z


# Statements that Python 3.9 does not have.
exec("""
@row()
def match_value(x, y):
    match x.shape[0]:
        case 1:
            return x
        case 3 | 4:
            return x + 1
        case _:
            return y


@row()
def match_sequence(x, y):
    match [1, 2, x]:
        case [1, *rest]:
            return rest[1] + rest[0]
    return y


@row()
def match_mapping(x, y):
    match {"op": "add", "v": x}:
        case {"op": "mul"}:
            return y
        case {"op": "add", "v": v}:
            return v + y
""")  # noqa: S102


@row()
def walrus(x, y):
    if (n := x.shape[0]) > 2:
        return x + n
    return y


@row()
def star_args(x, y):
    def f(*args, **kwargs):
        return args[0] + kwargs["k"]

    return f(x, k=y)


@row()
def recursion(x, y):
    def fact(n):
        return 1 if n < 2 else n * fact(n - 1)

    return x * fact(4)


@row()
def imports(x, y):
    import math as m
    from math import floor

    return x * m.ceil(1.2) + floor(2.5)


@row()
def delete_local(x, y):
    z = x + 1
    w = z * 2
    del z
    return w


@row()
def nested_comprehension(x, y):
    return [[a * b for a in (x, y)] for b in (1, 2)]


@row()
def set_comprehension(x, y):
    return x * len({i % 2 for i in range(5)})


@row()
def input_returned(x, y):
    return x, x + 1


@row()
def aliases(x, y):
    a = [x]
    b = a
    b.append(y)
    return a[1] + 1, a is b


@row()
def many_results(x, y):
    v, i = torch.topk(x, 2)
    q, r = torch.linalg.qr(y)
    return v, i, q.abs(), r.abs()


@row()
def random_numbers(x, y):
    return torch.nn.functional.dropout(x, 0.0) + y


@row()
def wrapped(x, y):
    @functools.wraps(helper)
    def f(*a, **k):
        return helper(*a, **k)

    return f(x) + y


@row()
def numpy_scalar(x, y):
    import numpy as np

    return x * float(np.float64(2.5))


@row()
def function_attributes(x, y):
    def f(a):
        return a

    f.k = 3
    return f(x) * f.k


# Graph breaks


@row(2, 1)
def break_print(x, y):
    z = x + 1
    print(end="")
    return z * 2


@row(2, 1)
def break_item(x, y):
    n = x.sum().item()
    return y + n


@row(2, 1)
def break_branch(x, y):
    z = x.abs().sum()
    if z > -1:
        return y + 1
    return y - 1


@row(2, 1)
def break_call(x, y):
    z = x + 1
    torch._dynamo.graph_break()
    return z + y


@row(3, 2)
def break_twice(x, y):
    x = x + 1
    torch._dynamo.graph_break()
    x = x * 2
    torch._dynamo.graph_break()
    return x - y


@row(2, 1)
def break_in_with(x, y):
    with torch.no_grad():
        z = x + 1
        torch._dynamo.graph_break()
        z = z * 2
    return z


@row(2, 1)
def break_in_expression(x, y):
    return helper(x + 1, int((y > 1000).sum()))


@row(2, 1)
def break_keeps_closure(x, y):
    k = 1

    def inner(a):
        nonlocal k
        k += 1
        return a + k

    z = inner(x)
    torch._dynamo.graph_break()
    return inner(z), k


@row(2, 1)
def break_tolist(x, y):
    z = (x + 1).shape
    n = y[0].tolist()
    return x * n[0] + z[0]


@row(2, 1)
def break_nonzero(x, y):
    z = torch.nonzero(torch.ones_like(x))
    return z.sum() + 1


def _breaks_inside(a):
    b = a + 1
    torch._dynamo.graph_break()
    return b * 2


@row(4, 2)
def break_in_callee(x, y):
    z = x * 3
    z = _breaks_inside(z)
    return z + y


@row(2, 1)
def break_disabled(x, y):
    z = x + 1
    z = _disabled(z)
    return z * 2


@torch._dynamo.disable
def _disabled(a):
    return a + 10


@row()
def generic_named_tuple(x, y):
    pair = GenericPair(x * 2, y)
    return pair.total(), pair.left, pair


@row(1, 3)
def unread_iterators(x, y):
    z = [x + 1, y, x * 2]
    some, all_ = itertools.compress(z, [1, 0, 1]), itertools.takewhile(lambda v: v.dim() == 2, z)
    torch._dynamo.graph_break()
    return list(some), list(all_)


@row()
def instances_by_metaclass(x, y):
    return x + isinstance(x, Shaped), y + isinstance(3, Shaped), isinstance(Shaped(), Shaped)


@row()
def queries_of_devices(x, y):
    return x.cuda() if torch.cuda.is_available() and torch.accelerator.device_count() > 8 else x + torch.cuda.device_count()
