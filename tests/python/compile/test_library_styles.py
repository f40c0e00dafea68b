"""Python as libraries of models write it: containers, contexts and descriptors that are parts of one graph."""

from __future__ import annotations

import collections
import contextvars
import functools
import inspect
import types
import warnings

import numpy as np
import pytest

import teletensor as torch
from teletensor._dynamo.exc import Unsupported
from teletensor._dynamo.utils import counters


def three():
    return torch.arange(3.0)


VARIABLE = contextvars.ContextVar("VARIABLE", default=2)
EMPTY = contextvars.ContextVar("EMPTY")


@pytest.fixture(autouse=True)
def _begin():
    torch._dynamo.reset()
    counters.clear()


def whole(function):
    return torch.compile(function, fullgraph=True)


class Attributes(dict):
    """A dict whose entries are attributes."""

    __getattr__ = dict.__getitem__
    __setattr__ = dict.__setitem__
    __delattr__ = dict.__delitem__


def test_a_dict_of_attributes():
    config = Attributes(scale=2)

    def f(x):
        made = Attributes(x=x, n=config.scale)
        made.y = made.x * made.n
        copied = made.copy()
        del made.n
        return made, copied, type(copied), "n" in made

    made, copied, cls, has_n = whole(f)(three())
    assert type(made) is Attributes and list(made) == ["x", "y"] and not has_n
    assert cls is dict and list(copied) == ["x", "n", "y"] and made["y"].tolist() == [0, 2, 4]
    compiled = torch.compile(lambda x: x * config.scale)
    assert compiled(three()).tolist() == [0, 2, 4]
    config.scale = 3
    assert compiled(three()).tolist() == [0, 3, 6]
    with pytest.raises(KeyError):
        torch.compile(lambda x: x * config.missing)(three())


class Messages(torch.nn.Module):
    """A layer that passes the arguments which its message() names."""

    def __init__(self):
        super().__init__()
        self.parameters_of = {"message": inspect.signature(self.message).parameters}
        self.settings = types.MappingProxyType({"scale": 2.0})

    def message(self, x_j, x_i):
        return x_j - x_i

    def forward(self, x):
        given = {"x_i": x, "x_j": x * self.settings["scale"], "other": x}
        names = self.parameters_of["message"]
        return self.message(**{k: v for k, v in given.items() if k in names}), self.settings


def test_mapping_proxies():
    model = Messages()
    result, settings = whole(model)(three())
    assert result.tolist() == [0, 1, 2] and settings is model.settings
    content = {"scale": 3.0}
    model.settings = types.MappingProxyType(content)
    compiled = torch.compile(model)
    assert compiled(three())[0].tolist() == [0, 2, 4]
    content["scale"] = 4.0
    assert compiled(three())[0].tolist() == [0, 3, 6]


def test_partials_of_partials_are_joined():
    def add(x, k, n=1):
        return x * k + n

    inner = functools.partial(add, k=2, n=5)
    assert functools.partial(inner, n=7).func is add

    def f(x):
        outer = functools.partial(inner, n=7)
        return outer(x), outer.keywords, outer.func is inner.func, outer

    got, keywords, is_same, outer = whole(f)(three())
    assert got.tolist() == [7, 9, 11] and keywords == {"k": 2, "n": 7} and is_same
    assert outer.func is add and outer.keywords == keywords
    assert functools.partial(inner, n=7).func is add  # the capture has not given `inner` a __dict__


def test_module_lists_from_the_end():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.ModuleList([torch.nn.Linear(3, 3), torch.nn.Identity(), torch.nn.Linear(3, 3)])

        def forward(self, x):
            for layer in reversed(self.layers):
                x = layer(x)
            for i, layer in enumerate(reversed(list(self.layers))):
                x = layer(x) * (i + 1)
            return x

    model = Model()
    torch.testing.assert_close(whole(model)(three()), model(three()))


def test_context_variables():
    compiled = torch.compile(lambda x: x * VARIABLE.get() + EMPTY.get(10), fullgraph=True)
    assert compiled(three()).tolist() == [10, 12, 14]
    token = VARIABLE.set(3)
    assert compiled(three()).tolist() == [10, 13, 16]
    VARIABLE.reset(token)
    token = EMPTY.set(0)
    assert compiled(three()).tolist() == [0, 2, 4]
    EMPTY.reset(token)
    assert compiled(three()).tolist() == [10, 12, 14]


