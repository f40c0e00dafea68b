"""Functions of itertools as generators in Python, which captures execute instead of those in C."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from typing import Any

from ._handlers import handlers, handles
from ._source import constant
from ._values import IteratorValue


def _accumulate(iterable, func=operator.add, *, initial=None):
    func = operator.add if func is None else func
    total = initial
    is_first = initial is None
    if not is_first:
        yield total
    for element in iterable:
        total = element if is_first else func(total, element)
        is_first = False
        yield total


def _product(*iterables, repeat=1):
    pools = [tuple(i) for i in iterables] * repeat
    found = [()]
    for pool in pools:
        found = [(*x, y) for x in found for y in pool]
    yield from found


def _permutations(iterable, r=None):
    pool = tuple(iterable)
    n = len(pool)
    r = n if r is None else r
    for indices in _product(range(n), repeat=r):
        if len(set(indices)) == r:
            yield tuple([pool[i] for i in indices])


def _combinations(iterable, r):
    pool = tuple(iterable)
    n = len(pool)
    for indices in _permutations(range(n), r):
        if sorted(indices) == list(indices):
            yield tuple([pool[i] for i in indices])


def _combinations_with_replacement(iterable, r):
    pool = tuple(iterable)
    n = len(pool)
    for indices in _product(range(n), repeat=r):
        if sorted(indices) == list(indices):
            yield tuple([pool[i] for i in indices])


def _count(start=0, step=1):
    n = start
    while True:
        yield n
        n += step


def _cycle(iterable):
    saved = []
    for element in iterable:
        yield element
        saved.append(element)
    while saved:
        yield from saved


def _repeat(object, times=None):  # noqa: A002
    if times is None:
        while True:
            yield object
    for _ in range(times):
        yield object


def _zip_longest(*iterables, fillvalue=None):
    iterators = [iter(i) for i in iterables]
    left = len(iterators)
    is_done = [False] * left
    while left:
        values = []
        for i, it in enumerate(iterators):
            value = fillvalue
            if not is_done[i]:
                try:
                    value = next(it)
                except StopIteration:
                    is_done[i] = True
                    left -= 1
            values.append(value)
        if left:
            yield tuple(values)


def _starmap(function, iterable):
    for args in iterable:
        yield function(*args)


def _groupby(iterable, key=None):
    groups = []  # (key, elements) of the groups that are next to each other
    for element in iterable:
        k = element if key is None else key(element)
        if groups and groups[-1][0] == k:
            groups[-1][1].append(element)
        else:
            groups.append((k, [element]))
    for k, elements in groups:
        yield k, iter(elements)


def _takewhile(predicate, iterable):
    for element in iterable:
        if not predicate(element):
            return
        yield element


def _dropwhile(predicate, iterable):
    drops = True
    for element in iterable:
        drops = drops and predicate(element)
        if not drops:
            yield element


def _pairwise(iterable):
    is_first = True
    before = None
    for element in iterable:
        if not is_first:
            yield before, element
        before, is_first = element, False


def _compress(data, selectors):
    for element, is_selected in zip(data, selectors):
        if is_selected:
            yield element


def _filterfalse(predicate, iterable):
    for element in iterable:
        if not (element if predicate is None else predicate(element)):
            yield element


def _from_iterable(iterables):
    for iterable in iterables:
        yield from iterable


def _by_form(original: Any, form: Callable) -> Callable:
    def handler(ex, args, kwargs):
        generator = ex.real(ex.call(ex.wrap(form, constant(form)), args, kwargs))
        return IteratorValue(lambda: ex.advance(generator), None, original)

    return handler


for _form in (
    _accumulate, _product, _permutations, _combinations, _combinations_with_replacement, _count, _cycle, _repeat, _zip_longest, _starmap,
    _groupby, _takewhile, _dropwhile, _compress, _filterfalse, _pairwise,
):  # fmt: skip
    _original = getattr(itertools, _form.__name__[1:], None)
    if _original is not None:  # pairwise is missing in Python 3.9
        handles(_original)(_by_form(_original, _form))
handlers[itertools.chain.from_iterable] = _by_form(itertools.chain, _from_iterable)
