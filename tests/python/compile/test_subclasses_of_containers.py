"""Objects of subclasses of list, tuple and set that compiled functions make; extrema of tensors; the reasons of graph breaks."""

from __future__ import annotations

import pytest

import teletensor as torch
from teletensor._dynamo.exc import Unsupported


class Layers(list):
    def total(self):
        return sum(self)


class Tagged(list):
    def __init__(self, tag, items=()):
        super().__init__(items)
        self.tag = tag

    def __len__(self):
        return super().__len__() + 1


class Pair(tuple):
    def second(self):
        return self[1]


class Triple(tuple):
    def __new__(cls, a, b, c):
        return tuple.__new__(cls, (c, b, a))


class Names(set):
    def has(self, name):
        return name in self


class Frozen(frozenset):
    pass


def of_list(x):
    found = Layers([x, x * 2])
    found.append(x + 1)
    found.extend([x, x])
    found[1] = x * 3
    del found[0]
    found += [x]
    found.insert(0, x * 5)
    return found.total(), len(found), found[-1], found[1:3], [y for y in found]


def returned(x):
    found = Layers(y * 2 for y in (x, x + 1))
    found.name = "kept"
    return found


def with_init(x):
    found = Tagged("t", [x])
    return found, found.tag, len(found), bool(found), found + [x], [x] + found, found * 2


def of_tuple(x):
    pair, triple = Pair((x, x * 2)), Triple(1, 2, x)
    return pair.second(), pair, triple, triple[0] * triple[2], isinstance(pair, tuple), pair + (1,), Pair()


def of_set(x):
    names = Names(["a"])
    names.add("b")
    names.update(["c"])
    changed = Names(["a", "b", "c"])
    changed |= {"d"}
    changed.discard("a")
    frozen = Frozen([1, 2, 2])
    return x * len(changed), changed.has("c"), sorted(changed), frozen, names, names & {"b"}


def compared(x):
    return Layers([1, 2]) == [1, 2], Layers([1]) != Layers([1]), Pair((1, 2)) == (1, 2), Names([1]) == {1}, Layers() == Layers(), x + 1


def given_to_an_operator(x):
    return torch.cat(Layers([x, x])), torch.stack(Pair((x, x + 1))), torch.zeros(Pair((2, 3)))


def same(a, b):
    if isinstance(a, torch.Tensor):
        return torch.equal(a, b)
    if type(a) is not type(b) or getattr(a, "__dict__", {}).keys() != getattr(b, "__dict__", {}).keys():
        return False
    if isinstance(a, (list, tuple)):
        return list.__len__(list(a)) == list.__len__(list(b)) and all(same(p, q) for p, q in zip(a, b))
    return a == b


@pytest.fixture(autouse=True)
def _reset():
    torch._dynamo.reset()


@pytest.mark.parametrize("f", [of_list, returned, with_init, of_tuple, of_set, compared, given_to_an_operator])
def test_values_of_plain_python(f):
    compiled = torch.compile(f, fullgraph=True)
    for x in (torch.randn(3), torch.randn(3)):
        assert same(compiled(x), f(x))


def test_an_object_that_is_kept_outside():
    kept = []

    def f(x):
        made = Layers([x * 2])
        kept.append(made)
        made.append(3)
        return x + 1

    x = torch.randn(2)
    torch.compile(f, fullgraph=True)(x)
    assert type(kept[0]) is Layers and torch.equal(kept[0][0], x * 2) and kept[0][1] == 3


# ---- min() and max() of tensors


@pytest.mark.parametrize("value", [-0.5, 0.0, 0.3, 1.0, 7.0])
def test_extrema_of_tensors_without_dimensions(value):
    t = torch.tensor(value, requires_grad=True)
    for f in (lambda t: min(max(t, 0), 1), lambda t: max(t, t * 2, 0.25), lambda t: max([t, -t]) * 2, lambda t: min(1.5, t)):
        found = torch.compile(f, fullgraph=True)(t)
        assert isinstance(found, torch.Tensor) and found.item() == pytest.approx(float(f(t)))
    torch.compile(lambda t: max(t, 0) * 3, fullgraph=True)(t).backward()
    assert t.grad.item() == (3 if value >= 0 else 0)


def test_nan_is_as_in_python():
    nan = torch.tensor(float("nan"))
    f = torch.compile(lambda a, b: (max(a, b), min(a, b)), fullgraph=True)
    for a, b in ((nan, torch.tensor(1.0)), (torch.tensor(1.0), nan)):
        assert [v.isnan().item() for v in f(a, b)] == [bool(max(a, b).isnan()), bool(min(a, b).isnan())]


# ---- Reasons


def with_class(x):
    class Inner:
        value = 2

    return x * Inner.value


REASONS = {
    "a class statement": with_class,
    r"max\(\) of a Tensor with dimensions": lambda x: max(x, 0),
    "the truth of a tensor": lambda x: 1 if x.sum() else 2,
    "an item of a function": lambda x: with_class[0],
}


@pytest.mark.parametrize("reason", REASONS)
def test_reasons_name_what_the_user_has_written(reason):
    with pytest.raises(Unsupported, match=reason) as raised:
        torch.compile(REASONS[reason], fullgraph=True)(torch.ones(3))
    assert "Value" not in str(raised.value) and "LOAD_" not in str(raised.value)