def test_numbers_of_numpy():
    def f(x):
        return x * np.sqrt(4.0) + int(np.prod(x.shape)), np.log2(8), np.round(2.567, 1), np.mean([1, 2]), np.float32(3)

    want = f(three())
    got = whole(f)(three())
    torch.testing.assert_close(got[0], want[0])
    assert got[1:] == want[1:] and [type(v) for v in got] == [type(v) for v in want]
    with pytest.raises(Unsupported, match="numpy.clip.. returns a ndarray"):
        whole(lambda x: x * np.clip([1.0, 2.0, 3.0], 0, 2))(three())


def test_caught_warnings():
    def f(x):
        with warnings.catch_warnings(record=True) as log:
            size = len(x)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            y = x * size
        return y, log

    before = list(warnings.filters)
    got, log = whole(f)(three())
    assert got.tolist() == [0, 3, 6] and log == [] and warnings.filters == before

    def warns(x):
        with warnings.catch_warnings(record=True) as log:
            warnings.simplefilter("always")
            y = x * 2
            warnings.warn("seen", stacklevel=1)
        return y, [str(w.message) for w in log]

    compiled = torch.compile(warns)
    for _ in range(2):
        got, log = compiled(three())
        assert got.tolist() == [0, 2, 4] and log == ["seen"]
    assert warnings.filters == before
    with pytest.raises(Unsupported):
        whole(warns)(three())
    assert warnings.filters == before

    def raises(x):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            raise KeyError("k")

    with pytest.raises(KeyError):
        torch.compile(raises)(three())
    assert warnings.filters == before


def test_dicts_of_objects_after_writes():
    class Config:
        a = 1

    config = Config()
    config.b = 2

    def f(x):
        config.seen = x.shape
        found = dict(config.__dict__), vars(config).get("none"), config.__dict__["b"]
        del config.seen
        return x + found[2], found[0], hasattr(config, "seen"), vars(config)

    got, before, has, after = whole(f)(three())
    assert got.tolist() == [2, 3, 4] and before == {"b": 2, "seen": (3,)} and not has and after is config.__dict__ and after == {"b": 2}


class Processors(list):
    """Functions that are applied in order."""

    scale = 2

    def __call__(self, x):
        for each in self:
            x = each(x)
        return x * self.scale

    def add_twice(self, each):
        self.append(each)
        self.append(each)


class Noting(Processors):
    """A list whose writes are counted."""

    writes = 0

    def __setitem__(self, index, value):
        self.writes += 1
        super().__setitem__(index, value)

    def append(self, value):
        self.writes += 1
        super().append(value)


@pytest.mark.parametrize("cls", [Processors, Noting])
def test_objects_of_subclasses_of_list(cls):
    processors, reference = cls([torch.sin]), cls([torch.sin])

    def f(x, processors):
        y = processors(x) + len(processors)
        if len(processors) < 4:
            processors.add_twice(torch.cos)
            processors[0] = torch.neg
        return y, processors, processors[-1] is torch.cos, processors[:1]

    compiled = whole(f)
    for _ in range(3):
        got, want = compiled(three(), processors), f(three(), reference)
        torch.testing.assert_close(got[0], want[0])
        assert got[1] is processors and got[2:] == want[2:] and type(got[3]) is list
        assert list(processors) == list(reference) and vars(processors) == vars(reference)
    processors.pop()
    reference.pop()
    torch.testing.assert_close(compiled(three(), processors)[0], f(three(), reference)[0])


LAYERS = {torch.nn.Linear, torch.nn.ReLU}


def test_sets_of_classes_and_annotations():
    import typing

    def f(x, layer):
        def inner(a: typing.Optional[typing.Callable[[int], int]], b: dict[str, int], c: int | None = None) -> list[int]:  # noqa: UP045, UP006
            return a

        values = [3, 1]
        try:
            at = values.index(7)
        except ValueError as e:
            at = str(e)
        return inner(x, 1) + (type(layer) in LAYERS), at, frozenset([torch.nn.ReLU]) & LAYERS

    got, at, common = whole(f)(three(), torch.nn.Linear(2, 2))
    assert got.tolist() == [1, 2, 3] and at == "7 is not in list" and common == {torch.nn.ReLU}
    assert whole(f)(three(), torch.nn.Identity())[0].tolist() == [0, 1, 2]


class Point(collections.namedtuple("Point", "x y")):  # noqa: SLOT002
    """A named tuple with methods of all kinds."""

    @staticmethod
    def add(a, b):
        return a + b

    @classmethod
    def of(cls, x):
        return cls(x, x)


def test_named_tuples_and_ordered_dicts():
    def f(x):
        made = collections.OrderedDict.fromkeys(["a", "b"], x)
        made.move_to_end("a")
        point = Point.of(x)
        return point.add(*point), made, x.new(2, 3).shape, x.new(x.shape).shape

    got, made, *shapes = whole(f)(three())
    assert got.tolist() == [0, 2, 4] and type(made) is collections.OrderedDict and list(made) == ["b", "a"]
    assert shapes == [(2, 3), (3,)]


def test_legacy_constructors_of_tensors():
    def f(x):
        made = torch.Tensor([1, 2, 3]) + x, torch.FloatTensor([[1.0], [2]]), torch.LongTensor([0, 1]), torch.DoubleTensor([x.shape[0]])
        return *made, torch.Tensor(2, x.shape[0]).shape, torch.Tensor(x.shape).dtype

    want, got = f(three()), whole(f)(three())
    for a, b in zip(got[:4], want[:4], strict=True):
        torch.testing.assert_close(a, b)
    assert got[4:] == want[4:]
    with pytest.raises(Unsupported):
        whole(lambda x: torch.Tensor([x.sum(), 1.0]))(three())
    assert torch.compile(lambda x: torch.Tensor([x.sum(), 1.0]))(three()).tolist() == [3, 1]


def test_distributions():
    def f(x):
        normal, categorical = torch.distributions.Normal(x, torch.ones_like(x)), torch.distributions.Categorical(logits=x)
        return normal.log_prob(x * 2), categorical.log_prob(torch.tensor(1)), normal.entropy()

    torch.testing.assert_close(whole(f)(three()), f(three()))


def proxies():
    return [
        lambda x, d, p: (d.update(a=5.0), x * p["a"])[1], lambda x, d, p: (d.update(b=1.0), x * len(p))[1],
        lambda x, d, p: (d.pop("a"), x * ("a" in p))[1], lambda x, d, p: (d.update(b=1.0), list(p))[1],
        lambda x, d, p: (x * p["a"], d.update(a=7.0), x * p["a"])[2], lambda x, d, p: (x * p["a"], d.clear(), len(p))[2],
        lambda x, d, p: x * p["a"],
    ]  # fmt: skip


@pytest.mark.parametrize("index", range(len(proxies())))
def test_a_mappingproxy_of_a_dict_that_the_function_writes(index):
    function = proxies()[index]

    def results(f):
        values = {"a": 1.0}
        found = [f(three() + 1, values, types.MappingProxyType(values))]
        other = {"a": 2.0}
        found.append(f(three() + 1, other, types.MappingProxyType({"a": 3.0})))
        found.append(f(three() + 1, values | {"a": 3.0}, types.MappingProxyType(values | {"a": 3.0})))
        return [each.tolist() if isinstance(each, torch.Tensor) else each for each in found], values, other

    assert results(torch.compile(function)) == results(function)


def test_a_mappingproxy_of_the_attributes_of_an_object():
    class Config:
        def __init__(self):
            self.lr = 1.0
            self.view = types.MappingProxyType(vars(self))

        def set(self, value):
            self.lr = value

    def f(x, config):
        config.set(5.0)
        return x * config.view["lr"]

    assert torch.compile(f)(three(), Config()).tolist() == f(three(), Config()).tolist() == [0, 5, 10]


def test_texts_of_classes_that_change():
    class Named:
        """doc"""

    def f(x):
        return x * len(Named.__doc__) + len(Named.__name__) * 10 + len(Named.__qualname__) * 100 + len(Named.__module__) * 1000

    compiled = torch.compile(f)
    assert compiled(three()).tolist() == f(three()).tolist()
    for name in ("__doc__", "__name__", "__qualname__", "__module__"):
        setattr(Named, name, getattr(Named, name) + "x" * 3)
        assert compiled(three()).tolist() == f(three()).tolist()


def test_errors_of_numpy_in_later_calls():
    def f(x, n):
        return x * float(np.exp(np.float64(n)))

    compiled = torch.compile(f)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert compiled(three() + 1, 1000.0).tolist() == [np.inf] * 3
    with np.errstate(all="raise"), pytest.raises(FloatingPointError):
        compiled(three() + 1, 1000.0)


def test_a_partial_whose_inner_one_has_attributes():
    inner = functools.partial(torch.add, three())

    def f(x):
        joined = functools.partial(inner, x)
        return joined(), len(joined.args)

    compiled = torch.compile(f)
    assert compiled(three())[1] == f(three())[1] == 2
    inner.label = "sum"
    assert compiled(three())[1] == f(three())[1] == 1
